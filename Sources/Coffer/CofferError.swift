import CofferStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Why an operation failed, in cases that a caller can act on.
///
/// ```swift
/// do {
///   let database = try Database.open(at: path, key: .keyFile(keyPath))
/// } catch CofferError.storeNotFound {
///   // First start: create one.
/// } catch let error as CofferError {
///   logger.error("\(error)")  // Says what happened and what to do; never includes an encryption key or a secret.
/// }
/// ```
public enum CofferError: Error, Equatable, Sendable {
  // MARK: Opening

  /// There is no file at this path; of a change also if the file was removed or moved while it was open.
  case storeNotFound(path: String)
  /// There is already a store at this path; `create` never replaces one.
  case storeExists(path: String)
  /// The file is not a Coffer store: another format, an empty file, a directory, a symbolic link, or another user's file.
  case notAStore(path: String, reason: String)
  /// The store, or the requested part of it, was written by a newer version of Coffer.
  case newerFormat(part: String, found: Int, supported: Int)
  /// The key is well formed, but opens no slot of this store.
  case wrongKey
  /// The key is not available: a missing or unreadable key file, a file that is not a key, an empty passphrase.
  case keyUnavailable(reason: String)

  /// The store is older than the last state used here: a backup was restored, or someone put an earlier state back. Nothing
  /// was changed; `Database.Options.acceptsOlderStore` opens it.
  ///
  /// A program that has the store open gets this, too, before it follows other keys or writes, if the record of the newest state is
  /// under a root key that it has missed.
  case rolledBack(known: StoreAge, found: StoreAge)
  /// The store is another one than the one last used at this path: a backup was put there by hand, or someone has exchanged the
  /// file. Nothing was changed; `Database.Options.acceptsOlderStore` opens it.
  ///
  /// `Database.create` and `Database.restore` lead to no such error.
  case anotherStore(path: String)
  /// The store is under another root key than the one held here, which does not vouch for it: someone who could open an earlier
  /// state of the store may have put it there. Nothing was written to it.
  ///
  /// A program that missed two new root keys gets this as well. Opening the store again, which compares it with its record, tells.
  case rootKeyUnverified(path: String)

  // MARK: Key slots

  /// There is no slot with this ID.
  case slotNotFound(id: Int)
  /// The last slot cannot be removed: nothing would open the store any more.
  case lastSlot
  /// All slots are in use.
  case slotsFull(maximum: Int)
  /// The secret to add opens this slot already.
  case secretInUse(slot: Int)
  /// For a new root key, these slots were neither opened with their secret nor dropped.
  case slotsNotOpened(ids: [Int])
  /// Everything is re-encrypted under a new key, but the old one could not be dropped yet: an old snapshot is being read.
  case oldKeyInUse

  // MARK: The vault

  /// The vault is locked, or another process has given it a new key since; `collection` is the sealed collection that was to
  /// be used, nil if the vault itself was to be changed.
  case vaultLocked(collection: String?)
  /// The vault's key is neither the one last used here nor its successor: someone who could unlock an earlier state of the vault
  /// may have put it there. The numbers are those of the vault's keys. Nothing was changed;
  /// `Database.Options.acceptsOlderStore` accepts it.
  case vaultKeyUnverified(known: Int, found: Int)
  /// The store has no vault yet.
  case vaultNotFound
  /// The store already has a vault.
  case vaultExists
  /// The passphrase does not open the file to import, or that file is not encrypted in this way.
  case wrongKeyForSource(path: String)

  // MARK: Files

  /// There is already a file at the path to write; files are never replaced.
  case fileExists(path: String)
  /// A part of the store does not authenticate or cannot be parsed. Nothing was changed.
  case damaged(part: String, reason: String)
  /// Another connection or process held a lock for longer than the busy timeout.
  case busy
  /// A change in several steps was not completed: what is done by now, what completes it, and why the next step failed.
  indirect case unfinished(done: String, next: String, cause: CofferError)
  /// The disk is full, or the quota is exhausted. Nothing was half-written.
  case diskFull(path: String)
  /// The system refused access.
  case permissionDenied(path: String, reason: String)
  /// The open store was replaced by another file, which could not be opened automatically; open it again.
  case storeReplaced(path: String)
  /// A store that can be read but not locked, as on read-only media, was changed during a transaction; the next one reads the
  /// new state.
  case imageChanged(path: String)
  /// The file has two names, and its log is beside the other one: a hard link, or a file that is mounted by itself. Nothing was
  /// changed.
  case usedUnderAnotherName(path: String)
  /// The store, or a folder that it is in, belongs to another user, and this user may not use it in this way.
  case belongsToAnotherUser(path: String, user: Int)
  /// The system reported an I/O error.
  case inputOutput(path: String, reason: String)
  /// SQLite reported an error without a case of its own; `code` is its extended result code.
  case sqlite(code: Int, message: String)

  // MARK: Values

  /// The value could not be encoded; nothing was changed.
  case notEncodable(collection: String, key: String, reason: String)
  /// The stored value is not of the requested type, or cannot be decoded as it.
  case notDecodable(collection: String, key: String, storedType: String, requestedType: String, reason: String)
  /// The value does not match the declaration of its setting. If it was to be set, nothing was changed.
  ///
  /// `reason` is the rest of the sentence "the value must be …": `6 to 72, not 400`. It never includes a secret, or a value of a
  /// sealed collection.
  case invalidValue(collection: String, key: String, reason: String)
  /// A tool was to set a key that no program declares, in a collection with declared settings; nothing was changed.
  ///
  /// `reason` is the rest of the sentence "the key is …", with a full stop: `not declared; did you mean "shop/rate"?`.
  case undeclaredSetting(collection: String, key: String, reason: String)
  /// A setting was to be changed in place, as by `+=`, and its stored value cannot be read: it would have been overwritten by
  /// another value's successor. Nothing was changed.
  ///
  /// `reason` is as in `invalidValue`.
  case notMutable(collection: String, key: String, reason: String)
  /// An administrator has locked the setting in this file, see ``ManagedSettings``; nothing was changed.
  case lockedByAdministrator(collection: String, key: String, file: String)
  /// A collection has no such environment; see <doc:DeclaringSettings>.
  case environmentNotFound(environment: String, collection: String)
  /// Values do not match the declarations of their settings, and opening was strict.
  case invalidSettings([SettingProblem])
  /// A setting is declared with two types, defaults or limits, by one program or by two that share the store.
  case conflictingDeclarations(setting: String, first: String, second: String)
  /// A setting is declared with another type than a version of a program declares that may still run, until then, or on
  /// another host of a fleet, if no time is known; see <doc:ChangingSettings>.
  case retypedInPlace(setting: String, type: String, other: String, otherType: String, until: Date?)
  /// A file of the requested format cannot hold the value; nothing was exported.
  case notExportable(collection: String, key: String, reason: String)
  /// The source does not hold settings: it is not JSON or a property list with a dictionary, or not the expected database;
  /// nothing was changed.
  case malformedSettings(source: String, reason: String)

  // MARK: Versions

  /// A key does not have the version that a write requires; 0 means that the key is absent.
  case versionMismatch(collection: String, key: String, expected: CommitNumber, actual: CommitNumber)
  /// The history of a key does not hold this version, or no longer does.
  case versionNotFound(collection: String, key: String, version: CommitNumber)

  // MARK: Use

  /// A transaction would deadlock: it was begun inside a transaction of the same connection, or it is a write inside a write
  /// of the same database, an observer or a sanitizer.
  case nestedTransaction
  /// A write, vacuum or backup on a connection in a long-lived read; end that first, or use another connection.
  case longLivedReadTransaction
  /// A long-lived read was ended because the log had grown too large; begin a new one.
  case snapshotExpired
  /// The database was opened read-only.
  case readOnly
  /// The proxy's filter does not allow writes to this collection.
  case collectionNotAllowed(collection: String)
  /// The database or proxy was closed.
  case closed
  /// The object was created before `fork()`, which SQLite connections do not survive. Open the store again in the child.
  case usedAfterFork
  /// A test has used ``Preferences/standard`` where it is not set; in a program that traps.
  case standardNotSet
  /// This OpenSSL lacks an algorithm, or a parameter is out of range.
  case unsupported(reason: String)
}

extension CofferError: CustomStringConvertible {
  /// What happened and what to do about it, in one or two sentences.
  public var description: String {
    switch self {
    case .storeNotFound(let path):
      "There is no store at \(path). Create one first, or check the path."
    case .storeExists(let path):
      "There is already a file at \(path), and no file is ever replaced. Choose another path, or open the store there; nothing was "
        + "changed."
    case .notAStore(let path, let reason):
      "\(path) is not a Coffer store: \(reason). Nothing was changed."
    case .newerFormat(let part, let found, let supported):
      "The store's \(part) is newer (\(found)) than this Coffer knows (up to \(supported)). Use a newer Coffer."
    case .rolledBack(let known, let found) where known.commit == nil:
      "The store is under another root key than the one last used here, and not under its successor: it is at \(found), and \(known) was "
        + "seen before. It is a state from before a new root key, or someone who could open such a state has made it. Accept it if "
        + "that was intended; otherwise keep the file, and find the right one. Nothing was changed."
    case .rolledBack(let known, let found):
      "The store is older than the one last used here: it is at \(found), and \(known) was seen before. A backup was "
        + "restored, the end of its log was lost, or someone put back an earlier copy. Accept it if that was intended; "
        + "otherwise keep the file, and find the newer one. Nothing was changed."
    case .anotherStore(let path):
      "\(path) is another store than the one last used here: it has another ID. A backup was put there by hand, or someone has "
        + "exchanged the file. Accept it if that was intended; otherwise keep the file, and put the right one back. Nothing was changed."
    case .rootKeyUnverified(let path):
      "The store at \(path) is under another root key, which the one in use here does not vouch for: someone who could open an "
        + "earlier state of it may have put that there, or the root key was replaced twice since this program opened it. Nothing "
        + "was written. Close the store and open it again; keep a copy of the file if that is refused."
    case .wrongKey:
      "Wrong key: it opens no slot of this store. The store itself appears intact."
    case .keyUnavailable(let reason):
      "The key is not available: \(reason)."
    case .slotNotFound(let id):
      "There is no key slot \(id). List the slots and choose one; nothing was changed."
    case .lastSlot:
      "The last key slot cannot be removed: nothing could open the store afterwards. Add another one first; nothing was "
        + "changed."
    case .slotsFull(let maximum):
      "All \(maximum) key slots are in use. Remove one first; nothing was changed."
    case .slotsNotOpened(let ids):
      "A new root key needs the secret of every key slot that stays. Give those of "
        + "\(ids.map(String.init).joined(separator: ", ")), or drop these slots; nothing was changed."
    case .secretInUse(let slot):
      "This key, or passphrase, opens slot \(slot) already. Choose another one; nothing was changed."
    case .oldKeyInUse:
      "The store is re-encrypted, but its old key could not be dropped yet: another connection or process still reads an "
        + "old snapshot. Rotate again once it has ended; until then the store keeps both keys."
    case .vaultLocked(let collection):
      "\(collection.map { "Collection \"\($0)\" is sealed, and the vault is locked" } ?? "The vault is locked"). Unlock the "
        + "vault, and try again."
    case .vaultKeyUnverified(let known, let found):
      "The vault is under key \(found), which key \(known), last used here, does not vouch for: someone who could unlock an "
        + "earlier state of the vault may have put it there, an earlier copy of the store was put back, or the vault got several "
        + "new keys elsewhere. Accept it if that was intended, by opening the store as for an older state; nothing was changed."
    case .vaultNotFound:
      "The store has no vault. Create it first."
    case .vaultExists:
      "The store already has a vault. Unlock it, or change its slots; nothing was changed."
    case .wrongKeyForSource(let path):
      "The passphrase does not open \(path), or it is not an SQLCipher database. Nothing was changed."
    case .fileExists(let path):
      "There is already a file at \(path). Choose another path; nothing was written."
    case .damaged(let part, _):
      "\(failure) Nothing was changed; keep the file, and restore a backup"
        + (part == "envelope" ? "." : ", or salvage what is readable.")
    case .busy:
      "\(failure) Try again, or raise the busy timeout."
    case .diskFull:
      "\(failure) Free some and try again; no partial change was written."
    case .unfinished(let done, let next, let cause):
      "\(done) The rest is not done: \(cause.failure) \(next)"
    case .permissionDenied(let path, let reason):
      "\(path) cannot be used: \(reason)."
    case .imageChanged(let path):
      "\(path) was changed while it was read, and cannot be locked here. Read it again."
    case .usedUnderAnotherName(let path):
      "\(path) is in use under another name: it is a hard link, or a file that is mounted by itself, as into a container, and "
        + "its log is beside the other name. Open it there, and mount its folder instead of the file. If that log is lost, copy "
        + "the file and open the copy. Nothing was changed."
    case .storeReplaced:
      "\(failure) Open it again; nothing was written to either."
    case .belongsToAnotherUser(let path, let user):
      "\(path) belongs to another user (\(SystemName.user(UInt32(clamping: user)))), and this user may not use it like this. Run as that user or root, or "
        + "share the store with a group."
    case .inputOutput(let path, let reason):
      "Input or output failed on \(path): \(reason)."
    case .sqlite(let code, let message):
      "SQLite error \(code): \(message)."
    case .notEncodable(let collection, let key, let reason):
      "The value for key \"\(key)\" in collection \"\(collection)\" cannot be stored: \(reason). Nothing was changed."
    case .notDecodable(let collection, let key, let stored, let requested, let reason):
      "The value for key \"\(key)\" in collection \"\(collection)\" is stored as \(stored) and cannot be read as "
        + "\(requested): \(reason)."
    case .versionMismatch(let collection, let key, let expected, let actual):
      "Key \"\(key)\" in collection \"\(collection)\" \(Self.text(actual)), but was expected to "
        + "\(Self.text(ofExpected: expected)). Read it again and retry; nothing was changed."
    case .versionNotFound(let collection, let key, let version):
      "The history of key \"\(key)\" in collection \"\(collection)\" has no version \(version). Choose one that it "
        + "lists; nothing was changed."
    case .invalidValue(let collection, let key, let reason):
      "\(KeyText.of(key, in: collection)) must be \(reason)."
    case .undeclaredSetting(let collection, let key, let reason): "\(KeyText.of(key, in: collection)) is \(reason)"
    case .notMutable(let collection, let key, let reason):
      "\(KeyText.of(key, in: collection)) was not changed in place: its stored value, which must be \(reason), would be lost. "
        + "Assign a value, or reset it."
    case .invalidSettings(let problems):
      "Settings do not match their declarations; correct them, or open without strict: "
        + problems.map(\.description).joined(separator: "; ") + "."
    case .conflictingDeclarations(let setting, let first, let second):
      "\(setting) has two different declarations: by \(first); and by \(second). Make them the same."
    case .retypedInPlace(let setting, let type, let other, let otherType, let until):
      "\(setting) is declared as \(type), but \(other)\(until.map { ", which may run until \(Timestamp.text($0))," } ?? "") reads it as "
        + "\(otherType). Declare it under another name that was formerly \(setting); nothing was changed."
    case .notExportable(let collection, let key, let reason):
      "The value for key \"\(key)\" in collection \"\(collection)\" cannot be exported: \(reason). Nothing was exported."
    case .lockedByAdministrator(let collection, let key, let file):
      "Key \"\(key)\" in collection \"\(collection)\" is locked by an administrator, in \(file). Nothing was changed."
    case .environmentNotFound(let environment, let collection):
      "Collection \"\(collection)\" has no environment \"\(environment)\". Create it first, or name one that exists; "
        + "nothing was changed."
    case .malformedSettings(let source, let reason):
      "No settings can be read from \(source): \(reason). Nothing was changed."
    case .nestedTransaction:
      "This transaction would deadlock: it was begun inside a transaction of the same connection, or as a write "
        + "inside a write of the same database, an observer or a sanitizer. Use the outer one, or write later."
    case .longLivedReadTransaction:
      "The connection is in a long-lived read. End it first, or write on another connection."
    case .snapshotExpired:
      "The long-lived read was ended because the log had grown too large. Begin a new one."
    case .readOnly:
      "The database was opened read-only. Open it for writing to change something; nothing was changed."
    case .collectionNotAllowed(let collection):
      "This proxy may not write to collection \"\(collection)\": its filter does not allow it. Nothing was changed."
    case .closed:
      "The database, connection or proxy was closed."
    case .usedAfterFork:
      "This database was opened before fork(). Open the store again in the child process."
    case .standardNotSet:
      "Preferences.standard is not set here. Assign it before it is used: Preferences.standard = try Preferences.open(application: …). "
        + "Preferences.withStandard sets it for its own task and child tasks: a detached task, or code on another thread, has to "
        + "be given the preferences."
    case .unsupported(let reason):
      "Not supported here: \(reason)."
    }
  }

  /// This error, as that of a later step of a command.
  ///
  /// - Parameters:
  ///   - done: What is done by now.
  ///   - next: What completes it.
  package func after(_ done: String, next: String) -> CofferError {
    // It says more than that.
    if case .unfinished = self { return self }
    return .unfinished(done: "\(done).", next: next, cause: self)
  }

  /// What happened, without what that means for a change that is not done: it may be one of several steps.
  package var failure: String {
    switch self {
    case .damaged(let part, let reason): "The store is damaged in its \(part): \(reason)."
    case .busy: "The store is busy: another connection or process holds its lock."
    case .diskFull(let path): "No space is left for \(path)."
    case .storeReplaced(let path):
      "The store at \(path) was replaced by another file, or written over, while it was open."
    default: description
    }
  }

  private static func text(_ version: CommitNumber) -> String {
    version == 0 ? "does not exist" : "has version \(version)"
  }

  private static func text(ofExpected version: CommitNumber) -> String {
    version == 0 ? "be absent" : "have version \(version)"
  }
}
