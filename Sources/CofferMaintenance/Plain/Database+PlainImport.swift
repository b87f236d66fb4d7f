import Coffer
import CofferStorage

extension Database {
  /// Sets the items of a plain database, or one of SQLCipher's, all of them in one transaction.
  ///
  /// ```swift
  /// let report = try database.importPlain(from: "app.sqlite", format: .yapDatabase)
  /// print("\(report.itemCount) items, \(report.opaqueCount) of them in a form of the app's own")
  /// ```
  ///
  /// The file is opened for reading, and nothing in it is trusted: views, virtual tables and computed columns are refused,
  /// triggers never run. Versions and times are those of the import. An item is set whole: where the file has no metadata, no
  /// expiry or no due date for it, it has none afterwards. One that has expired meanwhile is left out. What the file says that
  /// applications declare is declared here, too, but for those that have declared something here already.
  ///
  /// - Parameters:
  ///   - mode: What becomes of the items that are there already.
  ///   - isDryRun: Whether nothing is to be changed, and only said what would be.
  ///   - progress: Gets the share that is done, from 0 to 1; what it throws ends the import, with nothing changed.
  /// - Throws: `CofferError.malformedSettings`, which names row and column, for a file that is no such database or holds
  ///   what is no value; `.wrongKeyForSource`; `.unsupported` when SQLCipher's library is missing; `.inputOutput` or
  ///   `.permissionDenied`; `.lockedByAdministrator` for a value that `ManagedSettings` lock; `.conflictingDeclarations`; where
  ///   declarations are checked, `.invalidValue`, or `.invalidSettings` for several; as `Connection.readWrite`. Nothing is changed
  ///   then.
  public func importPlain(
    from path: String, format: PlainImportFormat, mode: ImportMode = .merge, isDryRun: Bool = false,
    progress: (Double) throws -> Void = { _ in }
  ) throws -> PlainImportReport {
    let source = try CofferError.translating {
      do {
        return try PlainSource(path: path, format: format)
      } catch StorageError.notFound {
        throw CofferError.inputOutput(path: path, reason: "there is no such file")
      }
    }
    return try makeConnection().readWrite { transaction in
      var items = ItemImport(lists: isDryRun)
      let session = transaction.session
      var number = 0
      try CofferError.translating { try items.declare(source.declared(), transaction) }
      try CofferError.translating {
        try source.readItems { item in
          number += 1
          guard try items.set(item, session) else {
            throw CofferError.malformedSettings(
              source: path, reason: "row \(number), column key: the same key comes twice in its collection")
          }
          if number % 256 == 0 { try progress(Double(number) / Double(max(source.count, 1))) }
        }
      }
      try progress(1)
      return try items.end(mode, isDryRun: isDryRun, transaction)
    }
  }

  /// Sets settings that were read from a file of another format, all of them in one transaction.
  ///
  /// Items that are there keep metadata, expiry and due date, which those formats don't have.
  ///
  /// - Parameters:
  ///   - collections: The collections that the file has, those without settings among them.
  ///   - mode: What becomes of the items that are there already.
  ///   - isDryRun: Whether nothing is to be changed, and only said what would be.
  ///   - progress: Gets the share that is done, from 0 to 1; what it throws ends the import, with nothing changed.
  /// - Throws: `CofferError.notEncodable`, `.locked`; where declarations are checked, `.invalidValue`, or `.invalidSettings` for
  ///   several; as `Connection.readWrite`. Nothing is changed then.
  package func importSettings(
    _ settings: [ImportedSetting], collections: [String], mode: ImportMode = .merge, isDryRun: Bool = false,
    progress: (Double) throws -> Void = { _ in }
  ) throws -> PlainImportReport {
    try makeConnection().readWrite { transaction in
      var items = ItemImport(lists: isDryRun)
      let session = transaction.session
      items.begin(collections)
      for (index, setting) in settings.enumerated() {
        try items.set(setting, session)
        if index % 256 == 0 { try progress(Double(index) / Double(settings.count)) }
      }
      try progress(1)
      return try items.end(mode, isDryRun: isDryRun, transaction)
    }
  }
}

/// What becomes of the items that are there already.
public enum ImportMode: Sendable {
  /// Those that the file doesn't have stay.
  case merge
  /// Those that the file doesn't have go, in the collections that it has.
  case replace
}

/// What kind of database is to be imported.
public enum PlainImportFormat: Sendable {
  /// An SQLite database with a table `settings`, as ``Coffer/Database/exportPlain(to:collections:progress:willWrite:)`` writes it.
  ///
  /// Its columns may stand in any order, and only `key` and `value` need be there: without a collection, items go into the
  /// default one; without a type, a value is what SQLite says it is. `expires` and `due` are dates as in `value`. Other columns
  /// are left alone.
  case sqlite
  /// A database of YapDatabase, with its table `database2`.
  ///
  /// Archives of property lists, URLs, UUIDs, dates and nulls, property lists and JSON become the values they are; what an
  /// application's own serializer wrote otherwise stays data.
  case yapDatabase
  /// Either of them, encrypted by SQLCipher, whose library is loaded when it is needed; with the passphrase, as UTF-8.
  case sqlCipher(passphrase: SecretBytes)
}

/// What an import has changed, or would.
public struct PlainImportReport: Sendable, Equatable {
  /// How many items were read.
  public internal(set) var itemCount = 0
  /// How many of them are new.
  public internal(set) var insertedCount = 0
  /// How many of them replaced another value, other metadata, or another expiry or due date.
  public internal(set) var updatedCount = 0
  /// How many items were removed, because the file doesn't have them.
  public internal(set) var removedCount = 0
  /// The collections that were read, in the order of their names.
  public internal(set) var collections: [String] = []
  /// How many settings are declared that were not.
  public internal(set) var declaredCount = 0
  /// How many values and metadata are data because what wrote them is unknown.
  public internal(set) var opaqueCount = 0
  /// How many more the file had that have expired, and were left out.
  public internal(set) var expiredCount = 0

  /// How many values the file does not show, and were left as they are: redacted secrets.
  package internal(set) var redactedCount = 0
  /// What would change, by collection and key; only of an import that changes nothing.
  package internal(set) var changes: [Change] = []

  /// One item that an import would add, change or remove.
  package struct Change: Sendable, Equatable {
    package let collection: String
    package let key: String
    /// The value that is there; nil when the item is new.
    package let before: Value?
    /// The value in the file; nil when the item would be removed.
    package let after: Value?
    /// Whether the collection is sealed, and its values are not to be shown.
    package let isSealed: Bool
  }

  init() {}

  /// How many items were there already as they are in the file.
  public var unchangedCount: Int { itemCount - insertedCount - updatedCount }
}

extension PlainImportReport.Change: CustomStringConvertible, CustomReflectable {
  /// Collection and key; never a value, which may be a sealed one.
  package var description: String { "\(collection)/\(key)" }

  package var customMirror: Mirror { Mirror(self, children: ["collection": collection, "key": key]) }
}

/// A setting as a file of another format has it.
package struct ImportedSetting {
  package let collection: String
  package let key: String
  /// Its value; nil where the file only shows that there is one, as it does of a secret.
  package let value: Value?

  package init(collection: String, key: String, value: Value?) {
    self.collection = collection
    self.key = key
    self.value = value
  }
}
