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
    if decryptPage(number, salts: salts, into: page) == SQLITE_OK { lose(from: number) }
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
    if let knownEnd, knownEnd == (number, salts) { return SQLITE_OK }
    var size: Int64 = 0
    var code = context.checked(real.byteCount(&size))
    guard code == SQLITE_OK else { return code }
    let header = UnsafeMutableRawPointer.allocate(byteCount: Layout.frameHeaderByteCount, alignment: 8)
    defer { header.deallocate() }
    do throws(CryptoError) {
      var last = number
      while last - number < Self.framesBehindEnd,
        Self.offset(ofFrame: last) + Int64(Layout.frameHeaderByteCount) <= size
      {
        code = context.checked(real.read(header, Layout.frameHeaderByteCount, at: Self.offset(ofFrame: last)))
        guard code == SQLITE_OK else { return code }
        if try context.codec.headerTail(header + Self.saltsOffset, ofFrame: last, hasSalts: salts) {
          lose(from: number)
          break
        }
        last += 1
      }
      knownEnd = (number, salts)
      return SQLITE_OK
    } catch {
      context.fail(error, part: "log frame \(number)")
      return COFFER_IOERR_READ
    }
  }

  /// Records that the log is lost from a frame on, 0 for its header, and keeps a copy of it.
  ///
  /// With the recovery lock, no other connection changes the log, but the next commit will. Without it, this
  /// connection only reads.
  func lose(from number: UInt32) {
    let copy = database.mayWriteOverLog ? LogLoss.Copy(of: real, store: context.store) : nil
    context.logLoss = LogLoss(firstFrame: number, copy: copy)
  }
}
