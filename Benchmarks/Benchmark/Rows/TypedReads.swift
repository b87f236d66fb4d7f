import Coffer

/// P1k: reads through typed keys of what is in memory already, beside the locked Dictionary by string key.
enum TypedReads {
  private static let keyCount = 1000
  private static let collection = "typed"
  private static let integers = Work(
    row: "P1k", name: "hot read by typed key, Int", unit: .nanoseconds, baseline: HotReads.locked)
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
    let integerKeys = names.map { Key("int " + $0, in: collection, default: 0) }
    let flagKeys = names.map { Key("bool " + $0, in: collection, default: false) }
    let doubleKeys = names.map { Key("double " + $0, in: collection, default: 0.0) }
    let textKeys = names.map { Key("text " + $0, in: collection, default: "") }
    for index in names.indices {
      proxy[integerKeys[index]] = index + 1
      proxy[flagKeys[index]] = true
      proxy[doubleKeys[index]] = Double(index + 1)
      proxy[textKeys[index]] = values[index]
    }
    try coffer.flush()
    let sum = HotReads.sum(of: keyCount)
    return Row(
      measurements: [
        Measurement(integers, "Coffer") { _ in
          try HotReads.time(names, sum) { _ in integerKeys.reduce(0) { $0 + proxy[$1] } }
        },
        Measurement(flags, "Coffer") { _ in
          try HotReads.time(names, keyCount) { _ in flagKeys.reduce(0) { $0 + (proxy[$1] ? 1 : 0) } }
        },
        Measurement(doubles, "Coffer") { _ in
          try HotReads.time(names, sum) { _ in Int(doubleKeys.reduce(0) { $0 + proxy[$1] }) }
        },
        Measurement(texts, "Coffer") { _ in
          try HotReads.time(names, 100 * keyCount) { _ in textKeys.reduce(0) { $0 + proxy[$1].utf8.count } }
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
