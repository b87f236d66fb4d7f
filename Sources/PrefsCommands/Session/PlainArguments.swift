/// The parsed request of a command.
protocol Request {
  func run() throws
}

/// Parses a command's usual arguments without the argument parser, which takes longer than opening a store.
///
/// Options follow the command, one per argument, with the value in the next argument, which does not begin with a
/// dash. Everything else, including all error messages, is left to the argument parser.
struct PlainArguments {
  private(set) var words: [String] = []
  private(set) var flags: [String] = []
  private(set) var collection: String?
  private(set) var options = SessionOptions()

  /// - Parameters:
  ///   - arguments: The arguments after the command's name.
  ///   - known: The command's options without a value.
  init?(_ arguments: ArraySlice<String>, flags known: [String]) {
    guard Environment.variable("PREFS_ENV") == nil else { return nil }
    var rest = arguments
    while let argument = rest.popFirst() {
      if !Self.beginsWithDash(argument) {
        words.append(argument)
      } else if known.contains(argument) {
        flags.append(argument)
      } else if argument == "-q" || argument == "--quiet" {
        options.quiet = true
      } else {
        guard let value = rest.popFirst(), !value.isEmpty, !Self.beginsWithDash(value) else { return nil }
        switch argument {
        case "-d", "--store": options.store = value
        case "--key-file": options.keyFile = value
        case "-c", "--collection":
          guard collection == nil else { return nil }
          collection = value
        default: return nil
        }
      }
    }
  }

  /// Compares bytes: a combining mark after the dash would hide it from Character.
  private static func beginsWithDash(_ argument: String) -> Bool { argument.utf8.first == UInt8(ascii: "-") }
}
