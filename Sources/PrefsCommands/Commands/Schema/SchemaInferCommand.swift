import ArgumentParser
import Coffer

/// The command `prefs schema infer`.
struct SchemaInferCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "infer",
    abstract: "Print declarations for values that are set but not declared.",
    discussion: """
      Prints the input of `prefs schema load --application NAME`: the name, collection and type of each key. Add defaults, \
      limits and summaries to it before you load it. A key that has values of several types, in a collection and its \
      environments, is of a type that accepts them all. Values of sealed collections need the vault; no value is printed.

      Examples:
        prefs schema infer > settings.json
        prefs schema infer --collection shop
      """)

  @OptionGroup(title: "Common options") var common: CommonOptions

  mutating func run() throws {
    let named = try common.collection(nil)
    let declarations = try CommandSession(common, in: named.map { [$0] } ?? []).read { transaction in
      if let named { try KeyReference.requireItems(in: named.name, transaction) }
      return try Self.declarations(in: named?.name, transaction)
    }
    if declarations.isEmpty { common.note("every value that is set is declared.") }
    let lines = declarations.map(\.json).joined(separator: ",\n  ")
    try StandardOutput.write(lines.isEmpty ? "[]\n" : "[\n  \(lines)\n]\n")
  }

  /// - Parameter collection: The collection, with its environments; nil for all.
  private static func declarations(
    in collection: String?, _ transaction: borrowing ReadTransaction
  ) throws -> [Declaration] {
    let declared = try DeclaredKeys(transaction)
    var values: [ByteString: [ByteString: [Value]]] = [:]
    for name in try transaction.allCollections() {
      // An environment has the declarations of its collection.
      let owner = CollectionEnvironment(collection: name)?.parent ?? name
      if let collection, ![owner, name].map(ByteString.init).contains(ByteString(collection)) { continue }
      for key in try transaction.allKeys(inCollection: name) where declared.setting(key, in: owner) == nil {
        guard let value = try transaction.value(forKey: key, inCollection: name) else { continue }
        values[ByteString(owner), default: [:]][ByteString(key), default: []].append(value)
      }
    }
    return values.sorted { $0.key < $1.key }.flatMap { collection, values in
      values.sorted { $0.key < $1.key }.map { key, values in
        Declaration(key.string, in: collection.string, type: SettingType(accepting: values))
      }
    }
  }
}

extension SettingType {
  /// The narrowest type that accepts all values.
  init(accepting values: [Value]) {
    let types = values.map(Self.init(of:))
    self = types.dropFirst().reduce(types.first ?? .any) { $0.union($1) }
    // The text of a declaration nests types only so deep, and a Double does not hold every integer.
    if SettingType(description) == nil || !values.allSatisfy(accepts) { self = .any }
  }

  private init(of value: Value) {
    switch value {
    case .null: self = .any
    case .bool: self = .bool
    case .int, .uint64: self = .int
    case .double: self = .double
    case .string: self = .string
    case .data: self = .data
    case .date: self = .date
    case .url: self = .url
    case .uuid: self = .uuid
    case .json: self = .json
    case .secret: self = .secret
    case .array(let values): self = .array(Self(accepting: values))
    case .dictionary(let values): self = .dictionary(Self(accepting: Array(values.values)))
    }
  }

  private func union(_ other: SettingType) -> SettingType {
    switch (self, other) {
    case _ where self == other: self
    case (.int, .double), (.double, .int): .double
    case (.array(let own), .array(let others)): .array(own.union(others))
    case (.dictionary(let own), .dictionary(let others)): .dictionary(own.union(others))
    default: .any
    }
  }
}
