import Coffer

/// Settings for uploads.
enum Uploads {
  static let isEnabled = Key("isEnabled", in: "uploads", default: true, summary: "Whether files are taken")
  static let sizeLimit = Key(
    "sizeLimit", in: "uploads", default: 26_214_400, limits: .range(1024...10_737_418_240),
    summary: "The largest file, in bytes")
  static let dailyLimit = Key(
    "dailyLimit", in: "uploads", default: 100, limits: .range(1...100_000),
    summary: "How many files somebody may send in a day")
  static let folder = Key(
    "folder", in: "uploads", default: "/var/lib/app/uploads", limits: .pattern("/.+"), summary: "Where they lie",
    effect: .restart)
  static let allowedTypes = Key(
    "allowedTypes", in: "uploads", default: ["image/png", "image/jpeg"], limits: .notEmpty,
    summary: "The types that are taken")
  static let isScanning = Key(
    "isScanning", in: "uploads", default: true, summary: "Whether files are searched for viruses")
  static let scanTimeout = Key(
    "scanTimeout", in: "uploads", default: 30.0, limits: .range(1...600), summary: "Seconds until a search is given up")
  static let thumbnailSize = Key(
    "thumbnailSize", in: "uploads", default: 256, limits: .range(16...2048),
    summary: "The longer side of thumbnails, in pixels")
  static let thumbnailQuality = Key(
    "thumbnailQuality", in: "uploads", default: 0.8, limits: .range(0.1...1), summary: "How good they look")
  static let isKeepingOriginals = Key(
    "isKeepingOriginals", in: "uploads", default: true, summary: "Whether the file itself is kept")
  static let isStrippingMetadata = Key(
    "isStrippingMetadata", in: "uploads", default: true, summary: "Whether places and cameras are taken out of pictures"
  )
  static let nameLength = Key(
    "nameLength", in: "uploads", default: 200, limits: .range(8...255), summary: "The longest name")
  static let isPublic = Key("isPublic", in: "uploads", default: false, summary: "Whether everybody may see files")
  static let linkTime = Key(
    "linkTime", in: "uploads", default: 3600.0, limits: .range(60...604_800),
    summary: "Seconds that a link to a file is good for")
  static let linkKey = Key<Secret?>(
    "linkKey", in: "uploads", limits: .count(32...), summary: "What links are signed with")
  static let chunkSize = Key(
    "chunkSize", in: "uploads", default: 1_048_576, limits: .range(65_536...67_108_864),
    summary: "Bytes that are sent at once")
  static let parallelCount = Key(
    "parallelCount", in: "uploads", default: 3, limits: .range(1...20), summary: "How many files somebody sends at once"
  )
  static let trashDays = Key(
    "trashDays", in: "uploads", default: 30, limits: .range(0...365), summary: "How long removed files stay")
  static let quota = Key(
    "quota", in: "uploads", default: 1_073_741_824, limits: .range(0...1_099_511_627_776),
    summary: "Bytes that somebody may keep")
  static let warningShare = Key(
    "warningShare", in: "uploads", default: 0.9, limits: .range(0.5...1),
    summary: "The share of that from which somebody is warned")

  static let settings = Settings {
    isEnabled
    sizeLimit
    dailyLimit
    folder
    allowedTypes
    isScanning
    scanTimeout
    thumbnailSize
    thumbnailQuality
    isKeepingOriginals
    isStrippingMetadata
    nameLength
    isPublic
    linkTime
    linkKey
    chunkSize
    parallelCount
    trashDays
    quota
    warningShare
  }
}
