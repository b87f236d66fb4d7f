import Coffer
import CofferMaintenance

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The findings of `doctor` about a store.
package struct Findings {
  let path: String
  private(set) var status: DatabaseStatus?
  private(set) var report: VerificationReport?
  /// The key file that opens the store, if one does.
  private(set) var keyFile: String?
  /// The permissions that let others access the files, as sentences.
  private(set) var permissionProblems: [String] = []
  /// The problems, as sentences.
  private(set) var problems: [String] = []
  /// Whether the store is damaged, so that `salvage` should be used.
  private(set) var isDamaged = false

  /// Notes that are not problems.
  var notes: [String] { (status?.notes ?? []) + vaultNotes + overdue + doubts }
  private var vaultNotes: [String] = []
  /// What in the administrator's files may not be meant as it is, as sentences.
  private var doubts: [String] = []
  /// The overdue settings, as sentences.
  private var overdue: [String] = []

  /// A file of some size with lower entropy is not random, and therefore not encrypted.
  static let leastEntropy = 7.5

  /// Stores up to this size are always read whole: it takes a fraction of a second.
  private static let quickByteCount = 64 << 20

  /// Examines an open store, and reports no progress.
  package init(of database: Database) throws {
    try self.init(of: database, key: nil, deep: false, mends: false, progress: nil)
  }

  /// What is wrong with the administrator's files in `/etc/coffer`, and what may be.
  private static func managed(_ database: Database) throws -> (problems: [String], doubts: [String]) {
    try database.makeConnection().read { transaction in
      let declared = try DeclaredKeys(transaction)
      let applications = try declared.applications(transaction)
      // What cannot be read is a problem.
      let findings =
        applications.flatMap { application in
          (try? ManagedFindings(application: application, declared: declared).all(transaction)) ?? []
        } + ((try? ManagedFindings.disagreements(declared)) ?? [])
      // Values are checked by `prefs validate`.
      let doubts = findings.filter { ![.type, .limit].contains($0.kind) }.map(\.sentence)
      let names = try SettingFinding.ofNames(transaction).map(\.sentence)
      return (ManagedSettings.problems(ofApplications: applications).map(\.description) + names, doubts)
    }
  }

  /// Examines a store that can be opened.
  ///
  /// - Parameters:
  ///   - vaultProblem: Why the vault, whose key was at hand, does not open.
  ///   - mends: Whether to remove what is in the place of the record of its newest state and is none.
  init(
    of database: Database, key: KeySource?, vaultProblem: String? = nil, deep: Bool, mends: Bool,
    progress: ProgressBar?
  ) throws {
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
    if mends, let keyFile = self.keyFile.flatMap(KeyFile.regularFile) {
      problems += KeyFile.removeLeftovers(besides: keyFile).map { file in
        "\(file) was left by a program that died while making a key file, and holds a key. It was removed."
      }
    }
    problems += status.damagedEnvelopeCopies.map { copy in
      "Copy \(copy) of the envelope is damaged. The other is intact; the next change rewrites this one."
    }
    problems += status.outdatedEnvelopeCopies.map { copy in
      "Copy \(copy) of the envelope is outdated: a change of the keys was interrupted, or an earlier copy was put back. It may "
        + "open with keys removed since; the next change of the store replaces it."
    }
    problems += status.keyProblems
    if mends { problems += TPMKey.problems(of: database, path) }
    problems += vaultProblem.map { [$0] } ?? []
    if try database.vault.isThere(), vaultProblem == nil, !database.vault.isUnlocked {
      vaultNotes = ["The vault is locked: sealed values were not opened. With its key, doctor checks them, too."]
    }
    overdue = try database.makeConnection().read { try $0.itemsDue(before: Date()) }.map { item in
      "\(KeyText.of(item.key, in: item.collection)) should have been renewed "
        + "by \(item.due.map(Timestamp.text) ?? "now")."
    }
    // The log no longer contains the part that was lost when the store was opened.
    problems += status.logProblem.map { [$0] } ?? status.log.problems
    problems += PrivateFolder.leftovers(besides: path).map { folder in
      "\(folder) was left by a killed `prefs edit`, and holds settings in plaintext. The next `prefs edit` wipes it."
    }
    let managed = try Self.managed(database)
    problems += managed.problems
    doubts = managed.doubts
    problems += (mends ? database.mendRecord() : database.recordProblem).map { [$0] } ?? []
    guard deep || status.pageCount * status.pageSize <= Self.quickByteCount else {
      problems += status.tailProblems
      return
    }
    defer { progress?.finish() }
    let report = try database.verify { progress?.show($0, of: "checking") }
    self.report = report
    isDamaged = !report.problems.isEmpty
    problems += report.problems.map(\.description)
    if report.entropyBitsPerByte < Self.leastEntropy {
      problems.append("The bytes of the file do not look random, as encrypted bytes do.")
    }
  }

  /// The findings about a store that is too damaged to be opened.
  ///
  /// - Parameter report: The state of its pages, if its envelope can still be opened.
  init(path: String, problem: String, report: VerificationReport?) {
    self.path = path
    self.report = report
    isDamaged = report != nil
    problems = [problem] + (report?.problems.map(\.description) ?? [])
  }
}
