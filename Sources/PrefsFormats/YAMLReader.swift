import Coffer
import PrefsCommands

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Parses settings in YAML, with the core schema of YAML 1.2 plus timestamps, binary and merge keys of YAML 1.1.
package struct YAMLReader {
  /// A node with its aliases replaced.
  private indirect enum Node {
    case scalar(Value)
    case sequence([Node])
    case mapping([Member])
  }

  private struct Member {
    let name: String
    let place: YAMLPlace
    let node: Node
  }

  private struct Anchored {
    let node: Node
    /// The number of nodes in it.
    let weight: Int
    /// The levels below it.
    let height: Int
  }

  private let events: YAMLEvents
  private var anchors: [ByteString: Anchored] = [:]
  /// The greatest depth inside the node that is read.
  private var deepest = 0
  /// The number of nodes that may still be made: nested aliases expand exponentially.
  private var budget: Int

  package static func tree(_ text: String) throws -> FileTree {
    var reader = YAMLReader(events: try YAMLEvents(text), budget: 100_000 + text.utf8.count)
    return try reader.document()
  }

  private init(events: YAMLEvents, budget: Int) { (self.events, self.budget) = (events, budget) }

  private func problem(_ reason: String, _ place: YAMLPlace? = nil) -> FormatProblem {
    FormatProblem("unsupported YAML: \(reason), \(place ?? events.place)")
  }

  // MARK: - Documents

  private mutating func document() throws -> FileTree {
    var tree: FileTree?
    while true {
      switch try events.next() {
      case .streamEnd: return tree ?? .members([])
      case .documentStart(let version):
        guard tree == nil else { throw problem("it has more than one document; import each from a file of its own") }
        if let version, version != (1, 2) {
          throw problem(
            "it says %YAML \(version.major).\(version.minor), where words such as no and numbers such as 017 have other "
              + "values; quote or rewrite those, and remove the line")
        }
        let first = try events.next()
        tree = try self.tree(try node(first, depth: 0), levels: FileTree.outerLevels)
      default: break
      }
    }
  }

  private func tree(_ node: Node, levels: Int) throws -> FileTree {
    guard levels > 0, case .mapping(let members) = node else { return .value(try value(node)) }
    return .members(
      try members.map { FileTree.Member($0.name, try tree($0.node, levels: levels - 1)) })
  }

  private func value(_ node: Node) throws -> Value {
    switch node {
    case .scalar(let value): return value
    case .sequence(let elements): return .array(try elements.map(value))
    case .mapping(let list):
      var members: [String: Value] = [:]
      for member in list {
        guard members.updateValue(try value(member.node), forKey: member.name) == nil else {
          throw problem(FileTree.reason(forSecond: member.name, in: members), member.place)
        }
      }
      return .dictionary(members)
    }
  }

  // MARK: - Nodes

  private mutating func node(_ event: YAMLEvents.Event, depth: Int) throws -> Node {
    let before = budget
    try spend(1)
    try descend(to: depth)
    let outer = deepest
    deepest = depth
    defer { deepest = max(outer, deepest) }
    let (node, anchor): (Node, String?)
    switch event {
    case .scalar(let scalar, let name): (node, anchor) = (.scalar(try value(of: scalar)), name)
    case .sequenceStart(let tag, let name):
      try check(tag, "seq")
      (node, anchor) = (.sequence(try elements(depth: depth + 1)), name)
    case .mappingStart(let tag, let name):
      try check(tag, "map")
      (node, anchor) = (.mapping(try members(depth: depth + 1)), name)
    case .alias(let name):
      guard let anchored = anchors[ByteString(name)] else { throw problem("an alias has no anchor before it") }
      try spend(anchored.weight - 1)
      try descend(to: depth + anchored.height)
      return anchored.node
    case .documentStart, .end, .streamEnd, .other: throw problem("a value is missing")
    }
    if let anchor {
      anchors[ByteString(anchor)] = Anchored(node: node, weight: before - budget, height: deepest - depth)
    }
    return node
  }

  private mutating func descend(to depth: Int) throws {
    guard depth <= JSONReader.depthLimit else {
      throw problem("it nests deeper than \(JSONReader.depthLimit) levels")
    }
    deepest = max(deepest, depth)
  }

  private mutating func spend(_ count: Int) throws {
    budget -= count
    guard budget >= 0 else { throw problem("its aliases expand to too much") }
  }

  private mutating func elements(depth: Int) throws -> [Node] {
    var elements: [Node] = []
    while true {
      let event = try events.next()
      if case .end = event { return elements }
      elements.append(try node(event, depth: depth))
    }
  }

  private mutating func members(depth: Int) throws -> [Member] {
    var members: [Member] = []
    var names: Set<ByteString> = []
    var merged: [Member] = []
    var hasMerge = false
    while true {
      let event = try events.next()
      if case .end = event { break }
      let place = events.place
      if Self.isMerge(event) {
        guard !hasMerge else { throw problem("a name occurs twice", place) }
        hasMerge = true
        merged = try mergedMembers(try node(events.next(), depth: depth), place)
        continue
      }
      let name = try self.name(event)
      guard names.insert(ByteString(name)).inserted else { throw problem("a name occurs twice", place) }
      members.append(Member(name: name, place: place, node: try node(events.next(), depth: depth)))
    }
    // Members of the mapping itself hide merged ones, as earlier merged ones hide later ones.
    return members + merged.filter { names.insert(ByteString($0.name)).inserted }
  }

  // MARK: - Names

  /// A name is always text.
  private mutating func name(_ event: YAMLEvents.Event) throws -> String {
    try spend(1)
    let place = events.place
    guard case .scalar(let scalar, let anchor) = event, [nil, "!", Self.prefix + "str"].contains(scalar.tag) else {
      throw problem("a name is not text", place)
    }
    guard !scalar.isPlain || !scalar.text.isEmpty || scalar.tag != nil else {
      throw problem("a name is missing; write \"\" for an empty one", place)
    }
    if let anchor { anchors[ByteString(anchor)] = Anchored(node: .scalar(.string(scalar.text)), weight: 1, height: 0) }
    return scalar.text
  }

  /// The key `<<`, which merges other mappings (https://yaml.org/type/merge.html).
  private static func isMerge(_ event: YAMLEvents.Event) -> Bool {
    guard case .scalar(let scalar, _) = event else { return false }
    return scalar.tag == prefix + "merge" || scalar.tag == nil && scalar.isPlain && scalar.text == "<<"
  }

  private func mergedMembers(_ node: Node, _ place: YAMLPlace) throws -> [Member] {
    switch node {
    case .mapping(let members): return members
    case .sequence(let nodes):
      return try nodes.flatMap { node in
        guard case .mapping(let members) = node else { throw problem("<< needs dictionaries to merge", place) }
        return members
      }
    case .scalar: throw problem("<< needs a dictionary to merge, or a list of them", place)
    }
  }

  // MARK: - Scalars

  private static let prefix = "tag:yaml.org,2002:"

  private func check(_ tag: String?, _ expected: String) throws {
    guard [nil, "!", Self.prefix + expected].contains(tag) else { throw problem("an unknown tag") }
  }

  private func value(of scalar: YAMLScalar) throws -> Value {
    let text = scalar.text
    guard let tag = scalar.tag else { return scalar.isPlain ? try plain(text) : .string(text) }
    guard tag.hasPrefix(Self.prefix) || tag == "!" else { throw problem("an unknown tag") }
    let value: Value? =
      switch tag.dropFirst(Self.prefix.count) {
      case "", "str": .string(text)
      case "binary": Data(base64Encoded: text.filter { !$0.isWhitespace }).map(Value.data)
      case "timestamp": Timestamp.exactDate(text).map(Value.date)
      case "null": try plain(text, of: .null)
      case "bool": try plain(text, of: .bool)
      case "int": try plain(text, of: .int)
      case "float":
        try plain(text, of: .double) ?? plain(text, of: .int).flatMap { _ in Double(text).map(Value.double) }
      default: throw problem("an unknown tag")
      }
    guard let value else { throw problem("a value does not match its tag") }
    return value
  }

  private func plain(_ text: String, of kind: Value.Kind) throws -> Value? {
    let value = try plain(text)
    return value.kind == kind ? value : nil
  }

  private func plain(_ text: String) throws -> Value {
    switch text {
    case "", "~", "null", "Null", "NULL": return .null
    case "true", "True", "TRUE": return .bool(true)
    case "false", "False", "FALSE": return .bool(false)
    default: break
    }
    guard let first = text.utf8.first, first < 0x3a, first > 0x2a else { return .string(text) }
    if let special = special(text) { return special }
    let digits = text.drop { $0 == "+" || $0 == "-" }
    if digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), text.utf8.count - digits.utf8.count < 2, !digits.isEmpty
    {
      if let number = Int64(text) { return .int(number) }
      if let number = UInt64(text) { return .uint64(number) }
      throw tooLarge
    }
    if let number = try based(text) { return number }
    if digits.utf8.contains(where: { (0x30...0x39).contains($0) }), let number = Double(text), Self.isDecimal(text) {
      guard DecimalText.isInRange(number, text) else { throw problem(DecimalText.problem) }
      return .double(number)
    }
    // Years have four digits: https://yaml.org/type/timestamp.html.
    guard text.utf8.dropFirst(4).first == UInt8(ascii: "-"), let date = Timestamp.exactDate(text) else {
      return .string(text)
    }
    return .date(date)
  }

  private var tooLarge: FormatProblem { problem("an integer beyond 64 bits; put it in quotes to have it as text") }

  /// A hexadecimal or octal number.
  private func based(_ text: String) throws -> Value? {
    let radix = text.hasPrefix("0x") ? 16 : text.hasPrefix("0o") ? 8 : 0
    let digits = text.dropFirst(2)
    guard radix > 0, !digits.isEmpty,
      digits.utf8.allSatisfy({ byte in HexText.value(ofDigit: byte).map { $0 < radix } ?? false })
    else { return nil }
    guard let number = UInt64(digits, radix: radix) else { throw tooLarge }
    return Int64(exactly: number).map(Value.int) ?? .uint64(number)
  }

  private func special(_ text: String) -> Value? {
    switch text {
    case ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF": .double(.infinity)
    case "-.inf", "-.Inf", "-.INF": .double(-.infinity)
    case ".nan", ".NaN", ".NAN": .double(.nan)
    default: nil
    }
  }

  /// Excludes hexadecimal and words, both of which Swift parses as numbers.
  private static func isDecimal(_ text: String) -> Bool {
    text.utf8.allSatisfy { (0x30...0x39).contains($0) || [0x2b, 0x2d, 0x2e, 0x45, 0x65].contains($0) }
  }
}
