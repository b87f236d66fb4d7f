import Coffer
import CofferStorage

/// What the log of a store holds: the commits that have not been folded into the database file yet.
public struct LogStatus: Sendable, Equatable {
  /// Its size; 0 when there is none.
  public let byteCount: Int
  /// How many frames, each a page, belong to whole commits.
  public let frameCount: Int
  /// How many frames are lost, because they are damaged or stand behind a damaged one.
  public let lostFrameCount: Int
  /// Whether its header is damaged, so that all of it is lost to whoever opens the store.
  public let isHeaderDamaged: Bool

  /// Whether all that was committed comes back.
  public var isWhole: Bool { lostFrameCount == 0 && !isHeaderDamaged }

  init(of store: Store) throws {
    var scan = try LogScan(of: store)
    // Another process may be writing frames just now.
    for _ in 0..<2 where scan.lostFrameCount > 0 || scan.isHeaderDamaged { scan = try LogScan(of: store) }
    byteCount = scan.byteCount
    frameCount = scan.committedFrameCount
    lostFrameCount = scan.lostFrameCount
    isHeaderDamaged = scan.isHeaderDamaged
  }

  /// What is wrong, in sentences; empty when it is whole.
  public var problems: [String] {
    if isHeaderDamaged { return ["The header of the log does not authenticate, and SQLite takes the log for empty."] }
    guard lostFrameCount > 0 else { return [] }
    return ["\(lostFrameCount) frames of the log are lost: from the first damaged one on it cannot be read."]
  }
}
