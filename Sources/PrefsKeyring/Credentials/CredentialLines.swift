import Coffer

/// The attributes of git-credential(1), `name=value` in lines, as git sends them to a helper.
///
/// Those that are secret stay in protected memory. Of several of a name the last counts, but names that end in `[]` are lists, which an
/// empty value clears. What is not known here is ignored.
struct CredentialLines {
  private(set) var texts: [String: String] = [:]
  private(set) var lists: [String: [String]] = [:]
  private(set) var secrets: [String: SecretBytes] = [:]

  private static let known: Set<String> = [
    "protocol", "host", "path", "username", "password_expiry_utc", "authtype", "ephemeral",
  ]
  private static let secret: Set<String> = ["password", "credential", "oauth_refresh_token"]

  /// - Throws: ``KeyringProblem``, which repeats nothing of the input.
  init(_ input: SecretBytes) throws {
    var rest = 0..<input.count
    while !rest.isEmpty {
      let line = input.part(of: rest, before: UInt8(ascii: "\n"))
      rest = min(line.upperBound + 1, rest.upperBound)..<rest.upperBound
      // The end of the attributes.
      if line.isEmpty { return }
      let name = input.part(of: line, before: UInt8(ascii: "="))
      guard name.upperBound < line.upperBound, let word = input.text(name) else {
        throw KeyringProblem(reason: "a line of the input is not NAME=VALUE")
      }
      try take(word, input, name.upperBound + 1..<line.upperBound)
    }
  }

  private mutating func take(_ name: String, _ input: SecretBytes, _ value: Range<Int>) throws {
    if Self.secret.contains(name) { return secrets[name] = input.slice(value) }
    guard Self.known.contains(name) || name == "capability[]" else { return }
    guard let text = input.text(value), !text.utf8.contains(0) else {
      throw KeyringProblem(reason: "the value of \(name) is not text")
    }
    if name == "capability[]" {
      lists[name] = text.isEmpty ? [] : (lists[name] ?? []) + [text]
    } else {
      texts[name] = text
    }
  }
}

extension SecretBytes {
  /// The part of a range before the first such byte; all of it if there is none.
  func part(of range: Range<Int>, before byte: UInt8) -> Range<Int> {
    withUnsafeBytes { bytes in range.lowerBound..<(bytes[range].firstIndex(of: byte) ?? range.upperBound) }
  }

  /// A part that is not secret, as text; nil if it is not UTF-8.
  func text(_ range: Range<Int>) -> String? {
    withUnsafeBytes { String(validating: UnsafeRawBufferPointer(rebasing: $0[range])) }
  }

  /// Whether there is a newline or a NUL, which no line of an answer can have.
  var breaksLine: Bool { withUnsafeBytes { bytes in bytes.contains { $0 == 10 || $0 == 0 } } }

  /// Those bytes one after another.
  static func joined(_ parts: [SecretBytes]) -> SecretBytes {
    SecretBytes(count: parts.map(\.count).reduce(0, +)) { all in
      var rest = all[...]
      for part in parts {
        part.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: rest).copyMemory(from: $0) }
        rest = rest.dropFirst(part.count)
      }
    }
  }
}
