import ArgumentParser
import Coffer

/// The command `prefs append`.
struct AppendCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "append",
    abstract: "Add to an array or a dictionary.",
    discussion: """
      Values are appended to the array that `prefs get` prints, which may be a default, or added to a dictionary as NAME VALUE \
      pairs or one JSON object; existing names get the new value. A key without a value becomes an array, or a dictionary with --dict-add, unless its declaration says which. \
      Each value is read as the declared type of the elements; without a declaration, as `prefs set` reads it, so a number \
      needs --int. Other types, text included, are refused.

      Concurrent appends lose nothing: reading and writing are one transaction. Metadata, expiry and due date stay.

      Examples:
        prefs append editor/recent a.txt b.txt
        prefs append editor/sizes --int 9 12
        prefs append editor/colors --dict-add text black paper white
        prefs append editor/colors '{"text": "black"}'
        printf %s "$line" | prefs append log/lines -
      """)

  @Argument(help: "KEY or COLLECTION/KEY.", completion: Completions.keys)
  var key: String

  @Argument(help: "The values to add; - alone reads one value from standard input.")
  var values: [String]

  @Flag(help: "Add to a dictionary, creating it if missing.")
  var dictAdd = false

  @OptionGroup var types: ValueTypeOptions

  @Flag(help: "Drop one newline at the end of the input from -.")
  var stripNewline = false

  @OptionGroup var declared: DeclaredOptions

  @OptionGroup(title: "Common options") var common: CommonOptions

  private var isArgument: Bool { values != ["-"] }

  mutating func validate() throws {
    if isArgument, values.contains("-") { throw ValidationError("- must be the only value.") }
    if isArgument, stripNewline { throw ValidationError("--strip-newline goes with -.") }
  }

  mutating func run() throws {
    let reference = try common.referenceToSet(key)
    let session = try CommandSession(
      common, in: reference.certainPlaces, force: declared.force, undeclared: declared.undeclared)
    let texts = try self.texts()
    // Check first, so that no store is created for a value that is refused.
    if try !session.exists() { _ = try sum(nil, texts, reference, nil) }
    let notes = try session.writeCreating(reference) { transaction, reference in
      if isArgument, try transaction.isSealed(collection: reference.collection) {
        throw Failure(
          .usage,
          "\(DisplayText.collection(reference.collection)) is sealed, and a secret must not be an argument. Pipe it in with -."
        )
      }
      let present = try transaction.itemInForce(reference)
      let declared = try transaction.declaration(forKey: reference.key, inCollection: reference.collection)?.type
      let new = try sum(present.found?.value, texts, reference, declared)
      try transaction.setKeepingRest(new, forKey: reference.key, inCollection: reference.collection)
      return present.notes
    }
    for note in notes { common.note(note) }
  }

  private func texts() throws -> [[UInt8]] {
    if isArgument { return values.map { Array(CommandArguments.value($0).utf8) } }
    var bytes = try FileDescriptor.readAll(0, named: "standard input")
    if stripNewline, bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
    return [bytes]
  }

  // MARK: - Adding

  private func sum(
    _ present: Value?, _ texts: [[UInt8]], _ reference: KeyReference, _ declared: SettingType?
  ) throws -> Value {
    var (element, isDictionary): (SettingType?, Bool) = (nil, dictAdd)
    if case .array(let type)? = declared { element = type }
    if case .dictionary(let type)? = declared { (element, isDictionary) = (type, true) }
    do {
      switch present {
      case nil where isDictionary: return .dictionary(try members(texts, element))
      case nil: return .array(try texts.map { try read($0, element) })
      case .dictionary(let old):
        return .dictionary(old.merging(try members(texts, element)) { $1 })
      case .array(let old) where !dictAdd:
        return .array(old + (try texts.map { try read($0, element) }))
      case .some(let other):
        let wanted = dictAdd ? "not a dictionary" : "neither an array nor a dictionary"
        throw Failure(.format, "it has type \(other.kind.name), and is \(wanted); nothing was changed.")
      }
    } catch let failure as Failure where failure.status == .format {
      throw Failure(.format, "the value for key \"\(reference.key)\": \(failure.message)")
    }
  }

  /// - Parameter declared: The declared type of an element.
  private func read(_ text: [UInt8], _ declared: SettingType?) throws -> Value {
    guard let declared, !types.areGiven, !self.declared.force else {
      return try types.reader(isArgument: isArgument).value(text)
    }
    return try ValueReader(type: ValueType(declared), encoding: types.encoding(isArgument: isArgument))
      .value(text, declared)
  }

  private func members(_ texts: [[UInt8]], _ declared: SettingType?) throws -> [String: Value] {
    if texts.count == 1 {
      let reader = ValueReader(type: .auto, encoding: .raw)
      let value = try declared.map { try reader.value(texts[0], .dictionary($0)) } ?? reader.value(texts[0])
      guard case .dictionary(let members) = value else {
        throw Failure(.format, "a dictionary takes NAME VALUE pairs, or one JSON object.")
      }
      return members
    }
    guard texts.count.isMultiple(of: 2) else { throw Failure(.format, "the last name has no value.") }
    var members: [String: Value] = [:]
    for index in stride(from: 0, to: texts.count, by: 2) {
      members[String(decoding: texts[index], as: UTF8.self)] = try read(texts[index + 1], declared)
    }
    return members
  }
}
