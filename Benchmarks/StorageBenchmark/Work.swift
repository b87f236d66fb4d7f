import CofferCrypto
import CofferStorage

/// What is measured.
enum Work {
  /// Keys like `setting.key.10000123`, whose numbers are their order too.
  private static func key(_ number: Int) -> String { "setting.key.\(number + 10_000_000)" }

  /// Sets keys to 100-byte values that differ from round to round, in one transaction with its row in the change log.
  ///
  /// - Parameter didSet: Hears of each of them.
  static func fill(
    _ connection: SQLiteConnection, round: Int, keys: [Int], didSet: (Int) throws -> Void = { _ in }
  ) throws {
    try connection.beginWrite(.full)
    for number in keys {
      try set(connection, number: number, round: round)
      try didSet(number)
    }
    try appendChange(connection)
    try connection.commit()
  }

  /// One set in a transaction of its own.
  static func commit(
    _ connection: SQLiteConnection, number: Int, round: Int, _ synchronization: SQLiteConnection.Synchronization
  ) throws {
    try connection.beginWrite(synchronization)
    try set(connection, number: number % 1000, round: round + number / 1000)
    try appendChange(connection)
    try connection.commit()
  }

  private static func set(_ connection: SQLiteConnection, number: Int, round: Int) throws {
    let upsert = try connection.statement(
      """
      INSERT INTO items VALUES (?1, ?2, ?3, ?4, NULL, 1, ?5) ON CONFLICT DO UPDATE
      SET type = ?3, data = ?4, version = updated(version + 1), modified = ?5 WHERE type <> ?3 OR data <> ?4
      """)
    var value = [UInt8](repeating: UInt8(truncatingIfNeeded: round), count: 100)
    withUnsafeBytes(of: number) { for (index, byte) in $0.enumerated() { value[index] = byte } }
    upsert.bind(1, at: 1)
    upsert.bind(key(number), at: 2)
    upsert.bind(5, at: 3)
    upsert.bind(value, at: 4)
    upsert.bind(Int64(number), at: 5)
    _ = try connection.runUpsert(upsert)
  }

  private static func appendChange(_ connection: SQLiteConnection) throws {
    let insert = try connection.statement("INSERT INTO changes VALUES (NULL, ?, 1, 2, 3, ?)")
    insert.bind(try RandomSource.bytes(count: 16), at: 1)
    insert.bind([UInt8](repeating: 7, count: 30), at: 2)
    try insert.run()
  }

  static func scan(_ connection: SQLiteConnection) throws -> Int {
    var sum = 0
    try connection.statement("SELECT key, type, data FROM items ORDER BY collection, key").query { row in
      sum += row.byteCount(0) + Int(row.integer(1)) + row.byteCount(2)
    }
    return sum
  }

  static func read(_ connection: SQLiteConnection, keys: [Int]) throws {
    let select = try connection.statement("SELECT data FROM items WHERE collection = 1 AND key = ?")
    for number in keys {
      select.bind(key(number), at: 1)
      let count = try select.first { $0.byteCount(0) }
      precondition(count == 100, "there is no key \(number)")
    }
  }

  /// The cipher's share of a page, without SQLite.
  static func pageCost() throws -> String {
    let cipher = try XAES256GCM(key: .random(count: 32))
    let random = RandomSource()
    let page = UnsafeMutableRawPointer.allocate(byteCount: 4096, alignment: 16)
    defer { page.deallocate() }
    page.initializeMemory(as: UInt8.self, repeating: 1, count: 4096)
    let (nonce, tag) = (page + 4048, page + 4072)
    let data = UnsafeRawBufferPointer(start: page, count: 0)
    let count = 20_000
    var seals: [Double] = []
    var opens: [Double] = []
    for _ in 0..<9 {
      seals.append(
        try seconds {
          for _ in 0..<count {
            try random.fill(UnsafeMutableRawBufferPointer(start: nonce, count: 24))
            try cipher.seal(page, count: 4048, into: page, tag: tag, nonce: nonce, additionalData: data)
          }
        })
      let sealed = UnsafeMutableRawPointer.allocate(byteCount: 4048, alignment: 16)
      defer { sealed.deallocate() }
      opens.append(
        try seconds {
          for _ in 0..<count {
            try cipher.open(page, count: 4048, into: sealed, tag: tag, nonce: nonce, additionalData: data)
          }
        })
    }
    func text(_ times: [Double]) -> String { "\((median(times) / Double(count) * 1e8).rounded() / 100) µs" }
    return "seal \(text(seals)), open \(text(opens))"
  }
}
