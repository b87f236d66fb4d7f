import CofferCrypto

/// State that higher layers keep per database: one object of each type, created on first use and released with the database.
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
