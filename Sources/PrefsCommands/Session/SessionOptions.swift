import Coffer

/// How to find and open the store, as ``CommonOptions`` say it.
///
/// Plain values: making those that the argument parser fills is work that a bare `get` can do without.
struct SessionOptions: Talking {
  var store: String?
  var app: String?
  var keyFile: String?
  var keyFd: Int32?
  var passphraseFd: Int32?
  var recoveryKeyFd: Int32?
  var actor: String?
  var noInput = false
  var timeout: Double?
  /// Whether a value is set, too, that is not as its setting is declared.
  var allowsUndeclared = false
  var quiet = false
  var verbose = false
}

extension SessionOptions {
  /// The key file at `path`, with a word about one that others can read.
  func keyFile(at path: String) -> KeySource {
    if let problem = KeyFile.accessProblem(at: path) { note("\(problem) Run: chmod 600 \(path)") }
    return .keyFile(path)
  }
}

/// Options that say how much to tell.
protocol Talking {
  var quiet: Bool { get }
  var verbose: Bool { get }
}

extension Talking {
  /// Tells something that helps but is not asked for, unless `--quiet`.
  func note(_ text: String) {
    if !quiet { Message.error(text) }
  }

  /// Tells what happens inside, when `--verbose`.
  func detail(_ text: String) {
    if verbose { Message.error(text) }
  }
}
