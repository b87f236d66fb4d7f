import Coffer

/// The items of a collection by their names on the bus, and by their attributes.
///
/// A search costs what it finds, not what is there.
struct ItemIndex<Entry> {
  private let attributes: (Entry) -> ItemAttributes
  private(set) var entries: [String: Entry] = [:]
  private var elements: [ItemAttributes.Pair: Set<String>] = [:]

  /// - Parameter attributes: Those of an entry.
  init(attributes: @escaping (Entry) -> ItemAttributes) { self.attributes = attributes }

  subscript(element: String) -> Entry? {
    get { entries[element] }
    set {
      if let former = entries[element] {
        for pair in attributes(former).pairs {
          elements[pair]?.remove(element)
          if elements[pair]?.isEmpty == true { elements[pair] = nil }
        }
      }
      entries[element] = newValue
      guard let newValue else { return }
      for pair in attributes(newValue).pairs { elements[pair, default: []].insert(element) }
    }
  }

  mutating func removeAll() { (entries, elements) = ([:], [:]) }

  /// The entries that have all of the attributes, in no order.
  func search(_ wanted: ItemAttributes) -> [String: Entry] {
    var found: [Set<String>] = []
    for pair in wanted.pairs {
      guard let having = elements[pair] else { return [:] }
      found.append(having)
    }
    guard let fewest = found.min(by: { $0.count < $1.count }) else { return entries }
    var result: [String: Entry] = [:]
    for element in fewest where found.allSatisfy({ $0.contains(element) }) { result[element] = entries[element] }
    return result
  }
}
