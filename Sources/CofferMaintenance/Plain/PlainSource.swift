import Coffer
import CofferStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The rows of a foreign database as items.
struct PlainSource {
  private let database: ForeignDatabase
  private let path: String
  private let layout: Layout
  private let columns: [String]
  let count: Int

  private enum Layout: String, CaseIterable {
    case settings
    case yapDatabase = "database2"

    var needed: [String] {
      switch self {
      case .settings: ["key", "value"]
      case .yapDatabase: ["collection", "key", "data", "metadata"]
      }
    }

    var optional: [String] {
      switch self {
      case .settings: ["collection", "type", "metadata_type", "metadata", "expires", "due"]
      case .yapDatabase: []
      }
    }
  }

  struct Item {
    let collection: String
    let key: String
    let value: Value
    let metadata: Value?
    var dates = ItemDates.none
    /// How many of value and metadata are data because their serializer is unknown.
    var opaqueCount = 0
    /// Whether the item is sealed in its source.
    var isSealed = false
    /// Whether it is declared as a secret where it comes from.
    var isSecret = false
  }

  init(path: String, format: PlainImportFormat) throws {
    self.path = path
    let layouts: [Layout]
    switch format {
    case .sqlite: (database, layouts) = (try ForeignDatabase(path: path), [.settings])
    case .yapDatabase: (database, layouts) = (try ForeignDatabase(path: path), [.yapDatabase])
    case .sqlCipher(let passphrase):
      database = try ForeignDatabase(path: path, library: .sqlCipher(), passphrase: passphrase)
      layouts = Layout.allCases
    }
    var found: (layout: Layout, columns: [String])?
    for layout in layouts where found == nil {
      found = try database.columns(ofTable: layout.rawValue).map { (layout, $0) }
    }
    guard let found else {
      let names = layouts.map(\.rawValue).joined(separator: " or ")
      throw StorageError.unreadable(path: path, reason: "it has no table \(names)")
    }
    if let missing = found.layout.needed.first(where: { !found.columns.contains($0) }) {
      throw StorageError.unreadable(path: path, reason: "its table \(found.layout.rawValue) has no column \(missing)")
    }
    layout = found.layout
    columns = layout.needed + layout.optional.filter(found.columns.contains)
    count = try database.count(ofTable: layout.rawValue)
  }

  /// An application's declarations.
  struct Declared {
    let application: String
    let version: String?
    let declaration: Declaration
  }

  /// The declarations in the database.
  ///
  /// - Throws: The errors of ``readItems(_:)``; `CofferError.malformedSettings` for a malformed declaration.
  func declared() throws -> [Declared] {
    let (table, columns) = ("declarations", ["application", "version", "declaration"])
    guard layout == .settings, let present = try database.columns(ofTable: table), columns.allSatisfy(present.contains)
    else { return [] }
    var declared: [Declared] = []
    try database.readRows(ofTable: table, columns: columns) { row in
      let reader = RowReader(path: path, number: declared.count + 1, columns: columns, row: row)
      declared.append(try reader.declared())
    }
    return declared
  }

  /// Calls `body` with each item, in row order.
  ///
  /// - Throws: `StorageError.unreadable`, naming row and column, for a row that is not a valid item.
  func readItems(_ body: (Item) throws -> Void) throws {
    var number = 0
    try database.readRows(ofTable: layout.rawValue, columns: columns) { row in
      number += 1
      let reader = RowReader(path: path, number: number, columns: columns, row: row)
      try body(layout == .settings ? reader.settingsItem() : reader.yapItem())
    }
  }
}

/// Reads one row; its errors name row and column.
private struct RowReader {
  let path: String
  let number: Int
  let columns: [String]
  let row: [RecordColumn]

  func settingsItem() throws -> PlainSource.Item {
    let metadata = self["metadata"] ?? .null
    return PlainSource.Item(
      collection: try text("collection") ?? "", key: try name("key"), value: try value("value", typeColumn: "type"),
      metadata: metadata == .null ? nil : try value("metadata", typeColumn: "metadata_type"),
      dates: ItemDates(expires: try date("expires"), due: try date("due")))
  }

  func declared() throws -> PlainSource.Declared {
    let json = try name("declaration")
    do {
      return PlainSource.Declared(
        application: try name("application"), version: try text("version"), declaration: try Declaration(json: json))
    } catch CofferError.malformedSettings(_, let reason) {
      throw failure("declaration", reason)
    }
  }

  func yapItem() throws -> PlainSource.Item {
    let data = try reading("data") { YapValue(try bytes("data")) }
    let metadata = self["metadata"] == .null ? nil : try reading("metadata") { YapValue(try bytes("metadata")) }
    return PlainSource.Item(
      collection: try name("collection"), key: try name("key"), value: data.value, metadata: metadata?.value,
      opaqueCount: (data.isOpaque ? 1 : 0) + (metadata?.isOpaque ?? false ? 1 : 0))
  }

  private subscript(column: String) -> RecordColumn? {
    columns.firstIndex(of: column).map { row[$0] }
  }

  private func value(_ column: String, typeColumn: String) throws -> Value {
    let type = try text(typeColumn)
    return try reading(column) {
      let value = try PlainValue.value(of: self[column] ?? .null, type: type)
      // A value that cannot be stored is detected here, where row and column are known.
      _ = try value.stored
      return value
    }
  }

  private func name(_ column: String) throws -> String {
    guard let text = try text(column) else { throw failure(column, "it is NULL") }
    return text
  }

  private func text(_ column: String) throws -> String? {
    switch self[column] {
    case nil, .null: return nil
    case .text(let bytes)?:
      guard let text = String(validating: bytes, as: UTF8.self) else { throw failure(column, "it is not UTF-8") }
      return text
    default: throw failure(column, "it is not text")
    }
  }

  private func date(_ column: String) throws -> Date? {
    guard let date = self[column], date != .null else { return nil }
    return try reading(column) {
      guard case .date(let date) = try PlainValue.value(of: date, type: Value.Kind.date.name) else { return nil }
      return date
    }
  }

  private func bytes(_ column: String) throws -> [UInt8] {
    switch self[column] {
    case .blob(let bytes)?, .text(let bytes)?: return Array(bytes)
    default: throw failure(column, "it is not data")
    }
  }

  private func reading<Result>(_ column: String, _ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as ValueCodingError {
      throw failure(column, error.reason)
    }
  }

  private func failure(_ column: String, _ reason: String) -> StorageError {
    .unreadable(path: path, reason: "row \(number), column \(column): \(reason)")
  }
}

/// The value of bytes that a YapDatabase serializer wrote.
struct YapValue {
  let value: Value
  /// Whether the serializer is unknown; the value is data then.
  let isOpaque: Bool

  init(_ bytes: [UInt8]) {
    let known = Self.known(bytes)
    // A value that is nested too deep, or null at the top level, stays data.
    if let known, (try? known.stored) != nil {
      (value, isOpaque) = (known, false)
    } else {
      (value, isOpaque) = (.data(Data(bytes)), true)
    }
  }

  private static func known(_ bytes: [UInt8]) -> Value? {
    if bytes.starts(with: BinaryPropertyListReader.header) || isXML(bytes) {
      return (try? PropertyListReader.value(Data(bytes))).flatMap(value(ofPropertyList:))
    }
    guard let first = bytes.first(where: { !AsciiSpace.contains($0) }), "{[\"".utf8.contains(first),
      let text = String(validating: bytes, as: UTF8.self)
    else { return nil }
    return try? JSONReader.value(text)
  }

  /// A property list may be of any kind, including an archive of something else.
  private static func value(ofPropertyList list: Value) -> Value? {
    KeyedArchive.isArchive(list) ? KeyedArchive.value(list) : list
  }

  private static func isXML(_ bytes: [UInt8]) -> Bool {
    ["<?xml", "<!DOCTYPE plist", "<plist"].contains { bytes.starts(with: $0.utf8) }
  }
}
