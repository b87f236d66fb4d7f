import CofferCrypto

extension Preferences {
  /// The values of a setting over time, for `for await`; see ``Preferences/values(of:)``.
  ///
  /// A consumer that falls behind gets the newest value, and may miss earlier ones.
  public struct Values<Object: Codable & Sendable>: AsyncSequence, Sendable {
    /// A value of the setting.
    public typealias Element = Object

    fileprivate let key: Key<Object>
    /// nil if changes cannot be observed.
    fileprivate let changes: Changes?
    fileprivate let preferences: WeakPreferences

    init(_ key: Key<Object>, of preferences: Preferences, changes: Changes?) {
      self.key = key
      self.changes = changes
      self.preferences = WeakPreferences(preferences)
    }

    /// Waits for one value after another.
    public struct Iterator: AsyncIteratorProtocol {
      fileprivate let key: Key<Object>
      fileprivate var changes: Changes.Iterator?
      fileprivate let preferences: WeakPreferences
      /// The hash of the value last returned; nil before the first one.
      ///
      /// Not the value itself: it may be sealed, and its plaintext must not be kept.
      fileprivate var last: [UInt8]?
      /// The bad values that were skipped for it.
      fileprivate var lastProblems: [SettingProblem] = []

      /// The next value of the setting, at first the current one; nil when the settings are closed or released, or the task
      /// is cancelled.
      public mutating func next() async -> Object? {
        await next(isolation: nil)
      }

      /// The next value of the setting, as ``next()``.
      public mutating func next(isolation: isolated (any Actor)?) async -> Object? {
        if last == nil, case .value(let object) = current() { return object }
        while await changes?.next(isolation: isolation) != nil {
          let previous = last
          switch current() {
          case .ended: return nil
          // Events may be merged or late: the same value again is not a change.
          case .value(let object) where last != previous: return object
          case .value, .bad: continue
          }
        }
        return nil
      }

      private enum Current {
        case value(Object)
        /// There is only a bad value; the last good one stays in effect.
        case bad
        case ended
      }

      private mutating func current() -> Current {
        guard let preferences = preferences.preferences else { return .ended }
        let object: Object
        do {
          let search = try preferences.search(for: key)
          guard last == nil || !search.problems.goBeyond(lastProblems) else {
            preferences.report(search, for: key, instead: "the last good value")
            return .bad
          }
          object = accept(search, preferences)
        } catch CofferError.closed {
          // The stream is about to end; the default is not a new value of the setting.
          return .ended
        } catch {
          // Read again, and report.
          object = preferences[key]
        }
        last = (try? ValueCoder.encode(object).hash) ?? []
        return .value(object)
      }

      /// The value found; on the first call, if that is bad, the last good value that the program has read.
      private mutating func accept(_ search: Search<Object>, _ preferences: Preferences) -> Object {
        let collection = preferences.place(of: key)
        let entry = last == nil ? preferences.lastGood.entry(of: key, in: collection) : nil
        if let object = preferences.accept(search, for: key, in: collection, after: entry) {
          lastProblems = search.problems
          return object
        }
        lastProblems = entry?.problems ?? []
        return entry?.object ?? key.defaultValue
      }
    }

    /// Creates an iterator that begins with the current value; all iterators of a sequence share its changes.
    public func makeAsyncIterator() -> Iterator {
      Iterator(key: key, changes: changes?.makeAsyncIterator(), preferences: preferences)
    }
  }

  /// The values of a typed key: the current one, then each new one, including those set by other processes.
  ///
  /// ```swift
  /// for await theme in try preferences.values(of: .theme) { window.apply(theme) }
  /// ```
  ///
  /// A value that has another type or violates the key's limits is skipped: the last good one stays in effect, and
  /// ``errors`` reports it.
  ///
  /// - Throws: As ``changes()``.
  public func values<Object>(of key: Key<Object>) throws -> Values<Object> {
    Values(key, of: self, changes: try changes(of: key))
  }
}

extension StoredValue {
  fileprivate var hash: [UInt8] {
    get throws { [kind.rawValue] + (try bytes.withUnsafeBytes(SHA256.digest)) }
  }
}
