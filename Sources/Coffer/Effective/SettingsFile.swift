#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Files of settings, in JSON or as property lists.
enum SettingsFile {
  /// The contents of a file; nil if it is missing and `mayBeMissing`.
  ///
  /// - Throws: `CofferError.permissionDenied` or `.inputOutput`.
  static func contents(of path: String, mayBeMissing: Bool = false) throws -> Data? {
    do {
      return try Data(contentsOf: URL(filePath: path))
    } catch let error as CocoaError {
      switch error.code {
      case .fileReadNoSuchFile where mayBeMissing: return nil
      case .fileReadNoSuchFile: throw CofferError.inputOutput(path: path, reason: "no such file")
      case .fileReadNoPermission where isSomethingElse(path):
        throw CofferError.inputOutput(path: path, reason: "it is not a regular file")
      case .fileReadNoPermission:
        throw CofferError.permissionDenied(path: path, reason: "no permission to read the file")
      default: throw CofferError.inputOutput(path: path, reason: "the file could not be read")
      }
    } catch {
      throw CofferError.inputOutput(path: path, reason: "the file could not be read")
    }
  }

  /// Whether a path is of a pipe, a device, a socket or a folder.
  private static func isSomethingElse(_ path: String) -> Bool {
    let place = ManagedSettings.Folders.resolved(path) ?? path
    let type = try? FileManager.default.attributesOfItem(atPath: place)[.type] as? FileAttributeType
    return type != nil && type != .typeRegular
  }

  /// The settings in a file: JSON or a property list, as its name says.
  ///
  /// A file of another name is JSON or a property list of any format, whichever it is.
  ///
  /// - Throws: `CofferError.malformedSettings`.
  static func settings(in data: Data, named name: String) throws -> [String: Value] {
    try settingsAndLines(in: data, named: name).settings
  }

  /// The settings, and the lines of their top-level names and what is one level below; a binary property list has no lines.
  ///
  /// - Throws: As ``settings(in:named:)``.
  static func settingsAndLines(
    in data: Data, named name: String
  ) throws -> (settings: [String: Value], lines: [[String]: Int]) {
    let read: (value: Value, lines: [[String]: Int])
    do {
      if name.hasSuffix(".json") {
        read = try json(data)
      } else if name.hasSuffix(".plist") {
        read = try propertyList(data)
      } else {
        read = try either(data)
      }
    } catch {
      throw CofferError.malformedSettings(source: name, reason: error.reason)
    }
    return (try settings(read.value, read.lines, named: name), read.lines)
  }

  /// The settings in a property list of any format.
  ///
  /// - Throws: `CofferError.malformedSettings`.
  static func settings(inPropertyList data: Data, named name: String) throws -> [ByteString: Value] {
    func malformed(_ reason: String) -> CofferError { .malformedSettings(source: name, reason: reason) }
    let list: FileTree
    do {
      list = try PropertyListReader.fileTree(data)
    } catch {
      throw malformed("not a property list: \(error.reason)")
    }
    guard let members = list.sortedMembers else { throw malformed("it is not a dictionary of settings") }
    var settings: [ByteString: Value] = [:]
    for member in members {
      guard let value = member.tree.asValue, value != .null else {
        let reason =
          member.tree == .value(.null) ? "is null" : "has two names that differ only in their Unicode normalization"
        throw malformed("the value for key \"\(member.name)\" \(reason)")
      }
      settings[ByteString(member.name)] = value
    }
    return settings
  }

  // MARK: Forms

  /// Why a file is not what it should be.
  private struct Problem: Error {
    let reason: String
  }

  private static func json(_ data: Data) throws(Problem) -> (value: Value, lines: [[String]: Int]) {
    guard let text = String(validating: data, as: UTF8.self) else { throw Problem(reason: "not JSON: it is not UTF-8") }
    do {
      return try JSONReader.valueAndLines(text)
    } catch {
      throw Problem(reason: "not JSON: \(error.reason), \(TextPlace.words(ofByte: error.offset, in: text.utf8))")
    }
  }

  private static func propertyList(_ data: Data) throws(Problem) -> (value: Value, lines: [[String]: Int]) {
    do {
      return try PropertyListReader.valueAndLines(data)
    } catch {
      throw Problem(reason: "not a property list: \(error.reason)")
    }
  }

  private static func either(_ data: Data) throws(Problem) -> (value: Value, lines: [[String]: Int]) {
    do {
      return try json(data)
    } catch let first {
      do { return try propertyList(data) } catch { throw Problem(reason: "it is \(first.reason), and \(error.reason)") }
    }
  }

  private static func settings(
    _ value: Value, _ lines: [[String]: Int], named name: String
  ) throws -> [String: Value] {
    guard case .dictionary(let settings) = value else {
      throw CofferError.malformedSettings(source: name, reason: "it is not a dictionary of settings")
    }
    if let key = settings.keys.sorted().first(where: { settings[$0] == .null }) {
      let place = ManagedSettings.Place(file: name, line: lines[[key]])
      throw CofferError.malformedSettings(source: place.description, reason: "the value for key \"\(key)\" is null")
    }
    return settings
  }
}
