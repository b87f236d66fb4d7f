import Coffer
import CofferStorage

extension Store {
  /// What keeps the keys from being used or changed, as sentences.
  func keyProblems() -> [String] {
    let envelope = envelope
    var problems = envelope.slots.filter { !$0.stretching.isWithinBounds }.map { slot in
      "Slot \(slot.id) is never tried: its costs are out of bounds (\(slot.stretching.name)). Remove it, or change its secret."
    }
    // What the next change of the keys would need.
    for step in [{ _ = try envelope.nextSequence() }, { _ = try envelope.nextEpoch() }] {
      do { try step() } catch let error as StorageError {
        problems += CofferError(error).contentsProblem.map { [$0] } ?? []
      } catch {}
    }
    return problems
  }

  /// Notes that are not problems, as sentences.
  func notes() -> [String] {
    let envelope = envelope
    var notes = envelope.slots.filter(\.stretching.isWeakerThanStandard).map { slot in
      "Slot \(slot.id) stretches its passphrase by \(slot.stretching.name), which is weaker than for new slots "
        + "(\(Slot.Stretching.standard.name)). Change the passphrase, to a new one or the same."
    }
    if envelope.epochs.count > 1 {
      notes.append(
        "A re-encryption is not finished: pages may be under \(envelope.epochs.count) keys, and anyone who had an earlier one can "
          + "change those under it. Rotate again to finish it."
      )
    }
    if owner.isShared {
      notes.append(
        "Group \(SystemName.group(owner.group)) shares the store: its members can read and change everything that the store's key opens."
      )
    }
    if linkCount > 1 {
      notes.append(
        "The store file has \(linkCount) names (hard links). Use only one of them: each has a log of its own, and while that "
          + "has changes, the others are refused.")
    }
    if isMountPoint {
      notes.append(
        "The store file is mounted by itself. Mount its folder instead: the log is beside the file, and programs outside "
          + "have another one.")
    }
    notes += FilePermissions.notes(ofFolderAbove: path, of: owner)
    notes += StoreCopies.leftovers(besides: path).map { copy in
      "\(FilePath.lastComponent(of: copy)) was left by a program that died while creating or restoring a store here. It may be "
        + "a whole copy of one, which opens with the keys of its time. Unless that is being done now, it can be deleted."
    }
    notes += StoreCopies.replaced(besides: path).map { copy in
      "\(FilePath.lastComponent(of: copy)) is the store that a restore has replaced, and opens with the keys that it had. If "
        + "no data is missed, it can be deleted."
    }
    notes += StoreCopies.damagedLogs(besides: path).map { copy in
      "\(FilePath.lastComponent(of: copy)) is a copy, still encrypted, of a log that could not be recovered completely. If no "
        + "data is missed, it can be deleted."
    }
    return notes + [Self.noteOnSQLite].compactMap(\.self)
  }

  /// A note on a defect of the SQLite in use; nil if it has none.
  static var noteOnSQLite: String? {
    guard SQLiteDefects.losesCommitsAtReset else { return nil }
    return
      "SQLite \(SQLiteDefects.version) may lose commits if two connections checkpoint while a third one writes "
      + "(https://www.sqlite.org/wal.html#walresetbug). Coffer prevents this in its stores; for other databases "
      + "use SQLite 3.51.3 or later, 3.50.7 or 3.44.6."
  }
}
