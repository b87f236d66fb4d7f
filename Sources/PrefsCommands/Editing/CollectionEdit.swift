import Coffer
import CofferMaintenance

/// A collection as it was when the editor got it, and what has become of it there.
struct CollectionEdit {
  let collection: String
  /// What the editor gets.
  let bytes: [UInt8]
  private let before: [String: ImportedSetting]
  private let versions: [String: Int64]

  /// A key that the editor has changed.
  struct Change {
    let key: String
    /// The version that the editor saw; 0 stands for none.
    let version: Int64
    /// The new value; nil when the key is gone.
    let value: Value?
  }

  init(
    _ collection: String, _ format: SettingsFormat, reveals: Bool, _ transaction: borrowing ReadTransaction
  ) throws {
    self.collection = collection
    var tree = SettingsTree(format: format, reveals: reveals)
    bytes = try tree.file(of: [collection], transaction)
    // Read from the file itself: only what differs from that was changed by the editor.
    let file = try SettingsFile(bytes, format: format, named: "the collection", collection: collection)
    before = Dictionary(file.settings.map { ($0.key, $0) }) { $1 }
    versions = Dictionary(
      try transaction.itemInfos(inCollection: collection).map { ($0.key, $0.version) }
    ) { $1 }
  }

  /// What `settings` has changed.
  ///
  /// - Throws: ``Failure`` with the status `format` for a secret that is not shown and was not there, `managed` for a key that an
  ///   administrator has locked.
  func changes(to settings: [ImportedSetting]) throws -> [Change] {
    var changes: [Change] = []
    var gone = Set(before.keys)
    let managed = try ManagedSettings(ofApplication: collection)
    for setting in settings {
      let earlier = before[setting.key]
      gone.remove(setting.key)
      if let earlier, Self.isSame(earlier.value, setting.value) { continue }
      guard let value = setting.value else {
        throw Failure(
          .format, "key \"\(setting.key)\" is set to what stands for a secret that is not shown. Nothing was changed.")
      }
      do {
        try managed.requireUnlocked(setting.key, in: collection)
      } catch let error as CofferError {
        throw Failure(error.exitStatus, error.description)
      }
      changes.append(Change(key: setting.key, version: versions[setting.key] ?? 0, value: value))
    }
    changes += gone.map { Change(key: $0, version: versions[$0] ?? 0, value: nil) }
    return changes
  }

  /// Refuses values that are not as their settings are declared, as long as they can be edited again.
  ///
  /// - Throws: ``Failure`` with the status `format`.
  func checkDeclared(_ changes: [Change], _ transaction: borrowing ReadTransaction) throws {
    let isSealed = try transaction.isSealed(collection: collection)
    for change in changes {
      guard let value = change.value,
        let declaration = try transaction.declaration(forKey: change.key, inCollection: collection),
        let reason = declaration.problem(of: value, showsValue: !isSealed)
      else { continue }
      let name = KeyReference.text(change.key, in: collection)
      throw Failure(.format, "\(name) is \(reason). Nothing was changed; --force sets it all the same.")
    }
  }

  /// Whether both are the same to the bit, unlike NaN and -0.0 for `==`.
  private static func isSame(_ left: Value?, _ right: Value?) -> Bool {
    guard let left, let right else { return left == nil && right == nil }
    let native = SettingsFormat.json.native
    // What cannot be exported has not come from an export.
    guard left.kind == right.kind, let old = try? PortableValue.tree(left, native: native),
      let new = try? PortableValue.tree(right, native: native)
    else { return false }
    return JSONFile.text(old) == JSONFile.text(new)
  }

  /// Makes the changes, where nobody else has changed those keys.
  ///
  /// - Throws: `CofferError.versionMismatch`, with nothing changed.
  func apply(_ changes: [Change], _ transaction: borrowing ReadWriteTransaction) throws {
    for change in changes {
      try transaction.require(version: change.version, forKey: change.key, inCollection: collection)
      if change.version > 0 {
        // Keeps metadata, expiry and due date; without a value it removes the key.
        try transaction.replaceObject(change.value, forKey: change.key, inCollection: collection)
      } else {
        try transaction.setObject(change.value, forKey: change.key, inCollection: collection)
      }
    }
  }
}
