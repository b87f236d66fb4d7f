/// A regular expression that a whole text has to match: the part of ECMA-262 that needs no backtracking.
///
/// `FORMAT.md` (Patterns) specifies the language. Patterns come from stores and files of other people, so each is bounded in
/// length, nesting and size before anything is built from it, and a comparison is bounded in steps: all alternatives are
/// followed at once, one character after the other, so that its time grows with the text and not with the ways to match it.
package struct TextPattern: Sendable {
  /// Why a text is not a pattern, and where.
  package struct Problem: Error, Hashable {
    let reason: String
    /// In Unicode scalars from the start.
    let position: Int

    var description: String { "\(reason), at character \(position + 1)" }
  }

  /// The result of a comparison.
  enum Outcome {
    case matches, differs
    /// The comparison would take more than ``stepLimit`` steps.
    case tooLong
  }

  /// The maximum number of Unicode scalars of a pattern.
  static let lengthLimit = 2_000
  /// The maximum depth of groups.
  static let depthLimit = 32
  /// The maximum number of characters, classes and branches, each counted as often as it is repeated.
  static let sizeLimit = 10_000
  /// The maximum number of steps of a comparison: a tenth of a second.
  static let stepLimit = 10_000_000

  private enum Instruction {
    /// Takes a character of the set with this number.
    case take(Int)
    /// Continues at both places.
    case branch(Int, Int)
    case jump(Int)
    case require(Node.Assertion)
    case accept
  }

  private var instructions: [Instruction] = []
  private var sets: [ScalarSet] = []

  /// - Throws: `Problem` unless the text is a pattern within the limits.
  package init(_ text: String) throws(Problem) {
    append(try PatternParser.node(text))
    instructions.append(.accept)
  }

  /// Why a text is not a pattern within the limits; nil if it is one.
  ///
  /// It costs less than making the pattern.
  static func problem(of text: String) -> Problem? {
    do {
      _ = try PatternParser.node(text)
      return nil
    } catch {
      return error
    }
  }

  // MARK: Compiling

  private mutating func append(_ node: Node) {
    switch node {
    case .set(let set):
      instructions.append(.take(sets.count))
      sets.append(set)
    case .assertion(let assertion): instructions.append(.require(assertion))
    case .sequence(let nodes): for node in nodes { append(node) }
    case .alternatives(let nodes): append(alternatives: nodes)
    case .repetition(let node, let minimum, let maximum): append(node, minimum, maximum)
    }
  }

  private mutating func append(alternatives nodes: [Node]) {
    var jumps: [Int] = []
    for node in nodes.dropLast() {
      let branch = reserve()
      append(node)
      jumps.append(reserve())
      instructions[branch] = .branch(branch + 1, instructions.count)
    }
    if let last = nodes.last { append(last) }
    for jump in jumps { instructions[jump] = .jump(instructions.count) }
  }

  private mutating func append(_ node: Node, _ minimum: Int, _ maximum: Int?) {
    for _ in 0..<minimum { append(node) }
    guard let maximum else {
      let branch = reserve()
      append(node)
      instructions.append(.jump(branch))
      instructions[branch] = .branch(branch + 1, instructions.count)
      return
    }
    // Each of them leads to the end, not to the next one, so that few are followed at once.
    var branches: [Int] = []
    for _ in minimum..<maximum {
      branches.append(reserve())
      append(node)
    }
    for branch in branches { instructions[branch] = .branch(branch + 1, instructions.count) }
  }

  private mutating func reserve() -> Int {
    instructions.append(.accept)
    return instructions.count - 1
  }

  // MARK: Comparing

  /// Compares a text with the pattern.
  func compare(_ text: String) -> Outcome {
    var run = Run(count: instructions.count)
    var before: Unicode.Scalar?
    var scalars = text.unicodeScalars.makeIterator()
    var scalar = scalars.next()
    follow(0, &run, before, scalar)
    swap(&run.current, &run.next)
    while let taken = scalar, !run.current.isEmpty {
      let after = scalars.next()
      for place in run.current {
        run.steps += 1
        if case .take(let set) = instructions[place], sets[set].contains(taken) {
          follow(place + 1, &run, taken, after)
        }
      }
      guard run.steps <= Self.stepLimit else { return .tooLong }
      swap(&run.current, &run.next)
      run.next.removeAll()
      (before, scalar) = (taken, after)
    }
    // If characters are left, no place is.
    return run.current.contains(instructions.count - 1) ? .matches : .differs
  }

  /// Adds the places that are reached without taking a character.
  private func follow(_ start: Int, _ run: inout Run, _ before: Unicode.Scalar?, _ after: Unicode.Scalar?) {
    run.pending.append(start)
    while let place = run.pending.popLast() {
      guard run.next.insert(place) else { continue }
      run.steps += 1
      switch instructions[place] {
      case .take, .accept: break
      case .jump(let target): run.pending.append(target)
      case .branch(let first, let second):
        run.pending.append(second)
        run.pending.append(first)
      case .require(let assertion):
        if assertion.holds(between: before, and: after) { run.pending.append(place + 1) }
      }
    }
  }

  /// The state of a comparison: where it is before and after a character.
  private struct Run {
    var current: Places
    var next: Places
    var pending: [Int] = []
    var steps = 0

    init(count: Int) { (current, next) = (Places(count: count), Places(count: count)) }
  }

  /// Numbers of instructions; adding, looking up and emptying take constant time.
  private struct Places: Sequence {
    private var members: [Int] = []
    private var indexes: [Int]

    init(count: Int) { indexes = Array(repeating: 0, count: count) }

    var isEmpty: Bool { members.isEmpty }

    func contains(_ place: Int) -> Bool {
      let index = indexes[place]
      return index < members.count && members[index] == place
    }

    mutating func insert(_ place: Int) -> Bool {
      guard !contains(place) else { return false }
      indexes[place] = members.count
      members.append(place)
      return true
    }

    mutating func removeAll() { members.removeAll(keepingCapacity: true) }

    func makeIterator() -> IndexingIterator<[Int]> { members.makeIterator() }
  }
}

extension TextPattern {
  /// A part of a pattern.
  indirect enum Node {
    /// One character of a set.
    case set(ScalarSet)
    case assertion(Assertion)
    case sequence([Node])
    case alternatives([Node])
    /// From the minimum to the maximum times; nil for no maximum.
    case repetition(Node, Int, Int?)

    /// A condition on the characters around a place.
    enum Assertion {
      case start, end, wordBoundary, noWordBoundary

      func holds(between before: Unicode.Scalar?, and after: Unicode.Scalar?) -> Bool {
        switch self {
        case .start: before == nil
        case .end: after == nil
        case .wordBoundary: Self.isWord(before) != Self.isWord(after)
        case .noWordBoundary: Self.isWord(before) == Self.isWord(after)
        }
      }

      private static func isWord(_ scalar: Unicode.Scalar?) -> Bool { scalar.map(ScalarSet.words.contains) ?? false }
    }

    /// An upper bound of its instructions, also counting copies of empty parts; beyond the limit only more than it.
    var size: Int {
      let size =
        switch self {
        case .set, .assertion: 1
        case .sequence(let nodes): nodes.reduce(0) { $0 + $1.size }
        case .alternatives(let nodes): nodes.reduce(0) { $0 + $1.size + 2 }
        case .repetition(let node, let minimum, let maximum):
          (node.size + 1) * min(max(minimum, maximum ?? (minimum + 1)), TextPattern.sizeLimit) + 1
        }
      return min(size, TextPattern.sizeLimit + 1)
    }
  }
}
