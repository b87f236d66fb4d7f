/// Options for the amount of output.
package protocol Talking {
  var quiet: Bool { get }
  var verbose: Bool { get }
}

extension Talking {
  /// Prints a helpful message, unless `--quiet`.
  package func note(_ text: String) {
    if !quiet { Message.error(text) }
  }

  /// Prints details, with `--verbose`.
  package func detail(_ text: String) {
    if verbose { Message.error(text) }
  }
}
