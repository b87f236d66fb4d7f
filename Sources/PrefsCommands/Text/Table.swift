/// Rows in aligned columns.
package struct Table {
  private var rows: [[String]] = []

  package init() {}

  /// The maximum width of a column; a longer entry shifts the rest of its line.
  private static let widthLimit = 48

  package mutating func add(_ row: [String]) { rows.append(row) }

  /// The lines, each with its newline.
  ///
  /// - Parameters:
  ///   - rightAligned: The indices of the columns that hold numbers.
  ///   - colored: Adds colour to the text of a cell, which takes up no room.
  package func lines(
    rightAligned: Set<Int> = [], colored: (_ column: Int, _ cell: String) -> String = { $1 }
  ) -> [String] {
    var widths: [Int] = []
    for row in rows {
      for (column, cell) in row.enumerated() {
        if column == widths.count { widths.append(0) }
        widths[column] = max(widths[column], min(cell.count, Self.widthLimit))
      }
    }
    return rows.map { row in
      var line = ""
      for (column, cell) in row.enumerated() {
        let padding = String(repeating: " ", count: max(0, widths[column] - cell.count))
        if rightAligned.contains(column) {
          line += padding + colored(column, cell)
        } else {
          // No trailing spaces.
          line += colored(column, cell) + (column == row.count - 1 ? "" : padding)
        }
        if column < row.count - 1 { line += "  " }
      }
      return line + "\n"
    }
  }
}
