/// A filled store of which some keys are used, not the one that `FilledStores` calls the sample: it is open only
/// meanwhile.
final class UsedStore {
  static let keyCount = 50
  private let kind: StoreKind
  private let byteCount: Int
  private let open: () throws -> any TextStore
  private let numbers: [Int]
  private let keys: [String]
  private var version = 0

  /// - Parameter stores: With at least twice `keyCount` keys.
  init(_ stores: FilledStores, _ kind: StoreKind) throws {
    self.kind = kind
    byteCount = stores.byteCount
    open = try kind.opener(stores)
    let distance = stores.keyCount / Self.keyCount
    numbers = (0..<Self.keyCount).map { $0 * distance + 1 }
    keys = numbers.map(Samples.key)
  }

  /// The nanoseconds of a read of cached values.
  func read() throws -> Double {
    try withStore { store in
      try Measure.nanoseconds(each: Self.keyCount) {
        let sum = try store.sum(ofLengthsFor: keys)
        try require(sum == Self.keyCount * byteCount, "\(kind.rawValue) has other values")
      }
    }
  }

  /// The nanoseconds of a set, without waiting for the commit.
  func set() throws -> Double {
    try withStore { store in
      var texts: [String] = []
      let time = try Measure.nanoseconds(each: Self.keyCount) {
        try store.flush()
        texts = self.newTexts()
      } _: {
        try store.set(texts, for: keys)
      }
      try store.flush()
      try check(texts, in: store)
      return time
    }
  }

  /// The microseconds of processor time until all values are set and written.
  func flush() throws -> Double {
    try withStore { store in
      var texts: [String] = []
      let time = try Measure.processorMicroseconds(runs: 5) {
        texts = self.newTexts()
      } _: {
        try store.set(texts, for: keys)
        try store.flush()
      }
      try check(texts, in: store)
      return time
    }
  }

  /// The microseconds of one set with its commit.
  func commit() throws -> Double {
    try withStore { store in
      // It rewrites its file each time.
      let count = kind == .defaults ? 3 : Self.keyCount
      let (keys, first) = (keys.prefix(count), newTexts())
      // One-time work after opening does not count.
      for (key, text) in zip(keys, first) { try store.commit(text, for: key) }
      let passes = (0..<4).map { _ in newTexts() }
      let start = Measure.nanoseconds()
      for texts in passes {
        for (key, text) in zip(keys, texts) { try store.commit(text, for: key) }
      }
      let time = Measure.nanoseconds() - start
      let last = try keys.last.flatMap(store.committedText)
      try require(last == passes.last?[count - 1], "\(kind.rawValue) has another value")
      return Double(time) / Double(count * passes.count) / 1000
    }
  }

  private func withStore<Result>(_ body: (any TextStore) throws -> Result) throws -> Result {
    let store = try open()
    try store.setSynchronization(.normal)
    let result = try body(store)
    try store.close()
    return result
  }

  private func newTexts() -> [String] {
    version += 1
    return numbers.map { Samples.text($0, version: version, byteCount: byteCount) }
  }

  private func check(_ texts: [String], in store: any TextStore) throws {
    for (key, text) in zip(keys, texts) {
      let found = try store.committedText(key)
      try require(found == text, "\(kind.rawValue) has another value for \(key)")
    }
  }
}
