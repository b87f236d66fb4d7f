import Coffer
import PrefsCommands

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

/// Which settings a list shows.
struct SettingFilter: Hashable, Sendable {
  enum Kind: String {
    case all, changed, problems
  }

  /// nil for all.
  var collection: ByteString?
  var kind = Kind.all
  /// Words that must all occur in a setting.
  let words: [[UInt8]]

  init(collection: String? = nil, kind: Kind = .all, search: String = "") {
    self.collection = collection.map { ByteString($0) }
    self.kind = kind
    words = search.lowercased().split(whereSeparator: \.isWhitespace).map { Array($0.utf8) }
  }

  func accepts(_ setting: IndexedSetting) -> Bool {
    switch kind {
    case .all: break
    case .changed: if !setting.isChanged { return false }
    case .problems: if !setting.hasProblem { return false }
    }
    return words.allSatisfy { setting.searchText.contains($0) }
  }
}

extension [UInt8] {
  /// Whether `word` occurs in it.
  fileprivate func contains(_ word: [UInt8]) -> Bool {
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
