import ArgumentParser
import Coffer

/// A collection that a command uses, and the one it inherits from.
package struct NamedCollection {
  package let name: String
  /// The parent, if `--env` or `PREFS_ENV` selects an environment; nil for a plain collection.
  package let parent: String?

  /// The environment of that name.
  var environment: CollectionEnvironment? { CollectionEnvironment(collection: name) }

  /// The collections to search for values, in order.
  var shown: [String] { [name] + (parent.map { [$0] } ?? []) }

  /// The collection alone.
  init(_ collection: String) {
    (name, parent) = (collection, nil)
  }

  /// - Parameter isVariable: Whether the environment comes from `PREFS_ENV`, which an environment in the name
  ///   overrides.
  package init(_ collection: String, environment: String?, isVariable: Bool) throws {
    guard let environment else {
      (name, parent) = (collection, nil)
      return
    }
    if let own = CollectionEnvironment(collection: collection), isVariable || own.name == environment {
      (name, parent) = (collection, own.name == environment ? own.parent : nil)
      return
    }
    do {
      let own = try CollectionEnvironment(environment, of: collection)
      (name, parent) = (own.collection, own.parent)
    } catch CofferError.unsupported(let reason) {
      throw Failure(.usage, "\(reason).")
    }
  }
}

extension NamedCollection {
  /// The same with the collection that it inherits from, also where the environment's own name is given: what is in force in an
  /// environment does not depend on how it is named.
  ///
  /// - Parameter mayBeGone: Whether an environment may have been removed, as for what was in it before.
  /// - Throws: ``Failure`` with the status `notFound` for an environment that does not exist.
  package func inForce(
    _ transaction: borrowing some Reading & ~Copyable, mayBeGone: Bool = false
  ) throws -> NamedCollection {
    guard let environment else { return self }
    guard try transaction.hasEnvironment(environment) else {
      if parent == nil, mayBeGone { return self }
      throw try environment.notFound(in: transaction)
    }
    guard parent == nil else { return self }
    return try NamedCollection(environment.parent, environment: environment.name, isVariable: false)
  }
}

extension CommonOptions {
  /// Refuses `--env` for all collections, and for names with an environment.
  func checkEnvironment(of collections: [String?]) throws {
    guard let env else { return }
    for collection in collections {
      guard let collection else { throw ValidationError("--env is for one collection. Name it.") }
      if CollectionEnvironment(collection: collection) != nil {
        throw ValidationError("\(collection) already names an environment; omit --env.")
      }
      do {
        _ = try CollectionEnvironment(env, of: collection)
      } catch CofferError.unsupported(let reason) {
        throw ValidationError("\(reason).")
      }
    }
  }
}

extension Reading where Self: ~Copyable {
  /// A collection and, if it is an environment, its parent.
  package borrowing func shown(_ collection: String) throws -> [String] {
    guard let environment = CollectionEnvironment(collection: collection), try hasEnvironment(environment) else {
      return [collection]
    }
    return [collection, environment.parent]
  }
}

extension CollectionEnvironment {
  /// The failure for a missing environment, with the nearest existing name, or else with `hint`.
  func notFound(in transaction: borrowing some Reading & ~Copyable, hint: String? = nil) throws -> Failure {
    let others = try transaction.environments().filter { $0.parent.utf8.elementsEqual(parent.utf8) }.map(\.name)
    let near = NearName.best(for: name, among: others)
    return Failure(
      .notFound,
      "there is no environment \"\(name)\" of \(DisplayText.collection(parent))"
        + (near.map { "; did you mean \"\($0)\"?" }
          ?? ". \(hint ?? "Create it with: \(CommandHint.text("env create", operand: collection))")"))
  }
}

/// The details of the items of a collection and of its parent.
struct ShownInfos {
  /// Each key once: those of the collection, then those that only its parent has.
  private(set) var keys: [String] = []
  private var infos: [(collection: String, byKey: [ByteString: ItemInfo])] = []

  init(_ place: NamedCollection, _ transaction: borrowing some Reading & ~Copyable) throws {
    var seen: Set<ByteString> = []
    for name in place.shown {
      let infos = try transaction.itemInfos(inCollection: name)
      keys += infos.map(\.key).filter { seen.insert(ByteString($0)).inserted }
      self.infos.append((name, Dictionary(infos.map { (ByteString($0.key), $0) }) { $1 }))
    }
  }

  subscript(key: String, collection: String) -> ItemInfo? {
    infos.first { $0.collection.utf8.elementsEqual(collection.utf8) }?.byKey[ByteString(key)]
  }
}
