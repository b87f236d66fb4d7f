import Coffer
import Foundation
import Synchronization

/// A program of which two versions use one store: version 1 has a width and a delay in seconds; version 2 has renamed both,
/// and counts the delay in milliseconds; version 3 is version 2, and ends the former names.
enum Program {
  static let width = Key("width", default: 800, limits: .range(100...2000))
  static let delay = Key("delay", default: 1.5)
  static let windowWidth = Key("window.width", default: 800, limits: .range(1...5000), formerly: .named("width"))
  static let milliseconds = Key(
    "delay.ms", default: 1500,
    formerly: .named("delay", as: Double.self, { $0 >= 0 ? Int($0 * 1000) : nil }, back: { Double($0) / 1000 }))
  /// Its delay has another type under the same name.
  static let retyped = Key("delay", default: 1500, formerly: .type(Double.self) { Int($0 * 1000) })

  static func settings(_ version: String, mayRunFor: Duration) -> Settings {
    switch version {
    case "1", "1.1":
      Settings(version: version, mayRunFor: mayRunFor) {
        width
        delay
      }
    case "retyped": Settings(version: "2", mayRunFor: mayRunFor) { retyped }
    default:
      Settings(version: version, mayRunFor: mayRunFor, contracts: version == "3") {
        windowWidth
        milliseconds
      }
    }
  }

  /// Ends this process when it commits: before, or directly after.
  final class Killer: TransactionObserver {
    let isBefore: Bool
    init(isBefore: Bool) { self.isBefore = isBefore }
    func observes(eventsOfKind kind: DatabaseEventKind) -> Bool { true }
    func databaseWillCommit() throws { if isBefore { kill(getpid(), SIGKILL) } }
    func databaseDidCommit(_ connection: Connection) { if !isBefore { kill(getpid(), SIGKILL) } }
  }

  /// What it has heard of a setting.
  final class Ear: Sendable {
    private let values = Mutex<[String]>([])
    private let hasMore = DispatchSemaphore(value: 0)

    func listen<Object>(_ key: Key<Object>, _ preferences: Preferences) throws {
      let values = try preferences.values(of: key)
      Task {
        for await value in values {
          self.values.withLock { $0.append("\(value)") }
          hasMore.signal()
        }
      }
    }

    var all: String { values.withLock { $0.joined(separator: " ") } }

    /// Until it has heard a value.
    func wait(_ value: String) { while values.withLock({ $0.last != value }) { hasMore.wait() } }
  }

  /// Obeys the lines of its input, and prints an answer to each.
  ///
  /// - Parameter dying: `before`, `after`: when to die in the first commit, that of its declarations, if it makes one.
  static func run(_ database: Database, version: String, seconds: Int64, dying: String?) throws {
    let killers = ["before": Killer(isBefore: true), "after": Killer(isBefore: false)]
    if let killer = dying.flatMap({ killers[$0] }) { database.add(transactionObserver: killer) }
    let preferences = try Preferences(database: database, collection: "shop")
    do {
      try preferences.declare(settings(version, mayRunFor: .seconds(seconds)))
    } catch let error as CofferError {
      return say("\(error)")
    }
    say("ready")
    let ears = ["width": Ear(), "delay": Ear()]
    let isOld = version.hasPrefix("1")
    while let line = readLine() {
      let words = line.split(separator: " ").map(String.init)
      switch words[0] {
      case "get":
        switch (words[1], isOld) {
        case ("width", true): say("\(try preferences.value(of: width))")
        case ("width", false): say("\(try preferences.value(of: windowWidth))")
        case (_, true): say("\(try preferences.value(of: delay))")
        case (_, false): say("\(try preferences.value(of: milliseconds))")
        }
      case "set":
        switch (words[1], isOld) {
        case ("width", true): try preferences.set(Int(words[2])!, for: width, durability: .committed)
        case ("width", false): try preferences.set(Int(words[2])!, for: windowWidth, durability: .committed)
        case (_, true): try preferences.set(Double(words[2])!, for: delay, durability: .committed)
        case (_, false): try preferences.set(Int(words[2])!, for: milliseconds, durability: .committed)
        }
        say("set")
      case "reset":
        if isOld { try preferences.reset(width) } else { try preferences.reset(windowWidth) }
        try preferences.flushAndWait()
        say("reset")
      case "listen":
        switch (words[1], isOld) {
        case ("width", true): try ears["width"]!.listen(width, preferences)
        case ("width", false): try ears["width"]!.listen(windowWidth, preferences)
        case (_, true): try ears["delay"]!.listen(delay, preferences)
        case (_, false): try ears["delay"]!.listen(milliseconds, preferences)
        }
        ears[words[1]]!.wait(words[2])
        say("listening")
      case "wait":
        ears[words[1]]!.wait(words[2])
        say(ears[words[1]]!.all)
      case "die":
        database.add(transactionObserver: killers[words[1]]!)
        say("dying")
      default: say("unknown")
      }
    }
  }
}
