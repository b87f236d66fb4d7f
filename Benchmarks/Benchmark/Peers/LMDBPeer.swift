import CLMDB

/// LMDB, unencrypted: a tree of pages in a mapped file, one named database for texts and one for integers.
///
/// It has no write-ahead log. FULL is its default, which waits for the disk twice a commit; NORMAL is `MDB_NOMETASYNC`,
/// which waits once, and like SQLite's may lose only the latest commits. `MDB_NOSYNC`, which never waits, is
/// omitted: after a power cut the file may be damaged, which no other contender allows.
final class LMDBPeer: Peer, TextStore {
  static let version = String(cString: mdb_version(nil, nil, nil))
  let name = "LMDB"
  private let environment: OpaquePointer
  private let texts: MDB_dbi
  private let integers: MDB_dbi
  /// Renewed for each read, which is cheaper than a new one.
  private let reader: OpaquePointer

  init(path: String, isNew: Bool = false) throws {
    var environment: OpaquePointer?
    try Self.check(mdb_env_create(&environment))
    guard let environment else { throw Failure(reason: "LMDB made no environment") }
    self.environment = environment
    try Self.check(mdb_env_set_maxdbs(environment, 2))
    // The maximum size of the file.
    try Self.check(mdb_env_set_mapsize(environment, 16 << 30))
    try Self.check(mdb_env_open(environment, path, UInt32(MDB_NOSUBDIR | MDB_NOTLS), 0o600))
    let transaction = try Self.begin(environment, isNew ? 0 : UInt32(MDB_RDONLY))
    func open(_ name: String) throws -> MDB_dbi {
      var database: MDB_dbi = 0
      try Self.check(mdb_dbi_open(transaction, name, isNew ? UInt32(MDB_CREATE) : 0, &database))
      return database
    }
    texts = try open("texts")
    integers = try open("integers")
    try Self.check(mdb_txn_commit(transaction))
    reader = try Self.begin(environment, UInt32(MDB_RDONLY))
    mdb_txn_reset(reader)
  }

  func close() throws {
    mdb_txn_abort(reader)
    mdb_env_close(environment)
  }

  // MARK: Reading

  private func withReader<Result>(_ body: () throws -> Result) throws -> Result {
    try Self.check(mdb_txn_renew(reader))
    defer { mdb_txn_reset(reader) }
    return try body()
  }

  /// What `body` makes of the bytes of a key, which are valid in the transaction.
  private func value<Result>(
    _ key: String, _ database: MDB_dbi, _ body: (UnsafeRawBufferPointer) -> Result
  ) throws -> Result? {
    var value = MDB_val()
    let code = Self.withValue(key) { key in mdb_get(reader, database, &key, &value) }
    guard code != MDB_NOTFOUND else { return nil }
    try Self.check(code)
    return body(UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size))
  }

  func text(_ key: String) throws -> String? {
    try withReader { try value(key, texts) { String(decoding: $0, as: UTF8.self) } }
  }

  func sum(ofLengthsFor keys: [String]) throws -> Int {
    var sum = 0
    for key in keys { sum &+= try text(key)?.utf8.count ?? 0 }
    return sum
  }

  func sum(ofLengthsAtOnceFor keys: [String]) throws -> Int {
    try withReader {
      var sum = 0
      for key in keys { sum &+= try value(key, texts) { String(decoding: $0, as: UTF8.self).utf8.count } ?? 0 }
      return sum
    }
  }

  func sum(ofIntegersFor keys: [String]) throws -> Int {
    var sum = 0
    for key in keys {
      sum &+= try withReader { try value(key, integers) { $0.loadUnaligned(as: Int.self) } } ?? 0
    }
    return sum
  }

  func scan() throws -> Int {
    try withReader {
      var cursor: OpaquePointer?
      try Self.check(mdb_cursor_open(reader, texts, &cursor))
      defer { mdb_cursor_close(cursor) }
      var sum = 0
      var (key, value) = (MDB_val(), MDB_val())
      while true {
        let code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)
        if code == MDB_NOTFOUND { return sum }
        try Self.check(code)
        for part in [key, value] {
          let bytes = UnsafeRawBufferPointer(start: part.mv_data, count: part.mv_size)
          sum += String(decoding: bytes, as: UTF8.self).utf8.count
        }
      }
    }
  }

  // MARK: Writing

  func setSynchronization(_ synchronization: Synchronization) throws {
    try Self.check(mdb_env_set_flags(environment, UInt32(MDB_NOMETASYNC), synchronization == .normal ? 1 : 0))
  }

  func set(_ newTexts: [String], for keys: [String]) throws {
    try write { transaction in
      for (key, text) in zip(keys, newTexts) {
        try Self.check(
          Self.withValue(key) { key in Self.withValue(text) { text in mdb_put(transaction, texts, &key, &text, 0) } })
      }
    }
  }

  func set(integersFor keys: [String], from first: Int) throws {
    try write { transaction in
      for (key, number) in zip(keys, first...) {
        var number = number
        let code = withUnsafeMutableBytes(of: &number) { bytes in
          var value = MDB_val(mv_size: bytes.count, mv_data: bytes.baseAddress)
          return Self.withValue(key) { key in mdb_put(transaction, integers, &key, &value, 0) }
        }
        try Self.check(code)
      }
    }
  }

  private func write(_ body: (_ transaction: OpaquePointer) throws -> Void) throws {
    let transaction = try Self.begin(environment, 0)
    do {
      try body(transaction)
    } catch {
      mdb_txn_abort(transaction)
      throw error
    }
    try Self.check(mdb_txn_commit(transaction))
  }

  // MARK: Calls

  private static func begin(_ environment: OpaquePointer, _ flags: UInt32) throws -> OpaquePointer {
    var transaction: OpaquePointer?
    try check(mdb_txn_begin(environment, nil, flags, &transaction))
    guard let transaction else { throw Failure(reason: "LMDB began no transaction") }
    return transaction
  }

  private static func withValue<Result>(_ text: String, _ body: (inout MDB_val) -> Result) -> Result {
    var text = text
    return text.withUTF8 { bytes in
      var value = MDB_val(mv_size: bytes.count, mv_data: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
      return body(&value)
    }
  }

  private static func check(_ code: Int32) throws {
    guard code != 0 else { return }
    throw Failure(reason: "LMDB failed: \(String(cString: mdb_strerror(code)))")
  }
}
