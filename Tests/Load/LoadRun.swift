import Coffer
import CofferMaintenance
import Foundation
import Synchronization

/// Starts the processes, collects their output, and evaluates it.
final class LoadRun: Sendable {
  private static let processCount = 4
  private let minutes: Double
  private let plot: String
  private let samples = Mutex([LoadSample]())

  init(minutes: Double, plot: String) {
    self.minutes = minutes
    self.plot = plot
  }

  /// - Returns: Whether nothing grew, and no process failed.
  func run() throws -> Bool {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("coffer-load-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let (store, keyFile) = ("\(folder)/load.coffer", "\(folder)/key")
    try KeyFile.create(at: keyFile)
    try Database.create(at: store, key: .keyFile(keyFile)).close()
    let areRunning = try runProcesses(store, keyFile)
    let database = try Database.open(at: store, key: .keyFile(keyFile))
    let problems = try database.verify().problems
    try database.close()
    let samples = samples.withLock { $0 }
    try LoadPlot(samples).write(to: plot)
    let findings = findings(samples)
    print((summary(samples) + findings).joined(separator: "\n"))
    if !problems.isEmpty { print("the store is damaged: \(problems)") }
    let isFine = areRunning && findings.isEmpty && problems.isEmpty
    print(isFine ? "nothing grew" : "FAILED")
    return isFine
  }

  /// - Returns: Whether all ended as they should.
  private func runProcesses(_ store: String, _ keyFile: String) throws -> Bool {
    let group = DispatchGroup()
    let processes = try (0..<Self.processCount).map { number in
      let process = Process()
      process.executableURL = Bundle.main.executableURL
      process.arguments = ["use", store, keyFile, "\(minutes * 60)", "\(number)"]
      let output = Pipe()
      process.standardOutput = output
      try process.run()
      DispatchQueue.global().async(group: group) { [self] in
        gather(output.fileHandleForReading)
      }
      return process
    }
    group.wait()
    return processes.allSatisfy { process in
      process.waitUntilExit()
      return process.terminationStatus == 0
    }
  }

  private func gather(_ output: FileHandle) {
    let decoder = JSONDecoder()
    var text = Data()
    while true {
      let more = output.availableData
      guard !more.isEmpty else { return }
      text += more
      while let end = text.firstIndex(of: UInt8(ascii: "\n")) {
        if let sample = try? decoder.decode(LoadSample.self, from: text[..<end]) {
          samples.withLock { $0.append(sample) }
        }
        text = Data(text[(end + 1)...])
      }
    }
  }

  // MARK: Judging

  /// What grew, from the second quarter of the time to the last.
  private func findings(_ samples: [LoadSample]) -> [String] {
    (0..<Self.processCount).flatMap { process -> [String] in
      let own = samples.filter { $0.process == process }
      guard own.count >= 8 else { return ["process \(process) gave \(own.count) samples, too few to judge"] }
      let quarter = own.count / 4
      let (early, late) = (own[quarter..<2 * quarter], own.suffix(quarter))
      var findings: [String] = []
      func check(_ what: String, _ value: (LoadSample) -> Int, spare: Int) {
        let (before, after) = (Self.median(early.map(value)), Self.median(late.map(value)))
        if after > before + before / 10 + spare {
          findings.append("process \(process): \(what) grew from \(before) to \(after)")
        }
      }
      check("memory (KiB)", \.residentKilobytes, spare: 2048)
      check("open files", \.descriptorCount, spare: 1)
      check("the log (bytes)", \.logByteCount, spare: 4 << 20)
      return findings
    }
  }

  private static func median(_ values: [Int]) -> Int { values.sorted()[values.count / 2] }

  private func summary(_ samples: [LoadSample]) -> [String] {
    let kinds = Set(samples.flatMap(\.latencies.keys)).sorted()
    let operations = kinds.map { kind in
      let all = samples.compactMap { $0.latencies[kind] }.filter { $0.count > 0 }
      let medians = all.map(\.median).sorted()
      let slow = all.map(\.percentile99).sorted()
      return "\(kind): \(all.map(\.count).reduce(0, +)) times, median \(Self.text(medians)) µs, "
        + "99 % within \(Self.text(slow)) µs (each the median of all intervals)"
    }
    let memory = samples.map(\.residentKilobytes).max() ?? 0
    let files = samples.map(\.descriptorCount).max() ?? 0
    let log = samples.map(\.logByteCount).max() ?? 0
    let notices = samples.map(\.noticeCount).reduce(0, +)
    return operations + [
      "notices of changed keys: \(notices)",
      "at most: \(memory) KiB of memory and \(files) open files in a process, a log of \(log) bytes",
    ]
  }

  private static func text(_ sorted: [Double]) -> String {
    sorted.isEmpty ? "-" : String(format: "%.1f", sorted[sorted.count / 2])
  }
}
