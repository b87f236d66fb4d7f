/// What a process was at a moment, and what it did since the last one.
struct LoadSample: Codable {
  let process: Int
  /// Seconds since the start.
  let time: Double
  let residentKilobytes: Int
  let descriptorCount: Int
  let logByteCount: Int
  /// Operations since the last sample, by kind.
  let latencies: [String: Latencies.Summary]
  /// Changed keys of which the watcher was notified.
  let noticeCount: Int
}
