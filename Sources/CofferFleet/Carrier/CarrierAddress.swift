/// An address of a carrier: `scheme://user@host,host/path?option=value`, with percent-encoding as in a URL.
struct CarrierAddress: Sendable {
  /// As given; without a password.
  let text: String
  let scheme: String
  let user: String?
  let hosts: [String]
  /// Begins with a slash, or is empty.
  let path: String
  let options: [String: String]

  init(_ text: String) throws(CarrierError) {
    guard let separator = text.firstRange(of: "://") else {
      throw .badAddress(text, reason: "it must begin with file:///, etcd://, etcds:// or s3://")
    }
    scheme = text[..<separator.lowerBound].lowercased()
    let parts = text[separator.upperBound...].split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    let slash = parts[0].firstIndex(of: "/") ?? parts[0].endIndex
    var authority = parts[0][..<slash]
    if let at = authority.lastIndex(of: "@") {
      let user = authority[..<at]
      guard !user.contains(":") else {
        let shown =
          "\(text[..<separator.upperBound])\(user.prefix { $0 != ":" })@\(authority[authority.index(after: at)...])"
        throw .badAddress(
          shown, reason: "a password must not be in an address, which others can see; give it separately")
      }
      self.user = try Self.decoded(user, of: text)
      authority = authority[authority.index(after: at)...]
    } else {
      user = nil
    }
    self.text = text
    hosts = authority.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    path = try Self.decoded(parts[0][slash...], of: text)
    options = try Self.options(parts.count > 1 ? parts[1] : "", of: text)
  }

  private static func options(_ query: Substring, of text: String) throws(CarrierError) -> [String: String] {
    var options: [String: String] = [:]
    for option in query.split(separator: "&") {
      guard let equals = option.firstIndex(of: "=") else {
        throw .badAddress(text, reason: "the option \(option) has no value")
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
