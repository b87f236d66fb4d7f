import Coffer
import CofferMaintenance

/// The settings in a file.
package struct ImportedSettings {
  /// The collections, including empty ones.
  package let collections: [String]
  package let settings: [ImportedSetting]
  /// Whether all values are text, as in `.env` files.
  var isText = false

  /// Reads a file.
  ///
  /// - Parameters:
  ///   - name: The name of the file in messages.
  ///   - collection: The collection of the settings; nil for a file with collections by name.
  ///   - reading: Parses YAML and TOML.
  /// - Throws: ``Failure`` with the status `format`, which quotes no value.
  package init(
    _ bytes: [UInt8], format: SettingsFormat, named name: String, collection: String?,
    reading: (String, SettingsFormat) throws -> FileTree = FormatsProgram.tree
  ) throws {
    let members = try Self.members(named: name) { try format.tree(bytes, reading: reading) }
    isText = format == .env
    if let collection {
      collections = [collection]
      settings = try Self.settings(members, of: collection, named: name, hasPlaceholders: format != .env)
      return
    }
    guard format != .env else {
      throw Failure(.usage, "\(name): variables belong to one collection. Name it with -c.")
    }
    collections = members.map(\.name)
    settings = try members.flatMap { member in
      if let members = member.tree.sortedMembers { return try Self.settings(members, of: member.name, named: name) }
      let reason =
        member.tree == .value(.null)
        ? "\"\(member.name)\" has no settings. Write \(format.emptyDictionary(member.name)) for a collection without any, or "
          + "leave the line out"
        : "\"\(member.name)\" is not a collection. Name the collection for these settings with -c"
      throw Failure(.format, "\(name): \(reason); nothing was changed.")
    }
  }

  /// The same settings with renamed collections.
  ///
  /// - Throws: ``Failure`` if two collections would get the same name.
  func renamingCollections(_ rename: (String) throws -> String) throws -> ImportedSettings {
    var names: [ByteString: String] = [:]
    var taken: Set<ByteString> = []
    for collection in collections {
      let name = try rename(collection)
      guard taken.insert(ByteString(name)).inserted else {
        throw Failure(.format, "two collections in the file would be \"\(name)\". Nothing was changed.")
      }
      names[ByteString(collection)] = name
    }
    return ImportedSettings(
      collections: collections.compactMap { names[ByteString($0)] },
      settings: settings.map {
        let collection = names[ByteString($0.collection)] ?? $0.collection
        return ImportedSetting(collection: collection, key: $0.key, value: $0.value)
      }, isText: isText)
  }

  /// The same collections with other settings, which have their types.
  func replacingSettings(_ settings: [ImportedSetting]) -> ImportedSettings {
    ImportedSettings(collections: collections, settings: settings, isText: false)
  }

  private init(collections: [String], settings: [ImportedSetting], isText: Bool) {
    (self.collections, self.settings, self.isText) = (collections, settings, isText)
  }

  private static func members(named name: String, _ tree: () throws -> FileTree) throws -> [FileTree.Member] {
    do {
      guard let members = try tree().sortedMembers else { throw FormatProblem("it is not a dictionary of settings") }
      return members
    } catch let problem as FormatProblem {
      throw Failure(.format, "\(name): \(problem.reason). Nothing was changed.")
    }
  }

  private static func settings(
    _ members: [FileTree.Member], of collection: String, named name: String, hasPlaceholders: Bool = true
  ) throws -> [ImportedSetting] {
    try members.map { member in
      let key = member.name
      do {
        guard let tree = member.tree.asValue else {
          throw FormatProblem("two names in it differ only in their Unicode normalization, which one value cannot hold")
        }
        if hasPlaceholders, case .string(let text) = tree, Redaction.isPlaceholder(text) {
          return ImportedSetting(collection: collection, key: key, value: nil)
        }
        return ImportedSetting(collection: collection, key: key, value: try PortableValue.value(tree))
      } catch let problem as FormatProblem {
        throw Failure(
          .format,
          "\(name): key \"\(key)\" in \(DisplayText.collection(collection)): \(problem.reason). Nothing was changed.")
      }
    }
  }
}

extension ImportedSetting {
  /// Whether both have the same value, bit for bit; `==` takes NaN, -0.0 and the forms of one letter differently.
  package func hasSameValue(as other: ImportedSetting) throws -> Bool {
    switch (value, other.value) {
    case (nil, nil): true
    case (let value?, let other?): try value.stored == other.stored
    default: false
    }
  }
}
