import ArgumentParser
import CofferMaintenance

/// What happens to existing items.
enum MergeMode: String, EnumerableFlag {
  case merge, replace

  static func help(for value: MergeMode) -> ArgumentHelp? {
    value == .merge
      ? "Keep other items, and replace those that are also in the source."
      : "Remove other items from the collections in the source."
  }

  var ofImport: ImportMode { self == .merge ? .merge : .replace }
}
