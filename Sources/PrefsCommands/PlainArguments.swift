/// What a command does, once it is known what is asked for.
protocol Request {
  func run() throws
}

/// The arguments of a command as they are usually written, read without the argument parser, which takes longer than opening
/// a store.
///
/// Options stand after the command, each for itself, with its value in the next argument, which does not begin with a dash.
/// All else is the parser's, and so is every word about what is wrong.
struct PlainArguments {
  private(set) var words: [String] = []
  private(set) var flags: [String] = []
  private(set) var collection: String?
  private(set) var options = SessionOptions()

  /// - Parameters:
  ///   - arguments: Those after the command's name.
  ///   - known: The options of the command that have no value.
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

  /// By bytes: a combining mark after the dash would hide it from Character.
  private static func beginsWithDash(_ argument: String) -> Bool { argument.utf8.first == UInt8(ascii: "-") }

  /// What a whole command line asks for; nil where the parser has to read it.
  static func request(_ arguments: [String]) -> (any Request)? {
    let own = arguments.dropFirst()
    return switch arguments.first {
    case "get": ValueRequest(plainArguments: own)
    case "list": ListRequest(plainArguments: own)
    case "set": SetRequest(plainArguments: own)
    default: nil
    }
  }
}
