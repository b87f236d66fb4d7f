/// Reads a pattern: ECMA-262 with the flag `u`, without groups that look around or are referred to.
struct PatternParser {
  private typealias Node = TextPattern.Node
  private typealias Problem = TextPattern.Problem

  private let scalars: [Unicode.Scalar]
  private var position = 0
  private var depth = 0

  /// - Throws: `TextPattern.Problem`, also for a pattern that is beyond a limit.
  static func node(_ text: String) throws(TextPattern.Problem) -> TextPattern.Node {
    let scalars = text.unicodeScalars.prefix(TextPattern.lengthLimit + 1)
    guard scalars.count <= TextPattern.lengthLimit else {
      throw Problem(
        reason: "it is longer than \(TextPattern.lengthLimit) characters", position: TextPattern.lengthLimit)
    }
    var parser = PatternParser(scalars: Array(scalars))
    let node = try parser.alternatives()
    // Only a closing parenthesis ends them early.
    guard parser.next == nil else { throw parser.problem("a closing parenthesis has no opening one") }
    guard node.size <= TextPattern.sizeLimit else {
      throw Problem(
        reason: "its parts, each counted as often as it may repeat, are more than \(TextPattern.sizeLimit)", position: 0
      )
    }
    return node
  }

  private init(scalars: [Unicode.Scalar]) { self.scalars = scalars }

  // MARK: - Terms

  private mutating func alternatives() throws(Problem) -> Node {
    var all = [try sequence()]
    while take("|") { all.append(try sequence()) }
    return all.count == 1 ? all[0] : .alternatives(all)
  }

  private mutating func sequence() throws(Problem) -> Node {
    var nodes: [Node] = []
    while let scalar = next, scalar != "|", scalar != ")" {
      if let assertion = takeAssertion() {
        nodes.append(.assertion(assertion))
        if try quantifier() != nil { throw problem("nothing to repeat", at: position - 1) }
      } else {
        let start = position
        let atom = try atom()
        guard let (minimum, maximum) = try quantifier() else {
          nodes.append(atom)
          continue
        }
        let node = Node.repetition(atom, minimum, maximum)
        guard node.size <= TextPattern.sizeLimit else {
          throw problem("it repeats more than \(TextPattern.sizeLimit) parts", at: start)
        }
        nodes.append(node)
      }
    }
    return nodes.count == 1 ? nodes[0] : .sequence(nodes)
  }

  private mutating func takeAssertion() -> Node.Assertion? {
    if take("^") { return .start }
    if take("$") { return .end }
    if take("\\", "b") { return .wordBoundary }
    return take("\\", "B") ? .noWordBoundary : nil
  }

  private mutating func atom() throws(Problem) -> Node {
    let start = position
    let scalar = next
    position += 1
    switch scalar {
    case "."?: return .set(ScalarSet.lineTerminators.negated)
    case "("?: return try group(at: start)
    case "["?: return .set(try characterClass(at: start))
    case "\\"?: return .set(try escape(at: start, isInClass: false).set)
    case "*"?, "+"?, "?"?: throw problem("nothing to repeat", at: start)
    case "{"?, "}"?, "]"?: throw problem("this character needs a backslash before it", at: start)
    case let scalar?: return .set(ScalarSet(scalar))
    case nil: throw problem("a part is missing", at: start)
    }
  }

  private mutating func group(at start: Int) throws(Problem) -> Node {
    if take("?"), !take(":") {
      if next == "=" || next == "!" || next == "<" { throw problem("it looks around, or names a group", at: start) }
      throw problem("only (?: may begin with (?", at: start)
    }
    depth += 1
    guard depth <= TextPattern.depthLimit else {
      throw problem("groups are nested deeper than \(TextPattern.depthLimit)", at: start)
    }
    let node = try alternatives()
    guard take(")") else { throw problem("a closing parenthesis is missing for this one", at: start) }
    depth -= 1
    return node
  }

  /// The numbers of a quantifier, if one follows.
  private mutating func quantifier() throws(Problem) -> (minimum: Int, maximum: Int?)? {
    let start = position
    var numbers: (minimum: Int, maximum: Int?)
    if take("*") {
      numbers = (0, nil)
    } else if take("+") {
      numbers = (1, nil)
    } else if take("?") {
      numbers = (0, 1)
    } else if take("{") {
      guard let minimum = number() else { throw problem("this character needs a backslash before it", at: start) }
      numbers = (minimum, minimum)
      if take(",") { numbers.maximum = next == "}" ? nil : try maximum(at: start) }
      guard take("}") else { throw problem("a repetition has no end", at: start) }
      if let maximum = numbers.maximum, maximum < minimum { throw problem("its numbers are out of order", at: start) }
    } else {
      return nil
    }
    // What is taken first does not matter for a whole text.
    _ = take("?")
    return numbers
  }

  private mutating func maximum(at start: Int) throws(Problem) -> Int {
    guard let number = number() else { throw problem("a repetition has no end", at: start) }
    return number
  }

  /// A decimal number, at most one more than the limit of a pattern's size.
  private mutating func number() -> Int? {
    var number: Int?
    while let digit = decimalDigit {
      number = min((number ?? 0) * 10 + digit, TextPattern.sizeLimit + 1)
      position += 1
    }
    return number
  }

  // MARK: - Characters

  /// What an escape or a part of a class stands for.
  private enum Member {
    case scalar(Unicode.Scalar)
    case set(ScalarSet)

    var set: ScalarSet {
      switch self {
      case .scalar(let scalar): ScalarSet(scalar)
      case .set(let set): set
      }
    }
  }

  private mutating func characterClass(at start: Int) throws(Problem) -> ScalarSet {
    let isNegated = take("^")
    var set = ScalarSet()
    while !take("]") {
      let place = position
      let first = try member(of: start)
      guard next == "-", scalars.dropFirst(position + 1).first != "]" else {
        set.formUnion(first.set)
        continue
      }
      position += 1
      guard case .scalar(let lower) = first, case .scalar(let upper) = try member(of: start), lower <= upper else {
        throw problem("a range of characters is malformed", at: place)
      }
      set.formUnion(ScalarSet([lower.value...upper.value]))
    }
    return isNegated ? set.negated : set
  }

  private mutating func member(of start: Int) throws(Problem) -> Member {
    guard let scalar = next else { throw problem("a closing bracket is missing for this one", at: start) }
    position += 1
    return scalar == "\\" ? try escape(at: position - 1, isInClass: true) : .scalar(scalar)
  }

  /// After the backslash.
  private mutating func escape(at start: Int, isInClass: Bool) throws(Problem) -> Member {
    guard let scalar = next else { throw problem("a backslash is the last character", at: start) }
    position += 1
    switch scalar {
    case "d": return .set(.digits)
    case "D": return .set(.digits.negated)
    case "w": return .set(.words)
    case "W": return .set(.words.negated)
    case "s": return .set(.spaces)
    case "S": return .set(.spaces.negated)
    case "p": return .set(try category(at: start))
    case "P": return .set(try category(at: start).negated)
    case "t": return .scalar("\t")
    case "n": return .scalar("\n")
    case "v": return .scalar("\u{b}")
    case "f": return .scalar("\u{c}")
    case "r": return .scalar("\r")
    case "b" where isInClass: return .scalar("\u{8}")
    case "-" where isInClass: return .scalar("-")
    case "0" where decimalDigit == nil: return .scalar("\0")
    case "x": return .scalar(try hexEscape(at: start))
    case "u": return .scalar(try unicodeEscape(at: start))
    case "^", "$", "\\", ".", "*", "+", "?", "(", ")", "[", "]", "{", "}", "|", "/": return .scalar(scalar)
    case "1"..."9", "k": throw problem("it refers to a group", at: start)
    default: throw problem("an escape is unknown", at: start)
    }
  }

  private mutating func category(at start: Int) throws(Problem) -> ScalarSet {
    guard take("{"), let end = scalars[position...].firstIndex(of: "}") else {
      throw problem("an escape is unknown", at: start)
    }
    var name = String.UnicodeScalarView()
    name.append(contentsOf: scalars[position..<end])
    position = end + 1
    guard let set = ScalarSet(category: String(name)) else {
      throw problem("only the short name of a general category, such as L or Lu, may follow", at: start)
    }
    return set
  }

  /// Four digits, two times four for a surrogate pair, or any number in braces.
  private mutating func unicodeEscape(at start: Int) throws(Problem) -> Unicode.Scalar {
    if take("{") {
      var value: UInt32 = 0
      let first = position
      while let digit = takeDigit() { value = min(value << 4 | digit, 0x11_0000) }
      guard position > first, take("}"), let scalar = Unicode.Scalar(value) else {
        throw problem("an escape is unknown", at: start)
      }
      return scalar
    }
    let first = try value(digits: 4, at: start)
    if let scalar = Unicode.Scalar(first) { return scalar }
    guard first < 0xdc00, take("\\", "u"), case let second = try value(digits: 4, at: start),
      (0xdc00..<0xe000).contains(second),
      let scalar = Unicode.Scalar(0x10000 + (first - 0xd800) << 10 + (second - 0xdc00))
    else { throw problem("an escape is half of a surrogate pair", at: start) }
    return scalar
  }

  private mutating func hexEscape(at start: Int) throws(Problem) -> Unicode.Scalar {
    guard let scalar = Unicode.Scalar(try value(digits: 2, at: start)) else {
      throw problem("an escape is unknown", at: start)
    }
    return scalar
  }

  private mutating func value(digits: Int, at start: Int) throws(Problem) -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<digits {
      guard let digit = takeDigit() else { throw problem("hexadecimal digits are missing", at: start) }
      value = value << 4 | digit
    }
    return value
  }

  private mutating func takeDigit() -> UInt32? {
    guard let scalar = next, scalar.isASCII, let digit = HexText.value(ofDigit: UInt8(scalar.value)) else { return nil }
    position += 1
    return UInt32(digit)
  }

  // MARK: - Scalars

  private var next: Unicode.Scalar? { position < scalars.count ? scalars[position] : nil }

  private var decimalDigit: Int? {
    guard let value = next?.value, (0x30...0x39).contains(value) else { return nil }
    return Int(value - 0x30)
  }

  private mutating func take(_ expected: Unicode.Scalar...) -> Bool {
    guard scalars[position...].starts(with: expected) else { return false }
    position += expected.count
    return true
  }

  private func problem(_ reason: String, at place: Int? = nil) -> Problem {
    Problem(reason: reason, position: place ?? position)
  }
}
