import CofferStorage
import Foundation

/// The effect of the size of a page cache on a store: random reads, random writes, opening, memory.
///
/// One size per process, to measure memory.
enum PageCache {
  private static let readCount = 60_000
  private static let writeCount = 1000

  /// - Parameter megabytes: The size; 0 for the default of connections.
  static func measure(_ competitor: Competitor, at path: String, count: Int, megabytes: Int) throws {
    func open() throws -> SQLiteConnection {
      let connection = try competitor.open(path)
      if megabytes > 0 { try connection.execute("PRAGMA cache_size=-\(megabytes * 1000)") }
      return connection
    }
    var generator = Work.Generator(state: 1)
    let keys = (0..<readCount).map { _ in Work.key(Int.random(in: 0..<count, using: &generator)) }
    let rows = Work.rows((0..<writeCount).map { _ in Work.key(Int.random(in: 0..<count, using: &generator)) }, seed: 2)

    // The first opening of the process loads OpenSSL's algorithms.
    let one = Array(keys.prefix(1))
    func openAndRead() throws {
      let connection = try open()
      try Work.read(connection, one)
      try connection.close()
    }
    try openAndRead()
    let opening = try median((0..<60).map { _ in try seconds { try openAndRead() } })

    let before = residentByteCount()
    let connection = try open()
    // Measure a full cache.
    try Work.read(connection, keys)
    let reads = try median((0..<3).map { _ in try seconds { try Work.read(connection, keys) } })
    let memory = residentByteCount() - before
    let writes = try seconds { try Work.fill(connection, rows) }
    try connection.close()
    let figures = [
      opening * 1e6, reads * 1e6 / Double(readCount), writes * 1e6 / Double(writeCount), Double(memory) / 1e6,
    ]
    print(figures.map { String(format: "%.2f", $0) }.joined(separator: "\t"))
  }

  private static func residentByteCount() -> Int {
    let fields = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8))?.split(separator: " ")
    return (fields.flatMap { Int($0[1]) } ?? 0) * Int(getpagesize())
  }
}
