// The cost of a fleet, on an etcd of three members on this machine: run by `make bench ROWS=fleet`.
//
//   FleetBenchmark [ROW…] [SETTINGS [HOSTS]]   only the named rows: carrier, change, wait, first, hosts, s3; the settings of the
//     first sync, 100000; and the listening hosts, 1000
//   FleetBenchmark idle ADDRESS STORE KEYFILE   an idle host, which prints its CPU seconds for each line of input

import Coffer
import CofferFleet
import Foundation

#if canImport(Glibc)
  import Glibc
#endif

let arguments = Array(CommandLine.arguments.dropFirst())
if arguments.first == "idle" {
  let database = try Database.open(at: arguments[2], key: .keyFile(arguments[3]))
  let running = try await Running([try Fleet.open(in: database, at: try Fleet.carrier(at: arguments[1]))])
  say("in step")
  while readLine() != nil { say("\(cpuTime())") }
  await running.end()
} else {
  let folder = FileManager.default.temporaryDirectory.appending(path: "coffer-fleet-\(UUID().uuidString)").path
  try FileManager.default.createDirectory(
    atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
  defer { try? FileManager.default.removeItem(atPath: folder) }
  let sizes = arguments.compactMap(Int.init)
  let rows = arguments.filter { Int($0) == nil }
  func isAsked(_ row: String) -> Bool { rows.isEmpty || rows.contains(row) }
  if isAsked("s3") { try await measureStorage(folder, count: (sizes.first ?? 100_000) / 10) }
  if rows != ["s3"] {
    let cluster = try await Cluster(in: folder)
    if isAsked("carrier") { try await measureCarrier(cluster) }
    if isAsked("change") { try await measureChange(cluster, folder) }
    if isAsked("wait") { try await measureIdle(cluster, folder) }
    if isAsked("first") { try await measureFirstSync(cluster, folder, count: sizes.first ?? 100_000) }
    if isAsked("hosts") { try await measureManyHosts(cluster, folder, count: sizes.dropFirst().first ?? 1000) }
  }
}

func report(_ what: String, _ figures: String) {
  say(what.padding(toLength: 46, withPad: " ", startingAt: 0) + figures)
}

/// Prints immediately, also if the output is not a terminal.
func say(_ line: String) { FileHandle.standardOutput.write(Data("\(line)\n".utf8)) }

/// etcd's own: from a commit's beginning to its arrival on a watch.
func measureCarrier(_ cluster: Cluster) async throws {
  let (writer, reader) = (
    try Fleet.carrier(at: cluster.address("carrier")), try Fleet.carrier(at: cluster.address("carrier"))
  )
  var changes = reader.changes(after: try await reader.readAll { _ in }).makeAsyncIterator()
  var last: [UInt8]?
  var times: [Duration] = []
  for number in 0..<220 {
    let bytes = Array("\(number)".utf8) + [UInt8](repeating: 0, count: 500)
    let start = ContinuousClock.now
    _ = try await writer.commit(
      [.put(CarrierObject(name: "head", bytes: bytes))], if: CarrierCondition(name: "head", bytes: last))
    while case .changed(let changes, _)? = try await changes.next() {
      if changes.contains(.put(CarrierObject(name: "head", bytes: bytes))) { break }
    }
    if number >= 20 { times.append(start.duration(to: .now)) }
    last = bytes
  }
  report("etcd: put to watch", summary(times))
}

/// From a commit's beginning on one host to a handler on another.
func measureChange(_ cluster: Cluster, _ folder: String) async throws {
  try await measureChange(at: cluster.address("change"), folder, count: 220, "a commit to a handler on another host")
}

func measureChange(
  at address: String, _ folder: String, _ key: S3Credentials? = nil, count: Int, _ what: String
) async throws {
  let (office, web) = (try Host(in: folder), try Host(in: folder))
  let fleet = try await office.create(at: address, key)
  let other = try await web.join(try await fleet.invite("web", role: .writer), key)
  // Which admits it.
  try await fleet.sync()
  let running = try await Running([fleet, other])
  let countdown = Countdown()
  let registration = try web.onCommit { countdown.count() }
  var times: [Duration] = []
  for number in 0..<count {
    countdown.start(at: 1)
    let start = ContinuousClock.now
    try office.set("\(number)", "key")
    await countdown.wait()
    if number >= count / 11 { times.append(start.duration(to: .now)) }
  }
  registration.cancel()
  await running.end()
  report(what, summary(times))
}

/// The cost of an idle host.
func measureIdle(_ cluster: Cluster, _ folder: String) async throws {
  let host = try Host(in: folder)
  let fleet = try await host.create(at: cluster.address("idle"))
  for number in 0..<1000 { try host.set("\(number)", "key-\(number)") }
  try await fleet.sync()
  try await host.database.close()
  let before = try await cluster.watchCount()
  let child = Process()
  child.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
  child.arguments = ["idle", cluster.address("idle"), host.path + ".coffer", host.path + ".key"]
  let (input, output) = (Pipe(), Pipe())
  (child.standardInput, child.standardOutput) = (input, output)
  try child.run()
  _ = output.fileHandleForReading.availableData
  func used() throws -> Double {
    try input.fileHandleForWriting.write(contentsOf: Data("\n".utf8))
    let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
    return Double(line.trimmingCharacters(in: .newlines)) ?? .nan
  }
  try await Task.sleep(for: .seconds(5))
  let start = try used()
  let watches = try await cluster.watchCount() - before
  let seconds = 20.0
  try await Task.sleep(for: .seconds(seconds))
  let share = try (used() - start) / seconds * 100
  let status = try String(contentsOfFile: "/proc/\(child.processIdentifier)/status", encoding: .utf8)
  func megabytes(_ name: String) -> Double {
    let line = status.split(separator: "\n").first { $0.hasPrefix(name) } ?? ""
    return (line.split { $0.isWhitespace }.dropFirst().first.flatMap { Double($0) } ?? 0) / 1024
  }
  report(
    "an idle host",
    String(
      format: "%d watch, %.1f MB of its own (%.1f MB resident), %.3f %% of a core", watches,
      megabytes("RssAnon"), megabytes("VmRSS"), share))
  try input.fileHandleForWriting.close()
  child.waitUntilExit()
}

/// The CPU seconds of this process.
func cpuTime() -> Double {
  var usage = rusage()
  getrusage(.init(RUSAGE_SELF.rawValue), &usage)
  return [usage.ru_utime, usage.ru_stime].reduce(0) { $0 + Double($1.tv_sec) + Double($1.tv_usec) / 1_000_000 }
}

/// The time until all of many hosts have received a change.
func measureManyHosts(_ cluster: Cluster, _ folder: String, count: Int) async throws {
  let office = try Host(in: folder)
  let fleet = try await office.create(at: cluster.address("hosts"))
  let invitation = try await fleet.invite("site", role: .reader, isForMany: true)
  var hosts: [Host] = []
  var fleets = [fleet]
  for _ in 0..<count {
    hosts.append(try Host())
    fleets.append(try await hosts[hosts.count - 1].join(invitation))
  }
  let running = try await Running(fleets)
  let countdown = Countdown()
  let registrations = try hosts.map { try $0.onCommit { countdown.count() } }
  var times: [Duration] = []
  for number in 0..<22 {
    countdown.start(at: count)
    let start = ContinuousClock.now
    try office.set("\(number)", "key")
    await countdown.wait()
    if number >= 2 { times.append(start.duration(to: .now)) }
  }
  for registration in registrations { registration.cancel() }
  report("a commit to handlers on \(count) hosts", summary(times))
  await running.end()
}
