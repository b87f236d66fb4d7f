import Coffer

/// P1k: reads of cached values through typed keys, compared with the locked Dictionary by string key.
///
/// A program declares its keys as constants, and reading through a constant counts no reference. Keys taken out of an array
/// are retained and released each time, which takes longer than a read, so the array holds them unmanaged. Beside it, for
/// integers, stand one constant, which the runtime looks for at each read, and keys of an array that are counted.
enum TypedReads {
  private static let keyCount = 1000
  fileprivate static let collection = "typed"
  private static let integers = Work(
    row: "P1k", name: "hot read by typed key, Int", unit: .nanoseconds, baseline: HotReads.locked)
  private static let constant = Work(
    row: "P1k", name: "hot read by typed key, Int, by a function that reads one constant", unit: .nanoseconds,
    baseline: HotReads.locked)
  private static let counted = Work(
    row: "P1k", name: "hot read by typed key, Int, each key retained", unit: .nanoseconds, baseline: HotReads.locked)
  private static let flags = Work(
    row: "P1k", name: "hot read by typed key, Bool", unit: .nanoseconds, baseline: HotReads.locked)
  private static let doubles = Work(
    row: "P1k", name: "hot read by typed key, Double", unit: .nanoseconds, baseline: HotReads.locked)
  private static let texts = Work(
    row: "P1k", name: "hot read by typed key, 100-byte String", unit: .nanoseconds, baseline: HotReads.locked)

  static func row(_ folder: Folder) throws -> Row {
    let names = Samples.keys(keyCount)
    let values = Samples.texts(keyCount, version: 0)
    let coffer = try CofferPeer(creating: folder.subfolder("P1k").file("Coffer"))
    let dictionary = LockedDictionary()
    try dictionary.set(integersFor: names, from: 1)
    try dictionary.set(values, for: names)
    let proxy = coffer.proxy
    let countedKeys = names.map { Key("int " + $0, in: collection, default: 0) }
    let integerKeys = Constants(countedKeys)
    let flagKeys = Constants(names.map { Key("bool " + $0, in: collection, default: false) })
    let doubleKeys = Constants(names.map { Key("double " + $0, in: collection, default: 0.0) })
    let textKeys = Constants(names.map { Key("text " + $0, in: collection, default: "") })
    for index in names.indices {
      proxy[integerKeys[index]] = index + 1
      proxy[flagKeys[index]] = true
      proxy[doubleKeys[index]] = Double(index + 1)
      proxy[textKeys[index]] = values[index]
    }
    proxy[.constant] = 1
    try coffer.flush()
    let sum = HotReads.sum(of: keyCount)
    return Row(
      measurements: [
        Measurement(integers, "Coffer") { _ in
          try HotReads.time(names, sum) { _ in integerKeys.sum { proxy[$0] } }
        },
        Measurement(flags, "Coffer") { _ in
          try HotReads.time(names, keyCount) { _ in flagKeys.sum { proxy[$0] ? 1 : 0 } }
        },
        Measurement(doubles, "Coffer") { _ in
          try HotReads.time(names, sum) { _ in doubleKeys.sum { Int(proxy[$0]) } }
        },
        Measurement(texts, "Coffer") { _ in
          try HotReads.time(names, 100 * keyCount) { _ in textKeys.sum { proxy[$0].utf8.count } }
        },
        Measurement(constant, "Coffer") { _ in
          try HotReads.time(names, keyCount) { names in names.reduce(0) { sum, _ in sum + readConstant(proxy) } }
        },
        Measurement(counted, "Coffer") { _ in
          try HotReads.time(names, sum) { _ in countedKeys.reduce(0) { $0 + proxy[$1] } }
        },
        Measurement(integers, dictionary.name) { _ in
          try HotReads.time(names, sum, dictionary.sum(ofIntegersFor:))
        },
        Measurement(texts, dictionary.name) { _ in
          try HotReads.time(names, 100 * keyCount, dictionary.sum(ofLengthsFor:))
        },
      ],
      goals: [
        Goal(
          "hot read by typed key, Int: Coffer beside the locked Dictionary", at: integers, "Coffer",
          beside: HotReads.locked, .atMost(0.25)),
        Goal(
          "hot read by typed key, Bool: Coffer beside the locked Dictionary of Int",
          Series(work: flags, contender: "Coffer"), beside: Series(work: integers, contender: HotReads.locked),
          .atMost(0.25)),
        Goal(
          "hot read by typed key, Double: Coffer beside the locked Dictionary of Int",
          Series(work: doubles, contender: "Coffer"), beside: Series(work: integers, contender: HotReads.locked),
          .atMost(0.25)),
        Goal(
          "hot read by typed key, String: Coffer beside the locked Dictionary", at: texts, "Coffer",
          beside: HotReads.locked, .atMost(0.5)),
      ])
  }
}

extension Coffer.Keys {
  fileprivate static let constant = Key("constant", in: TypedReads.collection, default: 0)
}

@inline(never)
private func readConstant(_ proxy: ConnectionProxy) -> Int { proxy[.constant] }

/// Keys that live as long as the program, as those that are declared as constants do.
private struct Constants<Object: Codable & Sendable> {
  private let keys: [Unmanaged<Key<Object>>]

  init(_ keys: [Key<Object>]) {
    self.keys = keys.map(Unmanaged.passRetained)
  }

  subscript(index: Int) -> Key<Object> { keys[index].takeUnretainedValue() }

  @inline(__always)
  func sum(_ value: (Key<Object>) -> Int) -> Int {
    keys.reduce(0) { sum, key in sum + key._withUnsafeGuaranteedRef(value) }
  }
}
