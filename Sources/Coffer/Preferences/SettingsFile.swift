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
      case .fileReadNoPermission:
        throw CofferError.permissionDenied(path: path, reason: "no permission to read the file")
      default: throw CofferError.inputOutput(path: path, reason: "the file could not be read")
      }
    } catch {
      throw CofferError.inputOutput(path: path, reason: "the file could not be read")
    }
  }

  /// The settings in `data`, a JSON object or a property list of any format.
  ///
  /// - Throws: `CofferError.malformedSettings`.
  static func settings(in data: Data, named name: String) throws -> [String: Value] {
    try settingsAndLines(in: data, named: name).settings
  }

  /// The settings, and the lines of their top-level names; a binary property list has no lines.
  ///
  /// - Throws: As ``settings(in:named:)``.
  static func settingsAndLines(
    in data: Data, named name: String
  ) throws -> (settings: [String: Value], lines: [[String]: Int]) {
    if let text = String(data: data, encoding: .utf8), let json = try? JSONReader.valueAndLines(text) {
      return (try settings(json.value, named: name), json.lines)
    }
    do {
      let list = try PropertyListReader.valueAndLines(data)
      return (try settings(list.value, named: name), list.lines)
    } catch let problem as PropertyListReader.Problem {
      throw CofferError.malformedSettings(source: name, reason: problem.reason)
    }
  }

  /// The settings in a property list of any format.
  ///
  /// - Throws: `CofferError.malformedSettings`.
  static func settings(inPropertyList data: Data, named name: String) throws -> [String: Value] {
    let list: Value
    do {
      list = try PropertyListReader.value(data)
    } catch {
      throw CofferError.malformedSettings(source: name, reason: error.reason)
    }
    return try settings(list, named: name)
  }

  private static func settings(_ value: Value, named name: String) throws -> [String: Value] {
    guard case .dictionary(let settings) = value else {
      throw CofferError.malformedSettings(source: name, reason: "it is not a dictionary of settings")
    }
    if let key = settings.keys.sorted().first(where: { settings[$0] == .null }) {
      throw CofferError.malformedSettings(source: name, reason: "the value for key \"\(key)\" is null")
    }
    return settings
  }
}
