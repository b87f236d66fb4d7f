/// A column of a row in SQLite's record format.
package enum RecordColumn: Equatable, Sendable {
  case null
  case integer(Int64)
  case real(Double)
  /// In the database's encoding, UTF-8, but not validated.
  case text(ArraySlice<UInt8>)
  case blob(ArraySlice<UInt8>)
}
