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
struct IndexedSetting: Sendable {
  let collection: String
  let key: String
  /// nil for a setting that is not stored, only declared or set by an administrator.
  let info: ItemInfo?
  /// Whether it is stored, and differs from its declared default.
  let isChanged: Bool
  /// Whether something is wrong with it, or it is deprecated.
  let hasProblem: Bool
  /// The lower-case text to search: its name, its summary and its text.
  ///
  /// Never a secret, and nothing sealed.
  let searchText: [UInt8]
  /// The type as the list shows it.
  let type: String
  /// Whether an administrator has locked it.
  let isLocked: Bool
  /// The lower-case text of who changed it last; empty if unknown.
  let authorText: [UInt8]
  /// To compare the value in force.
  let value: ValueMark

  /// The order of the list: by collection, then by key, byte by byte.
  static func precedes(_ first: (collection: String, key: String), _ second: (collection: String, key: String)) -> Bool
  {
    if first.collection.utf8.elementsEqual(second.collection.utf8) {
      return first.key.utf8.lexicographicallyPrecedes(second.key.utf8)
    }
    return first.collection.utf8.lexicographicallyPrecedes(second.collection.utf8)
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
