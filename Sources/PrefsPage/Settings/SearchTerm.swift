import Coffer
import PrefsCommands

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A word of a search: text, or a condition such as `type:int`.
enum SearchTerm: Hashable, Sendable {
  /// Occurs in the name, the summary or the text.
  case text([UInt8])
  /// A type that begins so.
  case type([UInt8])
  /// Was last changed since then.
  case changed(since: Date)
  /// Was last changed by an author whose program, user, host or actor has this in it.
  case by([UInt8])
  case state(State)

  /// What `is:` takes.
  enum State: String, CaseIterable {
    case changed, problem, secret, sealed, locked, expiring, due
  }

  /// The term of a word; if it is not valid, a sentence that says why.
  ///
  /// - Parameter now: The time from which `changed:2d` is counted.
  static func parse(_ word: Substring, now: Date) -> (term: SearchTerm?, problem: String?) {
    guard let colon = word.firstIndex(of: ":") else { return (.text(Array(word.utf8)), nil) }
    let value = String(word[word.index(after: colon)...])
    switch word[..<colon] {
    case "type": return (.type(Array(value.utf8)), nil)
    case "by": return (.by(Array(value.utf8)), nil)
    case "changed":
      guard let date = date(value, now: now) else {
        return (nil, "changed: takes a time before now, as in changed:2d, or a date, as in changed:2026-01-31.")
      }
      return (.changed(since: date), nil)
    case "is":
      guard let state = State(rawValue: value) else {
        return (nil, "is: takes \(State.allCases.map(\.rawValue).joined(separator: ", ")).")
      }
      return (.state(state), nil)
    // As in a URL.
    default: return (.text(Array(word.utf8)), nil)
    }
  }

  private static func date(_ text: String, now: Date) -> Date? {
    // Dates are written with capitals.
    if let date = Timestamp.date(text.uppercased()) { return date }
    return Lifetime(argument: text).map { now - Double($0.seconds) }
  }

  func accepts(_ setting: IndexedSetting, now: Date) -> Bool {
    switch self {
    case .text(let word): setting.contains(word)
    case .type(let prefix): setting.type.lowercased().utf8.starts(with: prefix)
    case .changed(let since): setting.own.map { $0.modified >= since } ?? false
    case .by(let word): setting.authorText.contains(word)
    case .state(let state): accepts(setting, state, now: now)
    }
  }

  private func accepts(_ setting: IndexedSetting, _ state: State, now: Date) -> Bool {
    switch state {
    case .changed: setting.isChanged
    case .problem: setting.hasProblem
    case .secret: setting.type == Value.Kind.secret.name
    case .sealed: setting.type == Value.Kind.sealed.name
    case .locked: setting.isLocked
    case .expiring: setting.own?.expires ?? false
    case .due: setting.own?.due.map { $0 <= now } ?? false
    }
  }
}
