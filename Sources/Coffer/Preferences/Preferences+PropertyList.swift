#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension Preferences {
  /// The formats of property lists.
  public enum PropertyListFormat: Sendable {
    /// Text, which people and other programs read; dates are whole seconds there.
    case xml
    /// The format of UserDefaults on Apple systems, which keeps every value exactly.
    case binary
  }

  /// What becomes of the settings that are there when others are imported.
  public enum ImportMode: Sendable {
    /// Those of other keys stay.
    case merge
    /// All go, with their metadata, expiries and due dates.
    case replace
  }

  // MARK: Exporting

  /// All settings of the collection as a property list, as UserDefaults would write it.
  ///
  /// Layers, suites and registered defaults are left out. What property lists do not know is written as UserDefaults does:
  /// a URL as the path of its file, with `~` for the home folder, or as an archive of it; and what a `Codable` type was
  /// encoded as in lists and dictionaries, in which form it reads back. When a value expires or is due for renewal is not in
  /// the list.
  ///
  /// The list is not encrypted.
  ///
  /// - Throws: `CofferError.notExportable`, naming the key, where a value has no place in a property list: null in a list, a
  ///   URL inside a list, a UUID; in XML also a date before 15 October 1582 or after the year 9999, and text with control
  ///   characters. What reading throws.
  public func exportPropertyList(format: PropertyListFormat = .xml) throws -> Data {
    let writer = PropertyListWriter(collection: collection, format: format)
    return try writer.data(try proxy.values(inCollection: collection))
  }

  // MARK: Importing

  /// Sets what a property list holds, all of it or nothing, in one transaction that is on the disk when this returns.
  ///
  /// ```swift
  /// let preferences = try Preferences.open(application: "org.example.editor")
  /// try preferences.importPropertyList(at: "/Users/ann/Library/Preferences/org.example.editor.plist")
  /// ```
  ///
  /// Lists of any format are read, those of UserDefaults among them. Types are exact: a truth value is no integer, a real
  /// number no integer even if it is whole. The archive that UserDefaults makes of a URL becomes that URL; all other data
  /// stays what it is. A setting that is there keeps its metadata, its expiry and its due date, unless all go.
  ///
  /// - Throws: `CofferError.malformedSettings` when the data is no property list with a dictionary; `.notEncodable`, naming
  ///   the key, when a value nests too deep; `.collectionNotAllowed`, and what a write transaction throws. Nothing was
  ///   changed then.
  public func importPropertyList(_ data: Data, mode: ImportMode = .merge) throws {
    try importPropertyList(data, named: "the property list", mode: mode)
  }

  /// Sets what the property list in a file holds, as ``importPropertyList(_:mode:)``.
  ///
  /// - Throws: Also `CofferError.permissionDenied` and `.inputOutput` when the file cannot be read.
  public func importPropertyList(at path: String, mode: ImportMode = .merge) throws {
    try importPropertyList(try SettingsFile.contents(of: path) ?? Data(), named: path, mode: mode)
  }

  private func importPropertyList(_ data: Data, named name: String, mode: ImportMode) throws {
    let settings = try SettingsFile.settings(inPropertyList: data, named: name).mapValues(URLArchive.unwrapped)
    guard proxy.writtenCollectionsFilter?.allows(collection) ?? true else {
      throw CofferError.collectionNotAllowed(collection: collection)
    }
    for key in settings.keys.sorted() { try overrides.requireUnlocked(key, key: key, in: collection) }
    // Not through the proxy: its flush could put some of them into one batch and some into the next.
    try proxy.readWriteConnection.readWrite { transaction in
      if mode == .replace { try transaction.removeAllObjects(inCollection: collection) }
      for (key, value) in settings {
        if try transaction.hasObject(forKey: key, inCollection: collection) {
          try transaction.replaceObject(value, forKey: key, inCollection: collection)
        } else {
          try transaction.setObject(value, forKey: key, inCollection: collection)
        }
      }
    }
  }
}
