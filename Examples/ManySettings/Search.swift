import Coffer

enum Ranking: String, Codable, CaseIterable { case relevance, newest, popular }

/// Settings for searching.
enum Search {
  static let isEnabled = Key("isEnabled", in: "search", default: true, summary: "Whether there is a search")
  static let resultLimit = Key(
    "resultLimit", in: "search", default: 50, limits: .range(1...1000), summary: "How many results there are on a page")
  static let minimumLength = Key(
    "minimumLength", in: "search", default: 2, limits: .range(1...20), summary: "The shortest text that is searched for"
  )
  static let isFuzzy = Key("isFuzzy", in: "search", default: true, summary: "Whether words may have mistakes")
  static let maximumDistance = Key(
    "maximumDistance", in: "search", default: 2, limits: .range(0...5), summary: "How many mistakes")
  static let isHighlighting = Key(
    "isHighlighting", in: "search", default: true, summary: "Whether what was found is marked")
  static let highlightLength = Key(
    "highlightLength", in: "search", default: 160, limits: .range(20...1000),
    summary: "How much text around it is shown")
  static let stopWords = Key(
    "stopWords", in: "search", default: ["a", "the"], limits: .count(...500), summary: "Words that are not searched for"
  )
  static let boost = Key(
    "boost", in: "search", default: ["title": 2.0], limits: .count(...20), summary: "How much more a field counts")
  static let timeout = Key(
    "timeout", in: "search", default: 2.0, limits: .range(0.05...60), summary: "Seconds until a search is given up")
  static let indexInterval = Key(
    "indexInterval", in: "search", default: 30.0, limits: .range(1...3600),
    summary: "Seconds between two runs of the indexer")
  static let indexBatchSize = Key(
    "indexBatchSize", in: "search", default: 1000, limits: .range(1...100_000),
    summary: "How many documents it takes at once")
  static let isIndexingOnChange = Key(
    "isIndexingOnChange", in: "search", default: true, summary: "Whether changes are indexed at once")
  static let language = Key(
    "language", in: "search", default: "en", limits: .pattern("[a-z]{2}"),
    summary: "The language whose endings are known")
  static let suggestionCount = Key(
    "suggestionCount", in: "search", default: 5, limits: .range(0...20), summary: "How many suggestions are made")
  static let isLoggingQueries = Key(
    "isLoggingQueries", in: "search", default: false, summary: "Whether what is searched for is logged")
  static let synonymLimit = Key(
    "synonymLimit", in: "search", default: 100, limits: .range(0...10_000), summary: "How many synonyms are used")
  static let cacheTime = Key(
    "cacheTime", in: "search", default: 60.0, limits: .range(0...3600), summary: "Seconds that results stay")
  static let maximumPage = Key(
    "maximumPage", in: "search", default: 100, limits: .range(1...10_000), summary: "The last page that is shown")
  static let ranking = Key("ranking", in: "search", default: Ranking.relevance, summary: "What comes first")

  static let settings = Settings {
    isEnabled
    resultLimit
    minimumLength
    isFuzzy
    maximumDistance
    isHighlighting
    highlightLength
    stopWords
    boost
    timeout
    indexInterval
    indexBatchSize
    isIndexingOnChange
    language
    suggestionCount
    isLoggingQueries
    synonymLimit
    cacheTime
    maximumPage
    ranking
  }
}
