#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What a property list in XML can hold so that every reader takes it alike.
package enum XMLPropertyList {
  /// Whether a text comes back as it was.
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

  /// Whether the second of a date comes back as it was: those from 15 October 1582, before which Foundation's encoder counts
  /// days as Julius Caesar did and other readers do not, to the year 9999.
  package static func holds(_ date: Date) -> Bool {
    // As it is stored: counted from 1970, a small fraction would be rounded away unseen.
    (-13_197_600_000..<252_423_993_600).contains(date.timeIntervalSinceReferenceDate)
  }
}
