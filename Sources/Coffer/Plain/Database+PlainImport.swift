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
      var merge = PlainImport()
      try merge.run(source, path, transaction, progress)
      if mode == .replace { try merge.removeOthers(transaction) }
      if isDryRun { transaction.rollback() }
      return merge.report
    }
  }
}

/// The items of a file on their way into a store.
private struct PlainImport {
  var report = PlainImportReport()
  /// The keys that the file has, by collection.
  private var keys: [ByteString: Set<ByteString>] = [:]

  mutating func run(
    _ source: PlainSource, _ path: String, _ transaction: borrowing ReadWriteTransaction,
    _ progress: (Double) throws -> Void
  ) throws {
    let session = transaction.session
    try CofferError.translating {
      try source.readItems { item in
        try set(item, path, session)
        if report.itemCount % 256 == 0 { try progress(Double(report.itemCount) / Double(max(source.count, 1))) }
      }
    }
    report.collections = keys.keys.sorted().map(\.string)
    try progress(1)
  }

  private mutating func set(_ item: PlainSource.Item, _ path: String, _ session: Session) throws {
    report.itemCount += 1
    report.opaqueCount += item.opaqueCount
    guard keys[ByteString(item.collection), default: []].insert(ByteString(item.key)).inserted else {
      throw CofferError.malformedSettings(
        source: path, reason: "row \(report.itemCount), column key: the same key comes twice in its collection")
    }
    let earlier = try session.version(item.key, in: item.collection)
    try session.setAndTell(item.key, in: item.collection) { core in
      (
        try core.encode(.object, item.value, item.key, in: item.collection),
        try item.metadata.map { try core.encode(.metadata, $0, item.key, in: item.collection) }
      )
    }
    let version = try session.version(item.key, in: item.collection)
    if earlier == 0 { report.insertedCount += 1 } else if version != earlier { report.updatedCount += 1 }
  }

  /// Removes what the file doesn't have from the collections that it has.
  mutating func removeOthers(_ transaction: borrowing ReadWriteTransaction) throws {
    for (collection, kept) in keys {
      let others = try transaction.allKeys(inCollection: collection.string).filter { !kept.contains(ByteString($0)) }
      try transaction.removeObjects(forKeys: others, inCollection: collection.string)
      report.removedCount += others.count
    }
  }
}
