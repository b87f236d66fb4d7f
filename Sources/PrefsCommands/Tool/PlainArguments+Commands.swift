extension PlainArguments {
  /// The request of a whole command line; nil if the argument parser has to parse it.
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
