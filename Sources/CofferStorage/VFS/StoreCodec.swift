import CofferCrypto

/// The ciphers of a store's pages, with the epochs that other processes begin while it is open.
///
/// A reader without a lock may come too early to load them; it looks again when it meets an unknown one. Everything here throws
/// the error of that, or of a cipher that could not be run. Used by one thread at a time, like the ciphers.
final class StoreCodec {
  let pages: PageCodec
  private let store: Store
  /// The sequence of the envelope whose epochs the ciphers have.
  private var sequence: UInt64

  init(_ store: Store) throws {
    let (sequence, keys) = store.keys
    (self.store, self.sequence) = (store, sequence)
    pages = try PageCodec(keys: keys)
  }

  /// Loads the epochs of the envelope, if that has changed.
  func synchronize() throws {
    guard let (sequence, keys) = try store.keys(changedSince: sequence) else { return }
    try pages.use(keys)
    self.sequence = sequence
  }

  /// Loads the epoch of a sealed page, if it is not known yet.
  @inline(__always)
  func learnEpoch(ofSealedPage sealed: UnsafeRawPointer) throws {
    if !pages.knowsEpoch(ofSealedPage: sealed) { try synchronize() }
  }

  /// Opens a page in place; false if it does not authenticate.
  func open(_ page: inout [UInt8], at place: PageCodec.Place) throws -> Bool {
    try page.withUnsafeMutableBytes { try open($0.baseAddress!, at: place, into: $0.baseAddress!) }
  }

  /// Opens a page into `output`; false if it does not authenticate.
  func open(_ sealed: UnsafeRawPointer, at place: PageCodec.Place, into output: UnsafeMutableRawPointer) throws -> Bool
  {
    try learnEpoch(ofSealedPage: sealed)
    do {
      try pages.decrypt(sealed, at: place, into: output)
      return true
    } catch .authenticationFailed {
      return false
    }
  }

  // MARK: Log headers

  /// Deciphers the header of the log, 32 bytes in place; false if no epoch makes its checksum valid.
  func decipherLogHeader(_ header: UnsafeMutableRawPointer) throws -> Bool {
    if try pages.decipherLogHeader(header) != nil { return true }
    try synchronize()
    return try pages.decipherLogHeader(header) != nil
  }

  /// Deciphers the tail of a frame's header; false if the epoch of its page is unknown.
  func decipherHeader(tail: UnsafeMutableRawPointer, frame: UInt32, sealedPage: UnsafeRawPointer) throws -> Bool {
    try learnEpoch(ofSealedPage: sealedPage)
    return try pages.decipherHeader(tail: tail, frame: frame, sealedPage: sealedPage)
  }
}
