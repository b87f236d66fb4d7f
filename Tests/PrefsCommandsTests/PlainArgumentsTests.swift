import Testing

@testable import PrefsCommands

@Suite("Arguments in their usual form, which bypass the argument parser")
struct PlainArgumentsTests {
  @Test(
    "The result is the same as through the parser",
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

  @Test("It uses the same store and key from the environment, and reports missing ones in the same way")
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
    "They mean the same as to the parser",
    arguments: [
      ["get", "app/theme"], ["get", ""], ["get", "help"], ["get", "a", "--json", "-n"], ["get", "--no-newline", "a"],
      ["get", "-d", "s", "--key-file", "k", "-c", "a/b", "c/d", "-q"], ["get", "a", "--store", "s", "--store", "t"],
      ["list"], ["list", "a"], ["list", "-c", "a"], ["list", "a", "-l", "--values", "--quiet"],
      ["list", "--json", "a"], ["list", "--collection", "a", "-l", "-l", "--json"], ["set", "a/b", "c"],
      ["set", "a", "--int", "14"],
      ["set", "--dict", "a", "{}", "-c", "b"], ["set", "--url", "--key-file", "k", "a", ""], ["set", "a", "-q", "b=c"],
    ])
  func sameRequest(arguments: [String]) throws {
    let plain = try #require(PlainArguments.request(arguments), "\(arguments) are left to the parser")
    let parsed: any Request
    switch try PrefsCommand.parseAsRoot(arguments) {
    case let command as GetCommand: parsed = try command.request()
    case let command as ListCommand: parsed = try command.request()
    case let command as SetCommand: parsed = try command.request()
    case let command: return #expect(Bool(false), "\(command)")
    }
    #expect(String(reflecting: plain) == String(reflecting: parsed))
  }

  @Test(
    "Other forms, wrong arguments and help are left to the parser",
    arguments: [
      [], ["get"], ["get", "-h"], ["get", "a", "b"], ["get", "-5"], ["get", "--", "a"], ["-q", "get", "a"],
      ["get", "a", "--store"], ["get", "a", "--store", ""], ["get", "a", "-c", "-q"], ["get", "a", "--store=s"],
      ["get", "a", "-c", "b", "-c", "c"], ["get", "a", "-l"], ["get", "a", "-\u{301}"], ["list", "a", "b"],
      ["list", "a", "-c", "b"], ["list", "-lq"], ["list", "-0"], ["set", "a"], ["set", "a", "b", "c"],
      ["set", "a", "-"], ["set", "a", "-5"], ["set", "a", "b", "--int", "--bool"], ["set", "a", "--secret"],
      ["unset", "a"], ["gets", "a"],
    ])
  func othersAreParsed(arguments: [String]) {
    #expect(PlainArguments.request(arguments) == nil)
  }
}
