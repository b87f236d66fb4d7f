import CofferCrypto

/// What layers above keep once for each database, which does not know them: one object of each type, made when it is first
/// asked for, and gone with the database.
final class Attachments: Sendable {
  private let objects = Lock<[any AnyObject & Sendable]>([])

  func object<Object: AnyObject & Sendable>(_ make: @autoclosure () -> Object) -> Object {
    objects.withLock { objects in
      for case let object as Object in objects { return object }
      let object = make()
      objects.append(object)
      return object
    }
  }
}
