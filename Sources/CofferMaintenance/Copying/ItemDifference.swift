import Coffer
import CofferCrypto

/// A key whose items differ between two places.
package struct ItemDifference: Sendable {
  package let key: String
  /// The value in the first place; nil where only the second one has it.
  package let before: ComparedValue?
  /// The value in the second place; nil where only the first one has it.
  package let after: ComparedValue?
  /// Whether kind or value differ.
  package let isOfValue: Bool
  /// Whether the metadata differ.
  package let isOfMetadata: Bool
  /// Whether one of the collections is sealed, so that its values must not be shown.
  package let isSealed: Bool
  /// Whether the setting is declared as a secret.
  package let isDeclaredSecret: Bool

  /// Whether one of the two values must not be shown.
  package var isSecret: Bool { isSealed || isDeclaredSecret || [before, after].contains { $0?.value.kind == .secret } }
}

/// A value on one side of a comparison.
package struct ComparedValue: Sendable {
  package let value: Value
  package var metadata: Value?
  /// Whether it is stored, and so may have metadata.
  fileprivate var isStored = false

  fileprivate init(_ item: Item) { (value, metadata, isStored) = (item.value, item.metadata, true) }

  /// One that is not stored.
  fileprivate init(_ value: Value) { self.value = value }
}

extension ItemDifference: CustomStringConvertible, CustomReflectable {
  /// The key, never a value, which may be secret.
  package var description: String { key }

  package var customMirror: Mirror { Mirror(self, children: ["key": key]) }
}

extension Reading where Self: ~Copyable {
  /// The keys whose items differ from those of `other`, in the order of the keys' UTF-8 bytes.
  ///
  /// Each side is a list of collections, searched in order, such as an environment and its parent. Where it is known what is in
  /// force in them, that is compared, for the keys that one of the sides has.
  ///
  /// Compares values and metadata, but not versions, times, expiries and due dates. The time a comparison takes
  /// reveals only the lengths of the values.
  ///
  /// - Parameters:
  ///   - effective: What is in force on this side, and on the other.
  ///   - comparesMetadata: Whether the other side has metadata at all.
  ///   - skipped: Keys to leave out.
  /// - Throws: `CofferError.vaultLocked` if a collection is sealed and its vault is locked; `.notDecodable`.
  package borrowing func differences(
    in collections: [String], from other: borrowing some Reading & ~Copyable, in otherCollections: [String],
    inForce effective: (EffectiveSettings, EffectiveSettings)? = nil, comparesMetadata: Bool = true,
    skipping skipped: Set<ByteString> = []
  ) throws -> [ItemDifference] {
    let keys = try shownKeys(in: collections).union(try other.shownKeys(in: otherCollections)).subtracting(skipped)
    let isSealed = try hasSealed(collections) || other.hasSealed(otherCollections)
    var differences: [ItemDifference] = []
    for key in keys.sorted() {
      let before = try compared(key.string, in: collections, effective?.0)
      let after = try other.compared(key.string, in: otherCollections, effective?.1)
      let haveMetadata = comparesMetadata && before?.isStored != false && after?.isStored != false
      let difference = ItemDifference(
        key: key.string, before: before, after: after, isOfValue: try !Self.isEqual(before?.value, after?.value),
        isOfMetadata: try haveMetadata && !Self.isEqual(before?.metadata, after?.metadata), isSealed: isSealed,
        isDeclaredSecret: try isDeclaredSecret(key.string, inCollection: collections.first ?? "")
          || other.isDeclaredSecret(key.string, inCollection: otherCollections.first ?? ""))
      if difference.isOfValue || difference.isOfMetadata { differences.append(difference) }
    }
    return differences
  }

  /// The keys of some collections.
  package borrowing func shownKeys(in collections: [String]) throws -> Set<ByteString> {
    var keys: Set<ByteString> = []
    for collection in collections { keys.formUnion(try allKeys(inCollection: collection).map(ByteString.init)) }
    return keys
  }

  /// The item of the first of some collections that has one.
  package borrowing func shownItem(forKey key: String, in collections: [String]) throws -> Item? {
    for collection in collections {
      if let item = try item(forKey: key, inCollection: collection) { return item }
    }
    return nil
  }

  fileprivate borrowing func compared(
    _ key: String, in collections: [String], _ effective: EffectiveSettings?
  ) throws -> ComparedValue? {
    guard let effective else { return try shownItem(forKey: key, in: collections).map { ComparedValue($0) } }
    return switch try effective.item(key, self).found {
    case .stored(let item)?: ComparedValue(item)
    case .locked(let value, _)?, .managed(let value, _)?, .declared(let value)?: ComparedValue(value)
    case nil: nil
    }
  }

  private borrowing func hasSealed(_ collections: [String]) throws -> Bool {
    for collection in collections where try isSealed(collection: collection) { return true }
    return false
  }

  private static func isEqual(_ a: Value?, _ b: Value?) throws -> Bool {
    // What is stored as JSON and is none reads as its text, and could not be stored again.
    if case .json(let a)? = a, case .json(let b)? = b { return a.utf8.elementsEqual(b.utf8) }
    if a?.kind == .json || b?.kind == .json { return false }
    guard let a = try a?.stored, let b = try b?.stored else { return a == nil && b == nil }
    return a.kind == b.kind
      && a.bytes.withUnsafeBytes { a in b.bytes.withUnsafeBytes { b in ConstantTime.isEqual(a, b) } }
  }
}
