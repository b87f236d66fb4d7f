import Coffer

/// The implementation of `prefs get`, after parsing.
struct ValueRequest: Request {
  let reference: KeyReference
  var fallback: String?
  var json = false
  var noNewline = false
  var base64 = false
  var hex = false
  var showOrigin = false
  var output: String?
  var options = SessionOptions()

  func run() throws {
    let session = try CommandSession(options)
    if let output { try session.requireReplaceable(output) }
    var reference = reference
    let search = try session.valueInForce(of: &reference, isNeeded: fallback == nil)
    guard let found = search.found else {
      return try emit(.string(fallback ?? ""), of: reference, origin: "default", problem: nil)
    }
    let origin = found.origin(in: reference.place.parent, \.collection)
    if json, case .stored(let item) = found {
      let text = ItemJSON.text(item, origin: origin, problem: search.problem)
      return try emit(Array(text.utf8), endsLine: endsLine(item.value))
    }
    try emit(found.value, of: reference, origin: origin, problem: search.problem)
  }

  // MARK: - Output

  private func encoded(_ value: Value) -> [UInt8] {
    let bytes = ValueText.bytes(value)
    if base64 { return Array(ValueText.base64(bytes).utf8) }
    if hex { return Array(HexText.text(bytes).utf8) }
    return bytes
  }

  private func originField(_ origin: String) -> [UInt8] { showOrigin ? Array((origin + "\t").utf8) : [] }

  private func endsLine(_ value: Value) -> Bool {
    if case .data = ValueText.revealed(value) { return json || base64 || hex }
    return true
  }

  private func emit(_ value: Value, of reference: KeyReference, origin: String, problem: String?) throws {
    let object = json ? ItemJSON.text(reference, value, origin: origin, problem: problem) : ""
    try emit(json ? Array(object.utf8) : originField(origin) + encoded(value), endsLine: endsLine(value))
  }

  private func emit(_ bytes: [UInt8], endsLine: Bool) throws {
    let line = endsLine && !noNewline ? bytes + [UInt8(ascii: "\n")] : bytes
    if let output, output != "-" { return try OutputFile.place(line, at: output) }
    if !endsLine, Terminal.isTerminal(1) {
      throw Failure(
        .usage, "the value is data, which a terminal cannot show. Use --base64, --hex, -o FILE, or a pipe.")
    }
    var answer = StandardOutput()
    answer.write(line)
    try answer.finish()
  }
}

extension ValueRequest {
  /// The request of a plain command line; nil if the argument parser has to parse it.
  init?(_ line: PlainArguments) throws {
    let forms = ["--json", "--base64", "--hex"].filter { line.has($0) }
    guard line.words.count == 1, forms.count <= 1, !line.has("--json") || !line.has("--show-origin"),
      line.value("--output") != ""
    else { return nil }
    let reference = try line.reference(line.words[0])
    self.init(
      reference: reference, fallback: line.value("--default"), json: line.has("--json"),
      noNewline: line.has("-n", "--no-newline"), base64: line.has("--base64"), hex: line.has("--hex"),
      showOrigin: line.has("--show-origin"), output: line.value("--output"),
      options: line.ofSession(in: reference.certainPlaces))
  }
}
