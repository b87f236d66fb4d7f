import Coffer
import CofferMaintenance

/// The settings in a file.
struct SettingsFile {
  /// The collections, including empty ones.
  let collections: [String]
  let settings: [ImportedSetting]

  /// Reads a file.
  ///
  /// - Parameters:
  ///   - name: The name of the file in messages.
  ///   - collection: The collection of the settings; nil for a file with collections by name.
  ///   - reading: Parses YAML and TOML.
  /// - Throws: ``Failure`` with the status `format`, which quotes no value.
  init(
    _ bytes: [UInt8], format: SettingsFormat, named name: String, collection: String?,
    reading: (String, SettingsFormat) throws -> Value = FormatsProgram.tree
  ) throws {
    let members = try Self.members(named: name) { try format.tree(bytes, reading: reading) }
    if let collection {
      collections = [collection]
      settings = try Self.settings(members, of: collection, named: name)
      return
    }
    guard format != .env else {
      throw Failure(.usage, "\(name): variables belong to one collection. Name it with -c.")
    }
    collections = Array(members.keys)
    settings = try members.sortedByName().flatMap { collection, tree in
      guard case .dictionary(let members) = tree else {
        throw Failure(
          .format,
          "\(name): \"\(collection)\" is not a collection. Name the collection for these settings with -c; "
            + "nothing was changed.")
      }
      return try Self.settings(members, of: collection, named: name)
    }
  }

  /// The same settings with renamed collections.
  ///
  /// - Throws: ``Failure`` if two collections would get the same name.
  func renamingCollections(_ rename: (String) throws -> String) throws -> SettingsFile {
    var names: [String: String] = [:]
    for collection in collections {
      let name = try rename(collection)
      if names.values.contains(name) {
        throw Failure(.format, "two collections in the file would be \"\(name)\". Nothing was changed.")
      }
      names[collection] = name
    }
    return SettingsFile(
      collections: collections.compactMap { names[$0] },
      settings: settings.map {
        ImportedSetting(collection: names[$0.collection] ?? $0.collection, key: $0.key, value: $0.value)
      })
  }

  private init(collections: [String], settings: [ImportedSetting]) {
    (self.collections, self.settings) = (collections, settings)
  }

  private static func members(named name: String, _ tree: () throws -> Value) throws -> [String: Value] {
    do {
      guard case .dictionary(let members) = try tree() else {
        throw FormatProblem("it is not a dictionary of settings")
      }
      return members
    } catch let problem as FormatProblem {
      throw Failure(.format, "\(name): \(problem.reason). Nothing was changed.")
    }
  }

  private static func settings(
    _ members: [String: Value], of collection: String, named name: String
  ) throws -> [ImportedSetting] {
    try members.sortedByName().map { key, tree in
      if case .string(let text) = tree, Redaction.isPlaceholder(text) {
        return ImportedSetting(collection: collection, key: key, value: nil)
      }
      do {
        return ImportedSetting(collection: collection, key: key, value: try PortableValue.value(tree))
      } catch let problem as FormatProblem {
        throw Failure(
          .format,
          "\(name): key \"\(key)\" in \(KeyReference.describe(collection)): \(problem.reason). Nothing was changed.")
      }
    }
  }
}
