import Coffer

/// Builds the tree of a file from a store's collections.
package struct SettingsTree {
  let format: SettingsFormat
  /// Whether secrets are written as plaintext.
  let reveals: Bool
  /// Whether the file is a binary property list, which supports values that XML does not.
  var isBinary = false

  /// The number of items in the tree.
  private(set) var itemCount = 0
  /// The number of redacted items.
  private(set) var redactedCount = 0
  /// The number of items with metadata, which is not exported as text.
  private(set) var metadataCount = 0
  /// The number of items with an expiry or due date, which are not exported as text.
  private(set) var datedCount = 0

  init(format: SettingsFormat, reveals: Bool, isBinary: Bool = false) {
    self.format = format
    self.reveals = reveals
    self.isBinary = isBinary
  }

  /// The file of all collections, by name.
  ///
  /// - Throws: `CofferError.notExportable`; errors of reading.
  mutating func fileOfAllCollections(_ transaction: borrowing some Reading & ~Copyable) throws -> [UInt8] {
    var collections: [String: Value] = [:]
    for name in try transaction.allCollections() {
      try naming(name, "") { try check(name: name) }
      guard collections.updateValue(.dictionary(try settings(of: name, transaction)), forKey: name) == nil else {
        throw CofferError.notExportable(
          collection: name, key: "", reason: "another collection differs from it only in Unicode normalization")
      }
    }
    if format == .toml { return Array(TOMLWriter.text(ofCollections: collections).utf8) }
    return try format.bytes(collections, isBinary: isBinary)
  }

  /// The file of one collection.
  ///
  /// - Parameter collections: The collection, and those it inherits from.
  /// - Throws: `CofferError.notExportable`; errors of reading.
  mutating func file(
    of collections: [String], _ transaction: borrowing some Reading & ~Copyable
  ) throws -> [UInt8] {
    var contents: [String: Value] = [:]
    var hidden: Set<ByteString> = []
    for collection in collections {
      try add(collection, besides: hidden, to: &contents, transaction)
      if collections.count > 1 {
        hidden.formUnion(try transaction.allKeys(inCollection: collection).map { ByteString($0) })
      }
    }
    return try format.bytes(contents, isBinary: isBinary)
  }

  // MARK: - Settings

  /// The settings of a collection, each as a tree.
  mutating func settings(
    of collection: String, _ transaction: borrowing some Reading & ~Copyable
  ) throws -> [String: Value] {
    var contents: [String: Value] = [:]
    try add(collection, besides: [], to: &contents, transaction)
    return contents
  }

  private mutating func add(
    _ collection: String, besides hidden: Set<ByteString>, to contents: inout [String: Value],
    _ transaction: borrowing some Reading & ~Copyable
  ) throws {
    datedCount += try transaction.itemInfos(inCollection: collection)
      .count { ($0.expires != nil || $0.due != nil) && !hidden.contains(ByteString($0.key)) }
    if try !reveals && transaction.isSealed(collection: collection) {
      for key in try transaction.allKeys(inCollection: collection) where !hidden.contains(ByteString(key)) {
        try insert(redacted(Redaction.sealed, key, collection, .sealed), key, collection, into: &contents)
      }
      return
    }
    try transaction.enumerateRows(inCollection: collection, as: Value.self, metadata: Value.self) {
      key, value, metadata, _ in
      if hidden.contains(ByteString(key)) { return }
      if metadata != nil { metadataCount += 1 }
      if case .secret(let secret) = value, !reveals {
        try insert(redacted(secret.description, key, collection, .secret), key, collection, into: &contents)
      } else {
        try insert(try naming(collection, key) { try tree(value) }, key, collection, into: &contents)
      }
    }
  }

  private mutating func insert(
    _ tree: Value, _ key: String, _ collection: String, into contents: inout [String: Value]
  ) throws {
    itemCount += 1
    try naming(collection, key) {
      try check(name: key)
      let name = format == .env ? try EnvironmentFile.name(key) : key
      guard contents.updateValue(tree, forKey: name) == nil else {
        throw FormatProblem(
          format == .env
            ? "another key also has the name \(name)"
            : "another key differs from it only in Unicode normalization")
      }
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
