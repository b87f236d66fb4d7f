import CofferCrypto

/// Notices, commit by commit, that an environment is gone, and that it is there again.
///
/// While it is gone, its parent's values show, as if they were those of the environment.
package final class WatchedEnvironment: Sendable {
  private let environment: CollectionEnvironment
  private let wasThere = Lock(true)
  private let didChange: @Sendable (_ isThere: Bool) -> Void

  /// Watches an environment that exists.
  package init(_ environment: CollectionEnvironment, didChange: @escaping @Sendable (_ isThere: Bool) -> Void) {
    (self.environment, self.didChange) = (environment, didChange)
  }

  /// Looks whether a commit has changed that, which `database` has just reported.
  package func look(after commit: Commit, of database: Database) {
    // What cannot be read now is noticed with a later commit.
    guard !commit.actions.isEmpty || commit.scope == .everything, let isThere = try? isThere(in: database) else {
      return
    }
    let wasThere = wasThere.withLock { wasThere in
      defer { wasThere = isThere }
      return wasThere
    }
    if wasThere != isThere { didChange(isThere) }
  }

  private func isThere(in database: Database) throws -> Bool {
    let reader = try database.takeReader()
    defer { database.giveBack(reader) }
    return try reader.read { try $0.hasEnvironment(environment) }
  }
}
