import Testing

@testable import PrefsCommands

@Suite("A bare get, which goes past the argument parser")
struct PlainGetTests {
  @Test(
    "It does what the parser's way does",
    arguments: ["app/theme", "top", "app/icon", "app/nothing", "nothing/theme", "app/", "", "-5", "--help", "-x", "/a"])
  func sameAnswer(key: String) throws {
    let tool = try Tool()
    try tool.succeed("set", "app/theme", "dark")
    try tool.succeed("set", "top", "--double", "1")
    try tool.succeed("set", "app/icon", "--data", "aWNvbg==")
    try tool.succeed("set", "--", "-5", "minus five")
    let plain = try tool.run("get", key)
    // An option that changes nothing here.
    let parsed = try tool.run("get", key, "--no-input")
    #expect(plain.code == parsed.code)
    #expect(plain.output == parsed.output)
    #expect(plain.message == parsed.message)
  }

  @Test("It takes the same store and the same key from the environment, and misses them the same way")
  func sameSources() throws {
    let tool = try Tool()
    try tool.succeed("set", "--store", tool.path("other"), "--key-file", tool.path("other-key"), "a", "b")
    for environment in [
      ["PREFS_STORE": tool.path("other"), "PREFS_KEY_FILE": tool.path("other-key")],
      ["PREFS_STORE": tool.path("other")], [:],
    ] {
      let plain = try tool.run("get", "a", environment: environment)
      let parsed = try tool.run("get", "a", "--no-input", environment: environment)
      #expect(plain.code == parsed.code)
      #expect(plain.text == parsed.text)
      #expect(plain.message == parsed.message)
    }
  }

  @Test(
    "Everything with options is left to the parser",
    arguments: [[], ["get"], ["get", "-h"], ["get", "a", "-n"], ["read", "a"]])
  func othersAreParsed(arguments: [String]) {
    #expect(ValueRequest(plainArguments: arguments) == nil)
  }

  @Test("What it is when nothing is said is what the parser makes of nothing said")
  func sameDefaults() throws {
    let plain = try #require(ValueRequest(plainArguments: ["get", "app/theme"]))
    let parsed = try #require(try PrefsCommand.parseAsRoot(["get", "app/theme"]) as? GetCommand)
    #expect(String(reflecting: plain) == String(reflecting: parsed.request))
  }
}
