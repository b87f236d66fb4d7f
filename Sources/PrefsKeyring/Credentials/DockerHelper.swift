import Coffer
import PrefsCommands

/// The operations of a credential helper for docker, with the items of docker's own helper for the Secret Service.
struct DockerHelper {
  let session: CommandSession
  let collection: String

  /// A line that docker and its relatives compare.
  enum Problem: String, Error {
    case notFound = "credentials not found in native keychain"
    case noServer = "no credentials server URL"
    case noUsername = "no credentials username"
  }

  private static let ours = [("docker_cli", "1")]

  /// The text for standard output.
  ///
  /// - Throws: ``Problem``; ``Failure``; `CofferError`.
  func answer(_ operation: String) throws -> [SecretBytes] {
    try KeyringProblem.reported {
      switch operation {
      case "get": return try get(server())
      case "store": try store(DockerRequest(StandardInput.secret()))
      case "erase": try erase(server())
      case "list": return [SecretBytes(copying: try list() + "\n")]
      case "version": return [SecretBytes(copying: "docker-credential-prefs \(PrefsTool.version)\n")]
      default: throw Failure(.usage, "there is no operation \"\(operation)\": use get, store, erase, list or version.")
      }
      return []
    }
  }

  /// The address on standard input.
  private func server() throws -> String {
    let input = try StandardInput.secret()
    guard let text = input.text(0..<input.count) else {
      throw KeyringProblem(reason: "the server's address is not text")
    }
    let spaces: Set<Character> = [" ", "\t", "\r", "\n", "\r\n"]
    let server = text.drop { spaces.contains($0) }.reversed().drop { spaces.contains($0) }.reversed()
    guard !server.isEmpty else { throw Problem.noServer }
    return String(server)
  }

  // MARK: - Operations

  private func get(_ server: String) throws -> [SecretBytes] {
    let answer = try Keyring.openForReading(session, collection) { keyring -> [SecretBytes]? in
      guard let item = try keyring.names(Self.attributes(of: server)).first.flatMap(keyring.item) else { return nil }
      let user = item.name.attributes["username"] ?? ""
      let start = "{\"ServerURL\":\(JSONText.quoted(server)),\"Username\":\(JSONText.quoted(user)),\"Secret\":"
      return [SecretBytes(copying: start), try item.secret.quotedJSON(), SecretBytes(copying: "}\n")]
    }
    guard let answer = answer.flatMap(\.self) else { throw Problem.notFound }
    return answer
  }

  private func store(_ request: DockerRequest) throws {
    guard !request.server.isEmpty else { throw Problem.noServer }
    guard !request.username.isEmpty else { throw Problem.noUsername }
    guard let secret = request.secret else { throw KeyringProblem(reason: "the input has no \"Secret\"") }
    let attributes = ItemAttributes(
      Self.ours + [
        (ItemAttributes.schema, "io.docker.Credentials"), ("label", "Docker Credentials"), ("server", request.server),
        ("username", request.username),
      ])
    try Keyring.openForWriting(session, collection) { keyring in
      // docker asks by server, so a server has one user.
      try keyring.set(
        secret, attributes, label: "Registry credentials for \(request.server)",
        replacing: keyring.names(Self.attributes(of: request.server)))
    }
  }

  private func erase(_ server: String) throws {
    guard try session.exists() else { return }
    try Keyring.openForWriting(session, collection) { try $0.remove($0.names(Self.attributes(of: server))) }
  }

  private func list() throws -> String {
    let names = try Keyring.openForReading(session, collection) { try $0.names(ItemAttributes(Self.ours)) } ?? []
    var users: [(name: String, json: String)] = []
    for name in names {
      guard let server = name.attributes["server"], !users.contains(where: { $0.name == server }) else { continue }
      users.append((server, JSONText.quoted(name.attributes["username"] ?? "")))
    }
    return JSONText.object(users)
  }

  private static func attributes(of server: String) -> ItemAttributes { ItemAttributes(ours + [("server", server)]) }
}
