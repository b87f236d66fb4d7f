/// What a program does to a table of numbered rows, or to a collection of numbered keys, in words that GRDB and Coffer
/// both have.
struct Script: Sendable {
  let name: String
  let observers: [ObserverDescription]
  let transactions: [Transaction]
}

/// An observer, and what it does in its callbacks.
struct ObserverDescription: Sendable {
  enum Action: Sendable {
    case nothing
    /// Refuses each commit.
    case veto
    /// Writes this key after the first commit it is notified of.
    case writeAfterCommit(Int)
    /// Stops observing the changes of a transaction after the first one.
    case stop
    /// Observes only insertions.
    case insertionsOnly
  }

  enum Extent: Sendable {
    case observer, nextTransaction, database
  }

  let name: String
  var action = Action.nothing
  var extent = Extent.observer
}

/// A transaction, and how it ends.
enum Transaction: Sendable {
  case commit([Step])
  case rollback([Step])
  /// Ends with an error of the program.
  case failure([Step])
  /// Each step for itself.
  case separate([Step])
  case read
}

indirect enum Step: Sendable {
  case set(Int, to: Int)
  case remove(Int)
  case removeAll
  /// One operation that sets these keys, and then fails; the program continues.
  case failAfterSetting([Int])
  /// Sets a key to far more than fits on the disk; the program continues.
  case fillDisk(Int)
  case savepoint([Step], isKept: Bool)
  case addObserver(ObserverDescription)
  /// Removes the observer of this name.
  case removeObserver(String)
}

/// What went wrong in a script because the script says so.
struct Refusal: Error {}

/// A library that a script is played on.
protocol Player {
  /// What the observers heard, in order, and how each transaction ended.
  static func play(_ script: Script, in folder: String) throws -> [String]
}
