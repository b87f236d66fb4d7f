import CofferCrypto
import CofferStorage
import Dispatch

/// How long `body` took.
func seconds(_ body: () throws -> Void) rethrows -> Double {
  let start = DispatchTime.now().uptimeNanoseconds
  try body()
  return Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
}

func median(_ values: [Double]) -> Double {
  let sorted = values.sorted()
  let middle = sorted.count / 2
  return sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
}

/// What is measured.
enum Work: String {
  case insertInOrder = "insert-in-order"
  case insertAtRandom = "insert-at-random"
  case scan, read

  /// How many single rows are read.
  private static let readCount = 100_000
  static let byteCount = 100

  /// The seconds that the work takes on `count` rows, as if single reads were as many.
  func measure(_ competitor: Competitor, at path: String, count: Int, seed: UInt64) throws -> Double {
    var generator = Generator(state: seed)
    switch self {
    case .insertInOrder, .insertAtRandom:
      let keys = (0..<count).map(Self.key)
      let rows = Self.rows(self == .insertInOrder ? keys.sorted() : keys.shuffled(using: &generator), seed: seed)
      let connection = try competitor.create(path)
      let time = try seconds { try Self.fill(connection, rows) }
      try Self.checkCount(connection, count)
      try connection.close()
      return time
    case .scan:
      let connection = try competitor.open(path)
      var sum = 0
      let time = try seconds { sum = try Self.scan(connection) }
      guard sum == (0..<count).reduce(0, { $0 + Self.key($1).utf8.count + Self.byteCount }) else {
        fail("the scan read other rows")
      }
      try connection.close()
      return time
    case .read:
      let keys = (0..<Self.readCount).map { _ in Self.key(Int.random(in: 0..<count, using: &generator)) }
      let connection = try competitor.open(path)
      let time = try seconds { try Self.read(connection, keys) }
      try connection.close()
      return time / Double(Self.readCount) * Double(count)
    }
  }

  static func key(_ number: Int) -> String { "setting.key.\(number)" }

  /// 100-byte values that differ from row to row, and from seed to seed.
  static func rows(_ keys: [String], seed: UInt64) -> [(key: String, value: [UInt8])] {
    keys.enumerated().map { number, key in
      var value = [UInt8](repeating: UInt8(truncatingIfNeeded: seed), count: byteCount)
      withUnsafeBytes(of: number) { for (index, byte) in $0.enumerated() { value[index] = byte } }
      return (key, value)
    }
  }

  /// Sets all in one transaction, with its row in the change log.
  ///
  /// - Parameter didSet: Called for each of them.
  static func fill(
    _ connection: SQLiteConnection, _ rows: [(key: String, value: [UInt8])], didSet: (Int) throws -> Void = { _ in }
  ) throws {
    try connection.beginWrite(.full)
    let upsert = try connection.statement(
      """
      INSERT INTO items VALUES (?1, ?2, 1, ?5, ?3, NULL, NULL, NULL, NULL, ?4) ON CONFLICT DO UPDATE
      SET type = ?3, data = ?4, version = updated(version + 1), modified = ?5, expires = NULL, due = NULL, author = NULL
      WHERE type <> ?3 OR data <> ?4 OR expires IS NOT NULL OR due IS NOT NULL
      """)
    for (number, row) in rows.enumerated() {
      upsert.bind(1, at: 1)
      upsert.bind(row.key, at: 2)
      upsert.bind(5, at: 3)
      upsert.bind(row.value, at: 4)
      upsert.bind(Int64(number), at: 5)
      _ = try connection.runUpsert(upsert)
      try didSet(number)
    }
    try appendChange(connection)
    try connection.commit()
  }

  private static func appendChange(_ connection: SQLiteConnection) throws {
    let insert = try connection.statement("INSERT INTO changes VALUES (NULL, ?1, 1, 2, 'uid 0', 3, ?3, NULL, ?3, ?2)")
    insert.bind(try RandomSource.bytes(count: 16), at: 1)
    insert.bind([UInt8](repeating: 7, count: 30), at: 2)
    insert.bind(try RandomSource.bytes(count: 16), at: 3)
    try insert.run()
  }

  private static func checkCount(_ connection: SQLiteConnection, _ count: Int) throws {
    let found = try connection.statement("SELECT count(*), sum(length(data)) FROM items").first {
      ($0.integer(0), $0.integer(1))
    }
    guard let found, found == (Int64(count), Int64(count * byteCount)) else { fail("the rows are not all there") }
  }

  private static func scan(_ connection: SQLiteConnection) throws -> Int {
    var sum = 0
    try connection.statement("SELECT key, type, data FROM items ORDER BY collection, key").query { row in
      sum += row.byteCount(0) + row.byteCount(2)
    }
    return sum
  }

  static func read(_ connection: SQLiteConnection, _ keys: [String]) throws {
    try connection.beginRead()
    let collection = try connection.statement("SELECT id FROM collections WHERE name = 'settings'").first {
      $0.integer(0)
    }
    let select = try connection.statement("SELECT data FROM items WHERE collection = ? AND key = ?")
    for key in keys {
      select.bind(collection ?? 0, at: 1)
      select.bind(key, at: 2)
      guard try select.first({ $0.byteCount(0) }) == byteCount else { fail("there is no \(key)") }
    }
    try connection.commit()
  }

  /// SplitMix64, by Sebastiano Vigna.
  struct Generator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      state &+= 0x9e37_79b9_7f4a_7c15
      var word = state
      word = (word ^ word >> 30) &* 0xbf58_476d_1ce4_e5b9
      word = (word ^ word >> 27) &* 0x94d0_49bb_1331_11eb
      return word ^ word >> 31
    }
  }
}
