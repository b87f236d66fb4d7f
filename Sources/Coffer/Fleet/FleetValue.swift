import CofferCrypto
import CofferStorage

/// What a setting holds, as it travels.
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

  /// How many bytes its values have.
  package var byteCount: Int { object.bytes.count + (metadata?.bytes.count ?? 0) }
}

extension StoredValue {
  /// A value that came from elsewhere; nil where it is malformed, or of a kind that does not travel.
  package init?(travelling code: UInt8, _ bytes: UnsafeRawBufferPointer) {
    guard let kind = Value.Kind(rawValue: code), kind != .null, kind != .sealed else { return nil }
    self.init(kind: kind, bytes: StoredBytes(copying: bytes, isSecret: kind == .secret))
    guard kind == .secret || kind == .data || (try? Value(self)) != nil else { return nil }
  }
}

/// An item that is not in step with its record.
package struct LocalChange: Sendable {
  package let collection: String
  package let key: String
  /// nil where it was removed.
  package let value: FleetValue?
  /// 0 where it was removed.
  package let version: Int64
  /// When it was set; of a removal, about when.
  package let modified: Int64
  /// Who set it; see `Author`.
  package let author: String
  package let record: StoredRecord?
}
