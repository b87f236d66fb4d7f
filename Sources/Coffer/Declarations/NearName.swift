/// Finds the name most likely meant by a mistyped one.
package enum NearName {
  /// The name among `candidates` nearest to `name`; nil when none is near enough.
  ///
  /// The empty name is near nothing.
  package static func best(for name: String, among candidates: some Sequence<String>) -> String? {
    let wanted = Array(name.lowercased().unicodeScalars)
    // At most one typo in every three characters. A letter alone is near any other.
    var limit = wanted.count < 2 ? 0 : min(3, max(1, wanted.count / 3))
    var best: String?
    for candidate in candidates {
      let scalars = Array(candidate.lowercased().unicodeScalars)
      guard !scalars.isEmpty, abs(scalars.count - wanted.count) <= limit, scalars.count > 1 || limit == 0 else {
        continue
      }
      let distance = EditDistance.between(wanted, scalars)
      if distance < limit || (distance == limit && best == nil) {
        best = candidate
        limit = distance
      }
    }
    return best
  }
}
