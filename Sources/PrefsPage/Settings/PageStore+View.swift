import Coffer
import PrefsCommands

extension PageStore {
  /// Keeps how the user looks at the list: a page that is opened again continues with it, and browsers keep no names of settings.
  func keepView(_ request: PageRequest) throws -> String {
    let arrangement = try request.arrangement()
    view.withLock { $0 = (arrangement.order, arrangement.folded) }
    return "{}"
  }

  /// The order of the list, and the sections that are folded.
  var viewJSON: String {
    let (order, folded) = view.withLock { $0 }
    return JSONText.object([
      ("order", JSONText.quoted(order.rawValue)),
      ("folded", JSONText.array(folded.filter { scope.contains($0.collection.string) }.map(\.json))),
    ])
  }
}

extension ListArrangement.Section {
  /// As a page names it.
  var json: String {
    JSONText.object([
      ("collection", JSONText.quoted(collection.string)), ("part", part.map { JSONText.quoted($0.string) } ?? "null"),
    ])
  }
}
