import CofferStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// One way to open a store, without the secret.
public struct SlotInfo: Sendable, Equatable {
  /// The kind of secret that opens a slot.
  public enum Kind: String, Sendable {
    /// A file with a random key, or that key from elsewhere.
    case keyFile = "key file"
    /// A passphrase.
    case passphrase
    /// A key on paper; see ``RecoveryKey``.
    case recoveryKey = "recovery key"
    /// The output of a command.
    case keyCommand = "key command"
    /// A credential of systemd.
    case credential

    /// Whether the secret is a random key, which opens its slot however it is stored.
    package var isRandomKey: Bool { self != .passphrase && self != .recoveryKey }
  }

  /// The slot's number in this store.
  public let id: Int
  /// The kind of its secret.
  public let kind: Kind
  /// How a passphrase is stretched, and at which cost, for people to read.
  public let costDescription: String
  /// The name that its owner gave it.
  public let label: String
  /// When it was created.
  public let created: Date

  package init(_ slot: Slot) {
    id = Int(slot.id)
    kind =
      switch slot.kind {
      case .keyFile: .keyFile
      case .passphrase: .passphrase
      case .recoveryKey: .recoveryKey
      case .keyCommand: .keyCommand
      case .credential: .credential
      }
    costDescription = slot.stretching.name
    label = slot.label
    created = Date(milliseconds: Int64(clamping: slot.created))
  }
}
