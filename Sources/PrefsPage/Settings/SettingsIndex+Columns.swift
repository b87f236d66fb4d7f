import Coffer
import PrefsCommands

/// A setting of the collections of a family.
struct ColumnRow: Sendable {
  enum Difference: Sendable {
    case none, some
    /// Only the store knows.
    case unknown
  }

  /// The index of the family among those of the filter's collection.
  fileprivate let family: Int32
  /// The index of the setting in one of the collections.
  fileprivate let setting: Int32
  let difference: Difference
}

/// A row as it is shown.
struct ShownColumnRow {
  let family: CollectionFamily
  let key: String
  /// Whether each member of the family has another value than the base.
  let differences: [ColumnRow.Difference]
}

extension SettingsIndex {
  /// The families in the page's scope, or the one that a collection belongs to.
  func families(of collection: ByteString?) -> [CollectionFamily] {
    guard let name = collection?.string else { return reader.families }
    return reader.families.filter { $0.contains(name) }
  }

  /// The settings of which one of the collections of a family has one that a filter accepts, by family and key.
  mutating func columns(_ filter: SettingFilter) -> [ColumnRow] {
    if let columnRows, columnRows.filter == filter { return columnRows.rows }
    var everywhere = filter
    everywhere.collection = nil
    let matches = matches(everywhere)
    let rows = families(of: filter.collection).enumerated().flatMap { self.rows(of: $1, Int32($0), matches) }
    columnRows = (filter, rows)
    return rows
  }

  /// - Parameters:
  ///   - place: The index of the family.
  ///   - matches: What is accepted, sorted.
  private func rows(of family: CollectionFamily, _ place: Int32, _ matches: [Int]) -> [ColumnRow] {
    let members = family.members.filter { !$0.column.isAdministrators }
    let ranges = members.map { range(of: ByteString($0.collection)) }
    let base = members.firstIndex(where: \.column.isBase)
    let given = givenKeys(of: family)
    // All are sorted: each step takes the first key of those that are left.
    var heads = ranges.map(\.lowerBound)
    var accepted = ranges.map { range in matches.partitioningIndex { $0 >= range.lowerBound } }
    var cells: [Int?] = Array(repeating: nil, count: ranges.count)
    var rows: [ColumnRow] = []
    while true {
      var first: Int?
      for head in heads.indices where heads[head] < ranges[head].upperBound {
        let candidate = heads[head]
        if let known = first, ByteString(settings[known].key) <= ByteString(settings[candidate].key) { continue }
        first = candidate
      }
      guard let first else { return rows }
      let key = ByteString(settings[first].key)
      var isAccepted = false
      for head in heads.indices {
        let candidate = heads[head]
        guard candidate < ranges[head].upperBound, ByteString(settings[candidate].key) == key else {
          cells[head] = nil
          continue
        }
        cells[head] = candidate
        heads[head] += 1
        while accepted[head] < matches.count, matches[accepted[head]] < candidate { accepted[head] += 1 }
        isAccepted = isAccepted || accepted[head] < matches.count && matches[accepted[head]] == candidate
      }
      guard isAccepted else { continue }
      rows.append(
        ColumnRow(
          family: place, setting: Int32(first),
          difference: given.contains(key) ? .unknown : difference(among: cells, base)))
    }
  }

  /// The keys for which administrators give something.
  private func givenKeys(of family: CollectionFamily) -> Set<ByteString> {
    let members = family.members.filter(\.column.isAdministrators)
    return Set(members.flatMap { reader.managedKeys(of: $0.collection).map { ByteString($0) } })
  }

  private func difference(among cells: [Int?], _ base: Int?) -> ColumnRow.Difference {
    var found = ColumnRow.Difference.none
    for cell in cells {
      switch difference(cell, base.map { cells[$0] }) {
      case .none: break
      case .some: return .some
      case .unknown: found = .unknown
      }
    }
    return found
  }

  /// - Parameters:
  ///   - cell: The index of a setting; nil if there is none.
  ///   - base: That of the setting in the base, which may have none; nil if the page does not show the base.
  private func difference(_ cell: Int?, _ base: Int??) -> ColumnRow.Difference {
    guard let base else { return .unknown }
    let (value, other) = (cell.map { settings[$0].value } ?? .none, base.map { settings[$0].value } ?? .none)
    guard value.isCertain, other.isCertain else { return .unknown }
    return value == other ? .none : .some
  }

  /// What a page shows of rows.
  func shown(_ rows: some Sequence<ColumnRow>, of filter: SettingFilter) -> [ShownColumnRow] {
    let families = families(of: filter.collection)
    let ranges = families.map { $0.members.map { range(of: ByteString($0.collection)) } }
    return rows.map { row in
      let family = families[Int(row.family)]
      let key = settings[Int(row.setting)].key
      let cells = ranges[Int(row.family)].map { place(of: key, in: $0) }
      let base = family.members.firstIndex(where: \.column.isBase)
      let differences = zip(family.members, cells).map { member, cell in
        member.column.isAdministrators ? .unknown : difference(cell, base.map { cells[$0] })
      }
      return ShownColumnRow(family: family, key: key, differences: differences)
    }
  }

  /// - Parameter range: That of a collection.
  private func place(of key: String, in range: Range<Int>) -> Int? {
    let key = ByteString(key)
    let part = settings[range]
    let place = part.partitioningIndex { ByteString($0.key) >= key }
    return place < range.upperBound && ByteString(settings[place].key) == key ? place : nil
  }
}
