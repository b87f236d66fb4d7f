/// What tells a commit, and all before it, from others of the same number: its link in the chain of the change log.
///
/// Kept in place, so that a commit allocates nothing for it.
package struct ChangeLink: Equatable, Sendable {
  /// The size of a link: half a SHA-256, so that a commit of a few keys is hashed in two blocks.
  package static let byteCount = 16
  /// What the first commit of all is chained to.
  package static let origin = ChangeLink()

  private var words: SIMD2<UInt64> = .zero

  private init() {}

  /// nil unless there are 16 bytes.
  package init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count == Self.byteCount else { return nil }
    words = bytes.loadUnaligned(as: SIMD2<UInt64>.self)
  }

  /// The first half of a SHA-256.
  package init(digest: SIMD4<UInt64>) { words = digest.lowHalf }

  package func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try Swift.withUnsafeBytes(of: words, body)
  }

  package var bytes: [UInt8] { withUnsafeBytes { Array($0) } }
}
