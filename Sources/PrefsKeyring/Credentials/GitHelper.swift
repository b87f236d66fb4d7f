import Coffer
import PrefsCommands

/// The operations of a credential helper for git, as gitcredentials(7) describes them.
struct GitHelper {
  let session: CommandSession
  let collection: String

  /// - Throws: ``Failure``; `CofferError`.
  func run(_ operation: String) throws {
    switch operation {
    case "get": try get(credential())
    case "store": try store(credential())
    case "erase": try erase(credential())
    // Later versions of git may have more, which a helper has to ignore.
    default: return
    }
  }

  private func credential() throws -> GitCredential {
    try KeyringProblem.reported { try GitCredential(StandardInput.secret()) }
  }

  // MARK: - Operations

  private func get(_ credential: GitCredential) throws {
    let answer = try Keyring.openForReading(session, collection) { keyring in
      try KeyringProblem.reported {
        for name in try candidates(credential, keyring) {
          if let item = try keyring.item(name), let lines = GitSecret(item.secret).answer(name) { return lines }
        }
        return []
      }
    }
    for part in answer ?? [] {
      try part.withUnsafeBytes { try FileDescriptor.writeAll($0, to: 1, named: "standard output") }
    }
  }

  private func store(_ credential: GitCredential) throws {
    // git also has helpers store what is not complete, and expects no complaint.
    guard let kept = credential.kept else { return }
    try Keyring.openForWriting(session, collection) { keyring in
      try KeyringProblem.reported { try keyring.set(kept.secret, kept.attributes, label: kept.label) }
    }
  }

  /// Removes what matches, but with a password or a credential only items that have it: git rejects an old one after another program
  /// has stored the new one.
  private func erase(_ credential: GitCredential) throws {
    guard credential.names, try session.exists() else { return }
    let rejected = credential.lines.secrets["credential"] ?? credential.lines.secrets["password"]
    try Keyring.openForWriting(session, collection) { keyring in
      try KeyringProblem.reported {
        var names = try candidates(credential, keyring)
        if let rejected {
          names = try names.filter { name in
            try keyring.item(name).map { GitSecret($0.secret).main.isEqual(to: rejected) } ?? false
          }
        }
        try keyring.remove(names)
      }
    }
  }

  /// The items that may answer, the best first: one for a whole host before one for a path that was not asked for, then the newest.
  private func candidates(_ credential: GitCredential, _ keyring: Keyring) throws -> [ItemName] {
    guard credential.names else { return [] }
    func isOther(_ name: ItemName) -> Bool { name.attributes[ItemAttributes.schema] == GitCredential.others }
    let others = credential.takesTypes ? try keyring.names(credential.ofOther) : []
    let wanted = credential.ofPassword
    let passwords =
      credential.lines.texts["authtype"] == nil
      ? try keyring.names(wanted).filter { name in
        // A host without a port is another one than the same with a port.
        name.id != nil && !isOther(name) && (wanted["server"] == nil || name.attributes["port"] == wanted["port"])
      } : []
    func hasPath(_ name: ItemName) -> Bool { name.attributes[isOther(name) ? "path" : "object"] != nil }
    let all = others + passwords
    return all.filter { !hasPath($0) } + all.filter(hasPath)
  }
}

extension KeyringProblem {
  /// Runs `body`, with its problem as a ``Failure``.
  static func reported<R>(_ body: () throws -> R) throws -> R {
    do { return try body() } catch let problem as KeyringProblem {
      throw Failure(.format, "\(problem.reason). Nothing was changed.")
    }
  }
}

/// What a program writes to a credential helper.
enum StandardInput {
  static let limit = 64 << 10

  /// Everything, in protected memory, possibly nothing.
  ///
  /// - Throws: ``Failure``.
  static func secret() throws -> SecretBytes {
    do {
      return try SecretBytes.read(0, limit: limit, droppingNewline: false)
    } catch .empty {
      return SecretBytes(count: 0) { _ in }
    } catch .tooLong {
      throw Failure(.format, "standard input holds more than \(limit >> 10) KiB.")
    } catch {
      throw Failure(.inputOutput, "standard input cannot be read.")
    }
  }
}
