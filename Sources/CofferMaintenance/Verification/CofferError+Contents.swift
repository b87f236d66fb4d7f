import Coffer

extension CofferError {
  /// The problem with a store's contents that this error reports, as a sentence; nil if it says nothing about them.
  var contentsProblem: String? {
    switch self {
    case .damaged(let part, let reason): "The \(part) is damaged: \(reason)."
    case .newerFormat, .notDecodable, .malformedSettings: description
    case .unsupported(let reason): reason.prefix(1).uppercased() + reason.dropFirst() + "."
    case .sqlite(_, let message): "SQLite: \(message)."
    default: nil
    }
  }
}
