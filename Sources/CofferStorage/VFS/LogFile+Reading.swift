import CSQLite
import CofferCrypto

extension LogFile {
  func read(_ buffer: UnsafeMutableRawPointer, _ count: Int, _ offset: Int64) -> Int32 {
    let code = flushPendingHeader()
    guard code == SQLITE_OK else { return code }
    if offset < Layout.logHeaderByteCount {
      return switch (offset, count) {
      case (0, Layout.logHeaderByteCount): readLogHeader(buffer)
      case (24, 8): readLogHeaderChecksum(buffer)
      default: database.refuse("reads \(count) at \(offset) of the log")
      }
    }
    guard let (number, position) = Self.place(offset) else {
      return database.refuse("reads \(count) at \(offset) of the log")
    }
    return switch (position, count) {
    case (Layout.frameHeaderByteCount, Layout.pageByteCount): readPage(number, into: buffer)
    case (0, Layout.frameByteCount): readFrame(number, into: buffer)
    case (16, 8): readChecksum(number, into: buffer)
    default: database.refuse("reads \(count) at \(offset) of the log")
    }
  }

  private func readLogHeader(_ buffer: UnsafeMutableRawPointer) -> Int32 {
    let code = context.checked(real.read(buffer, Layout.logHeaderByteCount, at: 0))
    guard code == SQLITE_OK else { return code }
    let wasEmptied = UnsafeRawBufferPointer(start: buffer, count: Layout.logHeaderByteCount).elementsEqual(
      Layout.emptiedLogHeader)
    guard let isValid = context.decipherLogHeader(buffer) else { return COFFER_IOERR_READ }
    if isValid { salts = buffer.loadUnaligned(fromByteOffset: 16, as: UInt64.self) }
    guard !isValid, !wasEmptied else { return SQLITE_OK }
    // What cannot be read is not lost.
    let isLeftover = isLeftover
    if let code = lookupFailure { return context.checked(code) }
    guard !isLeftover else { return SQLITE_OK }
    let wasSynced = hasMark
    return lookupFailure.map(context.checked) ?? lose(from: 0, wasSynced: wasSynced)
  }

  private func readLogHeaderChecksum(_ buffer: UnsafeMutableRawPointer) -> Int32 {
    let code = readLogHeader(frame)
    guard code == SQLITE_OK else { return code }
    guard LogChecksum.isValid(logHeader: frame) else {
      context.fail(.damaged(part: "log header", reason: "it does not authenticate"))
      return COFFER_IOERR_DATA
    }
    memcpy(buffer, frame + 24, 8)
    return SQLITE_OK
  }

  /// Loads a frame into `frame`: its header deciphered, its page still sealed.
  ///
  /// - Returns: false as second value when the header cannot be deciphered, because the page's epoch is unknown.
  func load(_ number: UInt32) -> (code: Int32, isKnown: Bool) {
    let code = context.checked(real.read(frame, Layout.frameByteCount, at: Self.offset(ofFrame: number)))
    guard code == SQLITE_OK else { return (code, false) }
    guard context.canOpen(frame + Layout.frameHeaderByteCount) else { return (COFFER_IOERR_READ, false) }
    do throws(CryptoError) {
      let isKnown = try context.codec.decipherHeader(
        tail: frame + Self.saltsOffset, frame: number, sealedPage: frame + Layout.frameHeaderByteCount)
      return (SQLITE_OK, isKnown)
    } catch {
      context.fail(error, part: "log frame \(number)")
      return (COFFER_IOERR_READ, false)
    }
  }

  /// Opens the page of the frame in `frame` into `output`, if it belongs to the generation with these salts.
  ///
  /// - Returns: `COFFER_IOERR_DATA` if it does not, and another code if that is unknown.
  func decryptPage(_ number: UInt32, salts: UInt64, into output: UnsafeMutableRawPointer) -> Int32 {
    do throws(CryptoError) {
      try context.codec.decrypt(
        frame + Layout.frameHeaderByteCount,
        at: .log(frame: number, header: UnsafeRawPointer(frame), salts: salts), into: output)
      return SQLITE_OK
    } catch {
      context.fail(error, part: "log frame \(number)")
      return error == .authenticationFailed ? COFFER_IOERR_DATA : COFFER_IOERR_READ
    }
  }

  private func readPage(_ number: UInt32, into buffer: UnsafeMutableRawPointer) -> Int32 {
    let (code, isKnown) = load(number)
    guard code == SQLITE_OK else {
      if let code = database.failIfChanged() { return code }
      // According to the wal-index, this frame was committed.
      if code == COFFER_IOERR_SHORT_READ {
        context.fail(.damaged(part: "log frame \(number)", reason: "the log is truncated"))
        return COFFER_IOERR_DATA
      }
      return code
    }
    let opened = isKnown ? decryptPage(number, salts: generationSalts, into: buffer) : COFFER_IOERR_DATA
    if opened == SQLITE_OK {
      // SQLite asks for a frame because the wal-index says which page it holds. Changed by someone, the index would
      // show the frame as another page, and a checkpoint would seal it as that.
      let page = UInt32(bigEndian: frame.load(as: UInt32.self))
      guard let indexed = database.indexedPage(ofFrame: number), indexed != page else { return SQLITE_OK }
      memset(buffer, 0, Layout.pageByteCount)
      context.fail(.damaged(part: "shared memory", reason: "it names page \(indexed) for a log frame of page \(page)"))
      return COFFER_IOERR_DATA
    }
    memset(buffer, 0, Layout.pageByteCount)
    if let code = database.failIfChanged() { return code }
    if opened == COFFER_IOERR_DATA {
      context.fail(.damaged(part: "log frame \(number)", reason: "it does not authenticate"))
    }
    return opened
  }

  private func readChecksum(_ number: UInt32, into buffer: UnsafeMutableRawPointer) -> Int32 {
    let (code, isKnown) = load(number)
    guard code == SQLITE_OK else { return code }
    // Salts and checksum are one cipher block: if the salts are right, the checksum is unmodified. The frame before
    // the first one to recompute always has its salts.
    guard isKnown, frame.loadUnaligned(fromByteOffset: Self.saltsOffset, as: UInt64.self) == generationSalts else {
      context.fail(.damaged(part: "log frame \(number)", reason: "its header does not authenticate"))
      return COFFER_IOERR_DATA
    }
    memcpy(buffer, frame + 16, 8)
    return SQLITE_OK
  }
}
