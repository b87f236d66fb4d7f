import Coffer
import CofferStorage

extension Database {
  /// Exports items, unencrypted, to a new SQLite database that any program can read.
  ///
  /// The file has one table, `settings(collection, key, type, value, metadata_type, metadata, version, modified,
  /// expires, due)`. Numbers, text and data are stored as they are. Dates are RFC 3339 text where that is lossless,
  /// else seconds since 2001; lists and dictionaries are JSON where that is lossless. Any other value is stored as
  /// the store's own bytes (`FORMAT.md`, Values). A second table, `declarations(application, version, declaration)`,
  /// holds the declarations of these collections as JSON. ``importPlain(from:format:mode:isDryRun:progress:)``
  /// restores the same values, bit for bit, and the same declarations.
  ///
  /// ```swift
  /// try database.exportPlain(to: "settings.sqlite", collections: ["ui"])
  /// ```
  ///
  /// Everything in the file is plaintext, secrets included. Its mode is 0600, and it appears whole and durable, or
  /// not at all.
  ///
  /// - Parameters:
  ///   - collections: The collections to export; nil for all.
  ///   - progress: Called with the fraction done, from 0 to 1; an error it throws ends the export and leaves no file.
  ///   - willWrite: Called before each item is opened and written, with its key, its collection and its traits, such
  ///     as `secret` and `sealed`. An error it throws ends the export and leaves no file.
  /// - Returns: The number of items written.
  /// - Throws: `CofferError.fileExists` if the file exists; `.vaultLocked` for a value of a sealed collection while the
  ///   vault is locked; `.notDecodable`, `.diskFull`, `.permissionDenied` or `.inputOutput`; errors of `willWrite`
  ///   and `progress`.
  @discardableResult
  public func exportPlain(
    to path: String, collections: [String]? = nil,
    progress: (Double) throws -> Void = { _ in },
    willWrite: (_ key: String, _ collection: String, _ kind: Value.Kind) throws -> Void = { _, _, _ in }
  ) throws -> Int {
    try makeConnection().perform { session in
      try session.read {
        do {
          var count = 0
          try CofferError.translating {
            try PlainDatabase.create(at: path) { plain in
              count = try session.write(collections, to: plain, willWrite, progress)
            }
          }
          return count
        } catch CofferError.storeExists {
          throw CofferError.fileExists(path: path)
        }
      }
    }
  }
}

extension Session {
  /// - Returns: The number of items written.
  fileprivate func write(
    _ collections: [String]?, to plain: SQLiteConnection, _ willWrite: (String, String, Value.Kind) throws -> Void,
    _ progress: (Double) throws -> Void
  ) throws -> Int {
    try plain.execute(
      """
      CREATE TABLE settings(
        collection TEXT NOT NULL, key TEXT NOT NULL, type TEXT NOT NULL, value, metadata_type TEXT, metadata,
        version INTEGER NOT NULL, modified TEXT NOT NULL, expires, due, PRIMARY KEY(collection, key))
      """)
    let names = try collections ?? collectionNames()
    try writeDeclarations(of: collections, to: plain)
    let total = try names.reduce(0) { try $0 + count(in: $1) }
    var written = 0
    for name in names {
      for key in try keys(in: name, .all) {
        guard let row = try row(key, in: name) else { continue }
        try willWrite(key, name, row.item.object.kind)
        try write(row, key, name, to: plain)
        written += 1
        if written % 256 == 0 { try progress(Double(written) / Double(max(total, 1))) }
      }
    }
    try progress(1)
    return written
  }

  private func writeDeclarations(of collections: [String]?, to plain: SQLiteConnection) throws {
    let names = collections.map { Set($0.flatMap { DeclarationTable.names($0).map { ByteString($0.name) } }) }
    let declared = try DeclarationTable(connection: connection).all()
      .filter { names?.contains(ByteString($0.declaration.collection)) ?? true }
    guard !declared.isEmpty else { return }
    try plain.execute("CREATE TABLE declarations(application TEXT NOT NULL, version TEXT, declaration TEXT NOT NULL)")
    for setting in declared {
      let statement = try plain.statement("INSERT INTO declarations VALUES (?, ?, ?)")
      statement.bind(setting.application, at: 1)
      if let version = setting.version { statement.bind(version, at: 2) }
      statement.bind(setting.declaration.json, at: 3)
      try statement.run()
    }
  }

  private func write(_ row: Items.Row, _ key: String, _ collection: String, to plain: SQLiteConnection) throws {
    let value = try core.value(row.item.object, key, in: collection)
    let metadata = try row.item.metadata.map { try core.value(.metadata, $0, key, in: collection) }
    let statement = try plain.statement("INSERT INTO settings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
    statement.bind(collection, at: 1)
    statement.bind(key, at: 2)
    statement.bind(value.kind.name, at: 3)
    statement.bind(try PlainValue.column(for: value), at: 4)
    // An unbound parameter is NULL.
    if let metadata {
      statement.bind(metadata.kind.name, at: 5)
      statement.bind(try PlainValue.column(for: metadata), at: 6)
    }
    statement.bind(row.version, at: 7)
    statement.bind(Timestamp.text(.init(milliseconds: row.modified)), at: 8)
    for (date, index) in [(row.item.dates.expires, 9), (row.item.dates.due, 10)] as [(Int64?, Int32)] {
      if let date { statement.bind(try PlainValue.column(for: .date(.init(milliseconds: date))), at: index) }
    }
    try statement.run()
  }
}

extension Statement {
  fileprivate func bind(_ column: RecordColumn, at index: Int32) {
    switch column {
    case .null: break
    case .integer(let number): bind(number, at: index)
    case .real(let number): bind(real: number, at: index)
    case .text(let bytes): bind(text: Array(bytes), at: index)
    case .blob(let bytes): bind(Array(bytes), at: index)
    }
  }
}
