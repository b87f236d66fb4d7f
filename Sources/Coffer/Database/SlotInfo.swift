import CofferStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// One way to open a store, without the secret.
public struct SlotInfo: Sendable, Equatable {
  /// The kind of secret that opens a slot; later versions may have more.
  public struct Kind: RawRepresentable, Hashable, Sendable {
    /// A file with a random key, or that key from elsewhere.
    public static let keyFile = Kind(rawValue: "key file")
    /// A passphrase.
    public static let passphrase = Kind(rawValue: "passphrase")
    /// A key on paper; see ``RecoveryKey``.
    public static let recoveryKey = Kind(rawValue: "recovery key")
    /// The output of a command.
    public static let keyCommand = Kind(rawValue: "key command")
    /// A credential of systemd.
    public static let credential = Kind(rawValue: "credential")

    /// The words for it.
    public let rawValue: String

    /// The kind with these words.
    public init(rawValue: String) { self.rawValue = rawValue }

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
