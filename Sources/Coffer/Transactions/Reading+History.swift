extension Reading where Self: ~Copyable {
  // MARK: Earlier values

  /// What an item was before, the newest first; empty where the collection keeps no history.
  ///
  /// The present value is not in it. A removed key has its history, too.
  ///
  /// - Throws: `CofferError.notDecodable`; `.locked` where the collection is sealed and the vault locked.
  public borrowing func history(
    forKey key: String, inCollection collection: String = ""
  ) throws -> [HistoricItem] {
    let core = session.core
    return try session.history(key, in: collection).map { row in
      HistoricItem(
        collection: collection, key: key, value: try core.value(row.item.object, key, in: collection),
        metadata: try row.item.metadata.map { try core.value(.metadata, $0, key, in: collection) },
        version: row.version,
        modified: .init(milliseconds: row.modified), endVersion: row.ended, ended: .init(milliseconds: row.time))
    }
  }

  /// The keys of a collection that have earlier values, removed ones included, in the order of their UTF-8 bytes.
  public borrowing func allKeysWithHistory(inCollection collection: String = "") throws -> [String] {
    try session.keysWithHistory(in: collection)
  }

  /// How much of its items' past a collection keeps; nil where it keeps none.
  public borrowing func historyLimits(forCollection collection: String) throws -> HistoryLimits? {
    try session.historyLimits(of: collection)
  }
}
