import ArgumentParser

/// The help pages, as shown on a terminal.
enum HelpText {
  private static let heading = "\nCOMMON OPTIONS:\n"

  /// A command's page without the common options, which have one of their own.
  static func page(_ text: String) -> String {
    guard let start = text.range(of: heading), let end = text.range(of: "\n\n", range: start.upperBound..<text.endIndex)
    else { return text }
    return text[..<start.lowerBound] + "\nCOMMON OPTIONS: `prefs help options`\n" + text[end.lowerBound...].dropFirst()
  }

  /// The page `prefs help options`: where the store and its key are looked for, and the options that all commands take.
  static var options: String {
    let text = PrefsCommand.helpMessage(columns: 80)
    guard let start = text.range(of: heading), let end = text.range(of: "\n\n", range: start.upperBound..<text.endIndex)
    else { return text }
    let rules = text.range(of: "The store is --store").map { text[$0.lowerBound...] } ?? ""
    let paragraph = rules.range(of: "\n\n").map { rules[..<$0.lowerBound] } ?? ""
    return "Every command takes these options, before or after its name.\n\n" + paragraph + "\n"
      + text[start.lowerBound..<end.lowerBound] + "\n"
  }

  /// The page `prefs help`: every command on a line, those of the first day first.
  ///
  /// - Parameter programs: The programs beside the tool, and what they do.
  static func top(programs: [(name: String, abstract: String)]) -> String {
    var lines = [
      PrefsCommand.configuration.abstract,
      "USAGE: prefs [options] COMMAND …", "A key is written KEY, in the default collection, or COLLECTION/KEY.", "",
    ]
    for group in PrefsCommand.groups {
      lines.append(group.name.uppercased())
      for command in group.subcommands where command.configuration.shouldDisplay {
        lines.append(line(command.configuration.commandName ?? "", command.configuration.abstract))
      }
    }
    if !programs.isEmpty {
      lines.append("PROGRAMS BESIDE PREFS")
      lines += programs.map { line($0.name, $0.abstract) }
    }
    lines += [
      "",
      "prefs help COMMAND describes a command, prefs help options the options of all,",
      "and which store and key are used. Also prefs --exit-codes, prefs --version -v.",
    ]
    return lines.map { $0 + "\n" }.joined()
  }

  private static func line(_ name: String, _ abstract: String) -> String {
    "  " + name + String(repeating: " ", count: max(1, 15 - name.count)) + abstract
  }
}

extension StringProtocol {
  /// The first place of `text`; Foundation is not imported for it.
  fileprivate func range(of text: String, range: Range<Index>? = nil) -> Range<Index>? {
    let range = range ?? startIndex..<endIndex
    return self[range].firstRange(of: text)
  }
}
