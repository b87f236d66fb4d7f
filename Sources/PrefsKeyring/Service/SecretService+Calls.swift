#if COFFER_BUS
  import Coffer
  import PrefsCommands

  extension SecretService {
    // MARK: - The service

    func answerService(_ call: BusMessage) throws {
      switch call.member {
      case "OpenSession": try openSession(call)
      case "CreateCollection": try createCollection(call)
      case "SearchItems": try searchAll(call)
      case "Unlock": try unlock(call)
      case "Lock": try lock(call)
      case "LockService":
        try call.requireTypes("")
        if store.hasVault { try store.kept.lock() }
        try bus.answer(call) { _ in }
      case "GetSecrets": try getSecrets(call)
      case "ReadAlias":
        try call.requireTypes("s")
        let path = collection(alias: try call.text()).map { ServicePlace.path($0.id) } ?? "/"
        try bus.answer(call) { try $0.write(path, "o") }
      case "SetAlias": try setAlias(call)
      case let name: throw BusFailure.unknownMethod(name)
      }
    }

    private func openSession(_ call: BusMessage) throws {
      let (path, output) = try sessions.open(call)
      try bus.answer(call) { answer in
        if let output {
          try answer.container("v", "ay") { try output.withUnsafeBytes { try answer.write($0) } }
        } else {
          try PropertyValue.text("").write(to: answer)
        }
        try answer.write(path, "o")
      }
    }

    private func createCollection(_ call: BusMessage) throws {
      try call.requireTypes("a{sv}s")
      let properties = try call.properties()
      let alias = try call.text()
      var label = ""
      if case .text(let text)? = properties["org.freedesktop.Secret.Collection.Label"] { label = text }
      let present = alias.isEmpty ? nil : collection(alias: alias)
      func make() throws -> String {
        if let present {
          if !label.isEmpty, present.label != label, present is StoredCollection { try present.setLabel(label) }
          return ServicePlace.path(present.id)
        }
        return ServicePlace.path(try store.makeCollection(label, alias: alias))
      }
      if present == nil, store.hasVault, !store.isUnlocked, !unlockIfAtHand() {
        let prompt = try addPrompt(call, dismissed: .path("/")) { .path(try make()) }
        return try answer(call, "/", prompt)
      }
      try answer(call, make(), "/")
    }

    /// Answers with an object and a prompt.
    private func answer(_ call: BusMessage, _ object: String, _ prompt: String) throws {
      // The client has to be able to use the object at once.
      report()
      try bus.answer(call) { answer in
        try answer.write(object, "o")
        try answer.write(prompt, "o")
      }
    }

    private func searchAll(_ call: BusMessage) throws {
      try call.requireTypes("a{ss}")
      let attributes = try call.attributes()
      var (unlocked, locked): ([String], [String]) = ([], [])
      for collection in collections {
        // Clients take the first one; the newest is the likeliest.
        let paths = collection.search(attributes).reversed().map { ServicePlace.path(collection.id, $0) }
        if collection.isLocked { locked += paths } else { unlocked += paths }
      }
      try bus.answer(call) { answer in
        try answer.write(paths: unlocked)
        try answer.write(paths: locked)
      }
    }

    private func getSecrets(_ call: BusMessage) throws {
      try call.requireTypes("aoo")
      let paths = try call.paths()
      let session = try call.text("o")
      try sessions.require(session, of: call.sender)
      try store.checkVault()
      try bus.answer(call) { answer in
        try answer.container("a", "{o(oayays)}") {
          for path in paths {
            guard case .item(let collection, let element)? = place(path) else { continue }
            guard !collection.isLocked else {
              note(call, "was refused the secret of \(Self.text(element, in: collection)): the keyring is locked")
              continue
            }
            let secret = try collection.secret(of: element)
            note(call, "reads the secret of \(Self.text(element, in: collection))")
            try answer.container("e", "o(oayays)") {
              try answer.write(path, "o")
              try sessions.write(secret, session, of: call.sender, to: answer)
            }
          }
        }
      }
    }

    private func setAlias(_ call: BusMessage) throws {
      try call.requireTypes("so")
      let (alias, path) = (try call.text(), try call.text("o"))
      guard !alias.isEmpty, alias != MemoryCollection.session else {
        throw BusFailure.invalid("\"\(alias)\" cannot be an alias of a collection")
      }
      if path == "/" {
        try store.setAlias(alias, to: nil)
      } else {
        guard case .collection(let collection)? = place(path), collection is StoredCollection else {
          throw BusFailure.noObject(path)
        }
        try store.setAlias(alias, to: collection.id)
      }
      try bus.answer(call) { _ in }
    }

    // MARK: - Locking

    /// The collection that an object is, or is in; nil if there is none.
    private func collection(at path: String) -> (any ServedCollection)? {
      switch place(path) {
      case .collection(let collection), .item(let collection, _): collection
      default: nil
      }
    }

    private func unlock(_ call: BusMessage) throws {
      try call.requireTypes("ao")
      let paths = try call.paths().filter { collection(at: $0) != nil }
      func open() -> [String] { paths.filter { collection(at: $0)?.isLocked == false } }
      if open().count < paths.count { _ = unlockIfAtHand() }
      let unlocked = open()
      guard unlocked.count < paths.count else { return try answer(call, unlocked, "/") }
      let rest = paths.filter { !unlocked.contains($0) }
      let prompt = try addPrompt(call, dismissed: .paths([])) { .paths(rest) }
      try answer(call, unlocked, prompt)
    }

    private func lock(_ call: BusMessage) throws {
      try call.requireTypes("ao")
      let paths = try call.paths()
      // The vault locks all sealed collections together.
      if store.hasVault, paths.contains(where: { collection(at: $0) is StoredCollection }) { try store.kept.lock() }
      try answer(call, paths.filter { collection(at: $0)?.isLocked ?? false }, "/")
    }

    private func answer(_ call: BusMessage, _ objects: [String], _ prompt: String) throws {
      try bus.answer(call) { answer in
        try answer.write(paths: objects)
        try answer.write(prompt, "o")
      }
    }

    // MARK: - Collections

    func answerCollection(_ call: BusMessage, _ collection: any ServedCollection) throws {
      switch call.member {
      case "Delete":
        try call.requireTypes("")
        guard let stored = collection as? StoredCollection else {
          throw BusFailure.notSupported("the collection of the session cannot be deleted")
        }
        try store.remove(stored)
        try bus.answer(call) { try $0.write("/", "o") }
      case "SearchItems":
        try call.requireTypes("a{ss}")
        let found = collection.search(try call.attributes()).reversed()
        try bus.answer(call) { try $0.write(paths: found.map { ServicePlace.path(collection.id, $0) }) }
      case "CreateItem":
        try call.requireTypes("a{sv}(oayays)b")
        try call.markSensitive()
        try store.checkVault()
        var item = try Self.change(call.properties())
        item.secret = try sessions.secret(call)
        let element = try collection.create(item, replaces: call.boolean())
        try answer(call, ServicePlace.path(collection.id, element), "/")
      case let name: throw BusFailure.unknownMethod(name)
      }
    }

    private static func change(_ properties: [String: BusMessage.Property]) -> ItemChange {
      var change = ItemChange()
      if case .text(let label)? = properties["org.freedesktop.Secret.Item.Label"] { change.label = label }
      if case .attributes(let all)? = properties["org.freedesktop.Secret.Item.Attributes"] { change.attributes = all }
      // As earlier versions of the specification have it.
      if case .text(let schema)? = properties["org.freedesktop.Secret.Item.Type"], !schema.isEmpty {
        change.attributes = (change.attributes ?? ItemAttributes([:])).adding(schema, for: ItemAttributes.schema)
      }
      return change
    }

    // MARK: - Items

    func answerItem(_ call: BusMessage, _ collection: any ServedCollection, _ element: String) throws {
      switch call.member {
      case "Delete":
        try call.requireTypes("")
        try collection.remove(element)
        try bus.answer(call) { try $0.write("/", "o") }
      case "GetSecret":
        try call.requireTypes("o")
        let session = try call.text("o")
        try sessions.require(session, of: call.sender)
        try store.checkVault()
        let secret = try collection.secret(of: element)
        note(call, "reads the secret of \(Self.text(element, in: collection))")
        try bus.answer(call) { try sessions.write(secret, session, of: call.sender, to: $0) }
      case "SetSecret":
        try call.requireTypes("(oayays)")
        try call.markSensitive()
        try store.checkVault()
        try collection.change(element, ItemChange(secret: sessions.secret(call)))
        try bus.answer(call) { _ in }
      case let name: throw BusFailure.unknownMethod(name)
      }
    }

    // MARK: - Sessions

    func answerSession(_ call: BusMessage) throws {
      guard call.member == "Close" else { throw BusFailure.unknownMethod(call.member) }
      try call.requireTypes("")
      try sessions.close(call.path, of: call.sender)
      try bus.answer(call) { _ in }
    }
  }
#endif
