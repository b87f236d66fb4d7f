import CofferCrypto

/// One way to open a store: how its secret becomes a key, and the root key wrapped under that key.
package struct Slot: Equatable, Sendable {
  /// What kind of secret opens a slot.
  package enum Kind: UInt8, Sendable {
    case keyFile = 1
    case passphrase = 2
  }

  /// How the secret is stretched; a key file holds 256 random bits and needs none.
  package enum Stretching: Equatable, Sendable {
    case none
    case password(PasswordHash)
  }

  package let id: UInt8
  package let kind: Kind
  package let stretching: Stretching
  package let salt: [UInt8]
  /// Milliseconds since 1970.
  package let created: UInt64
  package let label: String
  package let commitment: [UInt8]
  package let wrappedRootKey: WrappedKey

  /// What the commitment and the wrapping are bound to: everything of the slot that comes before them.
  static func header(
    id: UInt8, kind: Kind, stretching: Stretching, salt: [UInt8], created: UInt64, label: String
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
    let labelBytes = Array(label.utf8)
    writer.append(UInt16(labelBytes.count))
    writer.append(labelBytes)
    return writer.bytes
  }

  var header: [UInt8] {
    Self.header(id: id, kind: kind, stretching: stretching, salt: salt, created: created, label: label)
  }

  var encoded: [UInt8] {
    header + commitment + wrappedRootKey.encoded
  }

  init(encoded bytes: ArraySlice<UInt8>) throws {
    var reader = ByteReader(bytes)
    id = try reader.read()
    let kindCode: UInt8 = try reader.read()
    guard let kind = Kind(rawValue: kindCode) else { throw EnvelopeError.unreadable("slot kind \(kindCode)") }
    self.kind = kind
    let algorithm: UInt8 = try reader.read()
    guard try reader.read(UInt8.self) == 0 else { throw EnvelopeError.unreadable("slot flags") }
    let costs = try (reader.read(UInt32.self), reader.read(UInt32.self), reader.read(UInt32.self))
    stretching = try Stretching(algorithm: algorithm, costs: costs)
    guard (kind == .keyFile) == (stretching == .none) else { throw EnvelopeError.unreadable("slot stretching") }
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
    wrappedRootKey = try WrappedKey(from: &reader)
    guard reader.isAtEnd else { throw EnvelopeError.unreadable("slot length") }
  }
}

// MARK: - Making and opening

extension Slot {
  /// The longest label, in bytes: 16 slots with labels this long leave room in the envelope.
  package static let maximumLabelByteCount = 64

  /// Wraps `rootKey` under `secret`.
  package init(
    id: UInt8, kind: Kind, stretching: Stretching, label: String, created: UInt64, secret: SecretBytes,
    rootKey: SecretBytes, storeID: [UInt8]
  ) throws {
    guard label.utf8.count <= Self.maximumLabelByteCount else {
      throw StorageError.unsupported(reason: "a slot's label is longer than \(Self.maximumLabelByteCount) bytes")
    }
    try stretching.checkCost()
    let salt = try RandomSource.bytes(count: 32)
    let header = Self.header(
      id: id, kind: kind, stretching: stretching, salt: salt, created: created, label: label)
    let keys = try SlotKeys(secret: secret, stretching: stretching, salt: salt, storeID: storeID)
    self.id = id
    self.kind = kind
    self.stretching = stretching
    self.salt = salt
    self.created = created
    self.label = label
    commitment = keys.commitment
    wrappedRootKey = try WrappedKey(wrapping: rootKey, under: keys.wrapping, context: header + storeID)
  }

  /// The root key, or nil when `secret` is not this slot's.
  ///
  /// The commitment is compared in constant time. It tells a wrong key from a damaged slot, and no file can be made
  /// that opens under two keys (Albertini et al., "How to abuse and fix authenticated encryption without key
  /// commitment", 2022).
  func rootKey(openedBy secret: SecretBytes, storeID: [UInt8]) throws -> SecretBytes? {
    try stretching.checkCost()
    let keys = try SlotKeys(secret: secret, stretching: stretching, salt: salt, storeID: storeID)
    guard ConstantTime.isEqual(keys.commitment, commitment) else { return nil }
    do {
      return try wrappedRootKey.unwrap(under: keys.wrapping, context: header + storeID)
    } catch CryptoError.authenticationFailed {
      throw StorageError.damaged(part: "envelope", reason: "slot \(id) answers to the key and does not open")
    }
  }

  private struct SlotKeys {
    let wrapping: SecretBytes
    let commitment: [UInt8]

    init(secret: SecretBytes, stretching: Stretching, salt: [UInt8], storeID: [UInt8]) throws {
      let stretched =
        switch stretching {
        case .none: secret
        case .password(let hash): try hash.deriveStretchedKey(from: secret, salt: salt)
        }
      wrapping = try HKDF.deriveKey(
        from: stretched, salt: salt + storeID, info: Array("coffer v1 slot wrapping".utf8), count: 32)
      commitment = try HKDF.deriveKey(
        from: stretched, salt: salt + storeID, info: Array("coffer v1 slot commitment".utf8), count: 32
      ).withUnsafeBytes(Array.init)
    }
  }
}

extension PasswordHash {
  /// What a passphrase becomes; an algorithm that this OpenSSL lacks is no damage.
  fileprivate func deriveStretchedKey(from secret: SecretBytes, salt: [UInt8]) throws -> SecretBytes {
    do {
      return try deriveKey(from: secret, salt: salt, count: 32)
    } catch CryptoError.unavailable(let algorithm) {
      throw StorageError.unsupported(reason: "the OpenSSL that is installed has no \(algorithm)")
    } catch CryptoError.invalidParameter(let what) {
      throw StorageError.unsupported(reason: what)
    }
  }
}

// MARK: - Stretching

extension Slot.Stretching {
  /// Interactive on today's machines, 128 MiB: what OWASP's password storage cheat sheet lists first for scrypt.
  package static let standard = Self.password(.scrypt(log2N: 17, r: 8, p: 1))

  fileprivate var encoded: (algorithm: UInt8, costs: [UInt32]) {
    switch self {
    case .none: (0, [0, 0, 0])
    case .password(.scrypt(let log2N, let r, let p)): (1, [UInt32(log2N), r, p])
    case .password(.pbkdf2HMACSHA512(let iterations)): (2, [iterations, 0, 0])
    case .password(.argon2id(let memoryKiB, let iterations, let lanes)): (3, [memoryKiB, iterations, lanes])
    }
  }

  fileprivate init(algorithm: UInt8, costs: (UInt32, UInt32, UInt32)) throws {
    switch algorithm {
    case 0 where costs == (0, 0, 0): self = .none
    case 1 where costs.0 < 64:
      self = .password(.scrypt(log2N: UInt8(costs.0), r: costs.1, p: costs.2))
    case 2 where costs.1 == 0 && costs.2 == 0: self = .password(.pbkdf2HMACSHA512(iterations: costs.0))
    case 3: self = .password(.argon2id(memoryKiB: costs.0, iterations: costs.1, lanes: costs.2))
    default: throw EnvelopeError.unreadable("slot algorithm \(algorithm)")
    }
  }

  /// What a slot may cost at most: N·r·p of scrypt, iterations of PBKDF2, KiB × iterations of Argon2id.
  private static let maximumWork: UInt64 = 1 << 24

  /// Refuses a cost so low that it weakens the store silently, or so high that opening it would take the machine down.
  fileprivate func checkCost() throws {
    let isAllowed =
      switch self {
      case .none: true
      case .password(.scrypt(let log2N, let r, let p)):
        (14...21).contains(log2N) && (8...32).contains(r) && (1...16).contains(p)
          && (UInt64(r) * UInt64(p)) << UInt64(log2N) <= Self.maximumWork
      case .password(.pbkdf2HMACSHA512(let iterations)):
        iterations >= 100_000 && UInt64(iterations) <= Self.maximumWork
      case .password(.argon2id(let memoryKiB, let iterations, let lanes)):
        memoryKiB >= 19_456 && iterations >= 1 && (1...64).contains(lanes)
          && UInt64(memoryKiB) * UInt64(iterations) <= Self.maximumWork
      }
    guard isAllowed else {
      throw StorageError.unsupported(reason: "the cost of a passphrase slot lies outside what is allowed: \(self.name)")
    }
  }

  /// The algorithm and its cost, for people.
  package var name: String {
    switch self {
    case .none: "none, the key is random"
    case .password(.scrypt(let log2N, let r, let p)): "scrypt N=2^\(log2N) r=\(r) p=\(p)"
    case .password(.pbkdf2HMACSHA512(let iterations)): "PBKDF2-HMAC-SHA512, \(iterations) iterations"
    case .password(.argon2id(let memoryKiB, let iterations, let lanes)):
      "Argon2id \(memoryKiB) KiB, \(iterations) iterations, \(lanes) lanes"
    }
  }
}
