import Coffer

/// What git asks of a helper, or gives it to keep.
struct GitCredential {
  /// The items of passwords are those of git's helper for libsecret.
  static let passwords = "org.git.Password"
  /// Those of other authentication, such as a bearer token, are not, so that nothing takes a token for a password.
  static let others = "org.git.Credential"

  let lines: CredentialLines

  /// - Throws: ``KeyringProblem``.
  init(_ input: SecretBytes) throws { lines = try CredentialLines(input) }

  private func text(_ name: String) -> String? { lines.texts[name] }

  /// Whether git understands `authtype` and `credential`.
  var takesTypes: Bool { lines.lists["capability[]"]?.contains("authtype") ?? false }

  // MARK: - Matching

  /// Whether anything says which items are meant.
  var names: Bool { ["protocol", "host", "path", "username"].contains { text($0) != nil } }

  /// The attributes that the item of a password must have.
  var ofPassword: ItemAttributes {
    let (server, port) = Self.parts(ofHost: text("host"))
    return Self.attributes([
      ("protocol", text("protocol")), ("server", server), ("port", port), ("object", text("path")),
      ("user", text("username")),
    ])
  }

  /// The attributes that an item of other authentication must have.
  var ofOther: ItemAttributes {
    Self.attributes([
      (ItemAttributes.schema, Self.others), ("protocol", text("protocol")), ("host", text("host")),
      ("path", text("path")),
      ("username", text("username")), ("authtype", text("authtype")),
    ])
  }

  private static func attributes(_ all: [(String, String?)]) -> ItemAttributes {
    ItemAttributes(all.compactMap { name, value in value.map { (name: name, value: $0) } })
  }

  /// The name and the port of a host, as git's helper for libsecret keeps them.
  private static func parts(ofHost host: String?) -> (server: String?, port: String?) {
    guard let host, let colon = host.lastIndex(of: ":"), let port = UInt16(host[host.index(after: colon)...]), port > 0,
      !host.hasPrefix("[") || host[..<colon].hasSuffix("]")
    else { return (host, nil) }
    return (String(host[..<colon]), "\(port)")
  }

  // MARK: - Storing

  /// What is to be kept: the attributes, the label and the secret; nil for an incomplete credential, and for one that git says is of
  /// no use later.
  var kept: (attributes: ItemAttributes, label: String, secret: SecretBytes)? {
    guard let scheme = text("protocol"), text("host") != nil || text("path") != nil, !isEphemeral else { return nil }
    let attributes: ItemAttributes
    let main: SecretBytes
    if text("authtype") != nil, let credential = lines.secrets["credential"] {
      (attributes, main) = (ofOther, credential)
    } else if text("username") != nil, let password = lines.secrets["password"] {
      attributes = ItemAttributes(ofPassword.sorted + [(ItemAttributes.schema, Self.passwords)])
      main = password
    } else {
      return nil
    }
    // A value with a newline is none of git's.
    guard !main.breaksLine else { return nil }
    let label = "Git: \(scheme)://\(text("host") ?? "")/\(text("path") ?? "")"
    return (attributes, label, .joined([main] + more))
  }

  private var isEphemeral: Bool {
    guard let text = text("ephemeral")?.lowercased() else { return false }
    return !["", "0", "false", "no", "off"].contains(text)
  }

  /// What follows a password in its secret, as git's helper for libsecret writes it.
  private var more: [SecretBytes] {
    var parts: [SecretBytes] = []
    if let expiry = text("password_expiry_utc") {
      parts.append(SecretBytes(copying: "\npassword_expiry_utc=\(expiry)"))
    }
    if let token = lines.secrets["oauth_refresh_token"] {
      parts += [SecretBytes(copying: "\noauth_refresh_token="), token]
    }
    return parts
  }
}

/// The secret of an item as git knows it: a password or another credential in the first line, then further attributes.
struct GitSecret {
  let main: SecretBytes
  private let more: SecretBytes

  init(_ secret: SecretBytes) {
    let line = secret.part(of: 0..<secret.count, before: UInt8(ascii: "\n"))
    main = secret.slice(line)
    more = secret.slice(min(line.upperBound + 1, secret.count)..<secret.count)
  }

  /// The lines that answer git; nil if the item cannot be written in lines.
  func answer(_ name: ItemName) -> [SecretBytes]? {
    let isOther = name.attributes[ItemAttributes.schema] == GitCredential.others
    let user = name.attributes[isOther ? "username" : "user"]
    guard !main.breaksLine, user?.utf8.contains(where: { $0 == 10 || $0 == 0 }) != true,
      let further = try? CredentialLines(more)
    else { return nil }
    var lines: [SecretBytes] = []
    func add(_ name: String, _ value: SecretBytes) {
      lines += [SecretBytes(copying: name + "="), value, SecretBytes(copying: "\n")]
    }
    func add(_ name: String, _ value: String) { add(name, SecretBytes(copying: value)) }
    if isOther {
      guard let type = name.attributes["authtype"] else { return nil }
      add("capability[]", "authtype")
      add("authtype", type)
      add("credential", main)
    }
    if let user { add("username", user) }
    if !isOther { add("password", main) }
    if let expiry = further.texts["password_expiry_utc"] { add("password_expiry_utc", expiry) }
    if let token = further.secrets["oauth_refresh_token"], !token.breaksLine { add("oauth_refresh_token", token) }
    return lines
  }
}
