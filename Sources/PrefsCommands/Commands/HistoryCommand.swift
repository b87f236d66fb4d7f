import ArgumentParser
import Coffer

/// The command `prefs history`.
struct HistoryCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "history",
    abstract: "Show earlier values of a key, or turn history on or off.",
    discussion: """
      Lists versions, newest first: number, when it was set, when it ended, who set it, value; --plain omits who set it. \
      Without KEY, lists the keys of a collection that have earlier values, including removed ones. `prefs revert \
      KEY@VERSION` brings a version back.

      A collection keeps earlier values after --keep: 32 of each key for 90 days, unless --count and --age say otherwise. \
      After --off it keeps no more; those it has stay. --purge erases them for good, alone or with --off, and asks first, or \
      needs --force; `prefs log` keeps that it was done, and by whom. Sealing a collection turns its history off and erases it; --keep turns it on again, and earlier values are \
      then sealed, too. Secrets and sealed values are shown only with --reveal.

      Examples:
        prefs history --keep editor
        prefs history --keep editor --count 5 --age 30d
        prefs history editor/theme
        prefs history -c editor
        prefs history --off editor
        prefs history --purge -c editor
      """)

  @Argument(help: "KEY or COLLECTION/KEY.", completion: Completions.keys)
  var key: String?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("Keep earlier values in this collection from now on.", valueName: "collection"))
  var keep: String?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("Keep no more in this collection.", valueName: "collection"))
  var off: String?

  @Flag(help: "Erase the earlier values of the collection for good.")
  var purge = false

  @Flag(name: .shortAndLong, help: "Do not ask before --purge.")
  var force = false

  @Option(help: ArgumentHelp("With --keep: how many for each key.", valueName: "n"))
  var count: Int?

  @Option(help: ArgumentHelp("With --keep: how long, as in 12h, 30d, 1y or forever.", valueName: "time"))
  var age: HistoryAge?

  @Option(help: ArgumentHelp("Show at most this many.", valueName: "n"))
  var limit: Int?

  @Flag(help: "Show secrets and sealed values.")
  var reveal = false

  @OptionGroup var form: ListForm

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func validate() throws {
    if [key != nil, keep != nil, off != nil].filter({ $0 }).count > 1 {
      throw ValidationError("Use one of KEY, --keep and --off.")
    }
    if purge, key != nil || keep != nil { throw ValidationError("--purge goes with --off, or with -c alone.") }
    if force, !purge { throw ValidationError("--force goes with --purge.") }
    if keep == nil, count != nil || age != nil { throw ValidationError("--count and --age go with --keep.") }
    if let count, count < 1 { throw ValidationError("--count needs at least 1; --off keeps none.") }
    if let limit, limit < 0 { throw ValidationError("--limit must be 0 or more.") }
  }

  mutating func run() throws {
    if let key {
      let reference = try common.reference(key)
      return try showVersions(reference, CommandSession(common, in: reference.certainPlaces, mayBeGone: true))
    }
    let name = (keep ?? off).map(CommandArguments.value) ?? common.namedCollection ?? ""
    let collection = try common.inEnvironment(name)
    // What a removed environment left is erased under its name.
    let session = try CommandSession(common, in: [collection], mayBeGone: purge || keep == nil && off == nil)
    if purge {
      try erase(collection.name, session)
    } else if keep != nil || off != nil {
      try setLimits(off == nil ? limits : nil, of: collection.name, session)
    } else {
      try showKeys(collection.name, session)
    }
  }

  // MARK: - Limits

  private var limits: HistoryLimits {
    let standard = HistoryLimits()
    return HistoryLimits(
      maximumCount: count ?? standard.maximumCount, maximumAge: age.map(\.duration) ?? standard.maximumAge)
  }

  private func setLimits(_ limits: HistoryLimits?, of collection: String, _ session: CommandSession) throws {
    try session.write { transaction in
      if let note = try KeyReference.emptyNote(collection, transaction) { common.note(note) }
      try transaction.setHistoryLimits(limits, forCollection: collection)
    }
    common.detail("\(DisplayText.collection(collection)) keeps \(limits == nil ? "no history" : "history")")
  }

  private func erase(_ collection: String, _ session: CommandSession) throws {
    let name = DisplayText.collection(collection)
    try session.using(try session.open()) { database in
      let connection = try database.makeConnection()
      // Ask outside of a transaction, which would block all other writers until the answer.
      let count = try connection.read { try $0.allKeysWithHistory(inCollection: collection).count }
      if count > 0, !force {
        try Erasure.confirm("the earlier values of \(DisplayText.count(count, "key", "keys")) of \(name)", common)
      }
      try connection.readWrite { transaction in
        if off != nil { try transaction.setHistoryLimits(nil, forCollection: collection) }
        try transaction.eraseHistory(ofCollection: collection)
      }
      try Erasure.clearTraces(database, common)
      common.detail("erased the history of \(name)")
    }
  }

  // MARK: - Showing

  private func showKeys(_ collection: String, _ session: CommandSession) throws {
    let keys = try session.read { transaction in
      let keys = try transaction.allKeysWithHistory(inCollection: collection)
      if keys.isEmpty { try explainNone(collection, transaction) }
      return keys.prefix(limit ?? .max)
    }
    var output = StandardOutput(pager: form.pager)
    switch form.choice {
    case .json: output.write(JSONText.array(keys.map(JSONText.quoted)) + "\n")
    case .plain: for key in keys { output.write(DisplayText.plainField(key) + "\n") }
    case .nul: for key in keys { try output.write(nulRecord: key) }
    case .text: for key in keys { output.write(DisplayText.escapingControls(key) + "\n") }
    }
    try output.finish()
  }

  private func showVersions(_ reference: KeyReference, _ session: CommandSession) throws {
    let (items, isSealed, isSecret) = try session.read { transaction in
      let reference = try reference.resolved(transaction, mayBeGone: true)
      let items = try transaction.history(forKey: reference.key, inCollection: reference.collection)
      if items.isEmpty {
        guard try transaction.hasObject(forKey: reference.key, inCollection: reference.collection) else {
          throw reference.notFound(in: transaction, listing: "history -c")
        }
        try explainNone(reference.collection, transaction)
      }
      return (
        items.prefix(limit ?? .max), try transaction.isSealed(collection: reference.collection),
        try transaction.isDeclaredSecret(reference.key, inCollection: reference.collection)
      )
    }
    let text = HistoryText(
      items: items, isSealed: isSealed, isSecret: isSecret, redaction: Redaction(reveals: reveal))
    var output = StandardOutput(pager: form.pager)
    switch form.choice {
    case .json: output.write(text.json + "\n")
    case .plain, .nul: try output.write(records: text.fields, endsWithNul: form.choice == .nul)
    case .text: for line in text.lines(common.style) { output.write(line) }
    }
    try output.finish()
  }

  private func explainNone(_ collection: String, _ transaction: borrowing ReadTransaction) throws {
    let name = DisplayText.collection(collection)
    if try transaction.historyLimits(forCollection: collection) == nil {
      common.note(
        "\(name) keeps no history. To keep overwritten values from now on, run: "
          + CommandHint.text("history \(ShellWord.option("--keep", collection))"))
    } else {
      common.note("\(name) has no earlier values within the limits of its history.")
    }
  }
}
