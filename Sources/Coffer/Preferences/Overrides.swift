/// The layers around the stored settings: the layers above, in search order, and the administrator's defaults below.
struct Overrides: Sendable {
  private let layers: [Preferences.Layer]
  let source: ManagedSource?
  private var managed: ManagedSettings? { source?.current }

  /// A value from a layer.
  struct Override {
    let entry: Preferences.Layer.Entry
    let origin: Preferences.Origin
    /// Its place in the layer, in words.
    let place: String
  }

  init(_ layers: [Preferences.Layer], managed source: ManagedSource? = nil) {
    self.source = source
    let order: [Preferences.Origin] = [.forced, .arguments, .variables]
    self.layers = order.flatMap { origin in layers.filter { $0.origin == origin && !$0.isEmpty } }
  }

  /// - Parameter managedName: The key's name in an administrator's files.
  func find(_ key: String, _ managedName: @autoclosure () -> String) -> Override? {
    // Most programs have no managed settings, and every read of a setting comes by here.
    if let managed, let entry = managed.entry(managedName(), in: \.locked) {
      return Self.managed(entry, Preferences.Origin.lockedByAdministrator)
    }
    return layers.isEmpty ? nil : findInLayers(key)
  }

  /// The value that shows if the key is not locked.
  func findInLayers(_ key: String) -> Override? {
    for layer in layers {
      if let override = layer.override(forKey: key) { return override }
    }
    return nil
  }

  /// The values of all layers that have the key.
  func all(_ key: String, _ managedName: @autoclosure () -> String) -> [Override] {
    let locked = managed?.entry(managedName(), in: \.locked)?.all ?? []
    return locked.compactMap { Self.managed($0, Preferences.Origin.lockedByAdministrator) }
      + layers.compactMap { $0.override(forKey: key) }
  }

  // MARK: Managed

  /// Whether an administrator set defaults.
  var hasManagedDefaults: Bool { !(managed?.defaults.isEmpty ?? true) }

  /// The administrator's default, below the stored settings, and those of folders that rank below.
  func managedDefaults(_ managedName: @autoclosure () -> String) -> [Override] {
    managed?.entry(managedName(), in: \.defaults)?.all.compactMap { Self.managed($0, Preferences.Origin.managed) } ?? []
  }

  private static func managed(
    _ entry: Preferences.Layer.Entry, _ origin: (ManagedSettings.Place) -> Preferences.Origin
  ) -> Override? {
    entry.place.map { Override(entry: entry, origin: origin($0), place: $0.description) }
  }

  /// - Throws: `CofferError.lockedByAdministrator`.
  func requireUnlocked(_ managedName: @autoclosure () -> String, key: String, in collection: String) throws {
    guard let file = managed?.entry(managedName(), in: \.locked)?.place?.file else { return }
    throw CofferError.lockedByAdministrator(collection: collection, key: key, file: file)
  }

  /// Replaces managed defaults in `values`.
  ///
  /// - Parameter suite: The suite that these are the values of; nil for the application's own.
  func replaceDefaults(in values: inout [ByteString: Value], ofSuite suite: String?) {
    if let managed { values.merge(managed.values(in: \.defaults, ofSuite: suite)) { $1 } }
  }

  /// Replaces the layers' settings in `values`.
  func replace(in values: inout [ByteString: Value], ofSuite suite: String?) {
    for layer in layers.reversed() {
      switch layer.content {
      case .values(let own): values.merge(own.mapValues(\.value)) { $1 }
      case .variables(let own, let prefix):
        // Keys of higher layers may match a variable too; they replace it below.
        var unknown = own
        for key in values.keys {
          let name = VariableName.of(key.string, prefix: prefix)
          guard let entry = own[name] else { continue }
          values[key] = entry.value
          unknown[name] = nil
        }
        let start = VariableName.of("", prefix: prefix)
        for (name, entry) in unknown {
          let key = String(decoding: name.utf8.dropFirst(start.utf8.count), as: UTF8.self).lowercased()
          if VariableName.of(key, prefix: prefix) == name { values[ByteString(key)] = entry.value }
        }
      }
    }
    if let managed { values.merge(managed.values(in: \.locked, ofSuite: suite)) { $1 } }
  }
}

extension Overrides.Override {
  /// The value, decoded as a type of the program.
  ///
  /// - Throws: `CofferError.notDecodable`.
  func decoded<Object: Decodable>(as type: Object.Type, _ key: String, in collection: String) throws -> Object {
    do {
      return try entry.value.decoded(as: type, key, in: collection)
    } catch {
      // Arguments and variables hold text only.
      guard let text = entry.text, let object = SettingsText.object(in: text, as: type, key, in: collection)
      else { throw error }
      return object
    }
  }
}

extension Preferences.Layer {
  var isEmpty: Bool {
    switch content {
    case .values(let values): values.isEmpty
    case .variables(let values, _): values.isEmpty
    }
  }

  func override(forKey key: String) -> Overrides.Override? {
    switch content {
    case .values(let values):
      return values[ByteString(key)].map { entry in
        let place = origin == .arguments ? "the argument -\(key)" : "the forced settings"
        return Overrides.Override(entry: entry, origin: origin, place: place)
      }
    case .variables(let values, let prefix):
      let name = VariableName.of(key, prefix: prefix)
      return values[name].map {
        Overrides.Override(entry: $0, origin: origin, place: "the environment variable \(name)")
      }
    }
  }
}

/// The names of the environment variables of keys.
package enum VariableName {
  /// Prefix and key with ASCII letters in upper case, and `_` for every other character that is not a digit.
  ///
  /// A name that would begin with a digit gets a leading `_`: shell variables cannot begin with a digit.
  package static func of(_ key: String, prefix: String) -> String {
    var name = ""
    for scalar in (prefix + key).unicodeScalars {
      switch scalar {
      case "A"..."Z": name.unicodeScalars.append(scalar)
      case "0"..."9": name += name.isEmpty ? "_\(scalar)" : "\(scalar)"
      case "a"..."z": name.unicodeScalars.append(Unicode.Scalar(UInt8(scalar.value - 32)))
      default: name += "_"
      }
    }
    return name
  }
}
