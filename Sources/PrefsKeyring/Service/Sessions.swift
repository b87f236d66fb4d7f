#if COFFER_BUS
  import Coffer
  import CofferCrypto

  /// The sessions of clients, in which secrets pass the bus as they are, or encrypted with an agreed key.
  struct Sessions {
    private struct Session {
      let owner: String
      /// Nil for the algorithm `plain`.
      let key: SecretBytes?
    }

    static let folder = "/org/freedesktop/secrets/session/"
    /// How many a client may have open.
    private static let limit = 64

    private var sessions: [String: Session] = [:]
    private var lastNumber = 0

    /// Reads the arguments of OpenSession.
    ///
    /// - Returns: The session's path, and the service's part of the agreement.
    mutating func open(_ call: BusMessage) throws -> (path: String, output: [UInt8]?) {
      try call.requireTypes("sv")
      guard sessions.values.count(where: { $0.owner == call.sender }) < Self.limit else {
        throw BusFailure.limits("a client can have \(Self.limit) sessions")
      }
      var (key, output): (SecretBytes?, [UInt8]?) = (nil, nil)
      switch try call.text() {
      case "plain": break
      case "dh-ietf1024-sha256-aes128-cbc-pkcs7":
        guard let theirs = try call.inside("v", "ay", { try call.bytes().withUnsafeBytes { Array($0) } }) else {
          throw BusFailure.invalid("the public key is missing")
        }
        let own = try SecretBytes.random(count: OakleyGroup.privateByteCount)
        output = try OakleyGroup.publicKey(of: own)
        key = try HKDF.deriveKey(
          from: OakleyGroup.agree(own, with: theirs), salt: [], info: [], count: AES128CBC.keyByteCount)
      case let name: throw BusFailure.notSupported("there is no algorithm \(name)")
      }
      lastNumber += 1
      let path = "\(Self.folder)s\(lastNumber)"
      sessions[path] = Session(owner: call.sender, key: key)
      return (path, output)
    }

    func has(_ path: String) -> Bool { sessions[path] != nil }

    private func session(_ path: String, of client: String) throws -> Session {
      guard let session = sessions[path], session.owner == client else { throw BusFailure.noSession(path) }
      return session
    }

    mutating func close(_ path: String, of client: String) throws {
      _ = try session(path, of: client)
      sessions[path] = nil
    }

    /// Closes those of a client that is gone.
    mutating func closeAll(of client: String) {
      sessions = sessions.filter { $0.value.owner != client }
    }

    // MARK: - Secrets

    /// Reads the next argument, a secret in a session of the client.
    func secret(_ call: BusMessage) throws -> (bytes: SecretBytes, type: String) {
      let secret = try call.inside("r", "oayays") { () -> (bytes: SecretBytes, type: String) in
        let session = try session(call.text("o"), of: call.sender)
        let vector = try call.bytes().withUnsafeBytes { Array($0) }
        let bytes = try call.bytes()
        let type = try call.text()
        guard let key = session.key else { return (bytes: bytes, type: type) }
        return (try AES128CBC.decrypt(bytes, key: key, vector: vector), type)
      }
      guard let secret else { throw BusFailure.invalid("the secret is missing") }
      return secret
    }

    /// Checks that the client has this session.
    func require(_ path: String, of client: String) throws { _ = try session(path, of: client) }

    /// Writes a secret for a session of the client.
    func write(
      _ secret: (bytes: SecretBytes, type: String), _ path: String, of client: String, to answer: BusMessage
    ) throws {
      let session = try session(path, of: client)
      try answer.container("r", "oayays") {
        try answer.write(path, "o")
        if let key = session.key {
          let (vector, bytes) = try AES128CBC.encrypt(secret.bytes, key: key)
          try vector.withUnsafeBytes { try answer.write($0) }
          try bytes.withUnsafeBytes { try answer.write($0) }
        } else {
          try answer.write(UnsafeRawBufferPointer(start: nil, count: 0))
          try answer.write(secret: secret.bytes)
        }
        try answer.write(secret.type)
      }
    }
  }
#endif
