import Coffer
import Foundation
import TestSupport
import Testing

@testable import PrefsCommands

/// The readers of JSON and TOML beside those of Python's standard library, on changed files.
@Suite("Readers of files beside Python's")
struct FormatReferenceTests {
  private static let isLong = ProcessInfo.processInfo.environment["COFFER_SOAK"] == "1"

  /// The forms of each format, written for this test; changes make the rest.
  private static let seeds: [SettingsFormat: String] = [
    .json: """
    {"a": [1, -1, 0, 1.5, -0.0, 1e3, 1E-3, 9223372036854775807, 9223372036854775808, 18446744073709551615], "b": {"é": null},
     "c": true, "d": false, "e": "\\u00e9\\ud83d\\udd11\\n\\/\\"\\\\", "f": {}, "g": [], "h": [[{"i": ""}]], "": 1.0e0}
    """,
    .toml: """
    # comment
    a = 1
    "b c" = -2
    d.e = 0xff
    f = 0o17 # comment
    g = 0b101
    h = 1_000
    i = [1.5, 1e3, -0.0, inf, +nan]
    j = "\\u00e9\\t\\"\\\\"
    k = 'C:\\x'
    l = \"""
    two
    lines \\
       joined\"""
    m = '''
    'x' '''
    n = 2026-01-31T08:30:00.25Z
    o = 2026-01-31 08:30:00+01:00
    p = 2026-01-31
    q = { r = [true, false], s.t = {} }
    [u]
    v = 9223372036854775807
    [u.w]
    x = ""
    [[y]]
    z = 1
    [[y]]
    """,
  ]

  /// Prints, for each file, what it holds in a form that shows every type and bit; `null` for a file that is not read.
  static let script = """
    import sys, json, struct, datetime
    try:
      import tomllib
    except ImportError:
      tomllib = None
    def shown(v):
      if v is None or isinstance(v, bool): return json.dumps(v)
      if isinstance(v, int): return 'i%d' % v
      if isinstance(v, float): return 'nan' if v != v else 'f' + struct.pack('>d', v).hex()
      if isinstance(v, str): return 's' + v.encode().hex()
      if isinstance(v, list): return '[' + ','.join(map(shown, v)) + ']'
      if isinstance(v, dict):
        return '{' + ','.join(sorted(k.encode().hex() + ':' + shown(x) for k, x in v.items())) + '}'
      if isinstance(v, datetime.datetime) and v.tzinfo: return 'd%d' % round(v.timestamp() * 1000)
      if isinstance(v, datetime.date): return 'd%d' % (datetime.datetime(v.year, v.month, v.day, tzinfo=datetime.timezone.utc).timestamp() * 1000)
      return '?'
    # Here the sign of zero is kept.
    def whole(t): return -0.0 if t == '-0' else int(t)
    out = []
    for path in sys.argv[2:]:
      text = open(path, 'rb').read()
      try:
        out.append(shown(json.loads(text, parse_int=whole) if sys.argv[1] == 'json' else tomllib.loads(text.decode())))
      except Exception: out.append(None)
    print(json.dumps(out))
    """

  static func shown(_ value: Value) -> String {
    switch value {
    case .null: "null"
    case .bool(let isTrue): isTrue ? "true" : "false"
    case .int(let number): "i\(number)"
    case .uint64(let number): "i\(number)"
    case .double(let number):
      number.isNaN ? "nan" : "f" + HexText.text(withUnsafeBytes(of: number.bitPattern.bigEndian, Array.init))
    case .string(let text): "s" + HexText.text(text.utf8)
    case .date(let date): "d\(Int((date.timeIntervalSince1970 * 1000).rounded()))"
    case .array(let elements): "[" + elements.map(shown).joined(separator: ",") + "]"
    case .dictionary(let members):
      "{" + members.map { HexText.text($0.key.utf8) + ":" + shown($0.value) }.sorted().joined(separator: ",") + "}"
    default: "\(value.kind)"
    }
  }

  @Test("accept only what those accept, and read the same values; seed 46", arguments: [SettingsFormat.json, .toml])
  func differences(_ format: SettingsFormat) throws {
    let check = format == .toml ? "import tomllib" : "import json"
    guard (try? Child.run("/usr/bin/env", ["python3", "-c", check], capturesMessages: true).status) == 0 else { return }
    let folder = NSTemporaryDirectory() + "coffer-reference-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let seed = Array(try #require(Self.seeds[format]).utf8)
    let alphabet = Array("\0\n\r\t \"'\\#&*!|>[]{}:,.=-+_0123456789abefintuxzTZé\u{feff}\u{7f}\u{1}".utf8)
    var random = SplitMix64(state: 46)
    var (same, refused) = (0, 0)
    for _ in 0..<(Self.isLong ? 60 : 1) {
      var files: [String] = []
      var values: [String] = []
      for number in 0..<300 {
        var bytes = seed
        for _ in 0..<(number == 0 ? 0 : Int.random(in: 1...2, using: &random)) {
          let place = Int.random(in: 0..<bytes.count, using: &random)
          let byte = alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
          switch Int.random(in: 0..<3, using: &random) {
          case 0: bytes[place] = byte
          case 1: bytes.insert(byte, at: place)
          default: bytes.remove(at: place)
          }
        }
        guard let value = try? format.tree(bytes, reading: SettingsFormat.reading).asValue else {
          #expect(number > 0, "the seed is refused")
          refused += 1
          continue
        }
        files.append("\(folder)/\(files.count)")
        values.append(Self.shown(value))
        try Data(bytes).write(to: URL(fileURLWithPath: files[files.count - 1]))
      }
      let child = try Child.run("/usr/bin/env", ["python3", "-c", Self.script, format.rawValue] + files)
      let read = try JSONDecoder().decode([String?].self, from: child.output)
      for (index, value) in values.enumerated() where read[index] != value {
        let text = try String(contentsOfFile: files[index], encoding: .utf8)
        Issue.record("\(format): \(value) here, \(read[index] ?? "refused") there: \(text)")
      }
      same += values.count
    }
    #expect(same > (Self.isLong ? 600 : 30))
    print("\(format), seed 46, beside Python: \(same) the same, \(refused) refused")
  }
}
