import Coffer
import PrefsCommands

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A setting in the list: enough to sort, filter and search, without its value.
///
/// There are as many as the store has settings, so each is small: what an environment only inherits shares its texts.
struct IndexedSetting: Sendable {
  /// What is known of an item.
  struct Stored: Sendable {
    let modified: Date
    let due: Date?
    let expires: Bool
  }

  /// What its collection has itself; nil for what is only declared, inherited, or set by an administrator.
  private(set) var own: Stored?
  /// Whether ``own`` differs from its declared default.
  private(set) var isChanged: Bool
  /// Whether something is wrong with ``own``, or it is deprecated.
  private(set) var hasProblem: Bool
  /// Whether an administrator has locked it.
  let isLocked: Bool
  private(set) var collection: String
  let key: String
  /// The type as the list shows it.
  let type: String
  /// The lower-case name of its collection, with the slash before the key.
  private(set) var collectionText: [UInt8]
  /// The lower-case text to search besides: its key, its summary and its text.
  ///
  /// Never a secret, and nothing sealed.
  let searchText: [UInt8]
  /// The lower-case text of who changed it last; empty if unknown.
  private(set) var authorText: [UInt8]
  /// To compare the value in force.
  let value: ValueMark

  /// The setting as an environment shows it that has no value of its own.
  ///
  /// - Parameter text: The ``collectionText`` of the environment.
  func inherited(by environment: String, _ text: [UInt8]) -> IndexedSetting {
    var setting = self
    (setting.collection, setting.collectionText) = (environment, text)
    (setting.own, setting.isChanged, setting.hasProblem, setting.authorText) = (nil, false, false, [])
    return setting
  }

  /// Whether a lower-case word occurs in its name, its summary or its text.
  func contains(_ word: [UInt8]) -> Bool {
    if searchText.contains(word) || collectionText.contains(word) { return true }
    // Both sides of the slash in its name.
    return word.indices.contains { place in
      word[place] == UInt8(ascii: "/") && collectionText.suffix(place + 1).elementsEqual(word[...place])
        && searchText.starts(with: word[(place + 1)...])
    }
  }

  /// The order of the list: by collection, then by key, byte by byte.
  static func precedes(_ first: (collection: String, key: String), _ second: (collection: String, key: String)) -> Bool
  {
    (ByteString(first.collection), ByteString(first.key)) < (ByteString(second.collection), ByteString(second.key))
  }

  var name: (collection: String, key: String) { (collection, key) }
}

/// A value in force, to compare it with another one.
struct ComparedValue: Hashable {
  /// nil if there is none, or it is sealed.
  let value: Value?
  /// The collection of a sealed value: only that of the same item is known to be equal.
  let sealedIn: ByteString?
}

/// What the index keeps of a value, to compare it with another one: a hash that only this process can compute.
struct ValueMark: Equatable, Sendable {
  private let hash: Int
  /// Whether it is the value that programs have.
  let isCertain: Bool

  init(_ value: ComparedValue, isCertain: Bool) { (hash, self.isCertain) = (value.hashValue, isCertain) }

  /// That of no value.
  static let none = ValueMark(ComparedValue(value: nil, sealedIn: nil), isCertain: true)
}

/// Which settings a list shows.
struct SettingFilter: Hashable, Sendable {
  enum Kind: String {
    case all, changed, problems
  }

  /// nil for all.
  var collection: ByteString?
  var kind = Kind.all
  /// What must all hold for a setting.
  let terms: [SearchTerm]
  /// What is wrong with the search, as a sentence; nothing is found then.
  let problem: String?
  /// When it is applied: to the minute, so that equal searches are equal filters for a while.
  private let now: Date

  init(collection: String? = nil, kind: Kind = .all, search: String = "", now: Date = Date()) {
    self.collection = collection.map { ByteString($0) }
    self.kind = kind
    let minute = 60.0
    let minutes = (now.timeIntervalSinceReferenceDate / minute).rounded(.down)
    let now = Date(timeIntervalSinceReferenceDate: minutes * minute)
    self.now = now
    let parsed = search.lowercased().split(whereSeparator: \.isWhitespace).map { SearchTerm.parse($0, now: now) }
    terms = parsed.compactMap(\.term)
    problem = parsed.lazy.compactMap(\.problem).first
  }

  /// Whether it accepts every setting.
  var isAll: Bool { kind == .all && terms.isEmpty && problem == nil }

  func accepts(_ setting: IndexedSetting) -> Bool {
    if problem != nil { return false }
    switch kind {
    case .all: break
    case .changed: if !setting.isChanged { return false }
    case .problems: if !setting.hasProblem { return false }
    }
    return terms.allSatisfy { $0.accepts(setting, now: now) }
  }
}

extension [UInt8] {
  /// Whether `word` occurs in it.
  func contains(_ word: [UInt8]) -> Bool {
    withUnsafeBytes { text in
      word.withUnsafeBytes { word in
        guard let first = word.first, let wanted = word.baseAddress, let end = text.baseAddress.map({ $0 + text.count })
        else { return word.isEmpty }
        var place = text.baseAddress
        while let from = place, end - from >= word.count,
          let found = memchr(from, Int32(first), end - from - word.count + 1)
        {
          if memcmp(found, wanted, word.count) == 0 { return true }
          place = UnsafeRawPointer(found) + 1
        }
        return false
      }
    }
  }
}
