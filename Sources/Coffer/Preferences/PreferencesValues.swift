import CofferCrypto

extension Preferences {
  /// The values of a setting as they come, for `for await`; see ``Preferences/values(of:)``.
  ///
  /// A consumer that falls behind gets the newest value, and may miss some before it.
  public struct Values<Object: Codable & Sendable>: AsyncSequence, Sendable {
    /// A value of the setting.
    public typealias Element = Object

    fileprivate let key: Key<Object>
    /// nil where there will be no changes.
    fileprivate let changes: Changes?
    fileprivate let preferences: WeakPreferences

    init(_ key: Key<Object>, of preferences: Preferences, changes: Changes?) {
      self.key = key
      self.changes = changes
      self.preferences = WeakPreferences(preferences)
    }

    /// Waits for values, one after another.
    public struct Iterator: AsyncIteratorProtocol {
      fileprivate let key: Key<Object>
      fileprivate var changes: Changes.Iterator?
      fileprivate let preferences: WeakPreferences
      /// The hash of what was handed out last; nil before the first one.
      ///
      /// The value itself may be one of a sealed collection, which nothing keeps in clear.
      fileprivate var last: [UInt8]?
      /// The bad values that were passed over for that one.
      fileprivate var lastProblems: [SettingProblem] = []

      /// The value of the setting, at first the present one; nil when the settings were closed or are gone, or the task was
      /// cancelled.
      public mutating func next() async -> Object? {
        await next(isolation: nil)
      }

      /// The value of the setting, as ``next()``.
      public mutating func next(isolation: isolated (any Actor)?) async -> Object? {
        if last == nil, case .value(let object) = current() { return object }
        while await changes?.next(isolation: isolation) != nil {
          let previous = last
          switch current() {
          case .ended: return nil
          // Events may come as one, or late: the same value again is no change.
          case .value(let object) where last != previous: return object
          case .value, .bad: continue
          }
        }
        return nil
      }

      private enum Current {
        case value(Object)
        /// There is a value, but a bad one; the last good one goes on to be the setting's.
        case bad
        case ended
      }

      private mutating func current() -> Current {
        guard let preferences = preferences.preferences else { return .ended }
        let object: Object
        do {
          let search = try preferences.search(for: key)
          guard last == nil || !search.hasProblems(besides: lastProblems) else {
            preferences.report(search, for: key, instead: "the last good value")
            return .bad
          }
          object = accept(search, preferences)
        } catch CofferError.closed {
          // The end of the stream is on its way; its default is not what the setting changed to.
          return .ended
        } catch {
          // Reads again, and reports.
          object = preferences[key]
        }
        last = (try? ValueCoder.encode(object).hash) ?? []
        return .value(object)
      }

      /// What was found; at first, where that is bad, the last good value that the program has read.
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

    /// Makes the iterator; each one begins with the present value, and all of one sequence share its changes.
    public func makeAsyncIterator() -> Iterator {
      Iterator(key: key, changes: changes?.makeAsyncIterator(), preferences: preferences)
    }
  }

  /// The value of a typed key: the present one, then each that it changes to, by other processes too.
  ///
  /// ```swift
  /// for await theme in try preferences.values(of: .theme) { window.apply(theme) }
  /// ```
  ///
  /// A value of another type, or one that does not keep to the key's limits, is no new value: the last good one stays, and
  /// ``errors`` says so.
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
