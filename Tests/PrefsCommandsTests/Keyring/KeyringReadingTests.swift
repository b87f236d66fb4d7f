import Coffer
import Testing

@testable import PrefsKeyring

@Suite("Keyring: names, lines and JSON")
struct KeyringReadingTests {
  @Test(
    "the key of an item has its attributes and an ID",
    arguments: [
      [:], ["user": "ada", "server": "h"], ["a=b&c#d": "%20 x", "": "", "ä": "e\u{301}\n"], ["url": "https://h:1/a?b"],
    ])
  func names(_ attributes: [String: String]) throws {
    let name = try ItemName(ItemAttributes(attributes))
    let read = ItemName(key: name.key)
    #expect(read.attributes == ItemAttributes(attributes) && read.id == name.id && name.id?.count == 16)
  }

  @Test("the key of an item is legible")
  func legible() throws {
    let attributes = ItemAttributes(["user": "a b", "server": "https://h/"])
    #expect(
      try ItemName(attributes, id: "0123456789abcdef").key == "server=https://h/&user=a%20b#0123456789abcdef")
  }

  @Test(
    "a key of another form is an item with one attribute",
    arguments: [
      "github", "", "a=b", "a=b#0123456789abcde", "a=b#0123456789abcdeF", "b=1&a=2#0123456789abcdef",
      "a=b&a=c#0123456789abcdef", "a=%2#0123456789abcdef", "a=%41#0123456789abcdef", "a=%ff#0123456789abcdef",
      "a#0123456789abcdef", "a=b=c#0123456789abcdef", "a=b#c#0123456789abcdef",
    ])
  func otherNames(_ key: String) {
    let name = ItemName(key: key)
    #expect(name.id == nil && name.attributes == ItemAttributes(["key": key]) && name.key == key)
  }

  @Test("attributes compare by their bytes, and match as a part")
  func matching() {
    let all = ItemAttributes(["user": "\u{E9}", "server": "h"])
    #expect(all.contain(ItemAttributes([:])) && all.contain(ItemAttributes(["server": "h"])))
    #expect(!all.contain(ItemAttributes(["user": "e\u{301}"])) && !all.contain(ItemAttributes(["port": "1"])))
  }

  @Test("attributes too long for a key are refused")
  func tooLong() {
    #expect(throws: KeyringProblem.self) {
      try ItemName(ItemAttributes(["a": String(repeating: "x", count: ItemName.limit)]))
    }
  }

  // MARK: - git

  private static func lines(_ text: String) throws -> CredentialLines {
    try CredentialLines(SecretBytes(copying: text))
  }

  @Test("of several lines the last counts, and an empty value clears a list")
  func repeatedLines() throws {
    let lines = try Self.lines("host=a\nhost=b=c\ncapability[]=x\ncapability[]=\ncapability[]=y\n\nhost=d\n")
    #expect(lines.texts == ["host": "b=c"] && lines.lists == ["capability[]": ["y"]])
    #expect(try Self.lines("").texts.isEmpty)
    #expect(try Self.lines("password=\npassword=a b").secrets["password"]?.count == 3)
  }

  @Test("a line without a name and a value is refused", arguments: ["host", "a=b\nhost", "host=a\0"])
  func badLines(_ text: String) {
    #expect(throws: KeyringProblem.self) { try Self.lines(text) }
  }

  @Test(
    "a port is one if it is a number behind the name",
    arguments: [
      ("h", "h", nil), ("h:80", "h", "80"), ("h:", "h:", nil), ("h:0", "h:0", nil), ("h:65536", "h:65536", nil),
      ("[::1]", "[::1]", nil), ("[::1]:80", "[::1]", "80"),
    ] as [(String, String, String?)])
  func ports(host: String, server: String, port: String?) throws {
    let credential = try GitCredential(SecretBytes(copying: "host=\(host)\n"))
    #expect(credential.ofPassword["server"] == server && credential.ofPassword["port"] == port)
  }

  // MARK: - docker

  @Test("the members of an object are read whatever their order, and unescaped")
  func object() throws {
    let request = try DockerRequest(
      SecretBytes(copying: #" { "Secret":"\"\\\/\b\f\n\r\tä\u00e4\ud83d\udd11", "ServerURL" : "h","Username":"u"} "#))
    #expect(request.server == "h" && request.username == "u")
    let expected = "\"\\/\u{8}\u{C}\n\r\tää🔑"
    #expect(request.secret?.isEqual(to: SecretBytes(copying: expected)) == true)
  }

  @Test(
    "anything else than an object of strings is refused",
    arguments: [
      "", "[]", "{", "{}x", #"{"a"}"#, #"{"a":1}"#, #"{"a":"b",}"#, #"{"a":"b" "c":"d"}"#, #"{"a":"b}"#,
      "{\"a\":\"\n\"}",
      #"{"a":"\u12"}"#, #"{"a":"\udd11"}"#, #"{"a":"\ud83d\u0041"}"#, #"{"a":"\x"}"#, #"{"a":"\"#,
    ])
  func noObject(_ text: String) {
    #expect(throws: KeyringProblem.self) { try DockerRequest(SecretBytes(copying: text)) }
  }

  @Test("a secret is quoted as JSON, and bytes that are not text are refused")
  func quoting() throws {
    #expect(
      try SecretBytes(copying: "a\"\\\n\u{1F}ä").quotedJSON().isEqual(
        to: SecretBytes(copying: #""a\"\\\u000a\u001fä""#)))
    #expect(throws: KeyringProblem.self) {
      try [UInt8]([0x61, 0xC3]).withUnsafeBytes { try SecretBytes(copying: $0).quotedJSON() }
    }
  }
}
