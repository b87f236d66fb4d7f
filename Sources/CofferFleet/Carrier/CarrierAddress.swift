/// An address of a carrier: `scheme://user@host,host/path?option=value`, with percent-encoding as in a URL.
struct CarrierAddress: Sendable {
  /// As given; without what may be a secret.
  let text: String
  let scheme: String
  let user: String?
  let hosts: [String]
  /// Begins with a slash, or is empty.
  let path: String
  let options: [String: String]

  init(_ given: String) throws(CarrierError) {
    let (text, shown) = (given, Self.redacted(given))
    guard let separator = text.firstRange(of: "://") else {
      throw .badAddress(shown, reason: "it must begin with file:///, etcd://, etcds:// or s3://")
    }
    scheme = text[..<separator.lowerBound].lowercased()
    let parts = text[separator.upperBound...].split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    var location = parts[0]
    if scheme != "file", let user = Self.user(in: location) {
      guard !user.contains(":") else {
        throw .badAddress(
          shown, reason: "a password must not be in an address, which others can see; give it separately")
      }
      self.user = try Self.decoded(user, of: shown)
      location = location[location.index(after: user.endIndex)...]
    } else {
      user = nil
    }
    self.text = shown
    let slash = location.firstIndex(of: "/") ?? location.endIndex
    hosts = location[..<slash].split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    path = try Self.decoded(location[slash...], of: shown)
    options = try Self.options(parts.count > 1 ? parts[1] : "", of: shown)
  }

  // MARK: Secrets

  /// What precedes an `@`: a user, or a user and a password, which may have slashes.
  ///
  /// In a path behind a host it is part of a name.
  private static func user(in location: Substring) -> Substring? {
    guard let at = location.lastIndex(of: "@") else { return nil }
    let authority = location.prefix { $0 != "/" }
    if at < authority.endIndex { return location[..<at] }
    guard let colon = authority.firstIndex(of: ":") else { return nil }
    let port = authority[authority.index(after: colon)...].utf8
    let isPort = !port.isEmpty && port.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    return isPort ? nil : location[..<at]
  }

  /// All that a carrier has: a value under another name is not shown, and so would be lost from an address that is stored.
  private static let knownOptions = ["ca", "cert", "endpoint", "key", "poll", "region"]

  /// An address as it is shown: without a password, and without what may be one in its options.
  ///
  /// A valid one is shown as it is.
  private static func redacted(_ text: String) -> String {
    guard let separator = text.firstRange(of: "://"), text[..<separator.lowerBound].lowercased() != "file" else {
      return text
    }
    let parts = text[separator.upperBound...].split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    var shown = String(text[..<separator.upperBound])
    if let user = user(in: parts[0]), user.contains(":") {
      shown += "\(user.prefix { $0 != ":" })\(parts[0][user.endIndex...])"
    } else {
      shown += parts[0]
    }
    guard parts.count > 1 else { return shown }
    let options = parts[1].split(separator: "&", omittingEmptySubsequences: false).map { option in
      let (name, value) = (option.prefix { $0 != "=" }, option.drop { $0 != "=" }.dropFirst())
      let isKnown = knownOptions.contains(String(name))
      guard option.contains("=") else { return isKnown ? String(option) : "…" }
      guard isKnown else { return "\(name)=…" }
      // As in `endpoint=https://user:password@host`.
      return "\(name)=\(value.lastIndex(of: "@").map { value[$0...] } ?? value)"
    }
    return "\(shown)?\(options.joined(separator: "&"))"
  }

  // MARK: Decoding

  private static func options(_ query: Substring, of text: String) throws(CarrierError) -> [String: String] {
    var options: [String: String] = [:]
    for option in query.split(separator: "&") {
      guard let equals = option.firstIndex(of: "=") else {
        throw .badAddress(text, reason: "an option has no value")
      }
      let name = String(option[..<equals])
      guard options.updateValue(try decoded(option[option.index(after: equals)...], of: text), forKey: name) == nil
      else {
        throw .badAddress(text, reason: "the option \(name) occurs twice")
      }
    }
    return options
  }

  private static func decoded(_ part: Substring, of text: String) throws(CarrierError) -> String {
    var bytes: [UInt8] = []
    var rest = part.utf8
    while let byte = rest.popFirst() {
      if byte != UInt8(ascii: "%") {
        bytes.append(byte)
      } else if let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit) {
        bytes.append(high << 4 | low)
      } else {
        throw .badAddress(text, reason: "% must be followed by two hexadecimal digits; write %25 for % itself")
      }
    }
    guard !bytes.contains(0), let decoded = String(validating: bytes, as: UTF8.self) else {
      throw .badAddress(text, reason: "it is not UTF-8 when decoded")
    }
    return decoded
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    Character(Unicode.Scalar(byte)).hexDigitValue.map(UInt8.init)
  }
}
