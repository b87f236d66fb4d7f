import CofferCrypto

/// The last good values of settings, used in place of a bad value that comes later.
///
/// `Preferences` and proxies record a value when it is first read after a change, never on the fastest path.
package final class LastGoodValues: Sendable {
  /// A good value, and the bad values that were skipped for it.
  package struct Entry<Object: Sendable>: Sendable {
    package let object: Object
    /// Problems of bad values that persist, in an environment variable for instance: they must not hide later changes below
    /// them.
    package var problems: [SettingProblem] = []
    /// Whether it shows because nothing is set.
    package var isDefault = false

    package init(object: Object, problems: [SettingProblem] = [], isDefault: Bool = false) {
      self.object = object
      self.problems = problems
      self.isDefault = isDefault
    }
  }

  /// A setting by name and type, not by identity: some programs create a key for each use.
  package struct Place: Hashable, Sendable {
    private let key: ByteString
    private let collection: ByteString
    private let type: ObjectIdentifier

    package init(_ key: String, in collection: String, as type: Any.Type) {
      (self.key, self.collection) = (ByteString(key), ByteString(collection))
      self.type = ObjectIdentifier(type)
    }
  }

  private let entries = Lock<[Place: any Sendable]>([:])

  package init() {}

  /// The last good value; nil if there is none.
  package func entry<Object>(at place: Place, as type: Object.Type = Object.self) -> Entry<Object>? {
    entries.withLock { $0[place] } as? Entry<Object>
  }

  /// - Parameter entry: nil forgets the entry, when a value has been sealed.
  package func note<Object>(_ entry: Entry<Object>?, at place: Place) {
    entries.withLock { $0[place] = entry }
  }

  /// Whether a value that was found is in effect from now on, and not the last good one because a bad value came.
  ///
  /// - Parameters:
  ///   - last: The last good value as of before the value was looked for.
  ///   - keeps: Whether the value may be kept in memory: nothing may keep the plaintext of a sealed one.
  package func accepts<Object>(
    _ found: Entry<Object>, at place: Place, after last: Entry<Object>?, keeps: () -> Bool
  ) -> Bool {
    // A default does not outrank a value further down the list.
    if let last, !last.isDefault, found.problems.goBeyond(last.problems) { return false }
    note(keeps() ? found : nil, at: place)
    return true
  }
}

extension [SettingProblem] {
  /// Whether there are bad values besides those skipped for the last good value.
  ///
  /// A bad value that persists, in an environment variable for instance, must not hide changes below it.
  func goBeyond(_ known: [SettingProblem]) -> Bool { contains { !known.contains($0) } }
}
