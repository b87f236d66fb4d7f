import CofferStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension Store {
  /// What is no problem and yet worth knowing, in sentences.
  func notes() -> [String] {
    let envelope = envelope
    var notes = envelope.slots.filter(\.stretching.isWeakerThanStandard).map { slot in
      "Slot \(slot.id) stretches its passphrase by \(slot.stretching.name), which is less than what new slots get "
        + "(\(Slot.Stretching.standard.name)). Change the passphrase, to another one or the same."
    }
    if envelope.epochs.count > 1 {
      notes.append(
        "A re-encryption is not finished: pages may stand under \(envelope.epochs.count) keys. `prefs rotate` finishes it."
      )
    }
    notes += leftovers().map { name in
      "\(name) was left over when a store was made here and its program died. Unless one is being made just now, it can "
        + "be deleted."
    }
    return notes + [Self.noteOnSQLite].compactMap(\.self)
  }

  /// What is to be known of the SQLite that is used; nil for one without the defect.
  static var noteOnSQLite: String? {
    guard SQLiteDefects.losesCommitsAtReset else { return nil }
    return
      "SQLite \(SQLiteDefects.version) may lose commits where two connections fold a log in while a third one writes "
      + "(https://www.sqlite.org/wal.html#walresetbug). In stores Coffer keeps that from happening; for other databases "
      + "use SQLite 3.51.3 or later, 3.50.7 or 3.44.6."
  }

  /// The temporary files of stores that were never finished.
  private func leftovers() -> [String] {
    let url = URL(filePath: path)
    let names = (try? FileManager.default.contentsOfDirectory(atPath: url.deletingLastPathComponent().path)) ?? []
    let prefix = ".\(url.lastPathComponent)."
    return names.filter { $0.hasPrefix(prefix) && $0.hasSuffix(".tmp") }.sorted()
  }
}
