import CofferStorage

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// Who made a commit, according to the program that made it.
///
/// This is a note, not evidence: anyone with the store's key can write any author.
public struct Author: Sendable, Hashable {
  /// The name of the program, without its folder.
  public let program: String
  /// The name of the user it ran as, or the user ID if it has no name.
  public let user: String
  /// The name of the host.
  public let host: String
  /// On whose behalf it was made, see ``DatabaseOptions/actor``; nil if not given.
  public let actor: String?

  /// This program, acting on behalf of `actor`.
  init(actor: String?) {
    let own = Self.own
    self.init(program: own.program, user: own.user, host: own.host, actor: actor)
  }

  package init(program: String, user: String, host: String, actor: String?) {
    self.program = program
    self.user = user
    self.host = host
    self.actor = actor.map(Self.line).flatMap { $0.isEmpty ? nil : $0 }
  }

  private static let own = Author(
    program: line(CommandLine.arguments.first?.split(separator: "/").last.map(String.init) ?? ""),
    user: line(SystemName.user(geteuid())),
    host: hostName(), actor: nil)

  private static func hostName() -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
      guard gethostname(buffer.baseAddress!, buffer.count - 1) == 0 else { return "" }
      buffer[buffer.count - 1] = 0
      return line(String(cString: buffer.baseAddress!))
    }
  }

  // MARK: In the store

  /// Longer names are truncated: each commit stores them.
  private static let maximumLength = 128

  /// A name as one line, so that no control character reaches a terminal.
  private static func line(_ text: String) -> String {
    let scalars = text.unicodeScalars.lazy.map { scalar in
      scalar.properties.generalCategory == .control || scalar.properties.generalCategory == .format ? "?" : scalar
    }
    return String(String.UnicodeScalarView(scalars.prefix(maximumLength)))
  }

  /// The lines described in `FORMAT.md`, Authors.
  package var text: String {
    ([program, user, host] + (actor.map { [$0] } ?? [])).joined(separator: "\n")
  }

  /// nil if the text does not describe an author.
  package init?(text: String) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { Self.line(String($0)) }
    guard lines.count == 3 || lines.count == 4 else { return nil }
    self.init(program: lines[0], user: lines[1], host: lines[2], actor: lines.count == 4 ? lines[3] : nil)
  }
}

extension Author: CustomStringConvertible {
  /// The actor, if given, and the program: `alice (prefs by root at web1)`.
  public var description: String {
    let place = "\(program) by \(user) at \(host)"
    return actor.map { "\($0) (\(place))" } ?? place
  }
}
