import Coffer
import CofferStorage

extension Database {
  /// Imports the items of a plain or SQLCipher database, in one transaction.
  ///
  /// ```swift
  /// let report = try database.importPlain(from: "app.sqlite", format: .yapDatabase)
  /// print("\(report.itemCount) items, \(report.opaqueCount) of them in a form of the app's own")
  /// ```
  ///
  /// The file is opened read-only and not trusted: views, virtual tables and computed columns are refused, and
  /// triggers never run. Items get new versions and times. Each item is replaced whole: if the file has no metadata,
  /// expiry or due date for it, it has none afterwards. Expired items are left out. Declarations in the file are
  /// imported for applications that have declared nothing in this store yet.
  ///
  /// - Parameters:
  ///   - mode: What happens to existing items.
  ///   - isDryRun: Whether to report the changes without making them.
  ///   - progress: Called with the fraction done, from 0 to 1; an error it throws ends the import, with nothing
  ///     changed.
  /// - Throws: `CofferError.malformedSettings`, naming row and column, if the file is not such a database or a row is
  ///   not a valid item; `.wrongKeyForSource`; `.unsupported` if SQLCipher's library is missing; `.inputOutput` or
  ///   `.permissionDenied`; `.lockedByAdministrator` for a value locked by `ManagedSettings`;
  ///   `.conflictingDeclarations`; where declarations are checked, `.invalidValue`, or `.invalidSettings` for
  ///   several; and the errors of `Connection.readWrite`. Nothing is changed when it throws.
  public func importPlain(
    from path: String, format: PlainImportFormat, mode: ImportMode = .merge, isDryRun: Bool = false,
    progress: (Double) throws -> Void = { _ in }
  ) throws -> PlainImportReport {
    let source = try CofferError.translating {
      do {
        return try PlainSource(path: path, format: format)
      } catch StorageError.notFound {
        throw CofferError.inputOutput(path: path, reason: "no such file")
      }
    }
    return try makeConnection().readWrite { transaction in
      var items = ItemImport(lists: isDryRun)
      let session = transaction.session
      if session.settingRules == nil, !isInMemory {
        session.settingRules = SettingRules(files: AdministratorFiles(), allowsUndeclared: true)
      }
      var number = 0
      try CofferError.translating { try items.declare(source.declared(), transaction) }
      try CofferError.translating {
        try source.readItems { item in
          number += 1
          guard try items.set(item, session) else {
            throw CofferError.malformedSettings(
              source: path, reason: "row \(number), column key: the key occurs twice in its collection")
          }
          if number % 256 == 0 { try progress(Double(number) / Double(max(source.count, 1))) }
        }
      }
      try progress(1)
      return try items.end(mode, isDryRun: isDryRun, transaction)
    }
  }

  /// Imports settings that were read from a file of another format, in one transaction.
  ///
  /// Existing items keep their metadata, expiry and due date, which those formats lack.
  ///
  /// - Parameters:
  ///   - collections: The collections in the file, including empty ones.
  ///   - mode: What happens to existing items.
  ///   - isDryRun: Whether to report the changes without making them.
  ///   - typed: Gives settings the types that they have in the store.
  ///   - progress: Called with the fraction done, from 0 to 1; an error it throws ends the import, with nothing
  ///     changed.
  /// - Throws: `CofferError.notEncodable`, `.vaultLocked`; where declarations are checked, `.invalidValue`, or
  ///   `.invalidSettings` for several; and the errors of `Connection.readWrite`. Nothing is changed when it throws.
  package func importSettings(
    _ settings: [ImportedSetting], collections: [String], mode: ImportMode = .merge, isDryRun: Bool = false,
    typed: ([ImportedSetting], borrowing ReadWriteTransaction) throws -> [ImportedSetting] = { settings, _ in settings
    },
    progress: (Double) throws -> Void = { _ in }
  ) throws -> PlainImportReport {
    try makeConnection().readWrite { transaction in
      var items = ItemImport(lists: isDryRun)
      let session = transaction.session
      let settings = try typed(settings, transaction)
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

/// The kind of database to import.
public enum PlainImportFormat: Sendable {
  /// An SQLite database with a table `settings`, as
  /// ``Coffer/Database/exportPlain(to:collections:progress:willWrite:)`` writes it.
  ///
  /// Columns may be in any order, and only `key` and `value` are required. Without a collection, items go into the
  /// default one; without a type, SQLite's type decides. `expires` and `due` are dates in the same form as in
  /// `value`. Other columns are ignored.
  case sqlite
  /// A database of YapDatabase, with its table `database2`.
  ///
  /// Archives of property lists, URLs, UUIDs, dates and nulls, property lists and JSON are decoded; bytes from an
  /// application's own serializer are imported as data.
  case yapDatabase
  /// Either of them, encrypted by SQLCipher, with the passphrase as UTF-8. SQLCipher's library is loaded on demand.
  case sqlCipher(passphrase: SecretBytes)
}

/// What an import changed, or would change.
public struct PlainImportReport: Sendable, Equatable {
  /// The number of items read.
  public internal(set) var itemCount = 0
  /// The number of new items.
  public internal(set) var insertedCount = 0
  /// The number of items whose value, metadata, expiry or due date was replaced.
  public internal(set) var updatedCount = 0
  /// The number of items removed because the file doesn't have them.
  public internal(set) var removedCount = 0
  /// The collections read, sorted by name.
  public internal(set) var collections: [String] = []
  /// The number of newly declared settings.
  public internal(set) var declaredCount = 0
  /// The number of values and metadata imported as data because their serializer is unknown.
  public internal(set) var opaqueCount = 0
  /// The number of expired items that were left out.
  public internal(set) var expiredCount = 0

  /// The number of values left unchanged because the file redacts them, as it does secrets.
  package internal(set) var redactedCount = 0
  /// Those of them that the store does not have either, in the order of the file.
  package internal(set) var missing: [MissingValue] = []
  /// The sentences that say what stays in force of removed keys.
  package internal(set) var locks: [String] = []
  /// The changes by collection and key; filled only by a dry run.
  package internal(set) var changes: [Change] = []

  /// One item that an import would add, change or remove.
  package struct Change: Sendable, Equatable {
    package let collection: String
    package let key: String
    /// The present value; nil when the item is new.
    package let before: Value?
    /// The value in the file; nil when the item would be removed.
    package let after: Value?
    /// Whether the collection is sealed, so that its values must not be shown.
    package let isSealed: Bool
    /// Whether the setting is declared as a secret.
    package let isSecret: Bool
  }

  /// A key whose value neither the file shows nor the store has.
  package struct MissingValue: Sendable, Equatable {
    package let collection: String
    package let key: String
  }

  init() {}

  /// The number of items that were the same in the file.
  public var unchangedCount: Int { itemCount - insertedCount - updatedCount }
}

extension PlainImportReport.Change: CustomStringConvertible, CustomReflectable {
  /// Collection and key, never a value, which may be sealed.
  package var description: String { "\(collection)/\(key)" }

  package var customMirror: Mirror { Mirror(self, children: ["collection": collection, "key": key]) }
}

/// A setting read from a file of another format.
package struct ImportedSetting {
  package let collection: String
  package let key: String
  /// Its value; nil if the file redacts it, as it does a secret.
  package let value: Value?

  package init(collection: String, key: String, value: Value?) {
    self.collection = collection
    self.key = key
    self.value = value
  }
}
