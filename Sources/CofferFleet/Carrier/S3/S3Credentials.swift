import CofferCrypto

/// An access key of an S3-compatible storage.
public struct S3Credentials: Sendable {
  /// The name of the key, which is not secret.
  public let accessKey: String
  /// The secret, in UTF-8, which signs requests and is never sent.
  public let secretKey: SecretBytes
  /// The token of a temporary key, in UTF-8, which is sent.
  public let sessionToken: SecretBytes?

  /// An access key.
  public init(accessKey: String, secretKey: SecretBytes, sessionToken: SecretBytes? = nil) {
    (self.accessKey, self.secretKey, self.sessionToken) = (accessKey, secretKey, sessionToken)
  }

  /// Reads the access key from a file in the format of AWS's tools.
  ///
  ///     [default]
  ///     aws_access_key_id = AKIAIOSFODNN7EXAMPLE
  ///     aws_secret_access_key = …
  ///
  /// - Parameters:
  ///   - file: The contents of the file.
  ///   - profile: The name of the section. Without any section, the whole file is it.
  /// - Returns: Nil if the file does not have that section with both lines.
  public init?(file: SecretBytes, profile: String = "default") {
    let values = file.withUnsafeBytes { Self.values(of: profile, in: $0) }
    guard let name = values["aws_access_key_id"], let secret = values["aws_secret_access_key"] else { return nil }
    accessKey = file.withUnsafeBytes { String(decoding: $0[name], as: UTF8.self) }
    secretKey = file.slice(secret)
    sessionToken = values["aws_session_token"].map { file.slice($0) }
  }

  /// Where the values of a section are.
  private static func values(of profile: String, in file: UnsafeRawBufferPointer) -> [String: Range<Int>] {
    var values: [String: Range<Int>] = [:]
    var isInProfile = true
    var start = 0
    while start < file.count {
      let end = file[start...].firstIndex(of: UInt8(ascii: "\n")) ?? file.count
      let line = trimmed(start..<end, file)
      start = end + 1
      guard let first = line.first.map({ file[$0] }), first != UInt8(ascii: "#"), first != UInt8(ascii: ";") else {
        continue
      }
      if first == UInt8(ascii: "[") {
        let name = line.dropFirst().prefix { file[$0] != UInt8(ascii: "]") }
        isInProfile = file[trimmed(name, file)].elementsEqual(profile.utf8)
      } else if isInProfile, let equals = line.first(where: { file[$0] == UInt8(ascii: "=") }) {
        let value = trimmed(equals + 1..<line.upperBound, file)
        let name = String(decoding: file[trimmed(line.lowerBound..<equals, file)], as: UTF8.self)
        if !value.isEmpty { values[name] = value }
      }
    }
    return values
  }

  private static func trimmed(_ range: Range<Int>, _ file: UnsafeRawBufferPointer) -> Range<Int> {
    func isSpace(_ index: Int) -> Bool { file[index] == 0x20 || (0x09...0x0d).contains(file[index]) }
    guard let first = range.first(where: { !isSpace($0) }), let last = range.last(where: { !isSpace($0) }) else {
      return range.lowerBound..<range.lowerBound
    }
    return first..<last + 1
  }

  /// Whether a header can have the parts that are sent.
  var isValid: Bool {
    func isPrintable(_ bytes: some Sequence<UInt8>) -> Bool { bytes.allSatisfy { (0x21..<0x7f).contains($0) } }
    return !accessKey.isEmpty && isPrintable(accessKey.utf8) && secretKey.count > 0
      && sessionToken?.withUnsafeBytes { isPrintable($0) } ?? true
  }

  func isEqual(to other: S3Credentials) -> Bool {
    accessKey == other.accessKey && secretKey.isEqual(to: other.secretKey)
      && (sessionToken.map { token in other.sessionToken.map(token.isEqual) ?? false } ?? (other.sessionToken == nil))
  }
}
