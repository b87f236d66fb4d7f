#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What an import does with existing settings.
public enum ImportMode: Sendable {
  /// Keeps those that the import does not have.
  case merge
  /// Removes those that the import does not have, in the collections that it has.
  case replace
}

extension Preferences {
  /// The formats of property lists.
  public enum PropertyListFormat: Sendable {
    /// Text, readable by people and other programs; dates are whole seconds.
    case xml
    /// The format of UserDefaults on Apple systems, which stores every value exactly.
    case binary
  }

  // MARK: Exporting

  /// All settings of the collection as a property list, as UserDefaults would write it.
  ///
  /// Layers, suites and registered defaults are left out. Types that property lists lack are written as UserDefaults does: a
  /// URL as the path of its file, with `~` for the home folder, or as an archive of it; a `Codable` type as lists and
  /// dictionaries, from which it can be decoded again. Expiries and due dates are not included.
  ///
  /// The list is not encrypted. It is read back and compared before it is returned; in XML, dates are whole seconds.
  ///
  /// - Throws: `CofferError.notExportable`, naming the key, when a property list cannot hold a value: null in a list, a URL
  ///   inside a list, a UUID; in XML also a date before 15 October 1582 or after the year 9999, and text with control
  ///   characters. The errors of reading.
  public func exportPropertyList(format: PropertyListFormat = .xml) throws -> Data {
    let writer = PropertyListWriter(collection: collection, format: format)
    return try writer.data(try proxy.values(inCollection: collection))
  }

  // MARK: Importing

  /// Imports a property list, all of it or nothing, in one transaction that is on disk when this returns.
  ///
  /// ```swift
  /// let preferences = try Preferences.open(application: "org.example.editor")
  /// try preferences.importPropertyList(at: "/Users/ann/Library/Preferences/org.example.editor.plist")
  /// ```
  ///
  /// It reads property lists of any format, including those of UserDefaults. Types are exact: neither a Boolean nor a real
  /// number is an integer, even if it is whole. An archived URL, as UserDefaults stores it, becomes that URL; all other data
  /// stays data. An existing setting keeps its metadata, expiry and due date, unless `mode` replaces all settings.
  ///
  /// - Throws: `CofferError.malformedSettings` when the data is not a property list with a dictionary; `.notEncodable`,
  ///   naming the key, when a value is nested too deeply; `.collectionNotAllowed`, and the errors of a write transaction.
  ///   Nothing is changed then.
  public func importPropertyList(_ data: Data, mode: ImportMode = .merge) throws {
    try importPropertyList(data, named: "the property list", mode: mode)
  }

  /// Imports a property list from a file, as ``importPropertyList(_:mode:)``.
  ///
  /// - Throws: Also `CofferError.permissionDenied` and `.inputOutput` when the file cannot be read.
  public func importPropertyList(at path: String, mode: ImportMode = .merge) throws {
    try importPropertyList(try SettingsFile.contents(of: path) ?? Data(), named: path, mode: mode)
  }

  /// Imports what Foundation's `UserDefaults` has stored for this program, if it has stored anything.
  ///
  /// ```swift
  /// let preferences = try Preferences.open(application: "org.example.editor")
  /// if preferences.object(forKey: "imported") == nil {
  ///   try preferences.importUserDefaults()
  ///   try preferences.set(true, forKey: "imported")
  /// }
  /// ```
  ///
  /// UserDefaults has one file for each domain: on Linux `$XDG_CONFIG_HOME/DOMAIN.plist`, by default in `~/.config`; on Apple
  /// systems `~/Library/Preferences/DOMAIN.plist`, of the container if the program has one. The file stays. See
  /// ``importPropertyList(_:mode:)`` for what becomes of the values; the path of a file is read by a `Key<URL?>` as its URL.
  ///
  /// - Parameter domain: The name of the domain: a bundle identifier, the name of a suite, or, of a program without a bundle, the name
  ///   of its executable. nil for the application's identifier or, if that has no file, the name of this executable; in the
  ///   settings of a suite, for the suite's name.
  /// - Returns: The path of the imported file; nil if there is none.
  /// - Throws: As ``importPropertyList(_:mode:)``; `CofferError.permissionDenied` and `.inputOutput` when the file cannot be read.
  @discardableResult
  public func importUserDefaults(domain: String? = nil, mode: ImportMode = .merge) throws -> String? {
    let names = domain.map { [$0] } ?? (isSuite ? [parent] : [parent, ProcessInfo.processInfo.processName])
    for name in names where !name.utf8.contains(UInt8(ascii: "/")) {
      guard let folder = StandardLocation.userDefaultsFolder else { return nil }
      let path = "\(folder)/\(name).plist"
      guard let data = try SettingsFile.contents(of: path, mayBeMissing: true) else { continue }
      try importPropertyList(data, named: path, mode: mode)
      return path
    }
    return nil
  }

  private func importPropertyList(_ data: Data, named name: String, mode: ImportMode) throws {
    let settings = try SettingsFile.settings(inPropertyList: data, named: name).mapValues(URLArchive.unwrapped)
    guard proxy.writtenCollectionsFilter?.allows(collection) ?? true else {
      throw CofferError.collectionNotAllowed(collection: collection)
    }
    for key in settings.keys.sorted().map(\.string) {
      try overrides.requireUnlocked(managedName(ofKey: key), key: key, in: collection)
    }
    // Not through the proxy: its flush could split the settings between two batches.
    try proxy.writer.readWrite { transaction in
      if mode == .replace { try transaction.removeAllObjects(inCollection: collection) }
      for (key, value) in settings {
        try transaction.setKeepingRest(value, forKey: key.string, inCollection: collection)
      }
    }
  }
}
