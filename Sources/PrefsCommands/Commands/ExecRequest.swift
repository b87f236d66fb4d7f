import Coffer

/// The implementation of `prefs exec`, after parsing, unless it keeps running.
struct ExecRequest: Request {
  let collections: [NamedCollection]
  /// The program and its arguments.
  let command: [String]
  var prefix = ""
  var only: [String] = []
  var allow: [String] = []
  var pristine = false
  var options = SessionOptions()

  func run() throws {
    let variables = try variables(try CommandSession(options))
    throw ProgramStart(words: command, environment: variables.block(addingInherited: !pristine)).replaceProcess()
  }

  /// Reads the variables for the program.
  func variables(_ session: CommandSession) throws -> EnvironmentVariables {
    var said: Set<String> = []
    let variables = try variables(
      try session.readInForce(in: collections) { try items($0, in: collections) }, &said)
    closeKeyDescriptors()
    return variables
  }

  /// - Parameter said: What was said of bad values: each is said once.
  func variables(_ items: [GivenItem], _ said: inout Set<String>) throws -> EnvironmentVariables {
    var variables = EnvironmentVariables(prefix: prefix)
    for item in items {
      try variables.add(item.key, in: item.collection, item.value, isSecret: item.isSecret)
      for note in item.notes where said.insert(note).inserted { options.note(note) }
    }
    try checkLoading(variables.namesThatChangeLoading)
    return variables
  }

  func closeKeyDescriptors() {
    // The program must not inherit the descriptors that keys were read from.
    for descriptor in [options.keyFd, options.passphraseFd, options.recoveryKeyFd, options.vaultKeyFd] {
      if let descriptor, descriptor > 2 { FileDescriptor.closeOnExecution(descriptor) }
    }
  }

  /// Anyone who can write a setting of such a name decides what runs here.
  private func checkLoading(_ names: [String]) throws {
    let allowed = allow.flatMap { $0.split(separator: ",").map(String.init) }
    let refused = names.filter { !allowed.contains($0) }
    guard !refused.isEmpty else { return }
    let (verb, pronoun) = refused.count == 1 ? ("changes", "it") : ("change", "them")
    throw Failure(
      .refused,
      "\(refused.joined(separator: ", ")) from the settings \(verb) how programs are found and loaded. Omit \(pronoun) with "
        + "--only, rename \(pronoun) with --prefix, or permit \(pronoun) with --allow \(names.joined(separator: ",")).")
  }

  struct GivenItem {
    let collection: String
    let key: String
    let value: Value
    let isSecret: Bool
    /// What is to be said of bad values.
    let notes: [String]
  }

  /// - Parameter collections: The collections, as they are in force.
  func items(_ transaction: borrowing ReadTransaction, in collections: [NamedCollection]) throws -> [GivenItem] {
    var items: [GivenItem] = []
    let declared = try DeclaredKeys(transaction)
    for named in collections {
      // One that is gone, while it is watched, too, must not run the program with the values of its parent.
      let collection = try named.inForce(transaction)
      let effective = try transaction.effectiveSettings(in: collection)
      let keys = try effective.keys(declared, transaction)
      if keys.isEmpty { try KeyReference.requireItems(in: collection.name, transaction) }
      for key in declared.forVariables(keys.filter(isWanted), in: collection.name) {
        let search = try effective.item(key, transaction)
        guard let found = search.found else { continue }
        var isSecret = found.value.kind == .secret || declared.isSecret(key, in: collection.name)
        if case .stored(let item) = found, !isSecret {
          isSecret = try transaction.info(forKey: key, inCollection: item.collection)?.kind == .sealed
        }
        items.append(
          GivenItem(
            collection: collection.name, key: key, value: found.value, isSecret: isSecret, notes: search.notes))
      }
    }
    for key in wanted where !items.contains(where: { $0.key.utf8.elementsEqual(key.utf8) }) {
      // Another name of the setting is this variable.
      if !declared.forVariables(wanted, in: collections[0].name).contains(key) { continue }
      throw KeyReference(key, in: collections[0]).notFound(in: transaction)
    }
    return items
  }

  private var wanted: [String] {
    only.flatMap { $0.split(separator: ",", omittingEmptySubsequences: true).map(String.init) }
  }

  private func isWanted(_ key: String) -> Bool {
    only.isEmpty || wanted.contains { $0.utf8.elementsEqual(key.utf8) }
  }
}

extension ExecRequest {
  /// The request of a plain command line; nil if the argument parser has to parse it.
  init?(_ line: PlainArguments) throws {
    guard line.words.isEmpty, let command = line.program, !(command.first ?? "").isEmpty else { return nil }
    let collections = [try line.inEnvironment(line.namedCollection ?? "")]
    self.init(
      collections: collections, command: command, prefix: line.value("--prefix") ?? "", only: line.allValues("--only"),
      allow: line.allValues("--allow"), pristine: line.has("--pristine"), options: line.ofSession(in: collections))
  }
}
