import Coffer

/// Settings for background jobs.
enum Jobs {
  static let isEnabled = Key("isEnabled", in: "jobs", default: true, summary: "Whether anything is")
  static let workerCount = Key(
    "workerCount", in: "jobs", default: 4, limits: .range(1...256), summary: "How many jobs run at once")
  static let queueNames = Key(
    "queueNames", in: "jobs", default: ["default", "low"], limits: .notEmpty,
    summary: "The queues, the most urgent first")
  static let pollInterval = Key(
    "pollInterval", in: "jobs", default: 1.0, limits: .range(0.01...60), summary: "Seconds between two looks at them")
  static let timeout = Key(
    "timeout", in: "jobs", default: 300.0, limits: .range(1...86_400), summary: "Seconds until a job is given up")
  static let retryCount = Key(
    "retryCount", in: "jobs", default: 10, limits: .range(0...100), summary: "How often it is tried again")
  static let retryBase = Key(
    "retryBase", in: "jobs", default: 2.0, limits: .range(1...10), summary: "By how much the time between tries grows")
  static let maximumDelay = Key(
    "maximumDelay", in: "jobs", default: 3600.0, limits: .range(1...86_400), summary: "Seconds that it grows to")
  static let deadLetterDays = Key(
    "deadLetterDays", in: "jobs", default: 14, limits: .range(1...365), summary: "How long failed jobs stay")
  static let isUnique = Key("isUnique", in: "jobs", default: true, summary: "Whether equal jobs are one")
  static let scheduleHour = Key(
    "scheduleHour", in: "jobs", default: 2, limits: .range(0...23), summary: "The hour of the day for nightly jobs")
  static let scheduleMinute = Key(
    "scheduleMinute", in: "jobs", default: 15, limits: .range(0...59), summary: "And the minute")
  static let heartbeat = Key(
    "heartbeat", in: "jobs", default: 15.0, limits: .range(1...300), summary: "Seconds between two signs of life")
  static let isPausedOnError = Key(
    "isPausedOnError", in: "jobs", default: false, summary: "Whether a queue stops when a job fails")
  static let memoryLimit = Key(
    "memoryLimit", in: "jobs", default: 536_870_912, limits: .range(16_777_216...68_719_476_736),
    summary: "Bytes after which a worker restarts")
  static let jobLimit = Key(
    "jobLimit", in: "jobs", default: 1000, limits: .range(1...1_000_000), summary: "Jobs after which it does")
  static let priority = Key(
    "priority", in: "jobs", default: 10, limits: .range(0...19), summary: "How much others go first")
  static let reportAddress = Key(
    "reportAddress", in: "jobs", default: "jobs@example.org", limits: .pattern("[^@ ]+@[^@ ]+"),
    summary: "Who hears of failures")
  static let isReporting = Key("isReporting", in: "jobs", default: true, summary: "Whether somebody does")
  static let shutdownTime = Key(
    "shutdownTime", in: "jobs", default: 30.0, limits: .range(0...600), summary: "Seconds that jobs have to end")

  static let settings = Settings {
    isEnabled
    workerCount
    queueNames
    pollInterval
    timeout
    retryCount
    retryBase
    maximumDelay
    deadLetterDays
    isUnique
    scheduleHour
    scheduleMinute
    heartbeat
    isPausedOnError
    memoryLimit
    jobLimit
    priority
    reportAddress
    isReporting
    shutdownTime
  }
}
