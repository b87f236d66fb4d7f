import Coffer
import CofferCompat

/// The expected contents of a store: the simple model that random transactions are checked against.
package struct Model: Equatable, Sendable {
  package struct Item: Equatable, Sendable {
    package var object: Int
    package var metadata: Int?

    package init(object: Int, metadata: Int?) {
      self.object = object
      self.metadata = metadata
    }
  }

  package var collections: [String: [String: Item]] = [:]

  package init() {}

  package subscript(collection: String, key: String) -> Item? {
    get { collections[collection]?[key] }
    set {
      collections[collection, default: [:]][key] = newValue
      if collections[collection]?.isEmpty ?? false { collections[collection] = nil }
    }
  }

  /// What a transaction sees.
  package init(_ transaction: borrowing some Reading & ~Copyable) throws {
    var model = Model()
    try transaction.enumerateRowsInAllCollections(as: Int.self, metadata: Int.self) {
      collection, key, object, metadata, _ in
      model[collection, key] = Item(object: object, metadata: metadata)
    }
    self = model
  }
}

/// A change of a store and of its model.
package indirect enum ModelOperation: Codable, Sendable {
  case set(String, String, Int, metadata: Int?)
  case replaceObject(String, String, Int?)
  case replaceMetadata(String, String, Int?)
  case touch(String, String)
  case remove(String, [String])
  case removeAll(String)
  case removeEverything
  /// A value that cannot be encoded; the error is caught.
  case refused(String, String)
  /// During an enumeration, each key of a collection assigns its object to the next two letters.
  case spread(String)
  case savepoint([ModelOperation], ModelEnding)
}

/// How a transaction or savepoint ends.
package enum ModelEnding: String, Codable, Sendable, CaseIterable {
  case commit, rollback, error
}

/// A transaction on a store and on its model.
package struct ModelTransaction: Codable, Sendable {
  package var operations: [ModelOperation]
  package var ending: ModelEnding

  package init(operations: [ModelOperation], ending: ModelEnding) {
    self.operations = operations
    self.ending = ending
  }

  private struct Thrown: Error {}

  /// Runs the transaction; `check` sees each state in between beside the model's.
  package func run(
    on connection: Connection, _ model: Model, check: (borrowing ReadWriteTransaction, Model) throws -> Void
  ) throws {
    do {
      try connection.readWrite { transaction in
        var model = model
        for operation in operations {
          try operation.apply(to: transaction)
          operation.apply(to: &model)
          try check(transaction, model)
        }
        switch ending {
        case .commit: break
        case .rollback: transaction.rollback()
        case .error: throw Thrown()
        }
      }
    } catch is Thrown {}
  }

  /// The model after the transaction.
  package func result(_ model: Model) -> Model {
    guard ending == .commit else { return model }
    var model = model
    for operation in operations { operation.apply(to: &model) }
    return model
  }
}

private struct Unencodable: Encodable {
  struct Refusal: Error {}
  func encode(to encoder: any Encoder) throws { throw Refusal() }
}

extension ModelOperation {
  private struct Thrown: Error {}

  fileprivate func apply(to transaction: borrowing ReadWriteTransaction) throws {
    switch self {
    case .set(let collection, let key, let object, let metadata):
      try transaction.setObject(object, forKey: key, inCollection: collection, withMetadata: metadata)
    case .replaceObject(let collection, let key, let object):
      try transaction.replaceObject(object, forKey: key, inCollection: collection)
    case .replaceMetadata(let collection, let key, let metadata):
      try transaction.replaceMetadata(metadata, forKey: key, inCollection: collection)
    case .touch(let collection, let key): try transaction.touchRow(forKey: key, inCollection: collection)
    case .remove(let collection, let keys): try transaction.removeObjects(forKeys: keys, inCollection: collection)
    case .removeAll(let collection): try transaction.removeAllObjects(inCollection: collection)
    case .removeEverything: try transaction.removeAllObjectsInAllCollections()
    case .refused(let collection, let key):
      do {
        try transaction.setObject(Unencodable(), forKey: key, inCollection: collection)
        preconditionFailure("an unencodable value was taken")
      } catch CofferError.notEncodable {}
    case .spread(let collection):
      try transaction.enumerateKeysAndObjects(inCollection: collection, as: Int.self) { key, object, _ in
        for other in Self.spreading(key) { try transaction.setObject(object, forKey: other, inCollection: collection) }
      }
    case .savepoint(let operations, let ending):
      do {
        try transaction.inSavepoint {
          for operation in operations { try operation.apply(to: transaction) }
          if ending == .error { throw Thrown() }
          return ending == .commit ? .commit : .rollback
        }
      } catch is Thrown {}
    }
  }

  fileprivate func apply(to model: inout Model) {
    switch self {
    case .set(let collection, let key, let object, let metadata):
      model[collection, key] = Model.Item(object: object, metadata: metadata)
    case .replaceObject(let collection, let key, let object):
      guard let object else { return model[collection, key] = nil }
      if model[collection, key] != nil { model[collection, key]?.object = object }
    case .replaceMetadata(let collection, let key, let metadata):
      if model[collection, key] != nil { model[collection, key]?.metadata = metadata }
    case .touch, .refused: break
    case .remove(let collection, let keys):
      for key in keys { model[collection, key] = nil }
    case .removeAll(let collection): model.collections[collection] = nil
    case .removeEverything: model.collections = [:]
    case .spread(let collection):
      for (key, item) in (model.collections[collection] ?? [:]).sorted(by: { $0.key < $1.key }) {
        for other in Self.spreading(key) { model[collection, other] = Model.Item(object: item.object, metadata: nil) }
      }
    case .savepoint(let operations, let ending):
      guard ending == .commit else { return }
      for operation in operations { operation.apply(to: &model) }
    }
  }

  private static func spreading(_ key: String) -> [String] {
    let letters = Array("abcdef")
    guard let index = key.first.flatMap({ letters.firstIndex(of: $0) }) else { return [] }
    return [1, 2].map { String(letters[(index + $0) % letters.count]) }
  }
}

extension ModelOperation {
  package static let collections = ["", "one", "two"]
  package static let keys = ["a", "b", "c", "d", "e", "f"]

  /// A random operation.
  package static func random(depth: Int = 0, using generator: inout some RandomNumberGenerator) -> ModelOperation {
    let collection = collections.randomElement(using: &generator)!
    let key = keys.randomElement(using: &generator)!
    // Few values, so that some equal the current ones.
    let number = Int.random(in: 0..<3, using: &generator)
    let optional = Bool.random(using: &generator) ? number : nil
    switch Int.random(in: 0..<20, using: &generator) {
    case 0..<7: return .set(collection, key, number, metadata: optional)
    case 7, 8: return .replaceObject(collection, key, optional)
    case 9, 10: return .replaceMetadata(collection, key, optional)
    case 11: return .touch(collection, key)
    case 12, 13: return .remove(collection, [key, keys.randomElement(using: &generator)!])
    case 14: return .removeAll(collection)
    case 15: return Int.random(in: 0..<3, using: &generator) == 0 ? .removeEverything : .touch(collection, key)
    case 16: return .refused(collection, key)
    case 17: return .spread(collection)
    default:
      guard depth < 3 else { return .touch(collection, key) }
      return .savepoint(
        list(depth: depth + 1, using: &generator), ModelEnding.allCases.randomElement(using: &generator)!)
    }
  }

  package static func list(depth: Int = 0, using generator: inout some RandomNumberGenerator) -> [ModelOperation] {
    (0..<Int.random(in: 0...4, using: &generator)).map { _ in random(depth: depth, using: &generator) }
  }
}

extension ModelTransaction {
  package static func random(using generator: inout some RandomNumberGenerator) -> ModelTransaction {
    ModelTransaction(
      operations: ModelOperation.list(using: &generator),
      ending: [.commit, .commit, .commit, .rollback, .error].randomElement(using: &generator)!)
  }
}
