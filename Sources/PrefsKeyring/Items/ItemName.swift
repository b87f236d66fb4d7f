import Coffer

/// The key of an item in its collection: its attributes and its ID.
///
/// `protocol=https&server=git.example.org&user=ada&xdg:schema=org.git.Password#5a0cbd9e22f3417f`: attributes in the order of their
/// names, with `%XX` for the characters that mean something here, then eight random bytes, which stay when attributes change.
///
/// Attributes are in the key, because a locked keyring must still find its items; so anyone who can open the store can read them,
/// as the Secret Service warns its clients. A key of another form is an item of `prefs set`, with one attribute, `key`.
struct ItemName: Sendable {
  let key: String
  let attributes: ItemAttributes
  /// Nil for a key of another form.
  let id: String?

  static let idDigits = 16
  /// The longest key: attributes are a few words.
  static let limit = 16 << 10

  /// - Throws: ``KeyringProblem``; `CryptoError`.
  init(_ attributes: ItemAttributes) throws {
    let bytes = try SecretBytes.random(count: Self.idDigits / 2)
    try self.init(attributes, id: bytes.withUnsafeBytes { HexText.text($0) })
  }

  /// - Throws: ``KeyringProblem``.
  init(_ attributes: ItemAttributes, id: String) throws {
    let key = Self.text(attributes) + "#" + id
    guard key.utf8.count <= Self.limit else {
      throw KeyringProblem(reason: "the attributes of the item have more than \(Self.limit >> 10) KiB")
    }
    (self.key, self.attributes, self.id) = (key, attributes, id)
  }

  init(key: String) {
    self.key = key
    if let (attributes, id) = Self.parts(of: key) {
      (self.attributes, self.id) = (attributes, id)
    } else {
      (attributes, id) = (ItemAttributes(["key": key]), nil)
    }
  }

  private static func text(_ attributes: ItemAttributes) -> String {
    attributes.sorted.map { escaped($0.name) + "=" + escaped($0.value) }.joined(separator: "&")
  }

  /// The attributes and the ID; nil if the key is not exactly as it is written here.
  private static func parts(of key: String) -> (ItemAttributes, String)? {
    let halves = key.utf8.split(separator: UInt8(ascii: "#"), omittingEmptySubsequences: false)
    guard halves.count == 2, let id = String(halves[1]), id.utf8.count == idDigits,
      id.utf8.allSatisfy({ (48...57).contains($0) || (97...102).contains($0) })
    else { return nil }
    var attributes: [(name: String, value: String)] = []
    if !halves[0].isEmpty {
      for pair in halves[0].split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false) {
        let words = pair.split(separator: UInt8(ascii: "="), omittingEmptySubsequences: false)
        guard words.count == 2, let name = unescaped(words[0]), let value = unescaped(words[1]) else { return nil }
        attributes.append((name, value))
      }
    }
    let read = ItemAttributes(attributes)
    guard (text(read) + "#" + id).utf8.elementsEqual(key.utf8) else { return nil }
    return (read, id)
  }

  private static let special = Set("=&#%\u{7F} ".utf8)

  private static func escaped(_ text: String) -> String {
    var bytes: [UInt8] = []
    for byte in text.utf8 {
      if byte < 0x20 || special.contains(byte) {
        let digits = withUnsafeBytes(of: byte) { HexText.text($0) }
        bytes += [UInt8(ascii: "%")] + digits.utf8
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func unescaped(_ text: Substring.UTF8View) -> String? {
    var bytes: [UInt8] = []
    var rest = text[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard let digits = String(rest.prefix(2)), let decoded = HexText.bytes(digits), decoded.count == 1 else {
        return nil
      }
      bytes += decoded
      rest = rest.dropFirst(2)
    }
    return bytes.withUnsafeBytes { String(validating: $0) }
  }
}

/// What a keyring refuses.
struct KeyringProblem: Error, Equatable {
  /// Without a full stop.
  let reason: String
}
