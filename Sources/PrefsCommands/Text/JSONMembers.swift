import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A request from another program, or a part of one: a JSON object.
package struct JSONMembers {
  private let members: [String: Value]

  /// - Throws: ``Failure`` with the status `usage`.
  package init(_ text: String) throws {
    do {
      guard case .dictionary(let members) = try JSONReader.value(text) else {
        throw Failure(.usage, "the request is not a JSON object.")
      }
      self.members = members
    } catch let problem as JSONReader.Problem {
      let what = problem.isNumber ? "cannot be read:" : "is not JSON:"
      throw Failure(.usage, "the request \(what) \(problem.reason), at byte \(problem.offset).")
    }
  }

  private init(_ members: [String: Value]) { self.members = members }

  package func optionalText(_ name: String) throws -> String? {
    switch members[name] {
    case nil, .null: nil
    case .string(let text): text
    default: throw Failure(.usage, "\"\(name)\" is not text.")
    }
  }

  package func text(_ name: String) throws -> String {
    guard let text = try optionalText(name) else { throw Failure(.usage, "\"\(name)\" is missing.") }
    return text
  }

  package func integer(_ name: String) throws -> Int64? {
    switch members[name] {
    case nil, .null: nil
    case .int(let number): number
    default: throw Failure(.usage, "\"\(name)\" is not an integer.")
    }
  }

  /// A date; nil if it is null or missing.
  package func date(_ name: String) throws -> Date? {
    guard let text = try optionalText(name) else { return nil }
    guard let date = Timestamp.date(text) else { throw Failure(.usage, "\"\(name)\" is not a date.") }
    return date
  }

  package func object(_ name: String) throws -> JSONMembers? {
    switch members[name] {
    case nil, .null: nil
    case .dictionary(let members): JSONMembers(members)
    default: throw Failure(.usage, "\"\(name)\" is not an object.")
    }
  }

  /// False if it is null or missing.
  package func flag(_ name: String) throws -> Bool {
    switch members[name] {
    case nil, .null: false
    case .bool(let isSet): isSet
    default: throw Failure(.usage, "\"\(name)\" is neither true nor false.")
    }
  }

  package func objects(_ name: String) throws -> [JSONMembers] {
    try list(name).map { element in
      guard case .dictionary(let members) = element else {
        throw Failure(.usage, "\"\(name)\" is not a list of objects.")
      }
      return JSONMembers(members)
    }
  }

  /// The texts in a list; nil if it is null or missing.
  package func optionalTexts(_ name: String) throws -> [String]? {
    if members[name] == nil || members[name] == .null { return nil }
    return try list(name).map { element in
      guard case .string(let text) = element else { throw Failure(.usage, "\"\(name)\" is not a list of texts.") }
      return text
    }
  }

  /// The elements of a list.
  package func list(_ name: String) throws -> [Value] {
    guard case .array(let elements)? = members[name] else { throw Failure(.usage, "\"\(name)\" is not a list.") }
    return elements
  }

  /// A member of whatever type; nil if it is missing.
  package subscript(name: String) -> Value? { members[name] }
}
