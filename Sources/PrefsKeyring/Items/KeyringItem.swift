import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What is shown of an item: the metadata of its setting, a dictionary of `label`, `type` and `created`.
struct ItemDetails: Sendable, Equatable {
  var label: String
  /// The content type of the secret.
  var type = Self.text
  var created: Date

  static let text = "text/plain"

  init(label: String, type: String = Self.text, created: Date) {
    (self.label, self.type, self.created) = (label, type, created)
  }

  /// - Parameters:
  ///   - metadata: That of the setting; one without is from `prefs set`.
  ///   - modified: When it was last changed.
  init(_ metadata: Value?, of name: ItemName, modified: Date) {
    var members: [String: Value] = [:]
    if case .dictionary(let given)? = metadata { members = given }
    func text(_ member: String) -> String? {
      if case .string(let text)? = members[member] { text } else { nil }
    }
    label = text("label") ?? (name.id == nil ? name.key : "")
    type = text("type") ?? Self.text
    created = if case .date(let date)? = members["created"] { date } else { modified }
  }

  var metadata: Value {
    .dictionary(["label": .string(label), "type": .string(type), "created": .date(created)])
  }
}

/// An item with its secret.
struct KeyringItem: Sendable {
  let name: ItemName
  var details: ItemDetails
  let modified: Date
  let secret: SecretBytes

  /// - Throws: ``KeyringProblem`` if the value has another type than a secret, text or data.
  init(_ item: Item) throws {
    name = ItemName(key: item.key)
    modified = item.modified
    details = ItemDetails(item.metadata, of: name, modified: item.modified)
    secret =
      switch item.value {
      case .secret(let secret): secret.bytes
      case .string(let text): SecretBytes(copying: text)
      case .data(let data): data.withUnsafeBytes { SecretBytes(copying: $0) }
      default: throw KeyringProblem(reason: "the value of \"\(item.key)\" is neither a secret nor text")
      }
  }
}
