import ArgumentParser
import Coffer

/// The options for parsing values on the command line.
struct ValueTypeOptions: ParsableArguments {
  @Option(
    name: [.customShort("t"), .long],
    help: "How to read each value.")
  var type: ValueType?

  @Flag(help: "Short for --type.")
  var shortType: ShortValueType?

  @Flag(help: "The values are data, written as base64.")
  var base64 = false

  @Flag(help: "The values are data, written as hexadecimal digits.")
  var hex = false

  mutating func validate() throws {
    if type != nil, shortType != nil { throw ValidationError("Name one type.") }
    if base64, hex { throw ValidationError("Use --base64 or --hex, not both.") }
    if base64 || hex, readType != .data { throw ValidationError("--base64 and --hex need --type data.") }
  }

  /// Whether the type is given rather than guessed.
  var areGiven: Bool { type != nil || shortType != nil || base64 || hex }

  private var readType: ValueType {
    type ?? shortType?.type ?? (base64 || hex ? .data : .auto)
  }

  /// The reader for these options.
  ///
  /// - Parameter isArgument: Whether the value is an argument: data is text in arguments and bytes elsewhere, unless
  ///   an option says otherwise.
  func reader(isArgument: Bool) -> ValueReader {
    ValueReader(type: readType, encoding: encoding(isArgument: isArgument))
  }

  func encoding(isArgument: Bool) -> DataEncoding {
    hex ? .hex : base64 || isArgument ? .base64 : .raw
  }
}

/// The short forms of `--type`.
enum ShortValueType: String, EnumerableFlag {
  case string, int, double, bool, date, data, url, uuid, array, dict

  var type: ValueType { ValueType(rawValue: rawValue) ?? .auto }

  static let flags = allCases.map { "--" + $0.rawValue }
}
