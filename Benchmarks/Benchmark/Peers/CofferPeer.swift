import Coffer
import CofferCompat
import Synchronization

/// Coffer's `ConnectionProxy`, with its own store.
final class CofferPeer: Peer, TextStore, Sendable {
  let name: String
  let path: String
  let proxy: ConnectionProxy

  private static let integers = "integers"
  private let durability = Mutex(ConnectionProxy.Durability.committed)

  /// Creates a store with its own key file.
  init(
    _ name: String = "Coffer", creating path: String, flushPolicy: ConnectionProxy.FlushPolicy = .immediately
  ) throws {
    self.name = name
    self.path = path
    let keyFile = Self.keyFile(of: path)
    try KeyFile.create(at: keyFile)
    let database = try Database.openOrCreate(at: path, key: .keyFile(keyFile))
    proxy = try ConnectionProxy(database: database, flushPolicy: flushPolicy)
  }

  /// Opens an existing store.
  init(opening path: String, key: KeySource) throws {
    name = "Coffer"
    self.path = path
    proxy = try ConnectionProxy(database: Database.open(at: path, key: key))
  }

  /// The path of the key file of the store at `path`.
  static func keyFile(of path: String) -> String { path + ".key" }

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

  func sum(ofLengthsAtOnceFor keys: [String]) throws -> Int {
    try proxy.readOnlyConnection.read { transaction in
      var sum = 0
      for key in keys {
        sum &+= try transaction.object(forKey: key, inCollection: Samples.collection, as: String.self)?.utf8.count ?? 0
      }
      return sum
    }
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

  func setSynchronization(_ synchronization: Synchronization) {
    durability.withLock { $0 = synchronization == .full ? .synced : .committed }
  }

  func commit(_ text: String, for key: String) throws {
    try proxy.setObject(text, forKey: key, inCollection: Samples.collection, durability: durability.withLock { $0 })
  }

  /// As read by a connection that has never seen the proxy's values.
  func committedText(_ key: String) throws -> String? {
    try proxy.database.makeConnection().read {
      try $0.object(forKey: key, inCollection: Samples.collection)
    }
  }

  func scan() throws -> Int {
    try proxy.readOnlyConnection.read { transaction in
      var sum = 0
      try transaction.enumerateKeysAndObjects(inCollection: Samples.collection, as: String.self) { key, text, _ in
        sum += key.utf8.count + text.utf8.count
      }
      return sum
    }
  }

  /// As ``scan()``, without a `String` for each key and text.
  func scanUTF8() throws -> Int {
    try proxy.readOnlyConnection.read { transaction in
      var sum = 0
      try transaction.enumerateUTF8(inCollection: Samples.collection) { key, text, _ in sum += key.count + text.count }
      return sum
    }
  }

  /// Closes the store, which checkpoints its log.
  func close() throws {
    try proxy.close()
    try proxy.database.close()
  }
}
