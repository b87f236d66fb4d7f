import CSQLite
import CofferCrypto

extension LogFile {
  // MARK: Frames

  /// Reads a whole frame, for recovery or to recompute its checksum.
  ///
  /// Recovery ends at a frame that does not authenticate. Any other failure to read a frame is an error: treating it
  /// as the end would overwrite the commits after it.
  func readFrame(_ number: UInt32, into buffer: UnsafeMutableRawPointer) -> Int32 {
    let (code, isKnown) = load(number)
    guard code == SQLITE_OK else { return code }
    // Recovery compares the salts in the frame itself. When a transaction recomputes its checksums, the frames after
    // the changed one have none yet.
    let isSummingAgain = database.holdsWriteLock && !database.holdsRecoveryLock
    let frameSalts = frame.loadUnaligned(fromByteOffset: Self.saltsOffset, as: UInt64.self)
    let pageSalts = isSummingAgain ? generationSalts : frameSalts
    let page = buffer + Layout.frameHeaderByteCount
    let opened = isKnown ? decryptPage(number, salts: pageSalts, into: page) : COFFER_IOERR_DATA
    if opened == SQLITE_OK {
      memcpy(buffer, frame, Layout.frameHeaderByteCount)
      // Recovery reads whole frames, too, and the last one may belong to an interrupted transaction: its header is
      // then the first to be written, with its page.
      if isSummingAgain { frameReadWhole = number }
      return isSummingAgain || frameSalts == salts ? SQLITE_OK : noteEnd(at: number)
    }
    memset(buffer, 0, Layout.frameByteCount)
    guard opened == COFFER_IOERR_DATA else { return opened }
    if isSummingAgain {
      // Continuing the checksum from a wrong page would break the log silently.
      context.fail(.damaged(part: "log frame \(number)", reason: "it does not authenticate"))
      return COFFER_IOERR_DATA
    }
    _ = context.takeFailure()
    // Recovery ends here, as at a torn tail: a frame of page 0 is invalid ("the log ends at the first invalid
    // frame").
    memset(buffer, 0, Layout.frameByteCount)
    _ = context.takeFailure()
    return noteEnd(at: number)
  }

  // MARK: The end

  /// The number of frames after the end to examine, 64 MiB of them; more than a log has that restarts in time.
  static let framesBehindEnd: UInt32 = 16_384

  /// Determines whether frames of the log's generation lie at or after the end of recovery: then the log was damaged,
  /// and this is not its real end.
  ///
  /// Frames left by earlier generations have other salts.
  private func noteEnd(at number: UInt32) -> Int32 {
    // Without shared memory, SQLite reads this frame in each transaction.
    if !database.mayWriteOverLog, let knownEnd, knownEnd == (number, salts) { return SQLITE_OK }
    var size: Int64 = 0
    var code = context.checked(real.byteCount(&size))
    guard code == SQLITE_OK else { return code }
    do throws(CryptoError) {
      var (isLost, wasSynced) = (false, false)
      var last = number
      while !wasSynced, last - number < Self.framesBehindEnd,
        Self.offset(ofFrame: last) + Int64(Layout.frameHeaderByteCount) <= size
      {
        code = context.checked(real.read(frame, Layout.frameByteCount, at: Self.offset(ofFrame: last)))
        guard code == SQLITE_OK || code == COFFER_IOERR_SHORT_READ else { return code }
        if !isLost {
          isLost = try context.codec.headerTail(frame + Self.saltsOffset, ofFrame: last, hasSalts: salts)
        }
        // The mark is sealed with the page.
        if let mark = openedMark(last, salts: salts) { (isLost, wasSynced) = (true, mark >= number) }
        last += 1
      }
      knownEnd = (number, salts)
      return isLost ? lose(from: number, wasSynced: wasSynced) : SQLITE_OK
    } catch {
      context.fail(error, part: "log frame \(number)")
      return COFFER_IOERR_READ
    }
  }

  /// Whether any frame says that earlier ones had been synced, and with them the header.
  var hasMark: Bool {
    var size: Int64 = 0
    // What cannot be read is not taken for the trace of a power cut.
    guard real.byteCount(&size) == SQLITE_OK else { return true }
    var number: UInt32 = 1
    while number < Self.framesBehindEnd, Self.offset(ofFrame: number) + Int64(Layout.frameByteCount) <= size {
      if let header = frameHeader(number), header.mark > 0, openedMark(number, salts: header.salts) != nil {
        return true
      }
      if lookupFailure != nil { return true }
      number += 1
    }
    return false
  }

  /// The mark of the frame in `frame`, if that authenticates as one of the generation.
  private func openedMark(_ number: UInt32, salts: UInt64) -> UInt32? {
    let mark = PageCodec.mark(ofSealedPage: frame + Layout.frameHeaderByteCount)
    let page = UnsafeMutableRawPointer.allocate(byteCount: Layout.pageByteCount, alignment: 16)
    defer {
      Memory.wipe(UnsafeMutableRawBufferPointer(start: page, count: Layout.pageByteCount))
      page.deallocate()
    }
    let isOpen = decryptPage(number, salts: salts, into: page) == SQLITE_OK
    if !isOpen { context.clearFailure() }
    return isOpen ? mark : nil
  }

  /// Records that the log is lost from a frame on, 0 for its header, and keeps a copy of it.
  ///
  /// With the recovery lock, no other connection changes the log, but the next commit will. Without it, this
  /// connection only reads.
  ///
  /// - Returns: An error if the last connection is closing, which would remove the log, and no one would hear of the loss.
  func lose(from number: UInt32, wasSynced: Bool) -> Int32 {
    guard database.fileLock != SQLITE_LOCK_EXCLUSIVE else {
      context.fail(.damaged(part: "log frame \(number)", reason: "it does not authenticate"))
      return COFFER_IOERR_DATA
    }
    let copy = wasSynced && database.mayWriteOverLog ? LogLoss.Copy(of: real, store: context.store) : nil
    context.logLoss = LogLoss(firstFrame: number, wasSynced: wasSynced, copy: copy)
    return SQLITE_OK
  }
}
