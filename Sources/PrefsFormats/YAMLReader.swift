import Coffer
import PrefsCommands
import Yams

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Parses settings in YAML, with the core schema of YAML 1.2 plus timestamps and binary of YAML 1.1.
package struct YAMLReader {
  /// The number of nodes that may still be visited: nested aliases expand exponentially.
  private var budget: Int

  package static func tree(_ text: String) throws -> Value {
    guard AliasBound.isWithin(text) else {
      throw FormatProblem("not YAML that can be read safely: it has too many anchors and aliases")
    }
    let node: Node?
    do {
      // Without scalar resolution, which is done here.
      node = try Parser(yaml: text, resolver: .basic, encoding: .utf8).singleRoot()
    } catch let error as YamlError {
      throw FormatProblem("not YAML: \(reason(error))")
    }
    var reader = YAMLReader(budget: 100_000 + text.utf8.count)
    guard let node else { return .dictionary([:]) }
    return try reader.value(node, depth: 0)
  }

  // MARK: - Problems

  /// A reason that never quotes the file.
  private static func reason(_ error: YamlError) -> String {
    switch error {
    case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
      .composer(_, let problem, let mark, _):
      // The parser's message for this one is meant for programmers.
      "\(problem.hasPrefix("Maximum nesting") ? "it is nested too deeply" : problem), \(place(mark))"
    case .duplicatedKeysInMapping(_, let context): "a name occurs twice, \(place(context.mark))"
    case .reader(_, let offset, _, _): "a character that YAML does not allow" + (offset.map { ", at byte \($0)" } ?? "")
    default: "it cannot be read"
    }
  }

  private static func place(_ mark: Mark) -> String { "line \(mark.line), column \(mark.column)" }

  private func problem(_ reason: String, _ node: Node) -> FormatProblem {
    FormatProblem("unsupported YAML: \(reason)\(node.mark.map { ", \(Self.place($0))" } ?? "")")
  }

  // MARK: - Nodes

  private mutating func value(_ node: Node, depth: Int) throws -> Value {
    budget -= 1
    guard budget >= 0 else { throw problem("its aliases expand to too much", node) }
    guard depth <= JSONReader.depthLimit else {
      throw problem("it nests deeper than \(JSONReader.depthLimit) levels", node)
    }
    switch node {
    case .scalar(let scalar): return try self.scalar(scalar, node)
    case .sequence(let sequence):
      try check(sequence.tag, .seq, node)
      var elements: [Value] = []
      for element in sequence { elements.append(try value(element, depth: depth + 1)) }
      return .array(elements)
    case .mapping(let mapping):
      try check(mapping.tag, .map, node)
      var members: [String: Value] = [:]
      for (key, member) in mapping {
        let name = try self.name(key)
        guard members.updateValue(try value(member, depth: depth + 1), forKey: name) == nil else {
          throw problem("a name occurs twice", key)
        }
      }
      return .dictionary(members)
    case .alias: throw problem("an alias has no anchor", node)
    }
  }

  private func check(_ tag: Tag, _ expected: Tag.Name, _ node: Node) throws {
    guard [.implicit, .nonSpecific, expected].contains(tag.kind) else { throw problem("an unknown tag", node) }
  }

  /// A name is always text.
  private func name(_ node: Node) throws -> String {
    guard case .scalar(let scalar) = node, [.implicit, .nonSpecific, .str].contains(scalar.tag.kind) else {
      throw problem("a name is not text", node)
    }
    if scalar.style == .plain, scalar.string == "<<" { throw problem("merge keys are not supported", node) }
    return scalar.string
  }

  // MARK: - Scalars

  private func scalar(_ scalar: Node.Scalar, _ node: Node) throws -> Value {
    let text = scalar.string
    let value: Value? =
      switch scalar.tag.kind {
      case .implicit where scalar.style == .plain: try plain(text, node)
      case .implicit, .nonSpecific, .str: .string(text)
      case .binary: Data(base64Encoded: text.filter { !$0.isWhitespace }).map(Value.data)
      case .timestamp: Timestamp.date(text).map(Value.date)
      case .null: .null
      case .bool, .int: try plain(text, node)
      case .float: Double(text).map(Value.double) ?? special(text)
      default: throw problem("an unknown tag", node)
      }
    guard let value else { throw problem("a value does not match its tag", node) }
    return value
  }

  private func plain(_ text: String, _ node: Node) throws -> Value {
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
      throw problem("an integer does not fit", node)
    }
    if let number = based(text) { return number }
    if digits.utf8.contains(where: { (0x30...0x39).contains($0) }), let number = Double(text), Self.isDecimal(text) {
      guard number.isFinite else { throw problem("a number is too large", node) }
      return .double(number)
    }
    return Timestamp.date(text).map(Value.date) ?? .string(text)
  }

  private func based(_ text: String) -> Value? {
    let radix = text.hasPrefix("0x") ? 16 : text.hasPrefix("0o") ? 8 : 0
    guard radix > 0, let number = UInt64(text.dropFirst(2), radix: radix), text.dropFirst(2).first != "+" else {
      return nil
    }
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

/// An upper bound for the expansion of aliases, estimated before the file is parsed.
///
/// The parser compares the keys of a mapping, and a key may be nested aliases, which takes exponential time.
private enum AliasBound {
  /// The highest factor by which a file may expand.
  private static let limit = 1e6

  static func isWithin(_ text: String) -> Bool {
    var anchors = 0.0
    var aliases = 0.0
    var (beforeLast, last) = (UInt8(ascii: " "), UInt8(ascii: " "))
    for byte in text.utf8 {
      // A name begins right after it, and it is not inside a word.
      if !isInWord(beforeLast), byte > 0x20 {
        if last == UInt8(ascii: "&") { anchors += 1 }
        if last == UInt8(ascii: "*") { aliases += 1 }
      }
      (beforeLast, last) = (last, byte)
    }
    // The expansion is largest when each anchor contains equally many aliases.
    var levels = 0.0
    while levels < anchors {
      levels += 1
      let factor = power(aliases / levels, levels)
      if factor > limit { return false }
      if aliases / levels < 2 { break }
    }
    return true
  }

  private static func isInWord(_ byte: UInt8) -> Bool {
    byte > 0x7f || (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte & 0xdf)
  }

  private static func power(_ base: Double, _ exponent: Double) -> Double {
    var result = 1.0
    for _ in 0..<Int(exponent) {
      result *= base
      if result > limit { break }
    }
    return result
  }
}

extension Tag {
  fileprivate var kind: Name { Name(rawValue: rawValue) }
}
