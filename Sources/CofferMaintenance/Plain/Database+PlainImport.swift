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
  /// triggers never run. Versions and times are those of the import.
  ///
  /// - Parameters:
  ///   - mode: What becomes of the items that are there already.
  ///   - isDryRun: Whether nothing is to be changed, and only said what would be.
  ///   - progress: Gets the share that is done, from 0 to 1; what it throws ends the import, with nothing changed.
  /// - Throws: `CofferError.malformedSettings`, which names row and column, for a file that is no such database or holds
  ///   what is no value; `.wrongKeyForSource`; `.unsupported` when SQLCipher's library is missing; `.inputOutput` or
  ///   `.permissionDenied`; as `Connection.readWrite`. Nothing is changed then.
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
  /// Items that are there keep their metadata, which those formats don't have.
  ///
  /// - Parameters:
  ///   - collections: The collections that the file has, those without settings among them.
  ///   - mode: What becomes of the items that are there already.
  ///   - isDryRun: Whether nothing is to be changed, and only said what would be.
  ///   - progress: Gets the share that is done, from 0 to 1; what it throws ends the import, with nothing changed.
  /// - Throws: `CofferError.notEncodable`, `.locked`; as `Connection.readWrite`. Nothing is changed then.
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
