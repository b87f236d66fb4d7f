import ArgumentParser
import CofferMaintenance

/// What happens to existing items.
enum MergeMode: String, EnumerableFlag {
  case merge, replace

  static func help(for value: MergeMode) -> ArgumentHelp? {
    value == .merge
      ? "Keep the items that do not come, and replace those that do."
      : "Remove the items that do not come, in the collections that do."
  }

  var ofImport: ImportMode { self == .merge ? .merge : .replace }
}
