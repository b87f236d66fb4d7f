import CofferCrypto
import Logging

extension Preferences {
  /// A setting that could not be read or set.
  public struct Failure: Sendable {
    /// The collection; empty for an error that concerns the whole store, and in the default collection.
    public let collection: String
    /// The key; nil if the whole collection is affected.
    public let key: String?
    /// Why: a ``CofferError``, or what a sanitizer of the program threw.
    public let error: any Error
    /// What is wrong with a value that was skipped; nil if something else failed.
    public let problem: SettingProblem?
    /// The value used instead, in words; nil if the error itself says that.
    public let instead: String?
  }
}

/// Reports of settings of one database that could not be read or set, when no error could be thrown.
private final class SettingReports: Sendable {
  let failures = Broadcast<Preferences.Failure>()
  let problems = Lock(ReportedProblems())
}

extension DatabaseCore {
  fileprivate var settingReports: SettingReports { attachments.object(SettingReports()) }
}

extension ConnectionProxy {
  /// Failures of typed keys and `Preferences` to read or set values from now on that could not be thrown to a caller.
  ///
  /// While something listens to changes, also why those by others cannot be followed at present: `CofferError.wrongKey` after
  /// the key was locked out, `.storeReplaced`, `.damaged`. Listeners and streams stay, and continue if that ends.
  ///
  /// It covers the whole database. Each call returns a new stream, which ends when the database is released.
  public var errors: AsyncStream<Preferences.Failure> { database.core.settingReports.failures.stream() }
}

extension Database {
  /// Reports an error that cannot be thrown, to the logger and all listeners.
  package func report(_ error: any Error, forKey key: String?, inCollection collection: String, instead: String? = nil)
  {
    core.settingReports.failures.send(
      Preferences.Failure(collection: collection, key: key, error: error, problem: nil, instead: instead))
    // The text of a foreign error may quote the value.
    let reason = (error as? CofferError)?.description ?? "\(type(of: error))"
    let subject = key.map { "Key \"\($0)\" in collection" } ?? "Collection"
    options.logger.error("\(subject) \"\(collection)\": \(reason)\(instead.map { " Used instead: \($0)." } ?? "")")
  }

  /// Reports why commits by others cannot be followed, to the logger and all listeners.
  func report(trouble error: CofferError) {
    core.settingReports.failures.send(
      Preferences.Failure(collection: "", key: nil, error: error, problem: nil, instead: nil))
    options.logger.error("\(path): changes by others cannot be followed at present. \(error)")
  }

  /// Reports a skipped bad value, once.
  package func report(_ problem: SettingProblem, instead: String) {
    guard core.settingReports.problems.withLock({ $0.insert(problem) }) else { return }
    core.settingReports.failures.send(
      Preferences.Failure(
        collection: problem.collection, key: problem.key,
        error: CofferError.invalidValue(collection: problem.collection, key: problem.key, reason: problem.reason),
        problem: problem, instead: instead))
    options.logger.error("\(problem); used instead: \(instead).")
  }
}
