/// The promises about a store if the power is cut at a certain moment.
package struct StoreExpectation: Equatable, Sendable {
  /// Whether the store may not exist yet.
  package var mayBeAbsent = false
  /// The states of the script that may be found: from the last one promised to be durable to the newest one begun.
  package var states: ClosedRange<Int>
  /// The keys, by number, that open it.
  package var opening: Set<Int>
  /// The keys that no longer open it, or never did.
  package var refused: Set<Int> = []
  /// Keys of which exactly one opens it: one is replacing the other.
  package var exactlyOne: Set<Int> = []

  /// The problem of a store that was found; nil if there is none.
  package func problem(of found: FoundStore, states known: [StoreValues]) -> String? {
    switch found {
    case .absent: return mayBeAbsent ? nil : "the store is not there"
    case .broken(let why): return why
    case .whole(let contents, let keys):
      let missing = opening.subtracting(keys)
      guard missing.isEmpty else { return "keys \(missing.sorted()) do not open it" }
      let revoked = refused.intersection(keys)
      guard revoked.isEmpty else { return "keys \(revoked.sorted()) still open it" }
      if !exactlyOne.isEmpty, exactlyOne.intersection(keys).count != 1 {
        return "of keys \(exactlyOne.sorted()), \(exactlyOne.intersection(keys).sorted()) open it"
      }
      if states.contains(where: { known[$0] == contents }) { return nil }
      let found = known.indices.filter { known[$0] == contents }
      return found.isEmpty
        ? "its contents were never committed: \(contents)"
        : "it holds state \(found), and \(states) was promised"
    }
  }
}

/// What was found of a store after a power cut.
package enum FoundStore: Sendable {
  case absent
  case broken(String)
  case whole(StoreValues, keys: Set<Int>)
}
