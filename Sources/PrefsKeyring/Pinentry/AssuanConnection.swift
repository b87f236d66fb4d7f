#if COFFER_BUS
  import Coffer
  import PrefsCommands

  #if canImport(Musl)
    import Musl
  #else
    import Glibc
  #endif

  /// A program that speaks the Assuan protocol, as pinentry does: each command is a line, and so are the parts of its answer.
  ///
  /// What is read goes straight into protected memory, since any line may hold a passphrase.
  struct AssuanConnection {
    /// The program answers with an error.
    struct Refusal: Error {
      private let code: Int
      let text: String

      /// - Parameter line: The line without `ERR`.
      fileprivate init(_ line: String) {
        let words = line.split(separator: " ", maxSplits: 1)
        code = words.first.flatMap { Int($0) } ?? 0
        text = words.count > 1 ? String(words[1]) : "an error without a reason"
      }

      /// The user has given up: GPG_ERR_CANCELED or GPG_ERR_FULLY_CANCELED, whatever part of GnuPG says so.
      var isOfUser: Bool { [99, 198].contains(code & 0xffff) }
    }

    /// The program has ended, or says what is not in the protocol.
    struct Broken: Error {}

    let reader: Int32
    let writer: Int32

    /// The longest line, with its end.
    private static let lineLimit = 1002

    // MARK: - Commands

    /// Sends a command, and reads its answer.
    ///
    /// - Parameter argument: Is shortened if the line would be too long.
    /// - Returns: The data of the answer.
    @discardableResult
    func ask(_ command: String, _ argument: String = "") throws -> SecretBytes {
      let line = argument.isEmpty ? command : "\(command) \(Self.escaped(argument, limit: 900))"
      try FileDescriptor.writeAll("\(line)\n".utf8, to: writer, named: "a pipe")
      return try answer()
    }

    /// Reads an answer; the first one comes unasked.
    @discardableResult
    func answer() throws -> SecretBytes {
      var parts: [SecretBytes] = []
      while true {
        let line = try readLine()
        switch Self.word(of: line) {
        case "OK": return Self.joined(parts)
        case "ERR": throw Refusal(Self.text(line.slice(min(4, line.count)..<line.count)))
        case "D":
          parts.append(try Self.decoded(line.slice(min(2, line.count)..<line.count)))
          guard parts.reduce(0, { $0 + $1.count }) <= FileDescriptor.secretLimit else { throw Broken() }
        // It asks for what only some commands need.
        case "INQUIRE": try FileDescriptor.writeAll("END\n".utf8, to: writer, named: "a pipe")
        // A status or a comment.
        case "S", "#": break
        default: throw Broken()
        }
      }
    }

    // MARK: - Lines

    private func readLine() throws -> SecretBytes {
      try FileDescriptor.secret(capacity: Self.lineLimit) { buffer in
        // Byte by byte: what follows the line is none of its own.
        for index in buffer.indices {
          var count = 0
          repeat {
            count = read(reader, UnsafeMutableRawBufferPointer(rebasing: buffer[index...]).baseAddress, 1)
          } while count < 0 && errno == EINTR
          guard count == 1 else { throw Broken() }
          if buffer[index] == UInt8(ascii: "\n") { return index }
        }
        throw Broken()
      }
    }

    /// The word that says what a line is.
    private static func word(of line: SecretBytes) -> String {
      line.withUnsafeBytes { bytes in
        // A comment needs no space.
        if bytes.first == UInt8(ascii: "#") { return "#" }
        return String(decoding: bytes.prefix(8).prefix { $0 != UInt8(ascii: " ") }, as: UTF8.self)
      }
    }

    private static func text(_ line: SecretBytes) -> String {
      line.withUnsafeBytes { DisplayText.escapingControls(String(decoding: $0, as: UTF8.self)) }
    }

    private static func joined(_ parts: [SecretBytes]) -> SecretBytes {
      SecretBytes(count: parts.reduce(0) { $0 + $1.count }) { buffer in
        var rest = buffer[...]
        for part in parts {
          part.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: rest).copyMemory(from: $0) }
          rest = rest.dropFirst(part.count)
        }
      }
    }

    // MARK: - %XX

    /// `text` as an argument.
    static func escaped(_ text: String, limit: Int = .max) -> String {
      var result = ""
      for scalar in text.unicodeScalars {
        let isPlain = scalar.value >= 0x20 && scalar.value != 0x7f && scalar != "%"
        let part = isPlain ? String(scalar) : "%" + withUnsafeBytes(of: UInt8(scalar.value)) { HexText.text($0) }
        guard result.utf8.count + part.utf8.count <= limit else { break }
        result += part
      }
      return result
    }

    /// The bytes that an argument stands for.
    static func decoded(_ argument: SecretBytes) throws -> SecretBytes {
      try argument.withUnsafeBytes { bytes in
        try FileDescriptor.secret(capacity: bytes.count) { buffer in
          var (count, index) = (0, 0)
          while index < bytes.count {
            if bytes[index] == UInt8(ascii: "%") {
              guard index + 2 < bytes.count, let high = digit(bytes[index + 1]), let low = digit(bytes[index + 2])
              else {
                throw Broken()
              }
              buffer[count] = high << 4 | low
              index += 3
            } else {
              buffer[count] = bytes[index]
              index += 1
            }
            count += 1
          }
          return count
        }
      }
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
      Character(Unicode.Scalar(byte)).hexDigitValue.map(UInt8.init)
    }
  }
#endif
