#if Configuration
  import Coffer
  import Configuration
  import Synchronization

  /// A collection that a provider searches, and its declared settings, by name.
  struct Place: Sendable {
    let collection: String
    let declarations: [String: Declaration]
  }

  /// Looks keys up in the collections of a provider, and keeps the last good values.
  final class Lookup: Sendable {
    let places: [Place]
    private let database: Database
    private let lastGood = LastGoodValues()
    private let snapshotCount = Atomic(0)

    /// A result, and when it was read: a snapshot that is read later must not replace a newer one.
    fileprivate struct Known: Sendable {
      let result: LookupResult
      let moment: Int
    }

    init(_ places: [Place], _ database: Database) {
      self.places = places
      self.database = database
    }

    /// Offers the values of a key in a collection, in order: the first good one is taken.
    typealias Find = (
      _ name: String, _ collection: String,
      _ isGood: (_ found: (value: Value, isSealed: Bool), _ place: String) -> Bool
    ) throws -> Void

    /// The moment of a read of current values: after all snapshots up to now.
    var now: Int { snapshotCount.load(ordering: .relaxed) + 1 }

    /// The moment of a new snapshot.
    func nextMoment() -> Int { snapshotCount.add(1, ordering: .relaxed).newValue }

    /// The first good value in the collections; the last good one, if a bad one has come.
    ///
    /// - Parameter find: Offers the values of a key in a collection, until one is good.
    func value(
      of key: AbsoluteConfigKey, _ type: ConfigType, at moment: Int, _ find: Find
    ) throws -> LookupResult {
      let name = key.components.joined(separator: ".")
      let place = LastGoodValues.Place(name, in: places[0].collection, as: type.swiftType)
      let last = lastGood.entry(at: place, as: Known.self)
      do {
        let search = try search(for: name, type, find)
        let entry = LastGoodValues.Entry(
          object: Known(result: search.result, moment: moment), problems: search.problems,
          isDefault: search.result.value == nil)
        if let last, moment < last.object.moment || last.isSame(as: entry),
          search.result.value != nil || search.problems.isEmpty
        {
          return search.result
        }
        let isAccepted = lastGood.accepts(entry, at: place, after: last) { !search.isSealed }
        report(search, isAccepted)
        if !isAccepted, let last { return last.object.result }
        if let error = search.firstError, search.result.value == nil { throw error }
        return search.result
      } catch let error as CofferError {
        switch error {
        case .closed, .notDecodable, .invalidValue: throw error
        case .vaultLocked:
          // Sealed in the meantime.
          lastGood.note(nil as LastGoodValues.Entry<Known>?, at: place)
          throw error
        default:
          guard let last, !last.isDefault else { throw error }
          database.report(
            error, forKey: name, inCollection: places[0].collection, instead: "the last good value")
          return last.object.result
        }
      }
    }

    private func report(_ search: Search, _ isAccepted: Bool) {
      let instead =
        if !isAccepted {
          "the last good value"
        } else if let source = search.source {
          "the value of \(source)"
        } else {
          "the reader's default"
        }
      for problem in search.problems { database.report(problem, instead: instead) }
    }

    // MARK: - Searching

    fileprivate struct Search {
      /// Without a value, if there is no good one.
      var result: LookupResult
      /// Where the good value is.
      var source: String?
      var isSealed = false
      var problems: [SettingProblem] = []
      /// The error of the first bad value.
      var firstError: CofferError?
    }

    private func search(for name: String, _ type: ConfigType, _ find: Find) throws -> Search {
      var search = Search(result: LookupResult(encodedKey: Self.path(name, places[0].collection), value: nil))
      for place in places where search.source == nil {
        try find(name, place.collection) { found, source in search.take(found, source, name, type, place) }
      }
      return search
    }

    /// The key in the form of `prefs`.
    fileprivate static func path(_ name: String, _ collection: String) -> String {
      collection.isEmpty ? name : "\(collection)/\(name)"
    }
  }

  extension Lookup.Search {
    /// Takes a value if it is good, and notes what is wrong with it if not.
    fileprivate mutating func take(
      _ found: (value: Value, isSealed: Bool), _ source: String, _ name: String, _ type: ConfigType, _ place: Place
    ) -> Bool {
      let (value, isSealed) = found
      self.isSealed = self.isSealed || isSealed
      let declaration = place.declarations.isEmpty ? nil : place.declarations[name]
      if let reason = declaration?.problem(of: value, showsValue: !isSealed && declaration?.type != .secret) {
        note(
          .invalidValue(collection: place.collection, key: name, reason: reason),
          SettingProblem(collection: place.collection, key: name, place: source, reason: reason, value: value))
        return false
      }
      guard let content = ConfigContent(value, as: type) else {
        let error = CofferError.notDecodable(
          collection: place.collection, key: name, storedType: value.kind.name, requestedType: type.rawValue,
          reason: "it cannot be converted")
        let reason = "of type \(type.rawValue), not \(value.kind.name)"
        note(
          error, SettingProblem(collection: place.collection, key: name, place: source, reason: reason, value: value))
        return false
      }
      result = LookupResult(
        encodedKey: Lookup.path(name, place.collection),
        value: ConfigValue(content, isSecret: isSealed || value.kind == .secret))
      self.source = source
      return true
    }

    private mutating func note(_ error: CofferError, _ problem: SettingProblem) {
      problems.append(problem)
      firstError = firstError ?? error
    }
  }

  extension LastGoodValues.Entry<Lookup.Known> {
    fileprivate func isSame(as other: Self) -> Bool {
      object.result == other.object.result && problems == other.problems
    }
  }

  extension ConfigType {
    /// The Swift type of the values, which distinguishes the ways in which a setting is read.
    fileprivate var swiftType: Any.Type {
      switch self {
      case .string: String.self
      case .int: Int.self
      case .double: Double.self
      case .bool: Bool.self
      case .bytes: [UInt8].self
      case .stringArray: [String].self
      case .intArray: [Int].self
      case .doubleArray: [Double].self
      case .boolArray: [Bool].self
      case .byteChunkArray: [[UInt8]].self
      }
    }
  }
#endif
