import CofferCrypto
import CofferStorage

/// The value of a setting, in the form that is pushed.
package struct FleetValue: Equatable, Sendable {
  package var object: StoredValue
  package var metadata: StoredValue?
  package var dates: ItemDates

  package init(object: StoredValue, metadata: StoredValue? = nil, dates: ItemDates = .none) {
    (self.object, self.metadata, self.dates) = (object, metadata, dates)
  }

  init(_ item: HeldItem) {
    self.init(object: item.object.stored, metadata: item.metadata, dates: item.dates)
  }

  var item: HeldItem { HeldItem(object: HeldValue(object), metadata: metadata, dates: dates) }

  /// The total size of its values, in bytes.
  package var byteCount: Int { object.bytes.count + (metadata?.bytes.count ?? 0) }
}

extension StoredValue {
  /// Decodes a value from elsewhere; nil if it is malformed, or of a kind that is never shared.
  package init?(travelling code: UInt8, _ bytes: UnsafeRawBufferPointer) {
    guard let kind = Value.Kind(rawValue: code), kind != .null, kind != .sealed else { return nil }
    self.init(kind: kind, bytes: StoredBytes(copying: bytes, isSecret: kind == .secret))
    guard kind == .secret || kind == .data || (try? Value(self)) != nil else { return nil }
  }
}

/// An item that differs from its record.
package struct LocalChange: Sendable {
  package let collection: String
  package let key: String
  /// Nil if it was removed, or was not asked for.
  package let value: FleetValue?
  /// 0 if it was removed.
  package let version: CommitNumber
  /// When it was set; approximate for a removal.
  package let modified: Int64
  /// Who set it; see `Author`.
  package let author: String
  package let record: StoredRecord?

  /// Whether it was on the carrier, which has lost it: it is the change that it was, and no new one.
  package var isLost: Bool { record?.lostVersion == version }
}
