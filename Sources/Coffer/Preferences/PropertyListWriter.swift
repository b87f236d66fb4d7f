#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Writes settings as a property list.
///
/// Types that property lists lack are written as UserDefaults does.
struct PropertyListWriter {
  let collection: String
  let format: Preferences.PropertyListFormat

  /// - Throws: `CofferError.notExportable`.
  func data(_ settings: [ByteString: Value]) throws -> Data {
    var contents: [ByteString: Value] = [:]
    for (key, value) in settings.sorted(by: { $0.key < $1.key }) {
      try checkText(key.string, of: key.string)
      contents[key] = try exported(value, of: key.string)
    }
    let tree = FileTree.members(contents.map { FileTree.Member($0.key.string, .value($0.value)) })
    let data: Data
    do {
      data =
        format == .xml
        ? Data(try XMLPropertyListWriter.text(tree).utf8) : Data(try BinaryPropertyListWriter.bytes(tree))
    } catch {
      throw CofferError.malformedSettings(source: "the property list", reason: error.reason)
    }
    try checkReadsBack(data, contents)
    return data
  }

  /// Reads the list again, so that nothing is exported that an import would read as something else.
  private func checkReadsBack(_ data: Data, _ contents: [ByteString: Value]) throws {
    var missing = contents
    for member in (try? PropertyListReader.fileTree(data))?.sortedMembers ?? [] {
      guard let value = missing.removeValue(forKey: ByteString(member.name)), let read = member.tree.asValue,
        try read.stored == value.stored
      else { throw failure(member.name, "a property list cannot hold it exactly") }
    }
    if let key = missing.keys.min() { throw failure(key.string, "a property list cannot hold it exactly") }
  }

  private func exported(_ value: Value, of key: String) throws -> Value {
    guard case .url(let url) = value else {
      if URLArchive.unwrapped(value).kind == .url { throw failure(key, "an import would read this data as a URL") }
      return try element(value, of: key)
    }
    guard url.isFileURL else { return .data(URLArchive.data(url)) }
    let path = url.absoluteURL.path
    try checkText(path, of: key)
    return .string(Self.abbreviated(path))
  }

  /// The value in a form that a property list can hold at any depth.
  private func element(_ value: Value, of key: String) throws -> Value {
    switch value {
    case .bool, .int, .uint64, .double, .data: return value
    case .string(let text):
      try checkText(text, of: key)
      return value
    case .date(let date):
      try check(date, of: key)
      guard format == .xml else { return value }
      return .date(Date(timeIntervalSinceReferenceDate: date.timeIntervalSinceReferenceDate.rounded(.down)))
    case .array(let elements): return .array(try elements.map { try element($0, of: key) })
    case .dictionary(let members):
      for name in members.keys { try checkText(name, of: key) }
      return .dictionary(try members.mapValues { try element($0, of: key) })
    case .json(let text):
      let parsed: Value
      do { parsed = try JSONReader.value(text) } catch { throw failure(key, "it is JSON with \(error.reason)") }
      return try element(parsed, of: key)
    case .null: throw failure(key, "it holds null")
    case .url: throw failure(key, "it holds a URL inside a list")
    case .uuid: throw failure(key, "it holds a UUID")
    case .secret: throw failure(key, "it is a secret, which an export would reveal")
    }
  }

  // MARK: Limits of XML

  private func checkText(_ text: String, of key: String) throws {
    guard format != .xml || XMLPropertyList.holds(text) else {
      throw failure(key, "XML cannot hold control characters; the binary format can")
    }
  }

  private func check(_ date: Date, of key: String) throws {
    guard format != .xml || XMLPropertyList.holds(date) else {
      throw failure(key, "XML cannot hold this date portably; the binary format can")
    }
  }

  // MARK: Paths

  /// The path with `~` for the home folder.
  private static func abbreviated(_ path: String) -> String {
    var home = URL.homeDirectory.path
    while home.count > 1, home.hasSuffix("/") { home.removeLast() }
    if path == home { return "~" }
    return path.hasPrefix(home + "/") && home != "/" ? "~" + path.dropFirst(home.count) : path
  }

  private func failure(_ key: String, _ reason: String) -> CofferError {
    .notExportable(collection: collection, key: key, reason: reason)
  }
}
