import Coffer
import CofferMaintenance

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What `doctor` found out about a store.
package struct Findings {
  let path: String
  private(set) var status: DatabaseStatus?
  private(set) var report: VerificationReport?
  /// The key file that opens the store, where one does.
  private(set) var keyFile: String?
  /// What lets others at the files, a sentence each.
  private(set) var permissionProblems: [String] = []
  /// What is wrong, a sentence each.
  private(set) var problems: [String] = []
  /// Whether something is damaged, of which `salvage` can save the rest.
  private(set) var isDamaged = false

  /// What is no problem and yet worth knowing.
  var notes: [String] { (status?.notes ?? []) + overdue }
  /// What should have been renewed, a sentence each.
  private var overdue: [String] = []

  /// Below this the bytes of a file of some size are not random, and so are not encrypted.
  static let leastEntropy = 7.5

  /// Up to this size a store is always read whole: it takes a fraction of a second.
  private static let quickByteCount = 64 << 20

  /// Examines a store that opens, without a word on the way.
  package init(of database: Database) throws {
    try self.init(of: database, key: nil, deep: false, progress: nil)
  }

  /// Examines a store that opens.
  init(of database: Database, key: KeySource?, deep: Bool, progress: ProgressBar?) throws {
    let status = try database.status()
    self.status = status
    path = status.path
    permissionProblems = status.fileProblems
    if case .keyFile(let keyFile)? = key {
      self.keyFile = keyFile
      permissionProblems += KeyFile.fileProblems(at: keyFile, ofStoreAt: path).filter {
        !permissionProblems.contains($0)
      }
    }
    problems = permissionProblems
    problems += status.damagedEnvelopeCopies.map { copy in
      "Copy \(copy) of the envelope is damaged. The other is sound; the next change writes it anew."
    }
    overdue = try database.makeConnection().read { try $0.itemsDue(before: Date()) }.map { item in
      "\(KeyReference.text(item.key, in: item.collection)) should have been renewed "
        + "by \(item.due.map(Timestamp.text) ?? "now")."
    }
    // What was lost when the store was opened is no longer in the log.
    problems += status.logProblem.map { [$0] } ?? status.log.problems
    problems += PrivateFolder.leftovers(besides: path).map { folder in
      "\(folder) was left over when `prefs edit` was killed, with settings in plaintext. The next `prefs edit` wipes it."
    }
    guard deep || status.pageCount * status.pageSize <= Self.quickByteCount else {
      problems += status.tailProblems
      return
    }
    defer { progress?.finish() }
    let report = try database.verify { progress?.show($0, of: "checking") }
    self.report = report
    isDamaged = !report.problems.isEmpty
    problems += report.problems
    if report.entropyBitsPerByte < Self.leastEntropy {
      problems.append("The bytes of the file are not random, as encrypted ones are.")
    }
  }

  /// A store that is too damaged to be opened.
  ///
  /// - Parameter report: What can be said of its pages, where its envelope still opens.
  init(path: String, problem: String, report: VerificationReport?) {
    self.path = path
    self.report = report
    isDamaged = report != nil
    problems = [problem] + (report?.problems ?? [])
  }
}
