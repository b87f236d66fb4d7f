import CofferStorage

/// What a commit did besides changing keys, in a few words: `slot 2 added`, `history off for web`.
///
/// It has no value and no secret, only the name of a collection or the number of a slot.
public struct CommitAction: Sendable, Hashable, CustomStringConvertible {
  /// What was done, before the name of the collection.
  let phrase: String
  /// The collection concerned; nil for the whole store.
  public let collection: String?

  init(_ phrase: String, _ collection: String? = nil) {
    self.phrase = phrase
    self.collection = collection
  }

  /// The words of the log.
  public var description: String {
    collection.map { "\(phrase) \($0.isEmpty ? "the default collection" : $0)" } ?? phrase
  }
}

// MARK: - The vocabulary

extension CommitAction {
  private static let erasure = "erased"
  private static let declaration = "loaded declarations of"

  // A collection
  static func erased(_ collection: String) -> CommitAction { CommitAction(erasure, collection) }
  static let erasedEverything = CommitAction("erased everything")
  static func historyOn(_ collection: String) -> CommitAction { CommitAction("history on for", collection) }
  static func historyOff(_ collection: String) -> CommitAction { CommitAction("history off for", collection) }
  static func historyErased(_ collection: String) -> CommitAction { CommitAction("erased the history of", collection) }
  static func environmentMade(_ collection: String) -> CommitAction { CommitAction("made environment", collection) }
  static func environmentRemoved(_ collection: String) -> CommitAction {
    CommitAction("removed environment", collection)
  }
  static func sealed(_ collection: String) -> CommitAction { CommitAction("sealed", collection) }
  static func unsealed(_ collection: String) -> CommitAction { CommitAction("unsealed", collection) }
  static func declared(_ application: String) -> CommitAction { CommitAction(declaration, application) }
  static func contracted(_ collection: String) -> CommitAction {
    CommitAction("ended a former name in", collection)
  }

  static func declaredElsewhere(_ application: String) -> CommitAction {
    CommitAction("took a fleet's declarations of", application)
  }

  // Keys
  static func changed(_ change: SlotChange, _ slot: UInt8, ofVault isOfVault: Bool = false) -> CommitAction {
    let what =
      switch change {
      case .add: "added"
      case .replace: "got another key"
      case .label: "got another label"
      case .remove: "removed"
      }
    return CommitAction("slot \(slot)\(isOfVault ? " of the vault" : "") \(what)")
  }
  static let rotationBegun = CommitAction("rotation of the keys begun")
  static let rootKeyReplaced = CommitAction("root key replaced, rotation of the keys begun")
  static let rotated = CommitAction("keys rotated")

  // The vault
  static let vaultCreated = CommitAction("vault created")
  static let vaultKeyReplaced = CommitAction("key of the vault replaced")

  // The store
  static let restored = CommitAction("store restored from a backup")
  static let salvaged = CommitAction("store salvaged")

  /// Whether a program of this host, or a command, has declared settings.
  package var isDeclaration: Bool { phrase == Self.declaration }
  /// Whether it erased the collection, which has no name in the store since.
  var isErasure: Bool { phrase == Self.erasure }
}

// MARK: - In the store

extension CommitAction {
  /// More are counted only.
  static let maximumCount = 16
  /// Longer names are truncated.
  private static let maximumLength = 128

  /// The lines described in `FORMAT.md`, Change log; nil for none.
  static func text(of actions: [CommitAction]) -> String? {
    guard !actions.isEmpty else { return nil }
    let listed = actions.count > maximumCount ? actions.prefix(maximumCount - 1) : actions[...]
    var lines = listed.map { action in
      action.collection.map { "\(action.phrase)\t\(line($0))" } ?? action.phrase
    }
    if listed.count < actions.count { lines.append("\(actions.count - listed.count) more") }
    return lines.joined(separator: "\n")
  }

  /// The actions in a row of the change log, which anyone with the key could have written.
  static func all(in text: String) -> [CommitAction] {
    text.split(separator: "\n").prefix(maximumCount).map { text in
      let parts = text.split(separator: "\t", maxSplits: 1, omittingEmptySubsequences: false).map { line(String($0)) }
      return CommitAction(parts[0], parts.count > 1 ? parts[1] : nil)
    }
  }

  /// Whether the name of its collection is too long for the log.
  var isTruncated: Bool { collection?.hasSuffix("…") ?? false }

  /// A name as one line, so that no control character reaches a terminal.
  private static func line(_ text: String) -> String {
    let scalars = text.unicodeScalars.lazy.map { scalar in
      scalar.properties.generalCategory == .control || scalar.properties.generalCategory == .format ? "?" : scalar
    }
    let line = String(String.UnicodeScalarView(scalars.prefix(maximumLength + 1)))
    return line.unicodeScalars.count > maximumLength
      ? String(String.UnicodeScalarView(line.unicodeScalars.prefix(maximumLength - 1))) + "…" : line
  }
}
