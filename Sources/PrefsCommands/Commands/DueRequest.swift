import ArgumentParser
import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The implementation of `prefs list --due`.
struct DueRequest: Request {
  let date: Date
  /// nil for all collections.
  let collection: String?
  let form: ListForm.Choice
  let pager: Pager?
  let options: SessionOptions

  /// - Throws: The exit code for overdue items.
  func run() throws {
    let items = try CommandSession(options).read { transaction in
      if let collection { try KeyReference.requireItems(in: collection, transaction) }
      return try transaction.itemsDue(before: date)
        .filter { item in collection.map { $0.utf8.elementsEqual(item.collection.utf8) } ?? true }
    }
    var output = StandardOutput(pager: pager)
    switch form {
    case .json:
      output.write(
        JSONText.array(
          items.map { ItemJSON.text($0.key, $0.collection, $0, kind: $0.kind.name, value: nil, origin: nil) }) + "\n")
    case .plain, .nul: try output.write(records: items.lazy.map(fields), endsWithNul: form == .nul)
    case .text:
      var table = Table()
      for item in items {
        table.add([
          DisplayText.escapingControls(KeyText.of(item.key, in: item.collection)),
          RemainingTime.notes(expires: nil, due: item.due),
        ])
      }
      for line in table.lines() { output.write(line) }
    }
    try output.finish()
    if !items.isEmpty { throw ExitCode(ExitStatus.due.rawValue) }
  }

  private func fields(_ item: ItemInfo) -> [String] {
    [item.collection, item.key, item.due.map(Timestamp.text) ?? ""]
  }
}
