import ArgumentParser
import Coffer

/// How the values on a command line are to be read.
struct ValueTypeOptions: ParsableArguments {
  @Option(
    name: [.customShort("t"), .long],
    help: "How to read each value.")
  var type: ValueType?

  @Flag(help: "Short for --type.")
  var shortType: SetCommand.ShortType?

  @Flag(help: "The values are data, written as base64.")
  var base64 = false

  @Flag(help: "The values are data, written as hexadecimal digits.")
  var hex = false

  mutating func validate() throws {
    if type != nil, shortType != nil { throw ValidationError("Name one type.") }
    if base64, hex { throw ValidationError("Use --base64 or --hex, not both.") }
    if base64 || hex, readType != .data { throw ValidationError("--base64 and --hex are for data.") }
  }

  /// Whether the type is named, and not to be guessed.
  var areGiven: Bool { type != nil || shortType != nil || base64 || hex }

  private var readType: ValueType {
    type ?? shortType?.type ?? (base64 || hex ? .data : .auto)
  }

  /// Reads values so.
  ///
  /// - Parameter isArgument: Data is text among the arguments and bytes elsewhere, unless an option says otherwise.
  func reader(isArgument: Bool) -> ValueReader {
    ValueReader(type: readType, encoding: encoding(isArgument: isArgument))
  }

  func encoding(isArgument: Bool) -> DataEncoding {
    hex ? .hex : base64 || isArgument ? .base64 : .raw
  }
}
