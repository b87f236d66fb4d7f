/// How times grow with the number of keys, and with the size of the values.
enum Growth {
  private static let lastRound = 3
  private static let fewestKeys = 100

  private struct Charts {
    let axis: String
    let suffix: String

    func chart(_ name: String, _ title: String, _ unit: Work.Unit) -> Work.Chart {
      Work.Chart(name: "\(name)-by-\(suffix)", title: title, axis: axis, unit: unit)
    }

    var read: Work.Chart { chart("read", "Hot read", .nanoseconds) }
    var set: Work.Chart { chart("set", "Set, as the caller waits for it", .nanoseconds) }
    var flush: Work.Chart {
      chart("flush", "\(UsedStore.keyCount) values set and written, all processor time", .microseconds)
    }
    var commit: Work.Chart { chart("commit", "One set, one commit, NORMAL", .microseconds) }
    var open: Work.Chart { chart("open", "Open and first read, first in a process", .microseconds) }
  }

  static func row(_ folder: Folder) throws -> Row {
    var row = Row()
    let byKeys = Charts(axis: "number of keys", suffix: "keys")
    for keyCount in [fewestKeys, 1000, 10_000, 100_000, 1_000_000] {
      let kinds = kinds(keyCount: keyCount)
      let stores = try FilledStores(below: folder, keyCount: keyCount, kinds: kinds)
      try add(stores, kinds, at: keyCount, byKeys, to: &row)
    }
    let bySize = Charts(axis: "bytes of a value", suffix: "size")
    for byteCount in [16, 128, 1024, 8192, 65_536] {
      let kinds = kinds(keyCount: fewestKeys)
      let stores = try FilledStores(below: folder, keyCount: fewestKeys, byteCount: byteCount, kinds: kinds)
      try add(stores, kinds, at: byteCount, bySize, to: &row)
    }
    return row
  }

  private static func kinds(keyCount: Int) -> [StoreKind] {
    StoreKind.contenders(keyCount: keyCount).filter {
      $0 != .cofferByRawKey && ($0 != .defaults || keyCount <= 10_000)
    }
  }

  private static func add(
    _ stores: FilledStores, _ kinds: [StoreKind], at x: Int, _ charts: Charts, to row: inout Row
  ) throws {
    for kind in kinds {
      let used = try UsedStore(stores, kind)
      add(charts.open, kind, x, to: &row) { try Opening.firstTime(stores, kind) }
      add(charts.read, kind, x, to: &row) { try used.read() }
      // The others have no set without a commit.
      if kind == .coffer || kind == .defaults { add(charts.set, kind, x, to: &row) { try used.set() } }
      add(charts.flush, kind, x, to: &row) { try used.flush() }
      add(charts.commit, kind, x, to: &row) { try used.commit() }
    }
  }

  private static func add(
    _ chart: Work.Chart, _ kind: StoreKind, _ x: Int, to row: inout Row, _ measure: @escaping () throws -> Double
  ) {
    row.measurements.append(
      Measurement(Work(row: "growth", at: x, of: chart), kind.rawValue, lastRound: lastRound) { _ in try measure() })
  }
}
