// Downloads that report progress thousands of times a second: data that may be lost costs almost nothing, data that must not
// be lost is on disk.
//
//   DownloadManager [FOLDER]  in a temporary folder by default

import Coffer
import Foundation

/// What was ordered; losing it would be noticed.
struct Download: Codable {
  var url: URL
  var byteCount: Int
  var isFinished = false
}

let arguments = CommandLine.arguments.dropFirst()
let temporary = FileManager.default.temporaryDirectory.appending(path: "coffer-\(UUID().uuidString)").path
let folder = arguments.first ?? temporary
defer { if arguments.isEmpty { try? FileManager.default.removeItem(atPath: temporary) } }

try KeyFile.create(at: "\(folder)/key")
let database = try Database.openOrCreate(at: "\(folder)/downloads.coffer", key: .keyFile("\(folder)/key"))

// MARK: - Orders: on disk before they are confirmed

let manager = try ConnectionProxy(database: database)
let sizes = ["atlas": 4_000_000, "letters": 25_000, "poems": 2_500_000]
for (name, byteCount) in sizes.sorted(by: { $0.key < $1.key }) {
  let order = Download(url: URL(filePath: "/downloads/\(name)"), byteCount: byteCount)
  // Returns once it is on disk: a power cut a moment later loses nothing.
  try manager.setObject(order, forKey: name, inCollection: "downloads", durability: .synced)
}
print("Ordered: \(try manager.allKeys(inCollection: "downloads").joined(separator: ", "))")

// MARK: - Progress: in memory immediately, on disk occasionally

// Removes what an earlier run in the same folder has left.
try manager.removeAll(inCollection: "progress", durability: .committed)

// One write for all changes within half a minute; `flush()` would not wait for it.
let progress = try ConnectionProxy(database: database, flushPolicy: .after(.seconds(30)))
// The download tasks get only this proxy: they cannot change the orders.
progress.writtenCollectionsFilter = .whitelist(["progress"])
do {
  try progress.removeObject(forKey: "atlas", inCollection: "downloads")
} catch CofferError.collectionNotAllowed(let collection) {
  print("Progress may not write to \(collection)")
}

/// Simulates the network: returns a kilobyte at a time.
@Sendable func download(_ name: String, byteCount: Int, to progress: ConnectionProxy) throws {
  for received in stride(from: 1000, through: byteCount, by: 1000) {
    // As cheap as a dictionary: no encoding, no disk, no waiting for other tasks.
    try progress.setObject(received, forKey: name, inCollection: "progress")
  }
}

try await withThrowingTaskGroup(of: Void.self) { group in
  for (name, byteCount) in sizes {
    group.addTask { try download(name, byteCount: byteCount, to: progress) }
  }
  try await group.waitForAll()
}

// However often a key was set, only its newest value is pending.
print("Set \(sizes.values.reduce(0, +) / 1000) times; \(progress.pendingChangeCount) changes are waiting")

// This proxy returns the newest values; other connections see them after the flush.
func show(_ title: String, _ proxy: ConnectionProxy) throws {
  let values = try proxy.objects(inCollection: "progress", as: Int.self)
  let text = values.map { "\($0.key) \($0.object)" }.joined(separator: ", ")
  print("\(title): \(text.isEmpty ? "nothing" : text)")
}
try show("This proxy shows", progress)
try show("Others see", manager)
try await progress.flush()
try show("Others see after a flush", manager)

// MARK: - A crash loses only what was not flushed

try progress.setObject(0, forKey: "atlas", inCollection: "progress")
try progress.setObject(1, forKey: "globe", inCollection: "progress")
try progress.reset()  // Discards what no flush has taken, as a crash would.
try show("After losing what was not flushed", progress)

// MARK: - The end of a download: atomic, and committed when it returns

try manager.performBatch(durability: .committed) { batch in
  let order: Download? = try manager.object(forKey: "letters", inCollection: "downloads")
  guard var order else { return }
  order.isFinished = true
  try batch.setObject(order, forKey: "letters", inCollection: "downloads")
  try batch.removeObject(forKey: "letters", inCollection: "progress")
}
try show("Still under way", progress)

// MARK: - Starting over: the old progress is hidden, and removed later

// Atomically discards pending changes, and shows only values of this collection set from now on.
try progress.abortAndReset(.blacklist(["progress"]))
try progress.setObject(1000, forKey: "poems", inCollection: "progress")
try show("Started over", progress)

try progress.close()  // Flushes, as the normal exit of the program would.
try manager.close()
let finished = try database.makeConnection().read { transaction in
  var names: [String] = []
  try transaction.enumerateKeysAndObjects(inCollection: "downloads", as: Download.self) { name, order, _ in
    if order.isFinished { names.append(name) }
  }
  return names
}
print("Finished: \(finished.joined(separator: ", "))")
try database.close()
