/// The layers around the stored settings: those above, in the order in which they are asked, and what an administrator gives
/// below.
struct Overrides: Sendable {
  private let layers: [Preferences.Layer]
  let source: ManagedSource?
  private var managed: ManagedSettings? { source?.current }

  /// A value from a layer.
  struct Override {
    let entry: Preferences.Layer.Entry
    let origin: Preferences.Origin
    /// Where in the layer it is, in a sentence.
    let place: String
  }

  init(_ layers: [Preferences.Layer], managed source: ManagedSource? = nil) {
    self.source = source
    let order: [Preferences.Origin] = [.forced, .arguments, .environment]
    self.layers = order.flatMap { origin in layers.filter { $0.origin == origin && !$0.isEmpty } }
  }

  func find(_ key: String) -> Override? {
    // Most programs have none, and this is on the way to every setting.
    if let managed, let entry = managed.locked[ByteString(key)] {
      return Self.managed(entry, Preferences.Origin.locked)
    }
    return layers.isEmpty ? nil : findInLayers(key)
  }

  /// What shows where nothing is locked.
  func findInLayers(_ key: String) -> Override? {
    for layer in layers {
      if let override = layer.override(forKey: key) { return override }
    }
    return nil
  }

  /// The values of all layers that have one.
  func all(_ key: String) -> [Override] {
    let locked = managed?.locked[ByteString(key)].flatMap { Self.managed($0, Preferences.Origin.locked) }
    if layers.isEmpty { return locked.map { [$0] } ?? [] }
    return [locked].compactMap(\.self) + layers.compactMap { $0.override(forKey: key) }
  }

  // MARK: Managed

  /// Whether an administrator gives defaults.
  var hasManagedDefaults: Bool { !(managed?.defaults.isEmpty ?? true) }

  /// The default that an administrator gives, below the stored settings.
  func managedDefault(_ key: String) -> Override? {
    managed?.defaults[ByteString(key)].flatMap { Self.managed($0, Preferences.Origin.managed) }
  }

  private static func managed(
    _ entry: Preferences.Layer.Entry, _ origin: (ManagedSettings.Place) -> Preferences.Origin
  ) -> Override? {
    entry.place.map { Override(entry: entry, origin: origin($0), place: $0.description) }
  }

  /// - Throws: `CofferError.lockedByAdministrator`.
  func requireUnlocked(_ name: String, key: String, in collection: String) throws {
    guard let file = managed?.locked[ByteString(name)]?.place?.file else { return }
    throw CofferError.lockedByAdministrator(collection: collection, key: key, file: file)
  }

  /// Puts the managed defaults over what `values` hold.
  func replaceDefaults(in values: inout [ByteString: Value]) {
    if let managed { values.merge(managed.defaults.mapValues(\.value)) { $1 } }
  }

  /// Puts what the layers hold over what `values` hold.
  func replace(in values: inout [ByteString: Value]) {
    for layer in layers.reversed() {
      switch layer.content {
      case .values(let own): values.merge(own.mapValues(\.value)) { $1 }
      case .variables(let own, let prefix):
        // Keys of higher layers may go by a variable, too; these replace them afterwards.
        var unknown = own
        for key in values.keys {
          let name = EnvironmentName.of(key.string, prefix: prefix)
          guard let entry = own[name] else { continue }
          values[key] = entry.value
          unknown[name] = nil
        }
        let start = EnvironmentName.of("", prefix: prefix)
        for (name, entry) in unknown {
          let key = String(decoding: name.utf8.dropFirst(start.utf8.count), as: UTF8.self).lowercased()
          if EnvironmentName.of(key, prefix: prefix) == name { values[ByteString(key)] = entry.value }
        }
      }
    }
    if let managed { values.merge(managed.locked.mapValues(\.value)) { $1 } }
  }
}

extension Overrides.Override {
  /// The value as a type of the program.
  ///
  /// - Throws: `CofferError.notDecodable`.
  func decoded<Object: Decodable>(as type: Object.Type, _ key: String, in collection: String) throws -> Object {
    do {
      return try entry.value.decoded(as: type, key, in: collection)
    } catch {
      // All that arguments and environment can hold is text.
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
      let name = EnvironmentName.of(key, prefix: prefix)
      return values[name].map { Overrides.Override(entry: $0, origin: origin, place: "the environment's \(name)") }
    }
  }
}

/// What keys are called in an environment.
package enum EnvironmentName {
  /// Prefix and key with their ASCII letters in upper case, and `_` for every other character that is not a digit.
  ///
  /// Before a digit at the beginning stands `_`: shells have no variable that begins with a digit.
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
