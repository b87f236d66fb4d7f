import Coffer

/// The cost of opening with 200 declared settings, unchanged since the last opening.
enum DeclaredSettings {
  static let declaring = "Coffer, 200 settings declared"
  private static let plain = "Coffer"
  static let rate = Key("rate", default: 1, limits: .range(1...100), summary: "How many requests a second are answered")

  /// As in a typical program: mostly numbers, texts and booleans, two of three with limits.
  static func settings() -> Settings {
    Settings(version: "1.0") {
      rate
      for number in 0..<66 {
        Key(
          "http.limit.\(number)", in: "module", default: number, limits: .range(0...1000),
          summary: "A number of the module")
        Key("http.isEnabled.\(number)", in: "module", default: true, summary: "Whether a part of the module is at work")
        Key("http.name.\(number)", in: "module", default: "name", limits: .notEmpty, summary: "What a part is called")
      }
      Key("last", default: 1.5)
    }
  }

  static func row(_ folder: Folder) throws -> Row {
    let folder = try folder.subfolder("declared")
    let (store, keyFile) = (folder.file("store"), folder.file("key"))
    try KeyFile.create(at: keyFile)
    let preferences = try Preferences.open(
      application: "shop", at: store, key: .keyFile(keyFile), layers: [], declaring: settings())
    preferences[rate] = 7
    try preferences.close()
    let work = Work(
      row: "declared", name: "open settings and read one, first in a process", unit: .microseconds, baseline: plain)
    return Row(
      measurements: [plain, declaring].map { contender in
        Measurement(work, contender) { _ in
          try Measure.median(of: 21) { try ChildProcess.number(["declare-once", store, keyFile, contender]) }
        }
      },
      goals: [Goal("opening: 200 declared settings beside none", at: work, declaring, beside: plain, .atMost(1.05))])
  }
}
