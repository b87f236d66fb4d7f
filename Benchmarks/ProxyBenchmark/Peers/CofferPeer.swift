import Coffer

/// Coffer's front door, over a store of its own.
final class CofferPeer: Peer {
  let name: String
  let path: String
  let proxy: ConnectionProxy

  private static let integers = "integers"

  init(_ name: String = "Coffer", in folder: Folder, flushPolicy: ConnectionProxy.FlushPolicy = .immediately) throws {
    self.name = name
    path = folder.file("\(name).coffer")
    let keyFile = folder.file("\(name).key")
    try KeyFile.create(at: keyFile)
    let database = try Database.openOrCreate(at: path, key: .keyFile(keyFile))
    proxy = try ConnectionProxy(database: database, flushPolicy: flushPolicy)
  }

  /// Opens a store that is there.
  init(opening path: String, key: KeySource) throws {
    name = "Coffer"
    self.path = path
    proxy = try ConnectionProxy(database: Database.open(at: path, key: key))
  }

  func sum(ofIntegersFor keys: [String]) throws -> Int {
    var sum = 0
    for key in keys {
      let value: Int? = try proxy.object(forKey: key, inCollection: Self.integers)
      sum &+= value ?? 0
    }
    return sum
  }

  func sum(ofLengthsFor keys: [String]) throws -> Int {
    var sum = 0
    for key in keys { sum &+= try text(key)?.utf8.count ?? 0 }
    return sum
  }

  func text(_ key: String) throws -> String? {
    try proxy.object(forKey: key, inCollection: Samples.collection)
  }

  func set(integersFor keys: [String], from first: Int) throws {
    var value = first
    for key in keys {
      try proxy.setObject(value, forKey: key, inCollection: Self.integers)
      value += 1
    }
  }

  func set(_ texts: [String], for keys: [String]) throws {
    for (key, text) in zip(keys, texts) { try proxy.setObject(text, forKey: key, inCollection: Samples.collection) }
  }

  func flush() throws { try proxy.flushAndWait() }

  /// Sets one text, and returns when it is committed.
  func commit(_ text: String, for key: String, _ durability: ConnectionProxy.Durability) throws {
    try proxy.setObject(text, forKey: key, inCollection: Samples.collection, durability: durability)
  }

  /// The text of a key as a connection that has never seen the proxy's own values finds it.
  func committedText(_ key: String) throws -> String? {
    try proxy.readOnlyConnection.database.makeConnection().read {
      try $0.object(forKey: key, inCollection: Samples.collection)
    }
  }

  /// Sets the texts of the first `count` keys in a few transactions.
  func fill(_ count: Int) throws {
    let (keyCount, batch) = (count, 10_000)
    for start in stride(from: 0, to: keyCount, by: batch) {
      try proxy.readWriteConnection.readWrite { transaction in
        for number in start..<min(start + batch, keyCount) {
          try transaction.setObject(
            Samples.text(number, version: 0), forKey: Samples.key(number), inCollection: Samples.collection)
        }
      }
    }
  }

  /// Closes the store, so that its log is folded in.
  func close() throws {
    try proxy.close()
    try proxy.readOnlyConnection.database.close()
  }
}
