import CofferStorage

/// A place in the history of a store: the number of a commit, and a digest of it and of all before it.
///
/// The number alone does not say of which history it is: a restored store, or another one in the same place, goes on with
/// numbers that the former one has used. Keep the description to continue later, also in another process.
///
/// ```swift
/// let position = CommitPosition(try String(contentsOfFile: path, encoding: .utf8)) ?? .beginning
/// ```
public struct CommitPosition: Hashable, Sendable, LosslessStringConvertible {
  /// The number of the commit.
  public let number: CommitNumber
  /// nil for a number that nothing vouches for.
  private let digest: UInt32?

  /// Before the first commit, in any history.
  public static let beginning = CommitPosition(number: 0, digest: nil)

  private init(number: CommitNumber, digest: UInt32?) {
    (self.number, self.digest) = (number, digest)
  }

  /// - Parameter link: The commit's link in the chain of the change log; nil before the first commit.
  init(_ number: CommitNumber, _ link: ChangeLink?) {
    self.number = max(0, number)
    digest = link.map(Self.digest)
  }

  private static func digest(_ link: ChangeLink) -> UInt32 {
    link.withUnsafeBytes { UInt32(bigEndian: $0.loadUnaligned(as: UInt32.self)) }
  }

  /// Reads a description, or a number without a digest, which is a position in no history unless it is 0.
  public init?(_ description: String) {
    let parts = description.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    guard let number = parts.first.flatMap(Self.number), parts.count <= 2 else { return nil }
    self.number = number
    guard parts.count == 2 else {
      digest = nil
      return
    }
    guard parts[1].count == Self.digitCount, parts[1].allSatisfy(Self.isHexadecimal),
      let digest = UInt32(String(parts[1]) ?? "", radix: 16)
    else { return nil }
    self.digest = digest
  }

  private static func number(_ digits: Substring.UTF8View) -> CommitNumber? {
    digits.allSatisfy(isDecimal) ? CommitNumber(String(digits) ?? "") : nil
  }

  private static func isDecimal(_ digit: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) }

  private static func isHexadecimal(_ digit: UInt8) -> Bool {
    isDecimal(digit) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(digit)
  }

  private static let digitCount = 8

  /// The number, a hyphen, and the digest in 8 hexadecimal digits; of the beginning, `0`.
  public var description: String {
    guard let digest else { return "\(number)" }
    let digits = String(digest, radix: 16)
    return "\(number)-" + String(repeating: "0", count: Self.digitCount - digits.count) + digits
  }

  /// Whether it is the place of the commit with this link.
  func isOf(_ link: ChangeLink) -> Bool { digest == Self.digest(link) }

  /// Whether it is a place in the history that `log` continues.
  func isKnown(to log: ChangeLog) throws -> Bool {
    guard digest != nil else { return number == 0 }
    return try log.knownLink(of: number).map(isOf) ?? false
  }
}
