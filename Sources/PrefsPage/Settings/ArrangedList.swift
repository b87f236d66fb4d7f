import Coffer
import PrefsCommands

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// How a list shows the settings that a filter accepts.
struct ListArrangement: Hashable, Sendable {
  enum Order: String {
    /// By collection and key.
    case name
    /// The same, in sections that fold: the collections, and in them the names that begin alike.
    case sections
    /// The last changed ones first.
    case time
  }

  /// A section of the list: a collection, or the settings of it whose names begin alike.
  struct Section: Hashable, Sendable {
    let collection: ByteString
    /// What the names begin with; nil for the whole collection.
    let part: ByteString?
  }

  let filter: SettingFilter
  var order = Order.name
  var folded: Set<Section> = []
}

/// The rows of a list: settings, and the heads of sections.
struct ArrangedList: Sendable {
  enum Row: Sendable {
    /// The index of a setting.
    case setting(Int)
    /// The index of a section.
    case section(Int)
  }

  struct Section: Sendable {
    let name: ListArrangement.Section
    let count: Int
    let isFolded: Bool
  }

  private(set) var rows: [Row] = []
  private(set) var sections: [Section] = []

  /// - Parameter matches: The indices of the accepted ones among `settings`, sorted.
  init(_ matches: [Int], of settings: [IndexedSetting], _ arrangement: ListArrangement) {
    rows.reserveCapacity(matches.count)
    switch arrangement.order {
    case .name: rows = matches.map(Row.setting)
    case .time:
      // Those that are not stored were never changed.
      let times = matches.map { (index: $0, time: settings[$0].own?.modified ?? .distantPast) }
      rows = times.sorted { $0.time == $1.time ? $0.index < $1.index : $0.time > $1.time }.map { .setting($0.index) }
    case .sections: divide(matches[...], of: settings, arrangement)
    }
  }

  private mutating func divide(
    _ matches: ArraySlice<Int>, of settings: [IndexedSetting], _ arrangement: ListArrangement
  ) {
    // A chosen collection needs no head.
    let showsCollections = arrangement.filter.collection == nil
    for run in Self.runs(of: matches, { ByteString(settings[$0].collection) }) {
      if showsCollections {
        let isOpen = add(
          ListArrangement.Section(collection: run.name, part: nil), count: run.members.count, arrangement)
        guard isOpen else { continue }
      }
      let parts = Self.runs(of: run.members) { Self.part(of: settings[$0].key) }
      // One alone is no section; what is in none comes first, else it would seem to be in the one before.
      for part in parts where part.name == nil || part.members.count == 1 { rows += part.members.map(Row.setting) }
      for part in parts where part.name != nil && part.members.count > 1 {
        let isOpen = add(
          ListArrangement.Section(collection: run.name, part: part.name), count: part.members.count, arrangement)
        if isOpen { rows += part.members.map(Row.setting) }
      }
    }
  }

  /// - Returns: Whether it is open.
  private mutating func add(_ name: ListArrangement.Section, count: Int, _ arrangement: ListArrangement) -> Bool {
    let isFolded = arrangement.folded.contains(name)
    rows.append(.section(sections.count))
    sections.append(Section(name: name, count: count, isFolded: isFolded))
    return !isFolded
  }

  /// The neighbours with one name.
  private static func runs<Name: Equatable>(
    of matches: ArraySlice<Int>, _ name: (Int) -> Name
  ) -> [(name: Name, members: ArraySlice<Int>)] {
    var runs: [(name: Name, members: ArraySlice<Int>)] = []
    var start = matches.startIndex
    while start < matches.endIndex {
      let first = name(matches[start])
      let end = matches[start...].firstIndex { name($0) != first } ?? matches.endIndex
      runs.append((first, matches[start..<end]))
      start = end
    }
    return runs
  }

  /// What is before the first dot or slash of a key; nil where there is none, or nothing before it.
  private static func part(of key: String) -> ByteString? {
    let separators = [UInt8(ascii: "."), UInt8(ascii: "/")]
    guard let end = key.utf8.firstIndex(where: separators.contains), end != key.startIndex else { return nil }
    return ByteString(String(key[..<end]))
  }
}

extension ArrangedList.Section {
  /// The head as a row of the page.
  var json: String {
    JSONText.object([
      (
        "section",
        JSONText.object([
          ("collection", JSONText.quoted(name.collection.string)),
          ("part", name.part.map { JSONText.quoted($0.string) } ?? "null"), ("count", "\(count)"),
          ("folded", isFolded ? "true" : "false"),
        ])
      )
    ])
  }
}
