/// Finds the name most likely meant by a mistyped one.
enum NearName {
  /// The name among `candidates` nearest to `name`; nil when none is near enough.
  ///
  /// The empty name is near nothing.
  static func best(for name: String, among candidates: some Sequence<String>) -> String? {
    let wanted = Array(name.lowercased().unicodeScalars)
    // At most one typo in every three characters.
    var limit = min(3, max(1, wanted.count / 3))
    var best: String?
    for candidate in candidates {
      let scalars = Array(candidate.lowercased().unicodeScalars)
      guard !scalars.isEmpty, abs(scalars.count - wanted.count) <= limit else { continue }
      let distance = distance(wanted, scalars)
      if distance < limit || (distance == limit && best == nil) {
        best = candidate
        limit = distance
      }
    }
    return best
  }

  /// The number of insertions, deletions, replacements and swaps of neighbours between both (the restricted
  /// Damerau-Levenshtein distance).
  static func distance(_ left: [Unicode.Scalar], _ right: [Unicode.Scalar]) -> Int {
    if left.isEmpty || right.isEmpty { return max(left.count, right.count) }
    var beforePrevious: [Int] = []
    var previous = Array(0...right.count)
    for row in 1...left.count {
      var current = [row]
      for column in 1...right.count {
        let same = left[row - 1] == right[column - 1]
        var cost = min(previous[column] + 1, current[column - 1] + 1, previous[column - 1] + (same ? 0 : 1))
        if row > 1, column > 1, left[row - 1] == right[column - 2], left[row - 2] == right[column - 1] {
          cost = min(cost, beforePrevious[column - 2] + 1)
        }
        current.append(cost)
      }
      (beforePrevious, previous) = (previous, current)
    }
    return previous[right.count]
  }
}
