#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension Preferences {
  /// Settings that go before the stored ones, fixed when a `Preferences` is opened and never written to the store.
  ///
  /// ```swift
  /// let preferences = try Preferences.open(
  ///   application: "org.example.server",
  ///   layers: [
  ///     try .forced(contentsOf: "/etc/example/forced.json", mayBeMissing: true),
  ///     .arguments(),
  ///     .environment(prefix: "EXAMPLE_"),
  ///   ])
  /// ```
  ///
  /// Whatever order they are given in, what is forced comes first, then the arguments, then the environment; of two layers
  /// of the same kind, the one given first.
  ///
  /// Arguments and environment hold text. UserDefaults' getters read it by their usual rules; a typed key, or a getter
  /// that names a type, also takes the text of a number, of a truth value (`true` `false` `yes` `no` `on` `off` `1` `0`), of
  /// a date (RFC 3339), a URL or a UUID, bytes in base64, or JSON, for what it stands for, and any text for a ``Secret``;
  /// see ``Value/read(as:forKey:inCollection:)``.
  ///
  /// A typed key that names a collection goes by `collection/key` in these layers.
  public struct Layer: Sendable {
    let origin: Origin
    let content: Content

    enum Content: Sendable {
      case values([ByteString: Entry])
      /// By the names of the variables.
      case variables([String: Entry], prefix: String)
    }

    struct Entry: Sendable {
      let value: Value
      /// What it was read from; nil where the value was given as such.
      let text: String?
      /// Where it stands, of ``ManagedSettings``.
      let place: ManagedSettings.Place?

      init(_ value: Value, from place: ManagedSettings.Place? = nil) {
        self.value = value
        self.place = place
        text = nil
      }

      init(text: String) {
        self.text = text
        place = nil
        value = SettingsText.value(text)
      }
    }

    private init(_ origin: Origin, _ content: Content) {
      self.origin = origin
      self.content = content
    }

    // MARK: Forced

    /// Settings that nobody may change.
    public static func forced(_ values: [String: Value]) -> Layer {
      Layer(.forced, .values(Dictionary(values.map { (ByteString($0), Entry($1)) }) { $1 }))
    }

    /// Settings that nobody may change, from a file: a JSON object, or a property list of any format.
    ///
    /// - Parameter mayBeMissing: Whether a file that is not there forces nothing, instead of being an error.
    /// - Throws: `CofferError.malformedSettings` when the file holds no such thing, `.permissionDenied` or `.inputOutput`
    ///   when it cannot be read.
    public static func forced(contentsOf path: String, mayBeMissing: Bool = false) throws -> Layer {
      guard let data = try SettingsFile.contents(of: path, mayBeMissing: mayBeMissing) else { return forced([:]) }
      return forced(try SettingsFile.settings(in: data, named: path))
    }

    // MARK: Arguments

    /// The arguments of the program: pairs of `-key` and a value, wherever they stand.
    ///
    /// A value that begins with one of `{ [ ( < "` is read as JSON or a property list where it is one; any other value is
    /// text. A word that begins with a dash and is not a number is no value, one that begins with two dashes no key; `--`
    /// ends the search.
    ///
    /// - Parameter arguments: The first one is the name of the program, and not looked at.
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

    // MARK: Environment

    /// The environment of the program: the variables whose names begin with `prefix`.
    ///
    /// A key is found in the variable that `prefs exec --prefix` makes of it: prefix and key, their letters in upper case, and
    /// `_` for everything but `A`-`Z` and `0`-`9`. With the prefix `EXAMPLE_`, or `example.`, the key `windowWidth` is found
    /// in `EXAMPLE_WINDOWWIDTH`, and `window.width` in `EXAMPLE_WINDOW_WIDTH`. A name that would begin with a digit has `_`
    /// before it. Where all keys are listed, a variable for no known key stands as the rest of its name in lower case.
    ///
    /// Values are read as those of ``arguments(_:)``.
    public static func environment(
      prefix: String, _ variables: [String: String] = ProcessInfo.processInfo.environment
    ) -> Layer {
      var values: [String: Entry] = [:]
      let start = EnvironmentName.of("", prefix: prefix).utf8
      for (name, text) in variables where name.utf8.count > start.count && name.utf8.starts(with: start) {
        values[name] = Entry(text: text)
      }
      return Layer(.environment, .variables(values, prefix: prefix))
    }
  }
}
