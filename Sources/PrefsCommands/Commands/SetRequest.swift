import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The implementation of `prefs set`, after parsing.
struct SetRequest: Request {
  /// In a transaction, the entry that is meant.
  private(set) var reference: KeyReference
  /// The value; `-` for standard input.
  var value: String?
  /// The type, if given.
  var type: ValueType?
  var base64 = false
  var hex = false
  var valueFile: String?
  var stripNewline = false
  var secret = false
  var ifVersion: Int64?
  var ifAbsent = false
  var expires: Date?
  var due: Date?
  var options = SessionOptions()

  var readType: ValueType { type ?? (base64 || hex ? .data : .auto) }

  func run() throws {
    let session = try CommandSession(options)
    try session.requireUnlocked(reference)
    let read = try readValue(session)
    if let ifVersion, ifVersion > 0, try !session.exists() {
      // Do not create a store for this.
      throw conflict(found: nil)
    }
    let isText = try session.writeCreating(reference) { transaction, reference in
      var request = self
      request.reference = reference
      return try request.set(read, transaction)
    }
    if endsWithNewline(read) {
      options.note("the secret ends with a newline, which is part of it. --strip-newline leaves it out.")
    }
    if isText { options.note("stored as text. --dict and --array parse it, or report why it cannot be parsed.") }
  }

  /// - Returns: Whether it is text that looks like an array or a dictionary.
  private func set(_ read: Given, _ transaction: borrowing ReadWriteTransaction) throws -> Bool {
    if isArgument, try transaction.isSealed(collection: reference.collection) { throw argumentRefused }
    if ifAbsent || ifVersion != nil {
      let found = try transaction.item(forKey: reference.key, inCollection: reference.collection)?.version
      if found != (ifVersion == 0 ? nil : ifVersion) { throw conflict(found: found) }
    }
    let declaration = try transaction.declaration(forKey: reference.key, inCollection: reference.collection)
    if !secret, !options.allowsBadValues {
      // Under a name that another version declares as text, text can be set, and is as secret.
      let isHidden = try transaction.isDeclaredSecret(reference.key, inCollection: reference.collection)
      if isHidden, isArgument || declaration?.type == .secret { throw declaredSecretRefused }
    }
    let kind = namesType || secret ? nil : try reference.presentKind(transaction)
    if kind == .secret { throw plainValueRefused }
    let newValue = try value(read, declaration, kind)
    try transaction.setObject(
      newValue, forKey: reference.key, inCollection: reference.collection, expires: expires, due: due)
    guard !namesType, declaration == nil, case .string(let text) = newValue else { return false }
    return text.hasPrefix("{") || text.hasPrefix("[")
  }

  /// Whether a secret from a pipe or a file has the newline that `echo` and editors add.
  private func endsWithNewline(_ read: Given) -> Bool {
    guard case .value(.secret(let secret)) = read, !stripNewline else { return false }
    return secret.withUnsafeBytes { $0.last == UInt8(ascii: "\n") }
  }

  private var isArgument: Bool { value != nil && value != "-" }

  private var argumentRefused: Failure {
    Failure(
      .usage, "\(DisplayText.collection(reference.collection)) is sealed, and \(Self.argumentWarning)")
  }

  /// Whether the value's type is given rather than guessed.
  private var namesType: Bool { type != nil || base64 || hex }

  private var declaredSecretRefused: Failure {
    let name = "\(KeyText.of(reference.key, in: reference.collection)) is declared as a secret"
    guard isArgument else { return Failure(.usage, "\(name); nothing was changed. Set it with --secret.") }
    return Failure(.usage, "\(name), and \(Self.argumentWarning)")
  }

  private var plainValueRefused: Failure {
    Failure(
      .usage,
      "key \"\(reference.key)\" in \(DisplayText.collection(reference.collection)) is a secret; nothing was changed. Set it "
        + "with --secret, or name another type with --type.")
  }

  static let argumentWarning =
    "a secret must not be an argument: other users and the shell's history see it. Pipe it in with -, name a file with "
    + "--value-file, or leave it out to be asked, with --secret."

  private func conflict(found: Int64?) -> Failure {
    let name = "key \"\(reference.key)\" in \(DisplayText.collection(reference.collection))"
    let state = found.map { "has version \($0)" } ?? "does not exist"
    return Failure(.conflict, "\(name) \(state); nothing was changed.")
  }

  // MARK: - The value

  /// The input: a value, or bytes whose type the store determines.
  private enum Given {
    case value(Value)
    case bytes([UInt8])
  }

  private func readValue(_ session: CommandSession) throws -> Given {
    do {
      // Read directly into protected memory, unless it has to be decoded, which needs ordinary memory first.
      if secret, !base64, !hex { return .value(.secret(Secret(try secretBytes()))) }
      if secret, case .data(let data) = try ValueReader(type: .data, encoding: encoding).value(try bytes()) {
        return .value(.secret(data.withUnsafeBytes(Secret.init(copying:))))
      }
      let bytes = try bytes()
      if namesType { return .value(try ValueReader(type: readType, encoding: encoding).value(bytes)) }
      // Check first, so that no store is created for a value that is refused.
      do {
        _ = try ValueReader(type: .auto, encoding: encoding).value(bytes)
      } catch {
        if try !session.exists() { throw error }
      }
      return .bytes(bytes)
    } catch let failure as Failure where failure.status == .format {
      throw Failure(.format, "the value for key \"\(reference.key)\": \(failure.message)")
    }
  }

  /// The value: of the declared type, else of the present value's type, else of the type that the text looks like.
  private func value(_ given: Given, _ declaration: Declaration?, _ kind: Value.Kind?) throws -> Value {
    let bytes: [UInt8]
    switch given {
    case .value(let value): return value
    case .bytes(let given): bytes = given
    }
    do {
      if let declaration {
        return try ValueReader(type: ValueType(declaration.type), encoding: encoding).value(bytes, declaration.type)
      }
      return try ValueReader(type: kind.map(ValueType.init) ?? .auto, encoding: encoding).value(bytes)
    } catch let failure as Failure where failure.status == .format {
      let way: String
      if let declaration {
        if options.allowsBadValues { return try ValueReader(type: .auto, encoding: encoding).value(bytes) }
        way = "It is declared as \(declaration.type); --force sets it anyway."
      } else {
        way = kind.map { "The existing value has type \($0.name); another type needs --type." } ?? ""
      }
      throw Failure(.format, "the value for key \"\(reference.key)\": \(failure.message) Nothing was changed. \(way)")
    }
  }

  /// Data is text on the command line and bytes in files, unless an option says otherwise.
  private var encoding: DataEncoding {
    if hex { return .hex }
    if base64 { return .base64 }
    return value != nil && value != "-" ? .base64 : .raw
  }

  private func bytes() throws -> [UInt8] {
    var bytes: [UInt8]
    if let valueFile {
      bytes = try FileDescriptor.readFile(valueFile)
    } else if value == "-" {
      bytes = try FileDescriptor.readAll(0, named: "standard input")
    } else if let value {
      return Array(value.utf8)
    } else {
      return try secretFromTerminal().withUnsafeBytes { Array($0) }
    }
    if stripNewline, bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
    return bytes
  }

  /// Reads the value straight into protected memory.
  private func secretBytes() throws -> SecretBytes {
    if valueFile == nil, value != "-" { return try secretFromTerminal() }
    do {
      if let valueFile { return try FileDescriptor.readSecretFile(valueFile, droppingNewline: stripNewline) }
      return try FileDescriptor.readSecret(
        0, named: "standard input", limit: FileDescriptor.secretValueLimit, droppingNewline: stripNewline)
    } catch let failure as Failure where failure.status == .keyUnavailable {
      // No key is missing, but the value.
      throw Failure(.format, failure.message)
    }
  }

  private func secretFromTerminal() throws -> SecretBytes {
    let otherwise = "Pipe it in with -, or use --value-file."
    if options.noInput { throw Failure(.keyUnavailable, "--no-input forbids asking for the value. \(otherwise)") }
    let name = DisplayText.escapingControls(reference.key)
    return try Terminal.newSecret("Value for \(name): ", otherwise: otherwise)
  }
}

extension SetRequest {
  /// The request of a plain command line; nil if the argument parser has to parse it.
  init?(_ line: PlainArguments) throws {
    let (file, value) = (line.value("--value-file"), line.words.dropFirst().first)
    guard line.words.count == (file == nil ? 2 : 1) else { return nil }
    // A type by either way, once.
    let types = line.flags.filter(ShortValueType.flags.contains).map { String($0.dropFirst(2)) }
    let given = types + [line.value("--type")].compactMap(\.self)
    let type = given.first.flatMap(ValueType.init)
    guard given.count <= 1, (type == nil) == given.isEmpty else { return nil }
    let (isSecret, isEncoded) = (line.has("--secret"), line.has("--base64") || line.has("--hex"))
    let isArgument = value != nil && value != "-"
    guard !isArgument || !isSecret && !line.has("--strip-newline"), !line.has("--base64") || !line.has("--hex"),
      type == nil || type == .data || !isEncoded && (type == .string || !isSecret)
    else { return nil }
    let reference = try line.referenceToSet(line.words[0])
    self.init(
      reference: reference, value: value, type: type, base64: line.has("--base64"), hex: line.has("--hex"),
      valueFile: file, stripNewline: line.has("--strip-newline"), secret: isSecret, ifAbsent: line.has("--if-absent"),
      options: line.ofSession(in: reference.certainPlaces))
  }
}
