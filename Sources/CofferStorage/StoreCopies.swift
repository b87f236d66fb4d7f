/// Copies that Coffer itself has made beside a store: of stores that a restore replaced, of logs that lost frames, and what
/// killed programs left of either, or of a backup that they were about to put in place.
///
/// They stay as they were. A secret that opened the store then opens them.
package enum StoreCopies {
  /// What their names add to the store's, before a number.
  private static let marks = ["-replaced-", "-damaged-log-"]

  /// The paths of the copies beside the store at `path`, in order; without the logs of replaced stores, which belong to
  /// them.
  package static func besides(_ path: String) -> [String] {
    replaced(besides: path) + damagedLogs(besides: path) + leftovers(besides: path)
  }

  /// The stores that a restore has replaced.
  package static func replaced(besides path: String) -> [String] { marked(marks[0], path) }

  /// The logs of which frames were lost.
  package static func damagedLogs(besides path: String) -> [String] { marked(marks[1], path) }

  private static func marked(_ mark: String, _ path: String) -> [String] {
    guard let path = try? FilePath.resolved(path) else { return [] }
    return FilePath.numbered(path + mark)
  }

  /// What killed programs left under temporary names, whole or in part.
  package static func leftovers(besides path: String) -> [String] {
    guard let path = try? FilePath.resolved(path) else { return [] }
    let name = Array(FilePath.lastComponent(of: path).utf8)
    return FilePath.temporary(besides: path) { final in
      final == name || marks.contains { final.starts(with: name + Array($0.utf8)) }
    }
  }
}

extension FilePath {
  /// The paths that are `prefix` and a number from 1, as Coffer writes numbers, in the order of the numbers.
  static func numbered(_ prefix: String) -> [String] {
    let name = lastComponent(of: prefix)
    let found = (try? FolderNames.read(folder(above: prefix))) ?? []
    let numbers = found.compactMap { bytes in
      bytes.starts(with: name.utf8) ? number(String(decoding: bytes.dropFirst(name.utf8.count), as: UTF8.self)) : nil
    }
    return numbers.filter { $0 > 0 }.sorted().map { "\(prefix)\($0)" }
  }

  /// The number that is written as `text`; nil for other spellings, such as `+1` and `007`, which are names of other files.
  package static func number(_ text: String) -> Int? {
    Int(text).flatMap { String($0) == text ? $0 : nil }
  }

  /// The temporary files in the folder of `path` whose final names `isWanted` accepts, in order.
  static func temporary(besides path: String, _ isWanted: ([UInt8]) -> Bool) -> [String] {
    let folder = folder(above: path)
    let names = (try? FolderNames.read(folder)) ?? []
    let found = names.filter { name in
      // A store that was open under a temporary name has a log and an index.
      let isCompanion = ["-wal", "-shm"].contains { name.suffix($0.utf8.count).elementsEqual($0.utf8) }
      return NewFile.finalName(ofTemporary: isCompanion ? name.dropLast(4) : name).map(isWanted) ?? false
    }
    let prefix = folder == "/" ? folder : folder + "/"
    return found.map { prefix + String(decoding: $0, as: UTF8.self) }.sorted()
  }
}
