import Testing

@testable import Coffer

private enum Theme: String, Codable { case light, dark }

extension Keys {
  fileprivate static let theme = Key("theme", in: "ui", default: Theme.dark)
  fileprivate static let retries = Key("retries", default: 3)
}

private struct Settings: Sendable {
  @Preference(.theme) var theme
  @Preference(.retries) var retries: Int
  let own: OwnSettings
}

private struct OwnSettings: Sendable {
  @Preference<Int> var retries: Int

  init(_ preferences: Preferences) {
    _retries = Preference(.retries, in: preferences)
  }
}

@Suite("Properties that are settings") struct PreferenceTests {
  @Test("read and set the standard preferences, or given ones")
  func properties() throws {
    let (standard, own) = (try Preferences.inMemory(), try Preferences.inMemory())
    // Made before there are any: looked up at each use.
    let settings = Settings(own: OwnSettings(own))
    try Preferences.withStandard(standard) {
      #expect(settings.theme == .dark)
      settings.theme = .light
      settings.retries += 1
      #expect(settings.retries == 4)
      #expect(standard[.theme] == .light)
      try settings.$theme.reset()
      #expect(settings.theme == .dark)
    }
    #expect(settings.own.retries == 3)
    settings.own.retries = 5
    #expect(own[.retries] == 5)
    #expect(standard[.retries] == 4)
  }

  @Test("of a property arrive through its projection; of a closed store none do")
  func projection() async throws {
    let settings = Settings(own: OwnSettings(try Preferences.inMemory()))
    let preferences = try Preferences.inMemory()
    try await Preferences.withStandard(preferences) {
      let values = settings.$retries.values
      var iterator = values.makeAsyncIterator()
      #expect(await iterator.next() == 3)
      settings.retries = 7
      #expect(await iterator.next() == 7)
      try await preferences.close()
      #expect(await iterator.next() == nil)
      var closed = settings.$retries.values.makeAsyncIterator()
      #expect(await closed.next() == nil)
    }
  }
}
