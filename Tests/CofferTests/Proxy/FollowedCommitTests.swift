import CofferCrypto
import Dispatch
import Testing

@testable import Coffer

@Suite("The commits that a proxy follows for its listeners") struct FollowedCommitTests {
  private let fixture: ProxyFixture
  private var proxy: ConnectionProxy { fixture.proxy }
  private var state: ProxyState { fixture.proxy.state }

  init() throws {
    fixture = try ProxyFixture()
    _ = try proxy.hasObject(forKey: "a")
  }

  /// The commits of some changes, as the feed passes them on.
  private func commits(of changes: [(key: String, value: Int)]) async throws -> [Commit] {
    var commits = try fixture.database.commits().makeAsyncIterator()
    var made: [Commit] = []
    for (key, value) in changes {
      try await fixture.other.readWrite { try $0.setObject(value, forKey: key) }
      made.append(try #require(await commits.next()))
    }
    return made
  }

  private final class Heard: Sendable {
    let changes = Lock<[String]>([])
  }

  /// Registers a listener of keys, without the feed; it signals for each event.
  private func listen(_ keys: [String], _ heard: Heard) -> DispatchSemaphore {
    let semaphore = DispatchSemaphore(value: 0)
    _ = state.listeners.add(ChangeInterest(keys: Set(keys.map { ByteString($0) }))) { event in
      heard.changes.withLock { $0 += event.changes.map { "\($0.kind) \($0.key)" } }
      semaphore.signal()
    } finish: {
    }
    return semaphore
  }

  /// Runs `body` on another thread while nothing can be read through the proxy.
  private func withoutReading(_ body: @escaping @Sendable () throws -> Void) throws {
    try state.reader.perform { _ in
      let isDone = DispatchSemaphore(value: 0)
      let result = Lock<Result<Void, any Error>>(.success(()))
      DispatchQueue.global().async {
        let outcome = Result { try body() }
        result.withLock { $0 = outcome }
        isDone.signal()
      }
      isDone.wait()
      try result.withLock { $0 }.get()
    }
  }

  @Test("4.13 are followed without reading anything, unless a listener wants one of their keys")
  func withoutReading() async throws {
    let heard = Heard()
    let signal = listen(["a"], heard)
    let commits = try await commits(of: [("b", 1), ("a", 1)])
    let state = state
    try withoutReading { try state.follow(commits[0]) }
    #expect(state.known.number == commits[0].number)
    // No listener wants its value.
    #expect(state.lock.withShared { state.items.find("b", "") == nil })
    try state.follow(commits[1])
    #expect(state.known.number == commits[1].number)
    Self.wait(signal)
    #expect(heard.changes.withLock { $0 } == ["inserted a"])
    #expect(try proxy.object(forKey: "b", as: Int.self) == 1)
  }

  private static func wait(_ semaphore: DispatchSemaphore) { semaphore.wait() }

  @Test("4.13 are read from the log if others are missing before them, and not followed twice")
  func gap() async throws {
    let commits = try await commits(of: [("a", 1), ("b", 1), ("b", 2)])
    try state.follow(commits[0])
    #expect(state.known.number == commits[0].number)
    try state.follow(commits[2])
    #expect(state.known.number == commits[2].number)
    #expect(try proxy.object(forKey: "b", as: Int.self) == 2)
    let state = state
    try withoutReading { for commit in commits { try state.follow(commit) } }
    #expect(state.known.number == commits[2].number)
  }

  @Test("4.13 are read from the log if the feed has read them in another store")
  func otherStore() async throws {
    var commit = try #require(try await commits(of: [("a", 1)]).first)
    commit.delivery = Commit.Delivery(storeGeneration: 1, count: nil)
    state.lock.withExclusive { state.setClosed(true) }
    #expect(throws: CofferError.closed) { try state.follow(commit) }
    state.lock.withExclusive { state.setClosed(false) }
    // One that could not be followed is not forgotten: the next one leads to the log, too.
    commit.delivery = Commit.Delivery(storeGeneration: 0, count: nil)
    try state.follow(commit)
    #expect(!state.known.missesCommits && state.known.number == commit.number)
    #expect(try proxy.object(forKey: "a", as: Int.self) == 1)
  }

  @Test("4.13 are not read for keys that no listener wants, nor are own changes of such keys")
  func otherKeys() async throws {
    try await fixture.other.readWrite { try $0.setObject(1, forKey: "b") }
    let preferences = Preferences(proxy: proxy, collection: "")
    let changes = try preferences.changes(forKey: "a")
    #expect(state.listeners.want("a", in: "") && !state.listeners.want("b", in: ""))
    try fixture.withWriteLockHeld {
      try proxy.setObject(2, forKey: "b")
      let committed = state.lock.withShared { state.items.find("b", "")?.object.committed }
      #expect(committed == .unknown)
    }
    try proxy.setObject(2, forKey: "a")
    var iterator = changes.makeAsyncIterator()
    #expect(await iterator.next()?.keys == ["a"])
  }
}

@Suite("The interests of several listeners") struct ChangeInterestTests {
  @Test("4.13 are together what each of them is alone, also after one has ended")
  func together() {
    let names = ["", "c", "d"].map { ByteString($0) }
    let keys = ["a", "ab", "b"].map { ByteString($0) }
    let interests = [
      ChangeInterest(), ChangeInterest(collections: [names[1]]), ChangeInterest(keys: [keys[0]]),
      ChangeInterest(collections: [names[1], names[2]], keys: [keys[1]]),
      ChangeInterest(collections: [names[0]], prefix: "a"), ChangeInterest(prefix: "ab"),
    ]
    for first in interests {
      for second in interests {
        let listeners = ChangeListeners()
        let number = listeners.add(first) { _ in
        } finish: {
        }
        _ = listeners.add(second) { _ in
        } finish: {
        }
        for name in names {
          for key in keys {
            let alone = [first, second].map { $0.includes(key, in: name) }
            #expect(listeners.want(key.string, in: name.string) == (alone[0] || alone[1]))
          }
        }
        listeners.remove(number)
        for name in names {
          for key in keys { #expect(listeners.want(key.string, in: name.string) == second.includes(key, in: name)) }
        }
      }
    }
  }
}
