import Coffer
import CofferMaintenance

/// A collection as it was given to the editor, to find out what was changed.
struct CollectionEdit {
  let collection: String
  /// The bytes given to the editor.
  let bytes: [UInt8]
  /// What is in force instead of values in them, as sentences.
  let locks: [String]
  private let before: [ByteString: ImportedSetting]
  private let versions: [ByteString: CommitNumber]

  /// A key that was changed in the editor.
  struct Change {
    let key: String
    /// The version given to the editor; 0 for a new key.
    let version: CommitNumber
    /// The new value; nil when the key is gone.
    let value: Value?
  }

  init(
    _ collection: String, _ format: SettingsFormat, reveals: Bool, _ transaction: borrowing ReadTransaction
  ) throws {
    self.collection = collection
    var tree = SettingsTree(format: format, reveals: reveals)
    bytes = try tree.file(of: [collection], transaction)
    locks = try transaction.notesOfLocks(transaction.allKeys(inCollection: collection), in: collection)
    // Parse the file itself: only differences from that were made in the editor.
    let file = try ImportedSettings(bytes, format: format, named: "the collection", collection: collection)
    before = Dictionary(file.settings.map { (ByteString($0.key), $0) }) { $1 }
    versions = Dictionary(
      try transaction.itemInfos(inCollection: collection).map { (ByteString($0.key), $0.version) }
    ) { $1 }
  }

  /// The differences between the original and the edited file.
  ///
  /// A new value has the type that an import gives it: what replaces a secret is one.
  ///
  /// - Throws: ``Failure`` with the status `format` for a redacted secret that did not exist before, and the errors of
  ///   ``TypedSettings``.
  func changes(
    to file: ImportedSettings, named name: String, force: Bool, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> [Change] {
    var gone = Set(before.keys)
    let changed = try file.settings.filter { setting in
      let earlier = before[ByteString(setting.key)]
      gone.remove(ByteString(setting.key))
      if let earlier, try earlier.hasSameValue(as: setting) { return false }
      guard setting.value != nil else {
        throw Failure(
          .format, "key \"\(setting.key)\" is set to the placeholder of a hidden secret. Nothing was changed.")
      }
      return true
    }
    let typed = TypedSettings(file.replacingSettings(changed), named: name, force: force)
    return try typed.all(as: transaction).map {
      Change(key: $0.key, version: versions[ByteString($0.key)] ?? 0, value: $0.value)
    } + gone.map { Change(key: $0.string, version: versions[$0] ?? 0, value: nil) }
  }

  /// Refuses what may not be set, while it can still be edited.
  ///
  /// - Throws: ``Failure`` with a line for each change that is refused.
  func check(_ changes: [Change], _ transaction: borrowing ReadTransaction) throws {
    var refused: [Failure] = []
    for change in changes {
      guard let value = change.value else { continue }
      do {
        try transaction.requireSettable(value, forKey: change.key, inCollection: collection)
      } catch let error as CofferError {
        refused.append(Failure(error))
      }
    }
    refused += try oneSettingTwice(changes, transaction)
    guard let first = refused.first else { return }
    throw Failure(first.status, first.message, details: refused.dropFirst().map(\.message))
  }

  /// A failure for each setting that is given two values, under two of its names.
  private func oneSettingTwice(
    _ changes: [Change], _ transaction: borrowing ReadTransaction
  ) throws -> [Failure] {
    let converted = try transaction.renames().filter(\.isConverted)
    return try changes.enumerated().compactMap { index, change in
      guard let value = change.value else { return nil }
      let others = try transaction.otherNames(ofKey: change.key, inCollection: collection)
      let place = SettingPlace(change.key, in: collection)
      let other = changes[..<index].first { other in
        let otherPlace = SettingPlace(other.key, in: collection)
        return others.contains(otherPlace) && other.value != nil && other.value != value
          // Such values may be one, in two forms.
          && !converted.contains { $0.names(place) || $0.names(otherPlace) }
      }
      return other.map {
        Failure(
          .format,
          "\(KeyText.of($0.key, in: collection)) and \(place) are names of one setting, with two values. Nothing was changed."
        )
      }
    }
  }

  /// Applies the changes, unless another writer has changed one of the keys.
  ///
  /// - Throws: `CofferError.versionMismatch`, with nothing changed.
  /// - Returns: What stays in force of removed keys, as sentences.
  func apply(_ changes: [Change], _ transaction: borrowing ReadWriteTransaction) throws -> [String] {
    for change in changes {
      try transaction.require(version: change.version, forKey: change.key, inCollection: collection)
      try transaction.setKeepingRest(change.value, forKey: change.key, inCollection: collection)
    }
    try transaction.letNamesFollow(Set(changes.map { SettingPlace($0.key, in: collection) }), in: "the edited file")
    return try transaction.notesOfLocks(changes.filter { $0.value == nil }.map(\.key), in: collection)
  }
}
