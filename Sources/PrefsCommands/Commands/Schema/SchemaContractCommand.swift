import ArgumentParser
import Coffer

/// The command `prefs schema contract`.
struct SchemaContractCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "contract",
    abstract: "End the former names of renamed settings.",
    discussion: """
      While an older version of a program may still run, a renamed setting has both of its names, and each follows the other. \
      This removes the former names, all of them, those of a collection or of the application of --app, or those of the settings named, by either name. Where a \
      rename was taken back, the name goes that no version declares any more. The last values stay in the history. A name stays \
      while any version of any application that declares it may run here, or its declarations are in force here or in a fleet, \
      while the other name has not followed its last value yet, and while an administrator names it alone (exit code 11); then \
      nothing is changed. `prefs describe` and `prefs schema` show until when.

      Each host of a fleet ends the names for itself: one where an older version may still run keeps them, and their values come \
      back from there.

      Examples:
        prefs schema contract
        prefs schema contract -c shop
        prefs schema contract shop/http.port
      """)

  @Argument(help: "KEY or COLLECTION/KEY; all renamed settings if omitted.", completion: Completions.keys)
  var keys: [String] = []

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let references = try keys.map { try common.reference($0) }
    let application = keys.isEmpty ? common.application() : nil
    let collection = keys.isEmpty ? try common.collection(nil) : nil
    let named = references.flatMap(\.certainPlaces) + (collection.map { [$0] } ?? [])
    let contractions = try CommandSession(common, in: named).write { transaction in
      let references = try references.map { try $0.resolved(transaction) }
      let places = references.map { SettingPlace($0.key, in: $0.collection) }
      let renames = try transaction.renames()
      for (place, reference) in zip(places, references)
      where !renames.contains(where: { $0.names(place) }) {
        throw Failure(
          .notFound, "\(KeyText.of(reference.key, in: reference.collection)) has no former name that is kept.")
      }
      let contractions = try transaction.contract { rename in
        if let application, ByteString(rename.application) == ByteString(application) { return true }
        if let collection { return rename.isIn(collection.name) }
        return places.isEmpty || places.contains(where: rename.names)
      }
      let kept = contractions.compactMap(\.reasonToKeep)
      guard kept.isEmpty else {
        throw Failure(.refused, "Former names have to stay; nothing was changed.", details: kept.map { "  \($0)" })
      }
      return contractions
    }
    common.note("\(DisplayText.count(contractions.count, "former name", "former names")) ended.")
    guard contractions.contains(where: \.isInFleet) else { return }
    common.note(
      "A fleet shares such names. Run this on its other hosts, too: one where an older version may still run keeps the names, "
        + "and their values come back from there.")
  }
}

extension Contraction {
  /// Why the former name was kept, as a sentence; nil if it was ended.
  fileprivate var reasonToKeep: String? {
    let former = DisplayText.escapingControls(name.description)
    switch outcome {
    case .contracted: return nil
    case .inUse(let version, let until):
      return "\(former) is kept for \(DisplayText.escapingControls(version)), "
        + (until.map { "which may run until \(Timestamp.text(milliseconds: $0))." } ?? "which declares it.")
    case .inFleet: return "\(former) is kept: a fleet keeps it. End it first on the hosts that have its program."
    case .behind(let item):
      let (place, source) = (item.place.description, item.source.description)
      return "\(former) is kept: \(DisplayText.escapingControls(place)) has not followed "
        + "\(DisplayText.escapingControls(source)) yet. Start the program once, or set it."
    case .managed(let file, let former, let current):
      let (former, current) = (former.description, current.description)
      return "\(DisplayText.escapingControls(former)) is kept: an administrator names it in \(file), and not "
        + "\(DisplayText.escapingControls(current)). Write \(DisplayText.escapingControls(current)) there."
    }
  }
}
