import Coffer
import CofferStorage

/// The tables of a store as salvage identifies them: by name if a tree leads to the row, else by the shape of the
/// row.
///
/// Columns are in the order of `Schema`; a table WITHOUT ROWID begins with its primary key, as these do.
enum SalvagedTable: String {
  case items, history, collections, vault, changes, applications, declarations, versions, renames, behind

  /// The columns of a row; a rowid is stored separately, and its column is NULL.
  private var shape: [Set<Column>] {
    let (integer, text, blob, null) = (Column.integer, Column.text, Column.blob, Column.null)
    return switch self {
    case .items:
      [
        [integer], [text], [integer], [integer], [integer], [null, integer], [null, integer], [null, text],
        [null, blob], [blob],
      ]
    case .history:
      [
        [integer], [text], [integer], [integer], [integer], [integer], [integer], [null, integer], [null, text],
        [null, text], [null, blob], [blob],
      ]
    case .collections: [[null], [text], [integer], [null, integer], [null, integer]]
    case .vault: [[null], [blob], [blob], [blob], [blob], [blob]]
    case .changes:
      [[null], [blob], [integer], [integer], [null, text], [integer], [blob], [null, text], [blob], [blob]]
    case .applications: [[text], [null, text], [blob]]
    case .declarations: [[text], [text], [text], [text]]
    case .versions: [[text], [text], [blob], [integer], [integer], [text]]
    case .renames: [[text], [text], [text], [text], [text], [integer], [integer], [integer]]
    case .behind: [[text], [text], [text], [text], [integer], [integer]]
    }
  }

  private enum Column {
    case null, integer, real, text, blob

    init(_ column: RecordColumn) {
      self =
        switch column {
        case .null: .null
        case .integer: .integer
        case .real: .real
        case .text: .text
        case .blob: .blob
        }
    }
  }

  /// The number of columns before those that may be on overflow pages.
  private var leastColumnCount: Int {
    switch self {
    case .items: 8
    case .history: 10
    default: shape.count
    }
  }

  /// Whether a row could belong to this table; for a truncated row, whether what is left could.
  private func fits(_ record: Record) -> Bool {
    let columns = record.columns
    guard columns.count <= shape.count,
      record.isWhole ? columns.count == shape.count : columns.count >= leastColumnCount
    else { return false }
    return zip(columns, shape).allSatisfy { $1.contains(Column($0)) }
  }

  /// The table that a row belongs to; nil for any other.
  init?(_ row: SalvagedRow) {
    let candidates: [SalvagedTable] =
      row.table.map { name in SalvagedTable(rawValue: name).map { [$0] } ?? [] }
      // A truncated row may fit several tables; those with more columns come first.
      ?? [
        .history, .items, .collections, .vault, .changes, .renames, .behind, .versions, .declarations, .applications,
      ]
    guard let table = candidates.first(where: { $0.fits(row.record) }) else { return nil }
    self = table
  }
}

extension SalvageReport.Contents {
  /// The contents of a table's pages.
  init(table: String?) {
    self =
      switch table {
      case nil: .unknown
      case TableSalvage.free: .nothing
      case "items": .items
      case "history": .history
      case "collections": .collections
      case "vault": .vault
      case "changes": .changeLog
      case "declarations", "applications", "versions", "renames", "behind": .declarations
      // The schema, the binding of the pages to the envelope, the indexes, and the id counter.
      default: .structure
      }
  }
}

extension RecordColumn {
  var integer: Int64? {
    if case .integer(let value) = self { value } else { nil }
  }

  /// nil also for bytes that are not UTF-8.
  var text: String? {
    if case .text(let bytes) = self { String(validating: bytes, as: UTF8.self) } else { nil }
  }

  var blob: [UInt8]? {
    if case .blob(let bytes) = self { Array(bytes) } else { nil }
  }
}
