/// Replaces secrets in a text with ``placeholder``.
struct SecretMask: Sendable {
  /// The replacement for a secret.
  static let placeholder = Array("<secret>".utf8)

  /// Shorter values also occur in text that is not secret, such as "1" in numbers.
  static let shortest = 4

  /// The secrets by their first byte, the longest first.
  private var secrets: [[[UInt8]]] = Array(repeating: [], count: 256)

  /// Adds a secret, and each of its lines, as a program may print it line by line.
  ///
  /// - Returns: Whether all of it is replaced from now on.
  @discardableResult mutating func add(_ secret: [UInt8]) -> Bool {
    let lines = secret.split { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }.map(Array.init)
    for part in lines + [secret] where part.count >= Self.shortest { insert(part) }
    return lines.allSatisfy { $0.count >= Self.shortest }
  }

  private mutating func insert(_ secret: [UInt8]) {
    let first = Int(secret[0])
    guard !secrets[first].contains(secret) else { return }
    secrets[first].append(secret)
    secrets[first].sort { $0.count > $1.count }
  }

  /// A piece of a text with its secrets replaced.
  ///
  /// - Parameters:
  ///   - bytes: The bytes held back before, and the next piece.
  ///   - isEnd: Whether this is the last piece.
  /// - Returns: `held` may be the beginning of a secret that continues in the next piece.
  func masking(_ bytes: [UInt8], isEnd: Bool) -> (shown: [UInt8], held: [UInt8]) {
    var shown: [UInt8] = []
    shown.reserveCapacity(bytes.count)
    var index = 0
    while index < bytes.count {
      // Most bytes do not begin a secret.
      let start = index
      while index < bytes.count, secrets[Int(bytes[index])].isEmpty { index += 1 }
      shown += bytes[start..<index]
      guard index < bytes.count else { break }
      let candidates = secrets[Int(bytes[index])]
      let rest = bytes[index...]
      if !isEnd, candidates.contains(where: { $0.count > rest.count && $0.starts(with: rest) }) {
        return (shown, Array(rest))
      }
      if let secret = candidates.first(where: { rest.starts(with: $0) }) {
        shown += Self.placeholder
        index += secret.count
      } else {
        shown.append(bytes[index])
        index += 1
      }
    }
    return (shown, [])
  }
}
