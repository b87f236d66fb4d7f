/// Copies that Coffer itself has made beside a store: of stores that a restore replaced, and of logs that lost frames.
///
/// They stay as they were. A secret that opened the store then opens them.
package enum StoreCopies {
  /// What their names add to the store's, before a number.
  private static let marks = ["-replaced-", "-damaged-log-"]

  /// The paths of the copies beside the store at `path`, in order; without the logs of replaced stores, which belong to
  /// them.
  package static func besides(_ path: String) -> [String] {
    guard let path = try? FilePath.resolved(path) else { return [] }
    return marks.flatMap { FilePath.numbered(path + $0) }
  }
}

extension FilePath {
  /// The paths that are `prefix` and a number, in the order of the numbers.
  static func numbered(_ prefix: String) -> [String] {
    let name = lastComponent(of: prefix)
    let found = (try? FolderNames.read(folder(above: prefix))) ?? []
    let numbers = found.compactMap { bytes in
      bytes.starts(with: name.utf8) ? Int(String(decoding: bytes.dropFirst(name.utf8.count), as: UTF8.self)) : nil
    }
    return numbers.filter { $0 > 0 }.sorted().map { "\(prefix)\($0)" }
  }
}
