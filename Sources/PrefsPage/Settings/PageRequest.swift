import Coffer
import PrefsCommands

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A request of a page: a JSON object.
struct PageRequest {
  private let members: [String: Value]

  /// - Throws: ``Failure`` with the status `usage`.
  init(_ text: String) throws {
    guard case .dictionary(let members)? = try? JSONReader.value(text) else {
      throw Failure(.usage, "the request is not a JSON object.")
    }
    self.members = members
  }

  private init(_ members: [String: Value]) { self.members = members }

  func optionalText(_ name: String) throws -> String? {
    switch members[name] {
    case nil, .null: nil
    case .string(let text): text
    default: throw Failure(.usage, "\"\(name)\" is not text.")
    }
  }

  func text(_ name: String) throws -> String {
    guard let text = try optionalText(name) else { throw Failure(.usage, "\"\(name)\" is missing.") }
    return text
  }

  func integer(_ name: String) throws -> Int64? {
    switch members[name] {
    case nil, .null: nil
    case .int(let number): number
    default: throw Failure(.usage, "\"\(name)\" is not an integer.")
    }
  }

  /// A date; nil if it is null or missing.
  func date(_ name: String) throws -> Date? {
    guard let text = try optionalText(name) else { return nil }
    guard let date = Timestamp.date(text) else { throw Failure(.usage, "\"\(name)\" is not a date.") }
    return date
  }

  func object(_ name: String) throws -> PageRequest? {
    switch members[name] {
    case nil, .null: nil
    case .dictionary(let members): PageRequest(members)
    default: throw Failure(.usage, "\"\(name)\" is not an object.")
    }
  }

  func flag(_ name: String) -> Bool { members[name] == .bool(true) }

  func objects(_ name: String) throws -> [PageRequest] {
    guard case .array(let elements)? = members[name] else { throw Failure(.usage, "\"\(name)\" is not a list.") }
    return try elements.map { element in
      guard case .dictionary(let members) = element else {
        throw Failure(.usage, "\"\(name)\" is not a list of objects.")
      }
      return PageRequest(members)
    }
  }

  /// How to list settings.
  func arrangement() throws -> ListArrangement {
    let order = try optionalText("order") ?? ListArrangement.Order.name.rawValue
    guard let order = ListArrangement.Order(rawValue: order) else { throw Failure(.usage, "unknown order.") }
    let folded =
      members["folded"] == nil
      ? []
      : try objects("folded").map { section in
        ListArrangement.Section(
          collection: ByteString(try section.text("collection")),
          part: try section.optionalText("part").map { ByteString($0) })
      }
    return ListArrangement(filter: try filter(), order: order, folded: Set(folded))
  }

  /// Which settings to list.
  func filter() throws -> SettingFilter {
    let kind = try optionalText("filter") ?? SettingFilter.Kind.all.rawValue
    guard let kind = SettingFilter.Kind(rawValue: kind) else { throw Failure(.usage, "unknown filter.") }
    return SettingFilter(
      collection: try optionalText("collection"), kind: kind, search: try optionalText("search") ?? "")
  }
}
