/// Settings that hold their proxy weakly, for streams: they end with the proxy instead of keeping it alive.
struct WeakPreferences: Sendable {
  /// Unchecked: a weak reference is read and cleared atomically, and never assigned again.
  private final class WeakProxy: @unchecked Sendable {
    weak var proxy: ConnectionProxy?

    init(_ proxy: ConnectionProxy) { self.proxy = proxy }
  }

  private let proxy: WeakProxy
  /// Without the environment.
  private let collection: String
  private let environment: String?
  private let overrides: Overrides
  private let registered: RegisteredDefaults
  private let suites: SuiteList
  private let suiteOf: String?
  private let lastGood: LastGoodValues

  init(_ preferences: Preferences) {
    proxy = WeakProxy(preferences.proxy)
    collection = preferences.parent
    environment = preferences.environment
    overrides = preferences.overrides
    registered = preferences.registered
    suites = preferences.suites
    suiteOf = preferences.suiteOf
    lastGood = preferences.lastGood
  }

  /// The settings, while their proxy exists.
  var preferences: Preferences? {
    proxy.proxy.map {
      Preferences(
        proxy: $0, collection: collection, overrides: overrides, registered: registered, suites: suites,
        suiteOf: suiteOf, environment: environment, lastGood: lastGood)
    }
  }
}
