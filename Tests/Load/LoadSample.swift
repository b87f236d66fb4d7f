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
  /// Keys that the watcher was told to have changed.
  let noticeCount: Int
}
