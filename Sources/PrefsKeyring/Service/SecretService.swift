#if COFFER_BUS
  import Coffer
  import CofferCrypto
  import PrefsCommands

  /// The Secret Service (org.freedesktop.secrets): answers calls from the store, and reports its changes as signals.
  ///
  /// Used by one thread.
  final class SecretService {
    static let busName = "org.freedesktop.secrets"

    /// Whether another program has taken the name.
    private(set) var isReplaced = false

    let bus: BusConnection
    let store: ServiceStore
    var sessions = Sessions()
    var prompts: [String: Prompt] = [:]
    var lastPrompt = 0
    /// Asks for the passphrase of the vault, for all prompts that are shown.
    var dialog: PassphraseDialog?
    /// Makes the thread of the service look at its dialog.
    let wake: @Sendable () -> Void
    /// By the names of clients on the bus.
    var callers: [String: Caller] = [:]
    /// Changes of the collection in memory that clients have not been notified of.
    private var events: [ServiceEvent] = []
    private(set) lazy var memory = MemoryCollection { [unowned self] in events.append($0) }
    private var wasUnlocked: Bool
    /// The items whose properties a client has read, by its name on the bus: those that it may have in memory.
    private var readItems: [String: Set<ItemPlace>] = [:]

    private struct ItemPlace: Hashable {
      let collection: String
      let element: String
    }

    /// What a client has to have confirmed; here, that the vault is unlocked.
    struct Prompt {
      let owner: String
      /// Does it, once the vault is unlocked, and returns the result.
      let action: () throws -> PropertyResult
      /// The result if it is dismissed.
      let dismissed: PropertyResult
      var isShown = false
    }

    /// The result of a prompt.
    enum PropertyResult {
      case path(String)
      case paths([String])

      func write(to message: BusMessage) throws {
        switch self {
        case .path(let path): try message.container("v", "o") { try message.write(path, "o") }
        case .paths(let paths): try PropertyValue.paths(paths).write(to: message)
        }
      }
    }

    init(_ bus: BusConnection, _ store: ServiceStore, wake: @escaping @Sendable () -> Void) throws {
      (self.bus, self.store, self.wake) = (bus, store, wake)
      wasUnlocked = store.isUnlocked
      // What is there at the start is no news.
      _ = try store.follow()
    }

    var collections: [any ServedCollection] { (store.collections as [any ServedCollection]) + [memory] }

    // MARK: - Receiving

    /// - Returns: Whether the message is settled.
    func receive(_ message: BusMessage) -> Bool {
      if message.isSignal("org.freedesktop.DBus", "NameOwnerChanged") {
        forgetClient(message)
        return true
      }
      if message.isSignal("org.freedesktop.DBus", "NameLost") {
        if (try? message.requireTypes("s")) != nil, (try? message.text()) == Self.busName { isReplaced = true }
        return true
      }
      guard message.isCall, message.interface != "org.freedesktop.DBus.Peer" else { return false }
      do {
        report()
        try answer(message)
        report()
      } catch {
        let failure = Self.failure(error)
        if failure.isOfLock { note(message, "was refused \(message.member): the keyring is locked") }
        bus.refuse(message, failure)
      }
      return true
    }

    private func forgetClient(_ message: BusMessage) {
      guard (try? message.requireTypes("sss")) != nil, let name = try? message.text(), (try? message.text()) != nil,
        let owner = try? message.text(), owner.isEmpty
      else { return }
      sessions.closeAll(of: name)
      callers[name] = nil
      readItems[name] = nil
      prompts = prompts.filter { $0.value.owner != name }
      endUnneededDialog()
    }

    private static func failure(_ error: any Error) -> BusFailure {
      switch error {
      case let failure as BusFailure: return failure
      case CofferError.vaultLocked:
        return .isLocked("the keyring is locked: run `\(CommandHint.text("unlock"))`")
      case let error as CofferError: return .failed(error.description)
      case let failure as Failure: return .failed(failure.description)
      case let problem as KeyringProblem: return .invalid(problem.reason)
      case CryptoError.invalidParameter(let reason): return .invalid(reason)
      default: return .failed("an unexpected error of type \(type(of: error))")
      }
    }

    private func answer(_ call: BusMessage) throws {
      guard let place = place(call.path) else { throw BusFailure.noObject(call.path) }
      let interface = call.interface
      switch (interface, call.member) {
      case ("org.freedesktop.DBus.Properties", "Get"): return try getProperty(call, place)
      case ("org.freedesktop.DBus.Properties", "GetAll"): return try getProperties(call, place)
      case ("org.freedesktop.DBus.Properties", "Set"): return try setProperty(call, place)
      case ("org.freedesktop.DBus.Introspectable", "Introspect"):
        let text = Introspection.text(place.interface, children: children(of: call.path))
        return try bus.answer(call) { try $0.write(text) }
      default: break
      }
      guard interface.isEmpty || interface == place.interface else {
        throw BusFailure.unknownMethod("\(interface).\(call.member)")
      }
      switch place {
      case .service: try answerService(call)
      case .collection(let collection): try answerCollection(call, collection)
      case .item(let collection, let element): try answerItem(call, collection, element)
      case .session: try answerSession(call)
      case .prompt: try answerPrompt(call)
      case .folder: throw BusFailure.unknownMethod(call.member)
      }
    }

    // MARK: - Objects

    /// The object at a path; nil if there is none.
    func place(_ path: String) -> ServicePlace? {
      if path == ServicePlace.root { return .service }
      if sessions.has(path) { return .session }
      if prompts[path] != nil { return .prompt }
      if path == "/" || (ServicePlace.root + "/").hasPrefix(path + "/") { return .folder }
      guard path.hasPrefix(ServicePlace.root + "/") else { return nil }
      let parts = path.dropFirst(ServicePlace.root.count + 1).split(separator: "/").map(String.init)
      let found: (any ServedCollection)?
      switch parts.first {
      case "collection" where parts.count > 1: found = collections.first { $0.id == parts[1] }
      case "aliases" where parts.count > 1: found = collection(alias: parts[1])
      case "collection", "aliases", "session", "prompt": return parts.count == 1 ? .folder : nil
      default: return nil
      }
      guard let found else { return nil }
      if parts.count == 2 { return .collection(found) }
      guard parts.count == 3, found.attributes(of: parts[2]) != nil else { return nil }
      return .item(found, parts[2])
    }

    func collection(alias: String) -> (any ServedCollection)? {
      if alias == MemoryCollection.session { return memory }
      return store.collection(alias: alias)
    }

    private func children(of path: String) -> [String] {
      let root = ServicePlace.root
      switch path {
      case root: return ["collection", "aliases"]
      case root + "/collection": return collections.map(\.id)
      case root + "/aliases": return ["default", MemoryCollection.session]
      case "/": return ["org"]
      case "/org": return ["freedesktop"]
      case "/org/freedesktop": return ["secrets"]
      default:
        if case .collection(let collection)? = place(path) { return collection.elements }
        return []
      }
    }

    // MARK: - Signals

    /// Notifies clients of what has changed, by whatever program.
    func report() {
      do { events = try store.follow() + events } catch {
        // The next call tries again, and answers with the error if it needs what cannot be read.
      }
      let all = events
      events = []
      for event in all { try? send(event) }
      guard wasUnlocked != store.isUnlocked else { return }
      wasUnlocked = store.isUnlocked
      for collection in store.collections {
        try? changed(
          ServicePlace.path(collection.id), Interface.collection, [("Locked", .flag(collection.isLocked))])
        try? send(.collectionChanged(collection.id))
      }
      reportLocksOfItems()
    }

    /// Remembers that a client has read properties of an item.
    func noteReading(_ call: BusMessage, _ place: ServicePlace) {
      guard case .item(let collection, let element) = place, collection is StoredCollection else { return }
      readItems[call.sender, default: []].insert(ItemPlace(collection: collection.id, element: element))
    }

    /// Notifies clients that items are locked or unlocked, and have other properties by that; of those items that one may have in
    /// memory, since a signal for each of thousands would keep the bus busy.
    private func reportLocksOfItems() {
      let places = readItems.values.reduce(into: Set()) { $0.formUnion($1) }
      for place in places {
        guard let collection = store.collection(place.collection), collection.attributes(of: place.element) != nil,
          let all = try? properties(of: .item(collection, place.element))
        else { continue }
        try? changed(ServicePlace.path(place.collection, place.element), Interface.item, all)
      }
    }

    private func forgetItem(_ place: ItemPlace) {
      for client in readItems.keys { readItems[client]?.remove(place) }
    }

    private func send(_ event: ServiceEvent) throws {
      func signal(_ path: String, _ interface: String, _ member: String, _ object: String) throws {
        try bus.signal(path, interface, member) { try $0.write(object, "o") }
      }
      switch event {
      case .itemCreated(let id, let element), .itemDeleted(let id, let element):
        let isNew = if case .itemCreated = event { true } else { false }
        if !isNew { forgetItem(ItemPlace(collection: id, element: element)) }
        let path = ServicePlace.path(id)
        try signal(
          path, Interface.collection, isNew ? "ItemCreated" : "ItemDeleted", ServicePlace.path(id, element))
        // Without its value, which may be long.
        try changed(path, Interface.collection, [], dropped: ["Items"])
      case .itemChanged(let id, let element):
        let path = ServicePlace.path(id, element)
        try signal(ServicePlace.path(id), Interface.collection, "ItemChanged", path)
        guard let collection = collections.first(where: { $0.id == id }) else { return }
        try changed(path, Interface.item, properties(of: .item(collection, element)))
      case .collectionCreated(let id), .collectionDeleted(let id):
        let isNew = if case .collectionCreated = event { true } else { false }
        try signal(
          ServicePlace.root, Interface.service, isNew ? "CollectionCreated" : "CollectionDeleted",
          ServicePlace.path(id))
        try changed(ServicePlace.root, Interface.service, properties(of: .service))
      case .collectionChanged(let id):
        try signal(ServicePlace.root, Interface.service, "CollectionChanged", ServicePlace.path(id))
        guard let collection = collections.first(where: { $0.id == id }) else { return }
        try changed(ServicePlace.path(id), Interface.collection, [("Label", .text(collection.label))])
      }
    }

    private func changed(
      _ path: String, _ interface: String, _ properties: Properties, dropped: [String] = []
    ) throws {
      try bus.signal(path, "org.freedesktop.DBus.Properties", "PropertiesChanged") { message in
        try message.write(interface)
        try message.write(properties)
        try message.container("a", "s") { for name in dropped { try message.write(name) } }
      }
    }
  }
#endif
