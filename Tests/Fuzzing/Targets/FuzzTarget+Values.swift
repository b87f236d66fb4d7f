import CofferCrypto
import Foundation

@testable import Coffer
@testable import CofferMaintenance
@testable import CofferStorage

extension FuzzTarget {
  /// What reads the values in a store, and those of other programs.
  static let values = [
    FuzzTarget("value", value), FuzzTarget("change-log", changeLog), FuzzTarget("sealed-value", sealedValue),
    FuzzTarget("property-list", propertyList), FuzzTarget("json", json), FuzzTarget("settings-text", settingsText),
  ]

  /// The bytes of a value, the first one being its kind.
  private static func value(_ bytes: [UInt8]) throws {
    guard let tag = bytes.first, let kind = Value.Kind(rawValue: tag) else { return }
    let stored = StoredValue(kind: kind, bytes: Array(bytes.dropFirst()))
    _ = try? ValueCoder.decode(stored, as: [String: [Double]].self)
    _ = try? ValueCoder.decode(stored, as: String.self)
    _ = try? ValueCoder.decode(stored, as: Int8.self)
    let value = try Value(stored)
    _ = ValueText.text(value)
    _ = JSONText.text(value, bigIntegers: .strings)
    let written = try value.stored
    // Equal values have equal bytes: writing twice gives the same.
    try promise(try Value(written).stored == written, "a value of kind \(kind) is written as it was read")
  }

  private static func changeLog(_ bytes: [UInt8]) throws {
    guard let changes = ChangeSet(packed: bytes) else { return }
    // Collections without a change are left out the first time.
    let written = ChangeSet(packed: changes.packed)
    try promise(
      written != nil && written.flatMap { ChangeSet(packed: $0.packed) } == written,
      "a row of the change log is written as it was read")
    _ = changes.forgetting(nil)?.packed
  }

  /// The bytes of a sealed value, and those that could have been sealed.
  private static func sealedValue(_ bytes: [UInt8]) throws {
    if let opened = StoredValue(opened: bytes.withUnsafeBytes(SecretBytes.init(copying:))) { _ = try? Value(opened) }
    let key = try sealingKey.get()
    try bytes.withUnsafeBytes { sealed in
      _ = SealedBytes.generation(of: sealed)
      let opened = try key.open(sealed, .object, "key", in: "collection")
      if let stored = StoredValue(opened: opened) { _ = try Value(stored) }
    }
  }

  /// Of a vault that is the same in each process.
  static let sealingKey = Result {
    let secret = try PreparedSecret(.key(FuzzStore.rootKey), owner: FuzzStore.storeID)
    return try VaultKey(FuzzStore.rootKey, of: VaultRecord.make(id: FuzzStore.storeID, slot: secret).record)
  }

  /// A property list of any form, the archive in it, and what YapDatabase may have stored.
  private static func propertyList(_ bytes: [UInt8]) throws {
    _ = YapValue(bytes)
    let list = try PropertyListReader.value(Data(bytes))
    _ = KeyedArchive.value(list)
    _ = URLArchive.unwrapped(.data(Data(bytes)))
    _ = JSONText.text(list, bigIntegers: .numbers)
    let stored = try list.stored
    try promise(try Value(stored).stored == stored, "what a property list holds can be stored")
  }

  private static func json(_ bytes: [UInt8]) throws {
    guard let text = String(validating: bytes, as: UTF8.self) else { return }
    let value = try JSONReader.value(text)
    let again = try JSONReader.value(JSONText.text(value, bigIntegers: .numbers))
    try promise(again == value, "JSON is written as it was read")
  }

  /// Settings that come as arguments, variables and files.
  private static func settingsText(_ bytes: [UInt8]) throws {
    guard let text = String(validating: bytes, as: UTF8.self) else { return }
    _ = try? SettingsText.value(text).stored
    for reading in SettingsText.readings(of: text) { _ = try? reading.stored }
    _ = HexText.bytes(text)
    if let date = Timestamp.date(text) { _ = Timestamp.text(date) }
  }
}
