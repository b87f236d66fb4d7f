import CofferCrypto

/// Seals and opens pages and log frames for one connection; ciphers and buffers are allocated once, not per page.
///
/// Used by one thread at a time, like the connection itself.
final class PageCodec {
  /// The position that a page is bound to, besides its key.
  enum Place {
    case database(page: UInt32)
    /// `header` points to the start of the frame's header: page number and commit size. `salts` are those of the
    /// log's generation, from its header: while a transaction is still changing frames, the frames' own may be zero.
    case log(frame: UInt32, header: UnsafeRawPointer, salts: UInt64)

    var isInLog: Bool {
      if case .log = self { true } else { false }
    }
  }

  private final class EpochCipher {
    let number: UInt32
    let page: XAES256GCM
    let logHeader: TweakedBlockCipher

    init(_ keys: EpochKeys) throws {
      number = keys.number
      page = try XAES256GCM(key: keys.page)
      logHeader = try TweakedBlockCipher(key: keys.logHeader)
    }
  }

  /// Oldest first; the last one seals.
  private var ciphers: [EpochCipher]
  /// The last one, used for nearly all pages; unmanaged, to avoid reference counting per page.
  @exclusivity(unchecked) private var newest: Unmanaged<EpochCipher>
  private let random = RandomSource()
  /// Called for each page that is sealed or opened, to report the progress of a long operation.
  var onPage: (() -> Void)?
  private let headerTail = UnsafeMutableRawPointer.allocate(
    byteCount: TweakedBlockCipher.blockByteCount, alignment: 8)
  private let additionalData = UnsafeMutableRawBufferPointer.allocate(byteCount: 36, alignment: 8)

  /// `Layout.payloadByteCount` from the start of a page: nonce, tag and epoch follow, then four zero bytes, in a log frame
  /// the sync mark.
  private static let tagOffset = Layout.payloadByteCount + XAES256GCM.nonceByteCount
  static let epochOffset = tagOffset + XAES256GCM.tagByteCount

  /// - Parameter keys: The keys of at least one epoch.
  init(keys: [EpochKeys]) throws {
    ciphers = try Self.ciphers(for: keys, known: [])
    newest = .passUnretained(ciphers[ciphers.count - 1])
    // The label stands for the format and its suite; see FORMAT.md, Pages.
    additionalData.copyBytes(from: Array("coffer/1".utf8))
  }

  deinit {
    additionalData.deallocate()
    headerTail.deallocate()
  }

  /// Switches to the envelope's current epochs.
  func use(_ keys: [EpochKeys]) throws {
    ciphers = try Self.ciphers(for: keys, known: ciphers)
    newest = .passUnretained(ciphers[ciphers.count - 1])
  }

  private static func ciphers(for keys: [EpochKeys], known: [EpochCipher]) throws -> [EpochCipher] {
    try keys.sorted { $0.number < $1.number }.map { keys in
      try known.first { $0.number == keys.number } ?? EpochCipher(keys)
    }
  }

  /// Whether there are keys of several epochs.
  var hasOldEpochs: Bool { ciphers.count > 1 }

  /// Random bytes from the source of the nonces.
  func randomBytes(count: Int) throws -> [UInt8] {
    try random.bytes(count: count)
  }

  /// Computes the 16 or 36 bytes of additional data for a page at `place`.
  @inline(__always)
  private func bind(_ place: Place, mark: UInt32) -> UnsafeRawBufferPointer {
    switch place {
    case .database(let page):
      additionalData.storeBytes(of: UInt32(1).bigEndian, toByteOffset: 8, as: UInt32.self)
      additionalData.storeBytes(of: page.bigEndian, toByteOffset: 12, as: UInt32.self)
      return UnsafeRawBufferPointer(rebasing: additionalData[..<16])
    case .log(let frame, let header, let salts):
      additionalData.storeBytes(of: UInt32(2).bigEndian, toByteOffset: 8, as: UInt32.self)
      additionalData.storeBytes(of: frame.bigEndian, toByteOffset: 12, as: UInt32.self)
      (additionalData.baseAddress! + 16).copyMemory(from: header, byteCount: 8)
      additionalData.storeBytes(of: salts, toByteOffset: 24, as: UInt64.self)
      additionalData.storeBytes(of: mark.bigEndian, toByteOffset: 32, as: UInt32.self)
      return UnsafeRawBufferPointer(additionalData)
    }
  }

  // MARK: Pages

  /// Whether SQLite left the reserved bytes alone; it did not in a page copied from a database without them.
  ///
  /// Page 1 also states their size, and that of a page: bytes 20 and 16..<18 of the database header.
  @inline(__always)
  static func hasReserve(_ page: UnsafeRawPointer, number: UInt32) -> Bool {
    if number == 1 {
      guard page.load(fromByteOffset: 20, as: UInt8.self) == Layout.reserveByteCount,
        UInt16(bigEndian: page.loadUnaligned(fromByteOffset: 16, as: UInt16.self)) == Layout.pageByteCount
      else { return false }
    }
    var used: UInt64 = 0
    for offset in stride(from: Layout.payloadByteCount, to: Layout.pageByteCount, by: 8) {
      used |= page.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
    }
    return used == 0
  }

  /// Encrypts `page` into `output`, including nonce, tag and epoch.
  ///
  /// - Parameter mark: The number of frames of the log that were synced before this one is written.
  func encrypt(
    _ page: UnsafeRawPointer, at place: Place, mark: UInt32 = 0, into output: UnsafeMutableRawPointer
  ) throws(CryptoError) {
    onPage?()
    let nonce = output + Layout.payloadByteCount
    try random.fill(UnsafeMutableRawBufferPointer(start: nonce, count: XAES256GCM.nonceByteCount))
    try newest.lend { cipher throws(CryptoError) in
      try cipher.page.seal(
        page, count: Layout.payloadByteCount, into: output, tag: output + Self.tagOffset, nonce: nonce,
        additionalData: bind(place, mark: mark))
      output.storeBytes(of: cipher.number.bigEndian, toByteOffset: Self.epochOffset, as: UInt32.self)
    }
    output.storeBytes(of: mark.bigEndian, toByteOffset: Self.epochOffset + 4, as: UInt32.self)
  }

  /// Decrypts `sealed` into `output`, which may be the same memory; the reserved bytes come out as zeros, as SQLite wrote
  /// them.
  func decrypt(_ sealed: UnsafeRawPointer, at place: Place, into output: UnsafeMutableRawPointer) throws(CryptoError) {
    let mark = Self.mark(ofSealedPage: sealed)
    guard let cipher = cipher(ofSealedPage: sealed), mark == 0 || place.isInLog else { throw .authenticationFailed }
    onPage?()
    try cipher.lend { cipher throws(CryptoError) in
      try cipher.page.open(
        sealed, count: Layout.payloadByteCount, into: output, tag: sealed + Self.tagOffset,
        nonce: sealed + Layout.payloadByteCount, additionalData: bind(place, mark: mark))
    }
    memset(output + Layout.payloadByteCount, 0, Layout.reserveByteCount)
  }

  /// The last four bytes of a sealed page.
  @inline(__always)
  static func mark(ofSealedPage sealed: UnsafeRawPointer) -> UInt32 {
    UInt32(bigEndian: sealed.loadUnaligned(fromByteOffset: epochOffset + 4, as: UInt32.self))
  }

  /// The epoch number in a sealed page.
  @inline(__always)
  static func epoch(ofSealedPage sealed: UnsafeRawPointer) -> UInt32 {
    UInt32(bigEndian: sealed.loadUnaligned(fromByteOffset: epochOffset, as: UInt32.self))
  }

  @inline(__always)
  func knowsEpoch(ofSealedPage sealed: UnsafeRawPointer) -> Bool {
    cipher(ofSealedPage: sealed) != nil
  }

  @inline(__always)
  private func cipher(ofSealedPage sealed: UnsafeRawPointer) -> Unmanaged<EpochCipher>? {
    let number = Self.epoch(ofSealedPage: sealed)
    if newest._withUnsafeGuaranteedRef({ $0.number == number }) { return newest }
    return ciphers.first { $0.number == number }.map(Unmanaged.passUnretained)
  }

  // MARK: Log headers

  /// Enciphers the salts and checksum of a frame's header, or of the log's own (frame 0), under the current epoch.
  func encipherHeader(tail: UnsafeMutableRawPointer, frame: UInt32) throws(CryptoError) {
    try newest.lend { cipher throws(CryptoError) in
      try cipher.logHeader.encrypt(tail, tweak: UInt64(frame))
    }
  }

  /// Deciphers the tail of a frame's header under the epoch in its sealed page.
  ///
  /// - Returns: false when that epoch is unknown; the tail is then unchanged.
  func decipherHeader(
    tail: UnsafeMutableRawPointer, frame: UInt32, sealedPage: UnsafeRawPointer
  ) throws(CryptoError) -> Bool {
    guard let cipher = cipher(ofSealedPage: sealedPage) else { return false }
    try cipher.lend { cipher throws(CryptoError) in
      try cipher.logHeader.decrypt(tail, tweak: UInt64(frame))
    }
    return true
  }

  /// Whether the tail of a frame's header has these salts under any epoch; for a frame at which the log ends.
  func headerTail(
    _ tail: UnsafeRawPointer, ofFrame frame: UInt32, hasSalts salts: UInt64
  ) throws(CryptoError) -> Bool {
    for cipher in ciphers {
      headerTail.copyMemory(from: tail, byteCount: TweakedBlockCipher.blockByteCount)
      try cipher.logHeader.decrypt(headerTail, tweak: UInt64(frame))
      if headerTail.load(as: UInt64.self) == salts { return true }
    }
    return false
  }

  /// Deciphers the header of the log, 32 bytes in place, under the epoch that makes its checksum valid.
  ///
  /// - Returns: That epoch; nil if there is none: the log was torn, tampered with, or is of an epoch long gone. The
  ///   bytes are then noise, which SQLite treats as an empty log.
  func decipherLogHeader(_ header: UnsafeMutableRawPointer) throws(CryptoError) -> UInt32? {
    let tail = header + 16
    for cipher in ciphers.reversed() {
      try cipher.logHeader.decrypt(tail, tweak: 0)
      if LogChecksum.isValid(logHeader: header) { return cipher.number }
      try cipher.logHeader.encrypt(tail, tweak: 0)
    }
    return nil
  }
}

extension Unmanaged {
  /// Lends the object to `body` without reference counting; keeps the error type, which the standard library's
  /// function loses.
  @inline(__always)
  fileprivate func lend<Result>(
    _ body: (Instance) throws(CryptoError) -> Result
  ) throws(CryptoError) -> Result {
    try _withUnsafeGuaranteedRef { instance in
      Swift.Result { () throws(CryptoError) in try body(instance) }
    }.get()
  }
}
