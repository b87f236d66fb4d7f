import CofferStorage

/// A version of a program that has declared its settings in a store.
package struct ProgramVersion: Sendable {
  /// The collection of the application's own settings.
  package let application: String
  /// nil if the program states none.
  package let version: String?
  /// Identifies its declarations.
  let fingerprint: [UInt8]
  /// When it was last recorded to open the store, in milliseconds since 1970; within a tenth of the time it may run, at most
  /// a day, later openings are not recorded.
  package let opened: Int64
  /// Until when it may run.
  package let until: Int64
  package let declarations: [Declaration]

  /// The application and the version, for sentences.
  package var name: String { version.map { "\(application) \($0)" } ?? "\(application) without a version" }

  /// Its declaration of a setting, if it declares that as one in use.
  func declaration(of place: SettingPlace) -> Declaration? { declarations.first { $0.place == place } }

  /// How long a program may run after an opening, if it does not say: 30 days, in milliseconds.
  static let defaultRunTime: Int64 = 30 * 86_400_000

  /// When an opening is recorded, and until when the program may run.
  ///
  /// Until is later by a tenth, at most a day, so that not each opening writes.
  static func times(openedAt time: Int64, mayRunFor runTime: Int64) -> (opened: Int64, until: Int64) {
    (time, time + runTime + min(runTime / 10, 86_400_000))
  }
}

/// The table `versions`.
package struct VersionTable {
  let connection: SQLiteConnection

  package init(connection: SQLiteConnection) { self.connection = connection }

  private var isThere: Bool { get throws { try Schema.version(connection).hasVersions } }

  /// All versions; one whose declarations cannot be read has none, which verification reports.
  package func all() throws -> [ProgramVersion] {
    guard try isThere else { return [] }
    var all: [ProgramVersion] = []
    try connection.statement(
      """
      SELECT application, version, fingerprint, opened, until, declarations FROM versions ORDER BY application, version
      """
    ).query { row in
      let version = row.text(1)
      all.append(
        ProgramVersion(
          application: row.text(0), version: version.isEmpty ? nil : version, fingerprint: row.bytes(2),
          opened: row.integer(3), until: row.integer(4),
          declarations: (try? Declaration.list(json: row.text(5))) ?? []))
    }
    return all
  }

  func all(of application: String) throws -> [ProgramVersion] {
    let name = ByteString(application)
    return try all().filter { ByteString($0.application) == name }
  }

  /// What is wrong with the declarations of versions.
  func problems() throws -> [StorageError] {
    guard try isThere else { return [] }
    var problems: [StorageError] = []
    try connection.statement("SELECT application, version, declarations FROM versions").query { row in
      do {
        _ = try Declaration.list(json: row.text(2))
      } catch CofferError.malformedSettings(_, let reason) {
        let name = "\(row.text(0)) \(row.text(1))"
        problems.append(
          .damaged(part: "table of versions", reason: "the declarations of \(name) do not parse: \(reason)"))
      }
    }
    return problems
  }

  func save(_ version: ProgramVersion) throws {
    try connection.statement(
      "INSERT OR REPLACE INTO versions VALUES (?, ?, ?, ?, ?, ?)", version.application, version.version ?? "",
      version.fingerprint, version.opened, version.until, "[\(version.declarations.map(\.json).joined(separator: ","))]"
    ).run()
  }

  func remove(_ version: ProgramVersion) throws {
    try connection.statement(
      "DELETE FROM versions WHERE application = ? AND version = ?", version.application, version.version ?? ""
    ).run()
  }
}
