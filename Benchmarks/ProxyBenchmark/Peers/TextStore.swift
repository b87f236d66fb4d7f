/// A store that is open.
protocol TextStore {
  /// The text of a key, nil when there is none.
  func text(_ key: String) throws -> String?
  func close() throws
}

extension CofferPeer: TextStore {}
extension GRDBPeer: TextStore {}
extension PlainDatabase: TextStore {}
