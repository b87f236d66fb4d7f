import Coffer

/// What kind of database is to be imported.
public enum PlainImportFormat: Sendable {
  /// An SQLite database with a table `settings`, as ``Coffer/Database/exportPlain(to:collections:progress:willWrite:)`` writes it.
  ///
  /// Its columns may stand in any order, and only `key` and `value` need be there: without a collection, items go into the
  /// default one; without a type, a value is what SQLite says it is. Other columns are left alone.
  case sqlite
  /// A database of YapDatabase, with its table `database2`.
  ///
  /// Archives of property lists, URLs, UUIDs, dates and nulls, property lists and JSON become the values they are; what an
  /// application's own serializer wrote otherwise stays data.
  case yapDatabase
  /// Either of them, encrypted by SQLCipher, whose library is loaded when it is needed; with the passphrase, as UTF-8.
  case sqlCipher(passphrase: SecretBytes)
}
