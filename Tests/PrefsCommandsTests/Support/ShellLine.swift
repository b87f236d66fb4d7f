/// Reads as much of the shell's syntax as the examples in help and documents have.
enum ShellLine {
  /// The arguments of each call of the tool in a line.
  static func calls(in line: some StringProtocol) -> [[String]] {
    var commands: [[String]] = [[]]
    var word: String?
    var quote: Character?
    func endWord() {
      if let whole = word { commands[commands.count - 1].append(whole) }
      word = nil
    }
    for character in line {
      if let open = quote {
        if character == open { quote = nil } else { word = (word ?? "") + String(character) }
      } else if character == "'" || character == "\"" {
        (quote, word) = (character, word ?? "")
      } else if character == "#", word == nil {
        break
      } else if character == " " {
        endWord()
      } else if "|;()".contains(character) || (character == "&" && word?.hasSuffix(">") != true) {
        endWord()
        commands.append([])
      } else {
        word = (word ?? "") + String(character)
      }
    }
    endWord()
    return commands.compactMap { words in
      words.firstIndex(of: "prefs").map { withoutRedirections(words[($0 + 1)...]) }
    }
  }

  private static func withoutRedirections(_ words: ArraySlice<String>) -> [String] {
    var result: [String] = []
    var isTarget = false
    for word in words {
      let sign = word.drop { $0.isNumber }
      if isTarget {
        isTarget = false
      } else if sign == "<" || sign == ">" {
        isTarget = true
      } else if !sign.hasPrefix("<"), !sign.hasPrefix(">") {
        result.append(word)
      }
    }
    return result
  }
}
