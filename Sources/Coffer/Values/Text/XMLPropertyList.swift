#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What a property list in XML can hold so that all readers agree on it.
package enum XMLPropertyList {
  /// Whether a text survives a round trip.
  package static func holds(_ text: String) -> Bool {
    // XML 1.0, production 2; and a carriage return is read as a newline, section 2.11.
    text.unicodeScalars.allSatisfy { scalar in
      switch scalar {
      case "\t", "\n": true
      case "\0"..<" ", "\u{fffe}", "\u{ffff}": false
      default: true
      }
    }
  }

  /// Whether the second of a date survives a round trip: from 15 October 1582, before which Foundation's encoder uses the
  /// Julian calendar and other readers do not, to the year 9999.
  ///
  /// The text has no form for the date at -0.0 seconds.
  package static func holds(_ date: Date) -> Bool {
    // Not since 1970: converting the stored time would round a small fraction away.
    let seconds = date.timeIntervalSinceReferenceDate
    return (-13_197_600_000..<252_423_993_600).contains(seconds) && seconds.bitPattern != (-0.0).bitPattern
  }
}
