#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension Preferences {
  /// Settings that override the stored ones, fixed when a `Preferences` is opened and never written to the store.
  ///
  /// ```swift
  /// let preferences = try Preferences.open(
  ///   application: "org.example.server",
  ///   layers: [
  ///     try .forced(contentsOf: "/etc/example/forced.json", mayBeMissing: true),
  ///     .arguments(),
  ///     .variables(prefix: "EXAMPLE_"),
  ///   ])
  /// ```
  ///
  /// Regardless of the order they are given in, forced values come first, then arguments, then variables; among layers
  /// of the same kind, the first one given wins.
  ///
  /// Arguments and variables hold text, which the getters of UserDefaults convert by their usual rules. A typed key, or a
  /// getter that takes a type, also parses the text of a number, a Boolean (`true` `false` `yes` `no` `on` `off` `1` `0`), a
  /// date (RFC 3339), a URL, a UUID, bytes in base64, or JSON, and takes any text for a ``Secret``; see
  /// ``Value/read(as:forKey:inCollection:)``.
  ///
  /// In these layers, a typed key with a collection is named `collection/key`.
  public struct Layer: Sendable {
    let origin: Origin
    let content: Content

    enum Content: Sendable {
      case values([ByteString: Entry])
      /// By variable name.
      case variables([String: Entry], prefix: String)
    }

    typealias Entry = ManagedSettings.Entry

    private init(_ origin: Origin, _ content: Content) {
      self.origin = origin
      self.content = content
    }

    // MARK: Forced

    /// Settings that cannot be changed.
    public static func forced(_ values: [String: Value]) -> Layer {
      Layer(.forced, .values(Dictionary(values.map { (ByteString($0), Entry($1)) }) { $1 }))
    }

    /// Settings that cannot be changed, from a file: a JSON object, or a property list of any format.
    ///
    /// - Parameter mayBeMissing: Whether a missing file forces nothing instead of being an error.
    /// - Throws: `CofferError.malformedSettings` when the file is neither; `.permissionDenied` or `.inputOutput` when it
    ///   cannot be read.
    public static func forced(contentsOf path: String, mayBeMissing: Bool = false) throws -> Layer {
      guard let data = try SettingsFile.contents(of: path, mayBeMissing: mayBeMissing) else { return forced([:]) }
      return forced(try SettingsFile.settings(in: data, named: path))
    }

    // MARK: Arguments

    /// The arguments of the program: pairs of `-key` and a value, in any position.
    ///
    /// A value that begins with one of `{ [ ( < "` is parsed as JSON or a property list if it is one; any other value is
    /// text. A word that begins with a dash is not a value unless it is a number, and one that begins with two dashes is not
    /// a key. `--` ends the search.
    ///
    /// - Parameter arguments: The first one is the name of the program, and is ignored.
    public static func arguments(_ arguments: [String] = CommandLine.arguments) -> Layer {
      var values: [ByteString: Entry] = [:]
      var rest = arguments.dropFirst()
      while let word = rest.popFirst(), word != "--" {
        guard word.utf8.count > 1, word.utf8.starts(with: "-".utf8), !word.utf8.starts(with: "--".utf8),
          let value = rest.first, !value.utf8.starts(with: "-".utf8) || Double(value) != nil
        else { continue }
        values[ByteString(String(word.unicodeScalars.dropFirst()))] = Entry(text: value)
        rest.removeFirst()
      }
      return Layer(.arguments, .values(values))
    }

    // MARK: Environment variables

    /// The environment variables of the program whose names begin with `prefix`.
    ///
    /// A key is looked up in the variable that `prefs exec --prefix` sets for it: prefix and key, with letters in upper
    /// case, and `_` for everything except `A`-`Z` and `0`-`9`. With the prefix `EXAMPLE_`, or `example.`, the key
    /// `windowWidth` is found in `EXAMPLE_WINDOWWIDTH`, and `window.width` in `EXAMPLE_WINDOW_WIDTH`. A name that would
    /// begin with a digit gets a leading `_`. When all keys are listed, a variable that matches no known key is listed as
    /// the rest of its name in lower case.
    ///
    /// Values are parsed as in ``arguments(_:)``.
    public static func variables(
      prefix: String, _ variables: [String: String] = ProcessInfo.processInfo.environment
    ) -> Layer {
      var values: [String: Entry] = [:]
      let start = VariableName.of("", prefix: prefix).utf8
      for (name, text) in variables where name.utf8.count > start.count && name.utf8.starts(with: start) {
        values[name] = Entry(text: text)
      }
      return Layer(.variables, .variables(values, prefix: prefix))
    }
  }
}
