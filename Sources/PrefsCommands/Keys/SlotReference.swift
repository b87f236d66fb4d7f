import ArgumentParser
import Coffer

/// A reference to a key slot: a number or a label.
enum SlotReference {
  /// The one slot with this number or label.
  ///
  /// - Throws: ``Failure`` with the status `notFound`, or `usage` when it is ambiguous.
  static func slot(_ argument: String, in slots: [SlotInfo]) throws -> SlotInfo {
    let argument = CommandArguments.value(argument)
    let matches = slots.filter { String($0.id) == argument || (!$0.label.isEmpty && $0.label == argument) }
    guard let slot = matches.first else {
      throw Failure(.notFound, "there is no key slot \"\(argument)\"; the slots are \(SlotText.list(slots)).")
    }
    guard matches.count == 1 else {
      throw Failure(
        .usage,
        "\"\(argument)\" is ambiguous: \(SlotText.list(matches)). Give a number that is not a label, or label "
          + "them again.")
    }
    return slot
  }

  /// The longest label, in bytes.
  private static let labelLimit = 64

  static func check(label: String?) throws {
    if let label, label.utf8.count > labelLimit {
      throw ValidationError("A label can have at most \(labelLimit) bytes.")
    }
  }
}
