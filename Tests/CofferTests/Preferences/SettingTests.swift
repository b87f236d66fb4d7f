import CofferCrypto
import CofferObservation
import Dispatch
import Foundation
import Observation
import TestSupport
import Testing

@testable import Coffer

extension Keys {
  fileprivate static let size = Key("size", default: 12)
  fileprivate static let name = Key("name", default: "none")
  fileprivate static let last = Key("last", default: 0)
}

@Observable @MainActor private final class Model {
  let size: Setting<Int>
  let name: Setting<String>
  var ownText = ""

  init(_ preferences: Preferences) {
    size = Setting(.size, in: preferences)
    name = Setting(.name, in: preferences)
  }
}

/// The same with properties.
@Observable @MainActor private final class PropertyModel {
  @ObservationIgnored @Setting var size: Int

  init(_ preferences: Preferences) {
    _size = Setting(.size, in: preferences)
  }
}

/// The same with properties that take part in no other module.
@Observable @MainActor private class PreferenceModel {
  @ObservationIgnored @Preference final var size: Int
  @ObservationIgnored @Preference(.name) final var name

  init(_ preferences: Preferences) {
    _size = Preference(.size, in: preferences)
  }
}

/// One that nothing observes.
@MainActor private final class Service {
  @Preference var size: Int

  init(_ preferences: Preferences) {
    _size = Preference(.size, in: preferences)
  }
}

/// A tracked value, and the number of its notifications.
private final class Tracking: Sendable {
  private let (changes, continuation) = AsyncStream<Void>.makeStream()
  private let number = Lock(0)
  var count: Int { number.withLock { $0 } }

  init<Result>(_ read: () -> Result) {
    withObservationTracking {
      _ = read()
    } onChange: {
      self.number.withLock { $0 += 1 }
      self.continuation.yield()
    }
  }

  func told() async {
    for await _ in changes { return }
  }
}

private struct Weak {
  weak var object: Setting<Int>?
}

@MainActor @Suite("Settings in models") struct SettingTests {
  private let preferences: Preferences
  private let model: Model

  init() throws {
    preferences = try Preferences.inMemory()
    model = Model(preferences)
  }

  /// Waits until earlier notifications have reached the main actor.
  private func settle(_ preferences: Preferences? = nil) async {
    let last = Setting(.last, in: preferences ?? self.preferences)
    let tracking = Tracking { last.value }
    last.value += 1
    await tracking.told()
    withExtendedLifetime(last) {}
  }

  @Test("notify only what has read them")
  func change() async throws {
    let (size, name) = (Tracking { model.size.value }, Tracking { (model.name.value, model.ownText) })
    model.size.value = 13
    await size.told()
    #expect(model.size.value == 13)
    #expect(preferences[.size] == 13)
    #expect(name.count == 0)
    let again = Tracking { model.size.value }
    try model.size.reset()
    await again.told()
    #expect(model.size.value == 12)
    try preferences.flushAndWait()
    await settle()
    #expect(name.count == 0)
    model.ownText = "x"
    #expect(name.count == 1)
  }

  @Test("notify once for each tracking of a batch, and of many changes in succession")
  func once() async throws {
    let tracking = Tracking { (model.size.value, model.name.value) }
    try preferences.performBatch { batch in
      try batch.set(14, for: .size)
      try batch.set("x", for: .name)
    }
    for number in 0..<100 { preferences[.size] = number }
    await tracking.told()
    await settle()
    #expect(tracking.count == 1)
    #expect(model.size.value == 99)
    #expect(model.name.value == "x")
  }

  @Test("notify of a change after the value was read and before its tracking began")
  func whileTracking() async throws {
    let preferences = preferences
    let tracking = Tracking {
      #expect(model.size.value == 12)
      let isAnnounced = DispatchSemaphore(value: 0)
      DispatchQueue.global().async {
        preferences[.size] = 13
        // Behind the announcement in the queue.
        preferences.proxy.state.listeners.enqueue { isAnnounced.signal() }
      }
      isAnnounced.wait()
    }
    await tracking.told()
    #expect(model.size.value == 13)
  }

  @Test("do not notify of values hidden by a layer, and read the layer's")
  func layer() async throws {
    let preferences = Preferences(
      proxy: preferences.proxy, collection: "app", overrides: Overrides([.variables(prefix: "T_", ["T_SIZE": "30"])]),
      registered: RegisteredDefaults())
    let model = Model(preferences)
    let (size, name) = (Tracking { model.size.value }, Tracking { model.name.value })
    preferences[.size] = 13
    preferences[.name] = "x"
    await name.told()
    await settle(preferences)
    #expect(model.size.value == 30)
    #expect(size.count == 0)
  }

  @Test("keep the last good value when a bad one comes, and take the next good one")
  func lastGood() async throws {
    let errors = preferences.errors
    model.size.value = 30
    #expect(model.size.value == 30)
    try preferences.set("31", forKey: "size")
    #expect(model.size.value == 30 && preferences.string(forKey: "size") == "31")
    try preferences.set("wide", forKey: "size")
    #expect(model.size.value == 30)
    var instead: [String?] = []
    for await error in errors {
      instead.append(error.instead)
      if instead.count == 2 { break }
    }
    #expect(instead == ["the last good value", "the last good value"])
    try preferences.set(32, forKey: "size")
    #expect(model.size.value == 32)
    try model.size.reset()
    #expect(model.size.value == 12)
    // A bad one that stays hides nothing that changes below it.
    let layered = Preferences(
      proxy: preferences.proxy, collection: preferences.collection,
      overrides: Overrides([.variables(prefix: "T_", ["T_SIZE": "many"])]), registered: RegisteredDefaults())
    let size = Setting(.size, in: layered)
    #expect(size.value == 12)
    size.value = 40
    #expect(size.value == 40)
  }

  @Test("keep nothing of a sealed collection")
  func sealed() throws {
    let store = try TemporaryStore()
    let database = try store.open()
    let preferences = try Preferences(database: database, collection: "pins")
    try database.vault.create(key: store.key)
    try database.seal(collection: "pins")
    let size = Setting(.size, in: preferences)
    size.value = 30
    #expect(size.value == 30)
    try preferences.set("31", forKey: "size")
    #expect(size.value == 12)
  }

  @Test("notify of what another process sets and clears")
  func anotherProcess() async throws {
    let store = try TemporaryStore()
    let preferences = try Preferences(database: store.open(), collection: "")
    let model = Model(preferences)
    let set = Tracking { model.name.value }
    #expect(try store.worker("set", "name", "theirs").status == 0)
    await set.told()
    #expect(model.name.value == "theirs")
    let cleared = Tracking { model.name.value }
    #expect(try store.worker("clear", "").status == 0)
    await cleared.told()
    #expect(model.name.value == "none")
  }

  @Test("end with their model, and leave no listeners")
  func end() async throws {
    var model: Model? = Model(preferences)
    let size = Weak(object: model?.size)
    let tracking = Tracking { model?.size.value }
    #expect(preferences.proxy.state.listeners.areThere)
    model = nil
    #expect(size.object == nil)
    #expect(!preferences.proxy.state.listeners.areThere)
    preferences[.size] = 13
    await settle()
    #expect(tracking.count == 0)
  }

  @Test("start listening when first read, and still read if changes are not available")
  func closed() async throws {
    #expect(!preferences.proxy.state.listeners.areThere)
    let errors = preferences.errors
    try await preferences.close()
    #expect(model.size.value == 12)
    for await failure in errors {
      #expect(failure.key == "size")
      break
    }
  }

  @Test("are properties of a model, too, which observe themselves")
  func properties() async throws {
    let model = PropertyModel(preferences)
    let tracking = Tracking { model.size }
    model.size += 1
    await tracking.told()
    #expect(preferences[.size] == 13)
    let again = Tracking { model.size }
    preferences[.size] = 20
    await again.told()
    #expect(model.size == 20)
    try model.$size.reset()
    #expect(model.size == 12)
  }

  @Test("are not needed for a model's property @Preference, which observes itself")
  func preference() async throws {
    let model = PreferenceModel(preferences)
    let tracking = Tracking { model.size }
    model.size += 1
    await tracking.told()
    #expect(preferences[.size] == 13)
    let again = Tracking { model.size }
    preferences[.size] = 20
    await again.told()
    #expect(model.size == 20)
    try model.$size.reset()
    #expect(model.size == 12)
    // A change in place is refused, as with a subscript, while the stored value cannot be read.
    try preferences.set("wide", forKey: "size")
    model.size += 1
    #expect(preferences.string(forKey: "size") == "wide")
  }

  @Test("are not needed for a property @Preference of the standard settings, whichever these are")
  func standard() async throws {
    let other = try Preferences.inMemory()
    let model = PreferenceModel(preferences)
    for preferences in [preferences, other, preferences] {
      await Preferences.withStandard(preferences) {
        let tracking = Tracking { model.name }
        preferences[.name] += "x"
        await tracking.told()
        #expect(model.name == preferences[.name])
      }
    }
  }

  @Test("observe nothing for the properties of other classes")
  func service() async throws {
    let service = Service(preferences)
    service.size += 1
    #expect(service.size == 13)
    #expect(!preferences.proxy.state.listeners.areThere)
  }
}
