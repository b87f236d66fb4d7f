extension PlainArguments {
  /// The request of a whole command line; nil if the argument parser has to parse it.
  static func request(_ arguments: [String]) -> (any Request)? {
    guard let line = PlainArguments(arguments) else { return nil }
    // What is refused here is refused again, and reported, by the parser's way.
    return switch line.command {
    case .get: try? ValueRequest(line)
    case .list: try? ListRequest(line)
    case .set: try? SetRequest(line)
    case .exec: try? ExecRequest(line)
    case .log: try? LogRequest(line)
    }
  }
}
