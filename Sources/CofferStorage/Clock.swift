import CSQLite

/// The time of day.
package enum Clock {
  package static var millisecondsSince1970: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }

  /// The same for the envelope, clamped at 1970, where clocks without a battery begin.
  static var timestamp: UInt64 { UInt64(clamping: millisecondsSince1970) }
}
