#if Metrics
  import Coffer
  import CofferMaintenance
  import CofferMetrics
  import Foundation
  import MetricsTestKit
  import Testing

  @Suite("Numbers for swift-metrics")
  struct StoreMetricsTests {
    private let metrics = TestMetrics()
    private let store = ("store", "settings")

    private func options(busyTimeout: Duration = .seconds(5)) -> Database.Options {
      Database.Options(busyTimeout: busyTimeout, meter: StoreMetrics(store: "settings", factory: metrics))
    }

    private func total(_ name: String, _ more: (String, String)...) throws -> Int64 {
      try metrics.expectCounter("coffer." + name, [store] + more).totalValue
    }

    private func meter(_ name: String) throws -> Double? {
      try metrics.expectMeter("coffer." + name, [store]).values.last
    }

    @Test("Reads are counted by where they were answered, for every type and for typed keys")
    func reads() throws {
      let database = try Database.inMemory(options: options())
      try database.makeConnection().readWrite { try $0.setObject("dark", forKey: "theme") }
      let proxy = try ConnectionProxy(database: database)
      let (size, title) = (Key("size", default: 3), Key("title", default: "none"))
      #expect(try proxy.object(forKey: "theme") == "dark")
      #expect(try (total("reads", ("from", "memory")), total("reads", ("from", "store"))) == (0, 1))
      for _ in 0..<3 {
        #expect(try proxy.object(forKey: "theme") == "dark")
        #expect(proxy[size] == 3 && proxy[title] == "none")
      }
      // Each key is looked for in the store once.
      #expect(try (total("reads", ("from", "memory")), total("reads", ("from", "store"))) == (7, 3))
      try proxy.close()
    }

    @Test("Sets, flushes, the wait for the lock, the log and a verification are counted and timed")
    func writes() throws {
      let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(at: folder) }
      let key = folder.appendingPathComponent("key").path
      try KeyFile.create(at: key)
      let database = try Database.openOrCreate(
        at: folder.appendingPathComponent("settings.coffer").path, key: .keyFile(key), options: options())
      let proxy = try ConnectionProxy(database: database, flushPolicy: .manually)
      try proxy.setObject(1, forKey: "a")
      try proxy.performBatch { batch in
        try batch.setObject(2, forKey: "b")
        try batch.removeObject(forKey: "c")
      }
      try proxy.flushAndWait()
      #expect(try total("sets") == 3)
      #expect(try metrics.expectRecorder("coffer.flush.changes", [store]).values == [3])
      #expect(try metrics.expectTimer("coffer.flush.duration", [store]).values.count == 1)
      #expect(try metrics.expectTimer("coffer.lock.wait", [store]).values.count >= 1)
      #expect(try metrics.expectMeter("coffer.pending", [store]).values == [3, 0])
      #expect(try (meter("log.bytes") ?? 0) > 0)
      #expect(try database.verify().problems.isEmpty)
      #expect(try meter("verification.problems") == 0)
      #expect(try metrics.expectTimer("coffer.verification.duration", [store]).values.count == 1)
      try proxy.close()
      try database.close()
    }

    @Test("A failed flush is counted, and so is its retry; pending changes are shown until then")
    func failures() throws {
      let database = try Database.inMemory(options: options(busyTimeout: .milliseconds(1)))
      let proxy = try ConnectionProxy(database: database, flushPolicy: .manually)
      try proxy.setObject(1, forKey: "a")
      let isCommitted = DispatchSemaphore(value: 0)
      let registration = try database.onCommit { _ in isCommitted.signal() }
      defer { registration.cancel() }
      try database.makeConnection().readWrite { _ in
        let failure = Result { try Thread.result { try proxy.flushAndWait() } }
        #expect(throws: CofferError.busy) { try failure.get() }
      }
      #expect(try total("flush.failures") == 1 && meter("pending") == 1)
      isCommitted.wait()
      // Behind the retry, which counts what it has written before it ends.
      try proxy.flushAndWait()
      #expect(try total("flush.retries") >= 1 && meter("pending") == 0)
      try proxy.close()
    }
  }

  extension Thread {
    /// What `body` does on a thread of its own.
    fileprivate static func result<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) throws -> Result {
      let box = Box<Result>()
      let isDone = DispatchSemaphore(value: 0)
      detachNewThread {
        box.result = Swift.Result { try body() }
        isDone.signal()
      }
      isDone.wait()
      return try #require(box.result).get()
    }
  }

  private final class Box<Value>: @unchecked Sendable {
    var result: Result<Value, any Error>?
  }
#endif
