/// A row, https://www.sqlite.org/fileformat2.html#record_format; nothing in it is trusted.
package struct Record: Sendable {
  /// The columns present: all of them, unless the row was truncated.
  package private(set) var columns: [RecordColumn] = []
  /// Whether the row is complete.
  package private(set) var isWhole = false

  /// Parses as much of a row as is present.
  ///
  /// - Returns: nil when even its header does not parse.
  init?(payload: [UInt8], byteCount: Int) {
    var position = 0
    guard let headerCount = payload.popVarint(&position), headerCount >= position, headerCount <= byteCount,
      headerCount <= payload.count
    else { return nil }
    var start = Int(headerCount)
    while position < headerCount {
      guard let type = payload.popVarint(&position), position <= headerCount, let count = Self.byteCount(of: type)
      else {
        return nil
      }
      guard count <= byteCount - start else { return nil }
      // Truncated by a broken chain of overflow pages.
      guard count <= payload.count - start else { return }
      columns.append(Self.column(type, payload[start..<start + count]))
      start += count
    }
    isWhole = true
  }

  private static func byteCount(of type: Int) -> Int? {
    switch type {
    case 0, 8, 9: 0
    case 1...4: type
    case 5: 6
    case 6, 7: 8
    case 12...: (type - 12) / 2
    default: nil
    }
  }

  private static func column(_ type: Int, _ bytes: ArraySlice<UInt8>) -> RecordColumn {
    switch type {
    case 0: .null
    case 1...6: .integer(integer(bytes))
    case 7: .real(Double(bitPattern: UInt64(bitPattern: integer(bytes))))
    case 8: .integer(0)
    case 9: .integer(1)
    default: type % 2 == 0 ? .blob(bytes) : .text(bytes)
    }
  }

  /// Big-endian, two's complement.
  private static func integer(_ bytes: ArraySlice<UInt8>) -> Int64 {
    let start: Int64 = bytes.first.map { $0 >= 0x80 } ?? false ? -1 : 0
    return bytes.reduce(start) { $0 << 8 | Int64($1) }
  }
}

extension [UInt8] {
  /// Reads an SQLite varint, https://www.sqlite.org/fileformat2.html#varint; nil when it is missing, negative, or too
  /// large for a length.
  func popVarint(_ position: inout Int) -> Int? {
    popSignedVarint(&position).flatMap { $0 >= 0 ? Int(exactly: $0) : nil }
  }

  /// Reads a varint that may be negative, such as a rowid.
  func popSignedVarint(_ position: inout Int) -> Int64? {
    var value: UInt64 = 0
    for index in 0..<9 {
      guard position < count else { return nil }
      let byte = self[position]
      position += 1
      if index == 8 { return Int64(bitPattern: value << 8 | UInt64(byte)) }
      value = value << 7 | UInt64(byte & 0x7f)
      if byte & 0x80 == 0 { return Int64(bitPattern: value) }
    }
    return nil
  }

  /// - Parameter offset: At least four bytes before the end.
  func bigEndian32(at offset: Int) -> UInt32 {
    self[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) }
  }

  /// - Parameter offset: At least two bytes before the end.
  func bigEndian16(at offset: Int) -> Int {
    Int(self[offset]) << 8 | Int(self[offset + 1])
  }
}
