import Coffer
import CofferMaintenance

/// Builds the tree of a file from a store's collections.
package struct SettingsTree {
  let format: SettingsFormat
  /// Whether secrets are written as plaintext.
  let reveals: Bool
  /// Whether the file is a binary property list, which supports values that XML does not.
  var isBinary = false

  /// The number of items in the tree.
  package private(set) var itemCount = 0
  /// The number of redacted items.
  package private(set) var redactedCount = 0
  /// The number of items with metadata, which is not exported as text.
  private(set) var metadataCount = 0
  /// The number of items with an expiry or due date, which are not exported as text.
  private(set) var datedCount = 0

  package init(format: SettingsFormat, reveals: Bool, isBinary: Bool = false) {
    self.format = format
    self.reveals = reveals
    self.isBinary = isBinary
  }

  /// The settings as an import has to read them.
  private var written: [ImportedSetting] = []

  /// The file of all collections, by name.
  ///
  /// - Throws: `CofferError.notExportable`; errors of reading.
  mutating func fileOfAllCollections(_ transaction: borrowing some Reading & ~Copyable) throws -> [UInt8] {
    var collections = FileTree.Builder()
    for name in try transaction.allCollections() {
      try naming(name, "") { try check(name: name) }
      _ = collections.append(name, try settings(of: name, transaction))
    }
    if format == .toml { return Array(TOMLWriter.text(ofCollections: collections.tree).utf8) }
    return try bytes(collections.tree)
  }

  /// The file of chosen settings: by the names of their collections; of one collection for variables, which have no collections.
  ///
  /// - Throws: `CofferError.notExportable`; errors of reading.
  package mutating func file(
    ofSettings settings: [(collection: String, key: String)], _ transaction: borrowing some Reading & ~Copyable
  ) throws -> [UInt8] {
    var chosen: [ByteString: Set<ByteString>] = [:]
    for (collection, key) in settings { chosen[ByteString(collection), default: []].insert(ByteString(key)) }
    var collections = FileTree.Builder()
    for name in chosen.keys.sorted().map(\.string) {
      try naming(name, "") { try check(name: name) }
      let others = Set(try transaction.allKeys(inCollection: name).map { ByteString($0) })
        .subtracting(chosen[ByteString(name)] ?? [])
      var contents = FileTree.Builder()
      try add(name, besides: others, to: &contents, transaction)
      if format == .env { return try bytes(contents.tree) }
      _ = collections.append(name, contents.tree)
    }
    if format == .toml { return Array(TOMLWriter.text(ofCollections: collections.tree).utf8) }
    return try bytes(collections.tree)
  }

  /// The file of one collection.
  ///
  /// - Parameter collections: The collection, and those it inherits from.
  /// - Throws: `CofferError.notExportable`; errors of reading.
  mutating func file(
    of collections: [String], _ transaction: borrowing some Reading & ~Copyable
  ) throws -> [UInt8] {
    var contents = FileTree.Builder()
    var hidden: Set<ByteString> = []
    for collection in collections {
      try add(collection, besides: hidden, to: &contents, transaction)
      if collections.count > 1 {
        hidden.formUnion(try transaction.allKeys(inCollection: collection).map { ByteString($0) })
      }
    }
    return try bytes(contents.tree)
  }

  private func bytes(_ tree: FileTree) throws -> [UInt8] {
    do {
      return try format.bytes(tree, isBinary: isBinary)
    } catch let problem as FormatProblem {
      throw Failure(.format, "\(problem.reason). Nothing was exported.")
    }
  }

  // MARK: - Reading back

  /// Reads a file as an import does, and compares every value with the one that was to be written, bit for bit.
  ///
  /// - Parameter collection: The collection that the file holds; nil if it holds collections by name.
  /// - Throws: `CofferError.notExportable` for a value that is read as another one; ``Failure`` if the file cannot be read.
  package func checkReadsBack(
    _ bytes: [UInt8], of collection: String?,
    reading: (String, SettingsFormat) throws -> FileTree = FormatsProgram.tree
  ) throws {
    let read: ImportedSettings
    do {
      read = try ImportedSettings(
        bytes, format: format, named: "the file read back", collection: collection, reading: reading)
    } catch let failure as Failure where failure.status == .format {
      throw Failure(.format, "\(failure.message) Nothing was exported; another format may hold these settings.")
    }
    var found: [ByteString: [ByteString: ImportedSetting]] = [:]
    for setting in read.settings {
      found[ByteString(setting.collection), default: [:]][ByteString(setting.key)] = setting
    }
    for setting in written {
      let place = ByteString(collection ?? setting.collection)
      let same = found[place]?.removeValue(forKey: ByteString(setting.key))
      guard let same, try same.hasSameValue(as: setting) else {
        throw CofferError.notExportable(
          collection: setting.collection, key: setting.key,
          reason: "\(format.rawValue) cannot hold it exactly; use another format")
      }
    }
  }

  // MARK: - Settings

  /// The settings of a collection, each as a tree.
  private mutating func settings(
    of collection: String, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> FileTree {
    var contents = FileTree.Builder()
    try add(collection, besides: [], to: &contents, transaction)
    return contents.tree
  }

  private mutating func add(
    _ collection: String, besides hidden: Set<ByteString>, to contents: inout FileTree.Builder,
    _ transaction: borrowing some Reading & ~Copyable
  ) throws {
    var hidden = hidden
    if format == .env {
      // Two names of one setting that are the same variable are one line.
      let keys = try transaction.allKeys(inCollection: collection)
      let written = try DeclaredKeys(transaction).forVariables(keys, in: collection)
      hidden.formUnion(Set(keys.map { ByteString($0) }).subtracting(written.map { ByteString($0) }))
    }
    datedCount += try transaction.itemInfos(inCollection: collection)
      .count { ($0.expires != nil || $0.due != nil) && !hidden.contains(ByteString($0.key)) }
    if try !reveals && transaction.isSealed(collection: collection) {
      for key in try transaction.allKeys(inCollection: collection) where !hidden.contains(ByteString(key)) {
        try insert(redacted(Redaction.sealed, key, collection, .sealed), of: nil, key, collection, into: &contents)
      }
      return
    }
    let declared = reveals ? nil : try DeclaredKeys(transaction)
    try transaction.enumerateRows(inCollection: collection, as: Value.self, metadata: Value.self) {
      key, value, metadata, _ in
      if hidden.contains(ByteString(key)) { return }
      if metadata != nil { metadataCount += 1 }
      if case .secret(let secret) = value, !reveals {
        try insert(redacted(secret.description, key, collection, .secret), of: nil, key, collection, into: &contents)
      } else if let declared, declared.isSecret(key, in: collection) {
        let placeholder = Redaction.secret(byteCount: ValueText.bytes(value).count)
        try insert(redacted(placeholder, key, collection, .secret), of: nil, key, collection, into: &contents)
      } else {
        let written = try naming(collection, key) { try tree(value) }
        try insert(written, of: format == .env ? written : value, key, collection, into: &contents)
      }
    }
  }

  /// - Parameter value: The value that an import reads; nil if it is hidden.
  private mutating func insert(
    _ tree: Value, of value: Value?, _ key: String, _ collection: String, into contents: inout FileTree.Builder
  ) throws {
    itemCount += 1
    try naming(collection, key) { () throws -> Void in
      try check(name: key)
      let name = format == .env ? try EnvironmentFile.writtenName(key) : key
      guard contents.append(name, .value(tree)) else { throw FormatProblem("another key also has the name \(name)") }
      written.append(ImportedSetting(collection: collection, key: name, value: value))
    }
  }

  /// The placeholder of a hidden value.
  private mutating func redacted(
    _ placeholder: String, _ key: String, _ collection: String, _ kind: Value.Kind
  ) throws -> Value {
    // A reader of variables would take it for the value.
    guard format != .env else { throw Redaction.refusal(key, collection, kind) }
    redactedCount += 1
    return .string(placeholder)
  }

  private func tree(_ value: Value) throws -> Value {
    if format == .env { return try EnvironmentFile.variable(value) }
    let tree = try PortableValue.tree(value, native: format.native)
    if format == .plist, !isBinary { try PropertyListFile.check(tree) }
    return tree
  }

  private func check(name: String) throws {
    if !format.native.nul, name.utf8.contains(0) { throw FormatProblem("its name contains the character U+0000") }
    if format == .plist, !isBinary { try PropertyListFile.check(.string(name)) }
  }

  private func naming<R>(_ collection: String, _ key: String, _ body: () throws -> R) throws -> R {
    do {
      return try body()
    } catch let problem as FormatProblem {
      throw CofferError.notExportable(collection: collection, key: key, reason: problem.reason)
    }
  }
}
