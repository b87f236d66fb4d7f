/// A command that a message names, with the options that led to the store.
package enum CommandHint {
  /// - Parameter words: The words after `prefs`, as a shell reads them.
  package static func text(_ words: String) -> String { "prefs \(words)\(CommandSession.storeOptions)" }

  /// A word as a shell reads it.
  package static func quoted(_ word: String) -> String {
    let isPlain =
      !word.isEmpty
      && word.unicodeScalars.allSatisfy { scalar in
        scalar.properties.isAlphabetic || ("0"..."9").contains(scalar) || "_@%+=:,./-".unicodeScalars.contains(scalar)
      }
    return isPlain ? word : "'" + word.replacing("'", with: #"'\''"#) + "'"
  }
}

extension SessionOptions {
  /// The given options that name the store and its key file.
  var storeOptionText: String {
    [("-d", store), ("--app", app), ("--key-file", keyFile)]
      .compactMap { name, value in value.map { " \(name) \(CommandHint.quoted($0))" } }.joined()
  }
}
