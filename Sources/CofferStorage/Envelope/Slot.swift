import CofferCrypto

/// One way to open a store or its vault: how a secret becomes a key, and the store's root key or the vault's key
/// wrapped under it.
package struct Slot: Equatable, Sendable {
  /// The kind of secret that opens a slot; all but a passphrase are random.
  package enum Kind: UInt8, Sendable {
    case keyFile = 1
    case passphrase = 2
    case recoveryKey = 3
    case keyCommand = 4
    case credential = 5
  }

  /// How the secret is stretched; random ones need no stretching.
  package enum Stretching: Equatable, Sendable {
    case none
    case password(PasswordHash)
    /// Costs that no `PasswordHash` can hold. The slot is skipped, like any slot whose cost is out of bounds.
    case outOfBounds(algorithm: UInt8, costs: [UInt32])
  }

  package let id: UInt8
  package let kind: Kind
  package let stretching: Stretching
  package let salt: [UInt8]
  /// Milliseconds since 1970.
  package let created: UInt64
  package var label: String
  let commitment: [UInt8]
  private(set) var wrappedKey: WrappedKey

  /// Whether the same secret opens both: what it wraps may be another key by now.
  package func hasSameSecret(as other: Slot) -> Bool {
    id == other.id && salt == other.salt && commitment == other.commitment
  }

  /// The associated data of the wrapping: every field that decides how the slot opens.
  ///
  /// Not the label, which can be changed without the secret; the MAC over the envelope covers it.
  private static func header(
    id: UInt8, kind: Kind, stretching: Stretching, salt: [UInt8], created: UInt64
  ) -> [UInt8] {
    var writer = ByteWriter()
    writer.append(id)
    writer.append(kind.rawValue)
    let (algorithm, costs) = stretching.encoded
    writer.append(algorithm)
    writer.append(UInt8(0))
    for cost in costs { writer.append(cost) }
    writer.append(salt)
    writer.append(created)
    return writer.bytes
  }

  private var header: [UInt8] {
    Self.header(id: id, kind: kind, stretching: stretching, salt: salt, created: created)
  }

  package var encoded: [UInt8] {
    var writer = ByteWriter()
    writer.append(header)
    writer.append(UInt16(label.utf8.count))
    writer.append(label.utf8)
    writer.append(commitment)
    writer.append(wrappedKey.encoded)
    return writer.bytes
  }

  init(encoded bytes: ArraySlice<UInt8>) throws {
    var reader = ByteReader(bytes)
    id = try reader.read()
    let kindCode: UInt8 = try reader.read()
    try EnvelopeError.check(kindCode, isAtMost: Kind.credential.rawValue, "kind of slot")
    guard let kind = Kind(rawValue: kindCode) else { throw EnvelopeError.unreadable("slot kind \(kindCode)") }
    self.kind = kind
    let algorithm: UInt8 = try reader.read()
    guard try reader.read(UInt8.self) == 0 else { throw EnvelopeError.unreadable("slot flags") }
    let costs = try (reader.read(UInt32.self), reader.read(UInt32.self), reader.read(UInt32.self))
    stretching = try Stretching(algorithm: algorithm, costs: costs)
    guard (kind == .passphrase) == (stretching != .none) else { throw EnvelopeError.unreadable("slot stretching") }
    salt = try Array(reader.read(count: 32))
    created = try reader.read()
    let labelCount: UInt16 = try reader.read()
    guard labelCount <= Self.maximumLabelByteCount,
      let label = String(validating: try reader.read(count: Int(labelCount)), as: UTF8.self)
    else {
      throw EnvelopeError.unreadable("slot label")
    }
    self.label = label
    commitment = try Array(reader.read(count: 32))
    wrappedKey = try WrappedKey(from: &reader)
    guard reader.isAtEnd else { throw EnvelopeError.unreadable("slot length") }
  }
}

// MARK: - Making and opening

extension Slot {
  /// The longest label, in bytes: 16 slots with labels this long leave room in the envelope.
  package static let maximumLabelByteCount = 64

  /// Wraps `key` under the key derived from `secret`.
  init(id: UInt8, _ secret: PreparedSecret, wrapping key: SecretBytes, owner: [UInt8]) throws {
    self.id = id
    kind = secret.kind
    stretching = secret.stretching
    salt = secret.key.salt
    created = secret.created
    label = secret.label
    commitment = secret.key.commitment
    let header = Self.header(id: id, kind: kind, stretching: stretching, salt: salt, created: created)
    wrappedKey = try WrappedKey(wrapping: key, under: secret.key.wrapping, context: header + owner)
  }

  /// The key that `secret` derives for this slot; nil when the secret is for another slot.
  ///
  /// The commitment is compared in constant time. It distinguishes a wrong key from a damaged slot, and prevents a
  /// file that opens under two keys (Albertini et al., "How to abuse and fix authenticated encryption without key
  /// commitment", 2022).
  func key(from secret: SecretBytes, owner: [UInt8]) throws -> SlotKey? {
    let key = try SlotKey(secret: secret, stretching: stretching, salt: salt, owner: owner)
    return ConstantTime.isEqual(key.commitment, commitment) ? key : nil
  }

  /// The key in this slot.
  func unwrap(with key: SlotKey, owner: [UInt8]) throws -> SecretBytes {
    do {
      return try wrappedKey.unwrap(under: key.wrapping, context: header + owner)
    } catch CryptoError.authenticationFailed {
      throw StorageError.damaged(part: "key slots", reason: "slot \(id) matches the key but does not decrypt")
    }
  }

  /// The same slot with another key wrapped in it; the same secret opens it.
  func rewrapping(_ newKey: SecretBytes, with key: SlotKey, owner: [UInt8]) throws -> Slot {
    var slot = self
    slot.wrappedKey = try WrappedKey(wrapping: newKey, under: key.wrapping, context: header + owner)
    return slot
  }

  /// - Throws: `StorageError.unsupported` when the label is too long.
  static func check(label: String) throws {
    guard label.utf8.count <= maximumLabelByteCount else {
      throw StorageError.unsupported(reason: "a slot's label is longer than \(maximumLabelByteCount) bytes")
    }
  }
}

/// The key that a secret derives for one slot: opens the slot without the secret, even after the wrapped key is
/// replaced.
struct SlotKey: Sendable {
  let salt: [UInt8]
  let wrapping: SecretBytes
  let commitment: [UInt8]

  init(secret: SecretBytes, stretching: Slot.Stretching, salt: [UInt8], owner: [UInt8]) throws {
    try stretching.checkCost()
    let stretched =
      switch stretching {
      case .none, .outOfBounds: secret
      case .password(let hash): try hash.deriveStretchedKey(from: secret, salt: salt)
      }
    self.salt = salt
    wrapping = try HKDF.deriveKey(
      from: stretched, salt: salt + owner, info: Array("coffer v1 slot wrapping".utf8), count: 32)
    commitment = try HKDF.deriveKey(
      from: stretched, salt: salt + owner, info: Array("coffer v1 slot commitment".utf8), count: 32
    ).withUnsafeBytes(Array.init)
  }
}

/// A secret prepared for a new slot.
///
/// Does all slow work before any lock is held.
package struct PreparedSecret: Sendable {
  let kind: Slot.Kind
  let stretching: Slot.Stretching
  let created: UInt64
  let label: String
  let key: SlotKey
  /// The salts of the slots that the secret was tried on; nil for a secret that is compared with none.
  private let tried: Set<[UInt8]>?

  /// - Parameters:
  ///   - owner: The id of the store or vault that the slot will belong to.
  ///   - slots: The slots there, none of which the secret may open yet: removing one of two slots with one secret would
  ///     lock no one out. nil if it does not matter.
  ///   - replaced: The slot to be replaced; its passphrase may stay if it is to be stretched in another way.
  /// - Throws: `StorageError.secretInUse`, `.keyUnavailable`, `.unsupported`.
  package init(
    _ source: KeySource, stretching: Slot.Stretching = .standard, label: String = "", owner: [UInt8],
    comparedWith slots: [Slot]? = nil, replacing replaced: UInt8? = nil
  ) throws {
    try Slot.check(label: label)
    kind = source.kind
    self.stretching = kind == .passphrase ? stretching : .none
    try self.stretching.checkCost()
    guard kind != .passphrase || stretching != .none else {
      throw StorageError.unsupported(reason: "a passphrase must be stretched")
    }
    self.label = label
    created = Clock.timestamp
    let secret = try source.secret()
    let alike = slots?.filter { source.opens($0.kind) }
    for slot in alike ?? [] {
      // This machine cannot try every slot.
      guard (try? slot.key(from: secret, owner: owner)) ?? nil != nil else { continue }
      guard slot.id == replaced, slot.stretching != self.stretching else {
        throw StorageError.secretInUse(slot: Int(slot.id))
      }
    }
    tried = alike.map { Set($0.map(\.salt)) }
    key = try SlotKey(
      secret: secret, stretching: self.stretching, salt: RandomSource.bytes(count: 32), owner: owner)
  }

  /// Whether the secret might open one of `slots` that has come since it was compared.
  package func mayOpenNewSlot(of slots: [Slot]) -> Bool {
    guard let tried else { return false }
    let isPassphraseOrRecoveryKey = kind == .passphrase || kind == .recoveryKey
    return slots.contains { slot in
      let isAlike =
        isPassphraseOrRecoveryKey ? slot.kind == kind : slot.kind != .passphrase && slot.kind != .recoveryKey
      return isAlike && !tried.contains(slot.salt)
    }
  }

  /// - Throws: `StorageError.busy` if the secret has to be compared again.
  func check(against slots: [Slot]) throws {
    if mayOpenNewSlot(of: slots) { throw StorageError.busy }
  }
}

extension PasswordHash {
  /// Stretches a passphrase.
  ///
  /// An algorithm that this OpenSSL lacks is not reported as damage.
  fileprivate func deriveStretchedKey(from secret: SecretBytes, salt: [UInt8]) throws -> SecretBytes {
    do {
      return try deriveKey(from: secret, salt: salt, count: 32)
    } catch CryptoError.unavailable(let algorithm) {
      throw StorageError.unsupported(reason: "the installed OpenSSL has no \(algorithm)")
    } catch CryptoError.invalidParameter(let what) {
      throw StorageError.unsupported(reason: what)
    }
  }
}
