import Foundation
import Testing

/// Checks lines against the JSON Schema in Documentation/Serve.md, whose keywords it knows; another one fails the test.
struct SchemaCheck: Sendable {
  /// Unsafe: never changed after it was read.
  private nonisolated(unsafe) let definitions: [String: Any]

  /// The schema of the protocol of `prefs serve`.
  static let serve = Result { try SchemaCheck(ofDocument: "Documentation/Serve.md") }

  private init(ofDocument name: String) throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../..")
    let text = try String(contentsOf: root.appendingPathComponent(name), encoding: .utf8)
    let block = try #require(text.components(separatedBy: "\n```json-schema\n").dropFirst().first)
    let schema = try JSONSerialization.jsonObject(with: Data(block.components(separatedBy: "\n```")[0].utf8))
    definitions = try #require((schema as? [String: Any])?["$defs"] as? [String: Any])
  }

  /// Whether a value matches a definition.
  func accepts(_ value: Any, as name: String) throws -> Bool { try accepts(value, try definition(name)) }

  private func definition(_ name: String) throws -> Any { try #require(definitions[name], "no definition \(name)") }

  private func accepts(_ value: Any, _ schema: Any) throws -> Bool {
    if let all = schema as? Bool { return all }
    for (keyword, rule) in try #require(schema as? [String: Any], "\(schema)") {
      guard try accepts(value, keyword, rule) else { return false }
    }
    return true
  }

  private func accepts(_ value: Any, _ keyword: String, _ rule: Any) throws -> Bool {
    let object = value as? [String: Any]
    switch keyword {
    case "$ref":
      return try accepts(value, as: try #require((rule as? String)?.split(separator: "/").last.map(String.init)))
    case "type": return ((rule as? [String]) ?? [rule as? String ?? ""]).contains { Self.isOf($0, value) }
    case "const": return "\(value)" == "\(rule)"
    case "enum": return (rule as? [Any] ?? []).contains { "\($0)" == "\(value)" }
    case "minimum": return (value as? NSNumber).map { $0.doubleValue >= (rule as? NSNumber)?.doubleValue ?? 0 } ?? true
    case "pattern":
      guard let text = value as? String else { return true }
      return try text.firstMatch(of: Regex(#require(rule as? String))) != nil
    case "required": return object.map { object in (rule as? [String] ?? []).allSatisfy { object[$0] != nil } } ?? true
    case "properties":
      for (name, schema) in rule as? [String: Any] ?? [:] {
        if let member = object?[name], try !accepts(member, schema) { return false }
      }
      return true
    case "items": return try (value as? [Any] ?? []).allSatisfy { try accepts($0, rule) }
    case "minItems": return (value as? [Any]).map { $0.count >= rule as? Int ?? 0 } ?? true
    case "maxItems": return (value as? [Any]).map { $0.count <= rule as? Int ?? 0 } ?? true
    case "allOf": return try (rule as? [Any] ?? []).allSatisfy { try accepts(value, $0) }
    case "oneOf": return try (rule as? [Any] ?? []).filter { try accepts(value, $0) }.count == 1
    case "not": return try !accepts(value, rule)
    default:
      Issue.record("the check does not know \(keyword)")
      return false
    }
  }

  private static func isOf(_ type: String, _ value: Any) -> Bool {
    switch type {
    case "object": return value is [String: Any]
    case "array": return value is [Any]
    case "string": return value is String
    case "null": return value is NSNull
    case "boolean": return (value as? NSNumber).map(isBool) ?? false
    case "integer":
      return (value as? NSNumber).map { !isBool($0) && $0.doubleValue.rounded() == $0.doubleValue } ?? false
    default: return false
    }
  }

  private static func isBool(_ number: NSNumber) -> Bool { String(cString: number.objCType) == "c" }
}
