#if COFFER_BUS
  import Coffer

  #if canImport(FoundationEssentials)
    import FoundationEssentials
  #else
    import Foundation
  #endif

  /// A change that clients are notified of; an item is named by its collection and the last part of its path.
  enum ServiceEvent {
    case itemCreated(String, String)
    case itemChanged(String, String)
    case itemDeleted(String, String)
    case collectionCreated(String)
    case collectionChanged(String)
    case collectionDeleted(String)
  }

  /// What a client sets of an item.
  struct ItemChange {
    var label: String?
    var attributes: ItemAttributes?
    var secret: (bytes: SecretBytes, type: String)?
  }

  /// A collection as clients see it.
  ///
  /// - Throws: ``BusFailure``; `CofferError`, with nothing changed.
  protocol ServedCollection: AnyObject {
    /// The last part of its path.
    var id: String { get }
    var isLocked: Bool { get }
    var label: String { get }
    var created: Date { get }
    var modified: Date { get }
    /// The last parts of the paths of its items, the oldest first.
    var elements: [String] { get }

    /// The attributes of an item; nil if there is none.
    func attributes(of element: String) -> ItemAttributes?
    /// The items that have all of the attributes.
    func search(_ attributes: ItemAttributes) -> [String]
    /// An item without its secret; while the collection is locked, without its label.
    func details(of element: String) throws -> (details: ItemDetails, modified: Date)
    func secret(of element: String) throws -> (bytes: SecretBytes, type: String)

    func setLabel(_ label: String) throws
    /// - Parameter replaces: Whether to set an item with the same attributes, if there is one.
    func create(_ item: ItemChange, replaces: Bool) throws -> String
    func change(_ element: String, _ change: ItemChange) throws
    func remove(_ element: String) throws
  }

  /// A collection that is gone with the service: the alias `session`.
  final class MemoryCollection: ServedCollection {
    private struct Held {
      var attributes: ItemAttributes
      var details: ItemDetails
      var secret: SecretBytes
      var modified: Date
    }

    static let session = "session"

    let id = MemoryCollection.session
    let isLocked = false
    let label = "Session"
    let created = Date()
    private(set) var modified = Date()
    private var items: [String: Held] = [:]
    private var order: [String] = []
    private var lastNumber = 0
    private let report: (ServiceEvent) -> Void

    init(report: @escaping (ServiceEvent) -> Void) { self.report = report }

    var elements: [String] { order }

    func attributes(of element: String) -> ItemAttributes? { items[element]?.attributes }

    func search(_ attributes: ItemAttributes) -> [String] {
      order.filter { items[$0]?.attributes.contain(attributes) ?? false }
    }

    private func held(_ element: String) throws -> Held {
      guard let item = items[element] else { throw BusFailure.noObject(element) }
      return item
    }

    func details(of element: String) throws -> (details: ItemDetails, modified: Date) {
      let item = try held(element)
      return (item.details, item.modified)
    }

    func secret(of element: String) throws -> (bytes: SecretBytes, type: String) {
      let item = try held(element)
      return (item.secret, item.details.type)
    }

    func setLabel(_ label: String) throws {
      throw BusFailure.notSupported("the collection of the session has its label")
    }

    func create(_ item: ItemChange, replaces: Bool) throws -> String {
      let attributes = item.attributes ?? ItemAttributes([:])
      if replaces, let same = order.first(where: { items[$0]?.attributes == attributes }) {
        try change(same, item)
        return same
      }
      lastNumber += 1
      let element = "\(lastNumber)"
      let details = ItemDetails(
        label: item.label ?? "", type: item.secret?.type ?? ItemDetails.text, created: Date())
      let secret = item.secret?.bytes ?? SecretBytes(count: 0) { _ in }
      items[element] = Held(attributes: attributes, details: details, secret: secret, modified: details.created)
      order.append(element)
      modified = Date()
      report(.itemCreated(id, element))
      return element
    }

    func change(_ element: String, _ change: ItemChange) throws {
      var item = try held(element)
      if let label = change.label { item.details.label = label }
      if let attributes = change.attributes { item.attributes = attributes }
      if let secret = change.secret { (item.secret, item.details.type) = secret }
      item.modified = Date()
      items[element] = item
      modified = item.modified
      report(.itemChanged(id, element))
    }

    func remove(_ element: String) throws {
      _ = try held(element)
      items[element] = nil
      order.removeAll { $0 == element }
      modified = Date()
      report(.itemDeleted(id, element))
    }
  }
#endif
