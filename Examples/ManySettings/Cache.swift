import Coffer

enum Eviction: String, Codable, CaseIterable { case leastRecent, leastFrequent, oldest }

/// Settings for caching.
enum Cache {
  static let isEnabled = Key("isEnabled", in: "cache", default: true, summary: "Whether anything is cached")
  static let capacity = Key(
    "capacity", in: "cache", default: 10_000, limits: .range(0...10_000_000), summary: "How many entries stay")
  static let byteLimit = Key(
    "byteLimit", in: "cache", default: 67_108_864, limits: .range(0...17_179_869_184),
    summary: "How many bytes they may have together")
  static let timeToLive = Key(
    "timeToLive", in: "cache", default: 300.0, limits: .range(0...86_400), summary: "Seconds that an entry stays")
  static let negativeTimeToLive = Key(
    "negativeTimeToLive", in: "cache", default: 30.0, limits: .range(0...3600),
    summary: "Seconds that a miss is remembered")
  static let isSharded = Key("isSharded", in: "cache", default: true, summary: "Whether several locks guard it")
  static let shardCount = Key(
    "shardCount", in: "cache", default: 16, limits: .satisfying("a power of two") { $0 > 0 && $0 & ($0 - 1) == 0 },
    summary: "How many locks guard it", effect: .restart)
  static let prefix = Key(
    "prefix", in: "cache", default: "app:", limits: .count(...32), summary: "What keys of this program begin with")
  static let isCompressing = Key(
    "isCompressing", in: "cache", default: false, summary: "Whether large entries are compressed")
  static let compressionThreshold = Key(
    "compressionThreshold", in: "cache", default: 4096, limits: .range(64...1_048_576),
    summary: "Bytes from which an entry is large")
  static let isWarmingUp = Key(
    "isWarmingUp", in: "cache", default: false, summary: "Whether it is filled when the program starts",
    effect: .restart)
  static let warmUpLimit = Key(
    "warmUpLimit", in: "cache", default: 1000, limits: .range(0...1_000_000),
    summary: "How many entries are filled in then")
  static let evictionPolicy = Key(
    "evictionPolicy", in: "cache", default: Eviction.leastRecent, summary: "Which entries go first")
  static let statisticsInterval = Key(
    "statisticsInterval", in: "cache", default: 60.0, limits: .range(1...3600),
    summary: "Seconds between two counts of hits")
  static let isLoggingMisses = Key("isLoggingMisses", in: "cache", default: false, summary: "Whether misses are logged")
  static let staleTime = Key(
    "staleTime", in: "cache", default: 10.0, limits: .range(0...600),
    summary: "Seconds that an old entry is still served while a new one is made")
  static let lockTimeout = Key(
    "lockTimeout", in: "cache", default: 0.5, limits: .range(0...10),
    summary: "Seconds to wait for somebody who makes the same entry")
  static let maximumKeyLength = Key(
    "maximumKeyLength", in: "cache", default: 250, limits: .range(16...1024), summary: "The longest key")
  static let maximumValueSize = Key(
    "maximumValueSize", in: "cache", default: 1_048_576, limits: .range(1024...67_108_864), summary: "The largest entry"
  )
  static let regions = Key(
    "regions", in: "cache", default: ["default"], limits: .notEmpty, summary: "Parts that are emptied by themselves")

  static let settings = Settings {
    isEnabled
    capacity
    byteLimit
    timeToLive
    negativeTimeToLive
    isSharded
    shardCount
    prefix
    isCompressing
    compressionThreshold
    isWarmingUp
    warmUpLimit
    evictionPolicy
    statisticsInterval
    isLoggingMisses
    staleTime
    lockTimeout
    maximumKeyLength
    maximumValueSize
    regions
  }
}
