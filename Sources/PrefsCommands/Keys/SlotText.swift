import Coffer

/// Key slots as text.
enum SlotText {
  /// The slot in a sentence: `slot 2 (passphrase "Ada")`.
  static func describe(_ slot: SlotInfo) -> String {
    "slot \(slot.id) (\(slot.kind.rawValue)\(slot.label.isEmpty ? "" : " \"\(slot.label)\""))"
  }

  /// Several slots in a sentence.
  static func list(_ slots: some Sequence<SlotInfo>) -> String {
    slots.map(describe).joined(separator: ", ")
  }

  /// The kinds of secret that open a store or its vault with these slots, in a sentence.
  static func ways(_ slots: [SlotInfo]) -> String {
    let ways = slots.map { slot in
      let label = slot.label.isEmpty ? "" : " labelled \"\(DisplayText.escapingControls(slot.label))\""
      return switch slot.kind {
      case .keyFile: "a key file\(label) (--key-file)"
      case .passphrase: "a passphrase\(label) (--passphrase-fd, or asked for)"
      case .recoveryKey: "a recovery key\(label) (--recovery-key-fd)"
      case .keyCommand: "a key command\(label) (PREFS_KEY_COMMAND; if a TPM's, its file STORE.tpm on its machine)"
      default: "a \(slot.kind.rawValue)\(label)"
      }
    }
    return "It opens with: " + ways.joined(separator: "; or ") + "."
  }

  /// The slots in columns, for display.
  static func lines(_ slots: [SlotInfo]) -> [String] {
    var table = Table()
    table.add(["SLOT", "KIND", "LABEL", "STRETCHING", "CREATED"])
    for slot in slots { table.add(fields(slot).map { DisplayText.escapingControls($0) }) }
    return table.lines(rightAligned: [0])
  }

  /// Number, kind, label, stretching and time.
  static func fields(_ slot: SlotInfo) -> [String] {
    ["\(slot.id)", slot.kind.rawValue, slot.label, slot.costDescription, Timestamp.text(slot.created)]
  }

  /// A slot as a JSON object.
  static func json(_ slot: SlotInfo) -> String {
    JSONText.object([
      ("id", "\(slot.id)"), ("kind", JSONText.quoted(name(of: slot.kind))),
      ("label", JSONText.quoted(slot.label)), ("cost", JSONText.quoted(slot.costDescription)),
      ("created", JSONText.quoted(Timestamp.text(slot.created))),
    ])
  }

  /// Its words as one: `recoveryKey`.
  private static func name(of kind: SlotInfo.Kind) -> String {
    let words = kind.rawValue.split(separator: " ")
    return words.prefix(1).joined() + words.dropFirst().map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
  }
}
