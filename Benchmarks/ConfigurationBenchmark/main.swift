// CofferProvider compared with swift-configuration's own providers: a read, the time from a change by another process to
// the handler, and the processor time of waiting.
//
// The changing value is a text: ReloadingFileProvider compares values as texts, and misses changes of other types (1.4.0).
//
//   ConfigurationBenchmark          the table, in about a minute
//   ConfigurationBenchmark set …    the other process

import Coffer
import CofferConfiguration
import Configuration
import Foundation
import Logging
import ServiceLifecycle
import SystemPackage

/// Nanoseconds of a clock that all processes share.
func now() -> UInt64 { clock_gettime_nsec(CLOCK_MONOTONIC) }

func clock_gettime_nsec(_ clock: clockid_t) -> UInt64 {
  var time = timespec()
  clock_gettime(clock, &time)
  return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

// MARK: - The places

let arguments = Array(CommandLine.arguments.dropFirst())
let isOther = arguments.first == "set"
let folder =
  isOther ? arguments[1] : FileManager.default.temporaryDirectory.appending(path: "coffer-\(UUID().uuidString)").path
let (store, key, file) = ("\(folder)/settings.coffer", "\(folder)/key", "\(folder)/settings.json")

func setStored(_ value: String) throws {
  let database = try Database.openOrCreate(at: store, key: .keyFile(key))
  try database.makeConnection().readWrite { try $0.setObject(value, forKey: "http.host", inCollection: "web") }
  print(now())
  try database.close()
}

func setInFile(_ value: String) throws {
  try Data(#"{"http": {"host": "\#(value)", "port": 8080}}"#.utf8).write(to: URL(filePath: file), options: .atomic)
  print(now())
}

if isOther {
  try arguments[2] == "store" ? setStored(arguments[3]) : setInFile(arguments[3])
  exit(EXIT_SUCCESS)
}
defer { try? FileManager.default.removeItem(atPath: folder) }
try KeyFile.create(at: key)
try setStored("host-1")
try setInFile("host-1")

/// Changes the value from another process, and returns when.
func change(_ place: String, _ value: String) throws -> UInt64 {
  let (process, output) = (Process(), Pipe())
  process.executableURL = Bundle.main.executableURL
  process.arguments = ["set", folder, place, value]
  process.standardOutput = output
  try process.run()
  let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
  process.waitUntilExit()
  return UInt64(text.dropLast()) ?? 0
}

// MARK: - The providers

let interval = Duration.seconds(1)
let proxy = try ConnectionProxy(database: .open(at: store, key: .keyFile(key)))
let coffer = try CofferProvider(proxy, collections: ["web"])
let reloading = try await ReloadingFileProvider<JSONSnapshot>(filePath: FilePath(file), pollInterval: interval)
let environment = EnvironmentVariablesProvider(environmentVariables: ["HTTP_HOST": "host-1"])

// MARK: - A read

func nanoseconds(_ config: ConfigReader) -> Double {
  let count = 100_000
  let start = now()
  for _ in 0..<count { precondition(config.string(forKey: "http.host") == "host-1") }
  return Double(now() - start) / Double(count)
}

let readers = [
  ("CofferProvider", ConfigReader(provider: coffer)), ("ReloadingFileProvider", ConfigReader(provider: reloading)),
  ("EnvironmentVariablesProvider", ConfigReader(provider: environment)),
]
var reads = [String: [Double]]()
for _ in 0..<7 { for (name, config) in readers { reads[name, default: []].append(nanoseconds(config)) } }

// MARK: - A change, and waiting

/// Milliseconds from a change to the handler, and microseconds of processor time in a second of waiting.
func watch(_ provider: some ConfigProvider, _ place: String) async throws -> (change: Double, idle: Double) {
  try await provider.watchValue(forKey: "http.host", type: .string) { updates in
    var values = updates.makeAsyncIterator()
    _ = try await values.next()
    var delays: [Double] = []
    for number in 2..<11 {
      let value = "host-\(number)"
      let committed = try change(place, value)
      guard case .string(value)? = try await values.next()?.get().value?.content else {
        fatalError("another value came")
      }
      delays.append(max(0, Double(now()) - Double(committed)) / 1e6)
    }
    let before = clock_gettime_nsec(CLOCK_PROCESS_CPUTIME_ID)
    try await Task.sleep(for: .seconds(5))
    return (median(delays), Double(clock_gettime_nsec(CLOCK_PROCESS_CPUTIME_ID) - before) / 5e3)
  }
}

let ofCoffer = try await watch(coffer, "store")
try proxy.close()
let service = Task.detached {
  do {
    try await reloading.run()
  } catch is CancellationError {
  } catch {
    print("The file provider ended: \(error)")
  }
}
let ofFile = try await watch(reloading, "file")
service.cancel()

print("| | read, ns | change to handler, ms | waiting, µs of processor time a second |")
print("| --- | ---: | ---: | ---: |")
func digits(_ value: Double) -> String { String(format: "%.2f", value) }
let rows = [
  ("CofferProvider", digits(ofCoffer.change), digits(ofCoffer.idle)),
  ("ReloadingFileProvider", "\(digits(ofFile.change)), polled each \(interval)", digits(ofFile.idle)),
  ("EnvironmentVariablesProvider", "never", "0"),
]
for (name, change, idle) in rows { print("| \(name) | \(Int(median(reads[name] ?? [0]))) | \(change) | \(idle) |") }
