import CofferStorage

/// A log up to its last frame: without the zeros behind it, which are room for later ones.
package func upToLastFrame<Bytes: RandomAccessCollection<UInt8>>(_ log: Bytes) -> Bytes.SubSequence {
  let frameByteCount = Layout.frameByteCount
  let used = log.reversed().drop { $0 == 0 }.count - Layout.logHeaderByteCount
  return log.prefix(Layout.logHeaderByteCount + max(0, used + frameByteCount - 1) / frameByteCount * frameByteCount)
}
