/// A shell pattern for file names: `*`, `?`, `[abc]`, `[a-z]`, `[!a-z]`, and `\` before a literal character.
///
/// It compares Unicode scalars: `?` matches one character of any script, independent of the locale, unlike
/// fnmatch(3). Slashes and leading dots are ordinary characters, because keys are not paths.
struct Glob {
  private enum Piece {
    case literal(Unicode.Scalar)
    case any
    case anyRun
    case set([ClosedRange<UInt32>], negated: Bool)
  }

  private let pieces: [Piece]

  init(_ pattern: String) {
    let scalars = Array(pattern.unicodeScalars)
    var pieces: [Piece] = []
    var index = 0
    while index < scalars.count {
      let scalar = scalars[index]
      index += 1
      switch scalar {
      case "*": pieces.append(.anyRun)
      case "?": pieces.append(.any)
      case "\\" where index < scalars.count:
        pieces.append(.literal(scalars[index]))
        index += 1
      case "[":
        if let (set, end) = Self.set(in: scalars, from: index) {
          pieces.append(set)
          index = end
        } else {
          pieces.append(.literal("["))
        }
      default: pieces.append(.literal(scalar))
      }
    }
    self.pieces = pieces
  }

  /// The set whose first element is at `start`, and the index after its bracket; nil when the bracket is missing.
  private static func set(in scalars: [Unicode.Scalar], from start: Int) -> (Piece, Int)? {
    var index = start
    var negated = false
    if index < scalars.count, scalars[index] == "!" || scalars[index] == "^" {
      negated = true
      index += 1
    }
    var ranges: [ClosedRange<UInt32>] = []
    while index < scalars.count {
      // A closing bracket at the beginning is an element.
      if scalars[index] == "]", !ranges.isEmpty { return (.set(ranges, negated: negated), index + 1) }
      let low = scalars[index].value
      if index + 2 < scalars.count, scalars[index + 1] == "-", scalars[index + 2] != "]" {
        let high = scalars[index + 2].value
        ranges.append(min(low, high)...max(low, high))
        index += 3
      } else {
        ranges.append(low...low)
        index += 1
      }
    }
    return nil
  }

  /// Whether the whole of `text` matches.
  func matches(_ text: String) -> Bool {
    let scalars = Array(text.unicodeScalars)
    var piece = 0
    var position = 0
    // Where to retry when the last `*` has to match one more character. Only the last one ever needs a retry, which
    // keeps this linear in practice, whatever the pattern.
    var retry: (piece: Int, position: Int)?
    while position < scalars.count {
      if piece < pieces.count {
        if case .anyRun = pieces[piece] {
          retry = (piece + 1, position)
          piece += 1
          continue
        }
        if Self.matches(pieces[piece], scalars[position]) {
          piece += 1
          position += 1
          continue
        }
      }
      guard let (nextPiece, lastPosition) = retry else { return false }
      retry = (nextPiece, lastPosition + 1)
      piece = nextPiece
      position = lastPosition + 1
    }
    return pieces[piece...].allSatisfy { if case .anyRun = $0 { true } else { false } }
  }

  private static func matches(_ piece: Piece, _ scalar: Unicode.Scalar) -> Bool {
    switch piece {
    case .literal(let literal): literal == scalar
    case .any, .anyRun: true
    case .set(let ranges, let negated): ranges.contains { $0.contains(scalar.value) } != negated
    }
  }
}
