import ArgumentParser
import Coffer
import CofferMaintenance

/// The options that describe a file to import.
struct ImportedFileOptions: ParsableArguments {
  @Option(help: "The format of the file.")
  var format: Format?

  @Option(help: ArgumentHelp("Read the passphrase of the file from this file descriptor.", valueName: "n"))
  var sourcePassphraseFd: Int32?

  /// The input formats.
  enum Format: String, CaseIterable, ExpressibleByArgument {
    case plist, json, yaml, toml, env, sqlite, yapdatabase, sqlcipher
  }

  mutating func validate() throws {
    if sourcePassphraseFd != nil, format != .sqlcipher {
      throw ValidationError("--source-passphrase-fd needs --format sqlcipher.")
    }
    if let sourcePassphraseFd, sourcePassphraseFd < 0 {
      throw ValidationError("A file descriptor is not negative.")
    }
  }

  /// Checks that these options fit the store's options and the file.
  func check(_ file: String, descriptors: [Int32?]) throws {
    if let sourcePassphraseFd, descriptors.contains(sourcePassphraseFd) {
      throw ValidationError("Each secret needs a file descriptor of its own.")
    }
    if let format, SettingsFormat(rawValue: format.rawValue) == nil, file == "-" {
      throw ValidationError("A database cannot be read from standard input.")
    }
  }
}

/// A file to import, read as far as possible without a store.
struct ImportedFile {
  private let path: String
  private let contents: Contents
  /// Whether a text file has no setting for its collection, as when the program that was to write it has failed.
  private(set) var isEmpty = false

  private enum Contents {
    case settings(ImportedSettings)
    case database(PlainImportFormat)
  }

  /// - Parameters:
  ///   - path: The file; `-` for standard input.
  ///   - collection: The collection of its settings, for a file with a single one.
  init(_ path: String, _ options: ImportedFileOptions, collection: String?, noInput: Bool) throws {
    self.path = path
    let file = File(path: path, options: options)
    let (format, bytes) = try file.input()
    if let text = SettingsFormat(rawValue: format.rawValue) {
      let bytes = try bytes ?? file.readBytes()
      let settings = try ImportedSettings(bytes, format: text, named: file.shownName, collection: collection)
      isEmpty = Self.isBlank(bytes) || collection != nil && settings.settings.isEmpty
      contents = .settings(settings)
    } else {
      contents = .database(try file.source(format, noInput: noInput))
    }
  }

  static func isBlank(_ bytes: [UInt8]) -> Bool { bytes.allSatisfy { [0x20, 0x09, 0x0a, 0x0d].contains($0) } }

  /// Whether it is a database, which has collection names and metadata.
  var isDatabase: Bool {
    if case .database = contents { true } else { false }
  }

  /// The redacted settings, such as secrets in an export.
  var hidden: [ImportedSetting] {
    guard case .settings(let file) = contents else { return [] }
    return file.settings.filter { $0.value == nil }
  }

  /// The same settings, in the collections' environments.
  func renamingCollections(_ rename: (String) throws -> String) throws -> ImportedFile {
    guard case .settings(let file) = contents else { return self }
    return ImportedFile(path: path, contents: .settings(try file.renamingCollections(rename)))
  }

  /// The same settings with the types that they have in a store.
  func typed(as transaction: borrowing some Reading & ~Copyable) throws -> ImportedFile {
    guard case .settings(let file) = contents else { return self }
    let typed = try TypedSettings(file, named: File.shownName(path), force: true).all(as: transaction)
    return ImportedFile(path: path, contents: .settings(file.replacingSettings(typed)))
  }

  private init(path: String, contents: Contents) { (self.path, self.contents) = (path, contents) }

  /// The collections of a text file.
  var collections: [String] {
    guard case .settings(let file) = contents else { return [] }
    return file.collections
  }

  /// Imports the file in one transaction.
  ///
  /// - Parameter force: Whether text that is not of its declared type is imported as text.
  func importInto(
    _ database: Database, mode: ImportMode = .merge, isDryRun: Bool = false, force: Bool = false,
    progress: (Double) -> Void = { _ in }
  ) throws -> PlainImportReport {
    switch contents {
    case .settings(let file):
      try database.importSettings(
        file.settings, collections: file.collections, mode: mode, isDryRun: isDryRun,
        typed: { _, transaction in
          try TypedSettings(file, named: File.shownName(path), force: force).all(as: transaction)
        }, progress: progress)
    case .database(let format):
      try database.importPlain(from: path, format: format, mode: mode, isDryRun: isDryRun, progress: progress)
    }
  }
}

/// The source of the contents.
private struct File {
  let path: String
  let options: ImportedFileOptions

  static func shownName(_ path: String) -> String { path == "-" ? "standard input" : path }
  var shownName: String { Self.shownName(path) }

  func readBytes() throws -> [UInt8] {
    path == "-" ? try FileDescriptor.readAll(0, named: shownName) : try FileDescriptor.readFile(path)
  }

  /// The format, and the contents if they were read to detect it.
  func input() throws -> (format: ImportedFileOptions.Format, bytes: [UInt8]?) {
    if let format = options.format { return (format, nil) }
    if let format = SettingsFormat(fileName: path).flatMap(Self.format) { return (format, nil) }
    let bytes = try readBytes()
    if path != "-", bytes.starts(with: "SQLite format 3\0".utf8) { return (.sqlite, nil) }
    guard let format = SettingsFormat(contents: bytes).flatMap(Self.format) else {
      throw Failure(.usage, "\(shownName) does not show its format. Name it with --format.")
    }
    return (format, bytes)
  }

  private static func format(_ text: SettingsFormat) -> ImportedFileOptions.Format? { .init(rawValue: text.rawValue) }

  func source(_ format: ImportedFileOptions.Format, noInput: Bool) throws -> PlainImportFormat {
    switch format {
    case .yapdatabase: .yapDatabase
    case .sqlcipher: .sqlCipher(passphrase: try passphrase(noInput: noInput))
    default: .sqlite
    }
  }

  private func passphrase(noInput: Bool) throws -> SecretBytes {
    if let descriptor = options.sourcePassphraseFd {
      return try FileDescriptor.readSecret(descriptor, named: "file descriptor \(descriptor)", droppingNewline: true)
    }
    let way = "Give the passphrase of \(path) with --source-passphrase-fd."
    guard !noInput else { throw Failure(.keyUnavailable, "--no-input forbids asking. \(way)") }
    do {
      return try Terminal.secret("Passphrase for \(DisplayText.escapingControls(path)): ")
    } catch let failure as Failure {
      throw Failure(.keyUnavailable, "\(failure.message) \(way)")
    }
  }
}
