import Coffer
import PrefsCommands

/// A request of a page.
typealias PageRequest = JSONMembers

extension PageRequest {
  /// How to list settings.
  func arrangement() throws -> ListArrangement {
    let order = try optionalText("order") ?? ListArrangement.Order.name.rawValue
    guard let order = ListArrangement.Order(rawValue: order) else { throw Failure(.usage, "unknown order.") }
    let folded =
      self["folded"] == nil
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
