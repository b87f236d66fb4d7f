import ArgumentParser
import Coffer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Shell completion of a store's names.
///
/// Never prompts: a store that does not open with a key file, a credential or the TPM offers no names, and no key command is
/// run.
package enum Completions {
  /// Keys, as `KEY` and `COLLECTION/KEY`.
  package static let keys = CompletionKind.custom { words, index, prefix in
    offers(words, index, prefix) { line, database in
      let prefix = line.prefix
      return try database.makeConnection().read { transaction in
        let stored = try keys(prefix, in: line.collection, line.environment, transaction)
        return stored + (try declaredKeys(prefix, in: line.collection, besides: stored, transaction))
      }
    }
  }

  /// The values of the setting before the cursor: its declared choices, or the two Booleans.
  static let choices = CompletionKind.custom { words, index, prefix in
    offers(words, index, prefix) { line, database in
      guard let key = line.words.last else { return [] }
      let reference = KeyReference(key, collection: line.collection)
      let declaration = try database.makeConnection().read {
        try $0.declaration(forKey: reference.key, inCollection: reference.collection)
      }
      guard let declaration else { return [] }
      if declaration.type == .bool { return ["true", "false"] }
      for case .choices(let choices) in declaration.limits { return choices.map(ValueText.text) }
      return []
    }
  }

  /// Collections.
  package static let collections = CompletionKind.custom { words, index, prefix in
    offers(words, index, prefix) { _, database in
      try database.makeConnection().read { try $0.allCollections() }
    }
  }

  /// The names of environments: of the named collection, else of all.
  static let environments = CompletionKind.custom { words, index, prefix in
    offers(words, index, prefix) { line, database in
      let all = try database.makeConnection().read { try $0.environments() }
      let named = all.filter { environment in
        line.collection.map { environment.parent.utf8.elementsEqual($0.utf8) } ?? true
      }
      return Set(named.map(\.name)).sorted()
    }
  }

  /// The labels of key slots, or their numbers if they have no labels.
  static let slots = CompletionKind.custom { words, index, prefix in
    let typed = TypedLine(words, index, prefix, for: CompletionShell.requesting)
    let line = Line(typed)
    let slots =
      typed.words.contains("--vault")
      ? using(line) { _, database in try database.vault.slots() }
      : (try? Database.slots(at: CommandSession(line.options).path)) ?? []
    return candidates(slots.map { $0.label.isEmpty ? String($0.id) : $0.label }, for: typed)
  }

  /// The maximum number of names, and of names per collection if several are offered.
  private static let limit = (names: 1_000, namesOfCollection: 100)

  private static func keys(
    _ prefix: String, in collection: String?, _ environment: String?, _ transaction: borrowing ReadTransaction
  ) throws -> [String] {
    func keys(_ beginning: String, _ collection: String, _ limit: Int) throws -> [String] {
      var keys: [String] = []
      let own = environment.flatMap { try? CollectionEnvironment($0, of: collection) }?.collection
      for name in [collection] + [own].compactMap(\.self) {
        try transaction.enumerate(name, .prefix(beginning), .keys, nil) { key, _, stop in
          keys.append(key)
          stop = keys.count >= limit
        }
      }
      guard own != nil else { return keys }
      return Set(keys.map { ByteString($0) }).sorted().map(\.string)
    }
    if let collection { return try keys(prefix, collection, limit.names) }
    if prefix.utf8.contains(UInt8(ascii: "/")) {
      let reference = KeyReference(prefix, collection: nil)
      return try keys(reference.key, reference.collection, limit.names)
        .map { KeyText.of($0, in: reference.collection) }
    }
    var names = try keys(prefix, "", limit.names).map { KeyText.of($0, in: "") }
    for collection in try transaction.allCollections()
    where !collection.isEmpty && collection.utf8.starts(with: prefix.utf8) && names.count < limit.names {
      names += try keys("", collection, limit.namesOfCollection).map { KeyText.of($0, in: collection) }
    }
    return names
  }

  /// The declared keys that are not stored.
  private static func declaredKeys(
    _ prefix: String, in collection: String?, besides stored: [String], _ transaction: borrowing ReadTransaction
  ) throws -> [String] {
    let known = Set(stored.map { ByteString($0) })
    let declared = try DeclaredKeys(transaction)
    let names =
      collection.map { declared.settings(in: $0).map(\.declaration.name) }
      ?? declared.settings.map { KeyText.of($0.declaration.name, in: $0.declaration.collection) }
    return names.filter { $0.utf8.starts(with: prefix.utf8) && !known.contains(ByteString($0)) }
  }

  // MARK: - The store

  private static func offers(
    _ words: [String], _ index: Int, _ prefix: String, _ body: (Line, Database) throws -> [String]
  ) -> [String] {
    let typed = TypedLine(words, index, prefix, for: CompletionShell.requesting)
    return candidates(using(Line(typed), body), for: typed)
  }

  /// The result of `body` with the store named on the line; empty if it does not open.
  private static func using<T>(_ line: Line, _ body: (Line, Database) throws -> [T]) -> [T] {
    guard line.opensByItself, let session = try? CommandSession(line.options) else { return [] }
    let names = try? session.using(try session.openForReading()) { try body(line, $0) }
    return names ?? []
  }

  /// The names that begin with the typed text, as the shell's script expects them, without those that contain control characters
  /// or look like options.
  private static func candidates(_ names: [String], for typed: TypedLine) -> [String] {
    names.filter { name in
      name.utf8.starts(with: typed.prefix.utf8) && !name.isEmpty && !name.utf8.starts(with: "-".utf8)
        && DisplayText.escapingControls(name) == name
    }.map(typed.candidate)
  }

  /// The store's options from the words before the cursor.
  private struct Line {
    var options = SessionOptions()
    private var named: String?
    private(set) var environment = Environment.variable("PREFS_ENV")
    private var namesSecret = false
    /// The words that are neither options nor their values.
    private(set) var words: [String] = []
    /// The typed part of the word to complete.
    let prefix: String

    init(_ line: TypedLine) {
      prefix = line.prefix
      options.noInput = true
      options.quiet = true
      // Completion must not wait longer for a busy store.
      options.timeout = 0.02
      var words = line.words[...]
      while let word = words.popFirst() {
        let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard CommandArguments.optionsWithValue.contains(parts[0]) else {
          if !word.hasPrefix("-") { self.words.append(word) }
          continue
        }
        guard let value = parts.count > 1 ? parts[1] : words.popFirst() else { break }
        switch parts[0] {
        case "-d", "--store": options.store = Self.path(value)
        case "--app": options.app = value
        case "-c", "--collection": named = value
        case "--env": environment = value
        case "--key-file": options.keyFile = Self.path(value)
        case "--key-fd", "--passphrase-fd", "--recovery-key-fd": namesSecret = true
        default: break
        }
      }
    }

    var collection: String? { named ?? options.app }

    /// Whether the key is in a file, rather than from a descriptor or a program, which might prompt.
    var opensByItself: Bool {
      guard !namesSecret else { return false }
      guard let file = options.keyFile ?? (options.app == nil ? Environment.variable("PREFS_KEY_FILE") : nil) else {
        return options.app != nil || Environment.variable("PREFS_KEY_COMMAND") == nil
      }
      // Reading a pipe would block the shell, and lose its contents.
      var status = stat()
      return stat(file, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    /// The path of a word with `~`, as the shell would expand it.
    private static func path(_ word: String) -> String {
      guard word.hasPrefix("~/"), let home = Environment.variable("HOME") else { return word }
      return home + word.dropFirst()
    }
  }
}
