/// The ciphers of a store's pages, with the epochs that other processes begin while it is open.
///
/// Used by one thread at a time, like the ciphers.
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

  /// Opens a page of the file in place.
  ///
  /// - Returns: Whether it authenticates.
  /// - Throws: The error of loading an epoch that is not known here.
  func open(_ page: inout [UInt8], number: Int) throws -> Bool {
    try page.withUnsafeMutableBytes { bytes in
      let start = bytes.baseAddress!
      if !pages.knowsEpoch(ofSealedPage: start) { try synchronize() }
      return (try? pages.decrypt(start, at: .database(page: UInt32(number)), into: start)) != nil
    }
  }

  // MARK: Log

  /// Deciphers the header of the log, 32 bytes in place; false if no epoch makes its checksum valid.
  ///
  /// - Throws: The error of loading another epoch.
  func decipherLogHeader(_ header: UnsafeMutableRawPointer) throws -> Bool {
    if try pages.decipherLogHeader(header) != nil { return true }
    try synchronize()
    return try pages.decipherLogHeader(header) != nil
  }

  /// Deciphers the tail of a frame's header; false if the epoch of its page is unknown.
  ///
  /// - Throws: The error of loading another epoch.
  func decipherHeader(tail: UnsafeMutableRawPointer, frame: UInt32, sealedPage: UnsafeRawPointer) throws -> Bool {
    if !pages.knowsEpoch(ofSealedPage: sealedPage) { try synchronize() }
    return try pages.decipherHeader(tail: tail, frame: frame, sealedPage: sealedPage)
  }
}
