import CofferStorage

/// What is known of an open store without reading its values.
public struct DatabaseStatus: Sendable {
  /// The path of the store.
  public let path: String
  /// The version of the file format.
  public let formatVersion: Int
  /// The random id that the store got when it was created, in hexadecimal.
  public let storeID: String
  /// The size of a page in bytes.
  public let pageSize: Int
  /// How many pages the database has, the log's included.
  public let pageCount: Int
  /// The size of the log in bytes; 0 when there is none.
  public let logByteCount: Int
  /// What opens the store.
  public let slots: [SlotInfo]
  /// The number of the last commit.
  public let snapshot: UInt64
  /// What lets others at the files, in sentences: modes wider than 0600.
  public let fileProblems: [String]
  /// What opening had to leave out because the log did not authenticate, in a sentence; nil when nothing was lost.
  public let logProblem: String?
  /// Which of the envelope's two copies, 0 and 1, are damaged.
  ///
  /// One is no loss; the other one serves.
  public let damagedEnvelopeCopies: [Int]
}

/// What a verification found.
public struct VerificationReport: Sendable {
  /// How many pages were read and authenticated.
  public let pageCount: Int
  /// How many items were decoded.
  public let itemCount: Int
  /// What is wrong, in sentences; empty when all is well.
  public let problems: [String]
  /// The Shannon entropy of the file's bytes: close to 8 for ciphertext, below 6 for settings in clear.
  public let entropyBitsPerByte: Double
}

extension Database {
  /// Which secrets open the store at `path`.
  ///
  /// Needs no key, and so nothing here is authenticated.
  ///
  /// - Throws: `CofferError.storeNotFound`, `.notAStore`, `.newerFormat`, `.damaged` or `.permissionDenied`.
  public static func slotKinds(at path: String) throws -> [SlotInfo] {
    try CofferError.translating { try Store.peekEnvelope(at: path).slots.map(SlotInfo.init) }
  }

  /// Looks at the store without reading its values.
  ///
  /// - Throws: `CofferError.unsupported` for a store in memory; `.closed`, `.damaged` or `.inputOutput`.
  public func status() throws -> DatabaseStatus {
    let store = try storeOnDisk()
    return try makeConnection().perform { session in
      try session.read {
        try CofferError.translating {
          DatabaseStatus(
            path: path, formatVersion: Int(Layout.formatVersion),
            storeID: store.storeID.map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined(),
            pageSize: Layout.pageByteCount,
            pageCount: try session.connection.statement("PRAGMA page_count").first { Int($0.integer(0)) } ?? 0,
            logByteCount: store.logByteCount, slots: store.envelope.slots.map(SlotInfo.init),
            snapshot: try session.snapshot(), fileProblems: store.fileProblems(), logProblem: logProblem,
            damagedEnvelopeCopies: try store.damagedEnvelopeCopies())
        }
      }
    }
  }

  /// Reads and authenticates every page, lets SQLite check its structures, and decodes every value and metadata.
  ///
  /// - Parameter progress: Gets the share that is done, from 0 to 1.
  /// - Throws: What keeps the verification from being made at all; what it finds is in the report.
  public func verify(progress: (Double) -> Void = { _ in }) throws -> VerificationReport {
    let store = try storeOnDisk()
    let pages = try CofferError.translating { try store.verifyPages { progress($0 * 0.5) } }
    var problems = pages.damaged.map { "Page \($0) does not authenticate." }
    var itemCount = 0
    do {
      try makeConnection().perform { session in
        try session.read {
          problems += try session.structuralProblems()
          progress(0.6)
          let total = try session.count(in: nil)
          for collection in try session.collectionNames() {
            for key in try session.keys(in: collection, .all) {
              do {
                guard let row = try session.fullRow(key, in: collection) else { continue }
                _ = try row.item.object.decoded(as: Value.self, key, in: collection)
                _ = try row.item.metadata?.decoded(as: Value.self, key, in: collection)
              } catch CofferError.notDecodable {
                problems.append("The value for \"\(key)\" in \"\(collection)\" does not decode.")
              }
              itemCount += 1
              if itemCount % 1000 == 0 { progress(0.6 + 0.4 * Double(itemCount) / Double(max(total, 1))) }
            }
          }
          problems += try session.historicProblems()
        }
      }
    } catch CofferError.damaged(let part, let reason) {
      // A page of the database file is in the list already.
      if !pages.damaged.contains(where: { part == "page \($0)" }) {
        problems.append("The \(part) is damaged: \(reason).")
      }
    }
    progress(1)
    return VerificationReport(
      pageCount: pages.count, itemCount: itemCount, problems: problems, entropyBitsPerByte: pages.entropy)
  }

  func storeOnDisk() throws -> Store {
    try checkUsable()
    guard case .file(let store) = backing else {
      throw CofferError.unsupported(reason: "a store in memory has no file to look at")
    }
    return store
  }
}

extension Session {
  fileprivate func structuralProblems() throws -> [String] {
    try CofferError.translating {
      var problems: [String] = []
      try connection.statement("PRAGMA integrity_check").query { row in
        if row.text(0) != "ok" { problems.append("SQLite: \(row.text(0)).") }
      }
      return problems
    }
  }

  /// What does not decode among the earlier values.
  fileprivate func historicProblems() throws -> [String] {
    var problems: [String] = []
    for collection in try CofferError.translating({ try CommitFeed.names(connection) }).values.sorted() {
      for key in try keysWithHistory(in: collection) {
        for row in try history(key, in: collection) {
          do {
            _ = try row.item.object.decoded(as: Value.self, key, in: collection)
            _ = try row.item.metadata?.decoded(as: Value.self, key, in: collection)
          } catch CofferError.notDecodable {
            problems.append("An earlier value for \"\(key)\" in \"\(collection)\" does not decode.")
          }
        }
      }
    }
    return problems
  }
}
