import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Encodes values as trees of a format's own types, without loss.
///
/// A value that a format has no type for is written as a dictionary with one key that names its type: `{"$date":
/// "2026-01-31T08:30:00.250Z"}`. A user's dictionary of this form is wrapped in `$dict`.
package enum PortableValue {
  typealias Mark = MarkedValue.Mark

  /// The maximum nesting depth of a tree, so that every parser can read it.
  private static let depthLimit = 190

  /// Encodes a value.
  ///
  /// - Parameter native: The types that the format supports directly.
  /// - Throws: ``FormatProblem``.
  package static func tree(_ value: Value, native: NativeKinds) throws -> Value {
    try Writer(native: native).tree(value, depth: 0)
  }

  /// A special number as text: `nan`, `inf`, `-inf`, or the bits of another NaN.
  static func text(ofSpecial number: Double) -> String {
    guard number.isNaN, number.bitPattern != Double.nan.bitPattern else { return number.description }
    return "0x" + String(number.bitPattern, radix: 16)
  }

  private struct Writer {
    let native: NativeKinds

    func tree(_ value: Value, depth: Int) throws -> Value {
      guard depth <= PortableValue.depthLimit else { throw FormatProblem("it is nested too deeply") }
      switch value {
      case .null: return native.null ? .null : wrapped(.null, .bool(true))
      case .bool, .int: return value
      case .uint64(let number): return native.bigIntegers ? value : wrapped(.integer, .string("\(number)"))
      case .double(let number): return double(number)
      case .string(let text):
        try check(text)
        return Redaction.isPlaceholder(text) ? wrapped(.string, value) : value
      case .data(let data): return self.data(data)
      case .date(let date): return self.date(date)
      // Only a whole value is archived, as by UserDefaults: inside of one, an archive is data to every reader.
      case .url(let url): return depth == 0 ? archived(url) ?? self.url(url) : self.url(url)
      case .uuid(let uuid): return wrapped(.uuid, .string(uuid.uuidString))
      case .array(let elements): return .array(try elements.map { try tree($0, depth: depth + 1) })
      case .dictionary(let members): return try dictionary(members, depth: depth)
      case .json(let text): return wrapped(.json, try json(text, depth: depth))
      case .secret(let secret):
        guard let text = secret.revealed() else {
          return wrapped(.secret, wrapped(.data, .string(secret.withUnsafeBytes { Data($0) }.base64EncodedString())))
        }
        try check(text)
        return wrapped(.secret, .string(text))
      }
    }

    private func wrapped(_ mark: Mark, _ value: Value) -> Value { .dictionary([mark.rawValue: value]) }

    private func check(_ text: String) throws {
      if !native.nul, text.utf8.contains(0) { throw FormatProblem("it holds the character U+0000") }
    }

    private func double(_ number: Double) -> Value {
      let isOrdinary = number.isFinite || native.nonFinite && !number.isNaN
      let isNative = isOrdinary || native.nonFinite && number.bitPattern == Double.nan.bitPattern
      return isNative ? .double(number) : wrapped(.double, .string(PortableValue.text(ofSpecial: number)))
    }

    private func data(_ data: Data) -> Value {
      // Data that is an archived URL would be read back as that URL.
      let isPlain = native.data && !(native.urlArchives && URLArchive.unwrapped(.data(data)) != .data(data))
      return isPlain ? .data(data) : wrapped(.data, .string(data.base64EncodedString()))
    }

    private func date(_ date: Date) -> Value {
      let seconds = date.timeIntervalSinceReferenceDate
      if native.dates == .exact, seconds.isFinite { return .date(date) }
      let text = Timestamp.exactText(date)
      guard Timestamp.date(text)?.timeIntervalSinceReferenceDate.bitPattern == seconds.bitPattern else {
        return wrapped(.date, double(seconds))
      }
      // Other parsers do not support years of more than four digits.
      return native.dates == .milliseconds && text.utf8.count == 24 && text.first != "-"
        ? .date(date) : wrapped(.date, .string(text))
    }

    /// nil if the format has no archives, or the archive is not read back as the same URL.
    private func archived(_ url: URL) -> Value? {
      let archive = Value.data(URLArchive.data(url))
      guard native.urlArchives, (try? URLArchive.unwrapped(archive).stored) == (try? Value.url(url).stored) else {
        return nil
      }
      return archive
    }

    private func url(_ url: URL) -> Value {
      guard let base = url.baseURL else { return wrapped(.url, .string(url.relativeString)) }
      return wrapped(.url, .array([.string(url.relativeString), .string(base.absoluteString)]))
    }

    private func dictionary(_ members: [String: Value], depth: Int) throws -> Value {
      for name in members.keys { try check(name) }
      let isLikeWrapped = members.count == 1 && members.keys.first.flatMap(Mark.init) != nil
      let tree = Value.dictionary(
        try members.mapValues { try self.tree($0, depth: depth + (isLikeWrapped ? 2 : 1)) })
      return isLikeWrapped ? wrapped(.dictionary, tree) : tree
    }

    /// JSON text as a tree if it can be restored exactly, else as text.
    private func json(_ text: String, depth: Int) throws -> Value {
      try check(text)
      guard let parsed = try? JSONReader.value(text), parsed.kind != .string,
        JSONText.text(parsed, bigIntegers: .numbers) == text
      else { return .string(text) }
      return try tree(parsed, depth: depth + 1)
    }
  }
}
