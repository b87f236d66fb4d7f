import Coffer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Reads property lists: XML, binary, and the old text form `{ name = (a, b); }`.
enum PropertyListText {
  /// Stands before the text of a floating-point number, see ``value(_:)``.
  ///
  /// A character of a private use area; lists that hold it are read without this.
  private static let mark = "\u{F8000}"

  /// The value that `data` stands for.
  static func value(_ data: Data) throws -> Value {
    // The decoder hands out `<real>1</real>` as the integer 1 to whoever asks for one first, and never says what it was.
    // So the reals of an XML list, which is where `defaults export` puts them, travel as marked strings.
    let marked = markingReals(data) ?? data
    return try PropertyListDecoder().decode(Element.self, from: marked).value
  }

  private static func markingReals(_ data: Data) -> Data? {
    guard data.first == UInt8(ascii: "<"), let text = String(data: data, encoding: .utf8),
      // Inside of these the tags would be text.
      !text.contains("<![CDATA["), !text.contains(mark), text.contains("<real>")
    else { return nil }
    let marked = text.replacing("<real>", with: "<string>" + mark).replacing("</real>", with: "</string>")
    return Data(marked.utf8)
  }

  /// Any element of a property list.
  private struct Element: Decodable {
    let value: Value

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      // Truth before numbers: the decoder does not take one for the other. Numbers before dates: neither does it there.
      if let bool = try? container.decode(Bool.self) {
        value = .bool(bool)
      } else if let number = try? container.decode(Int64.self) {
        value = .int(number)
      } else if let number = try? container.decode(UInt64.self) {
        value = .uint64(number)
      } else if let number = try? container.decode(Double.self) {
        value = .double(number)
      } else if let text = try? container.decode(String.self) {
        value = try Self.stringOrReal(text, in: container)
      } else if let date = try? container.decode(Date.self) {
        value = .date(date)
      } else if let data = try? container.decode(Data.self) {
        value = .data(data)
      } else if let elements = try? container.decode([Element].self) {
        value = .array(elements.map(\.value))
      } else {
        value = .dictionary(try container.decode([String: Element].self).mapValues(\.value))
      }
    }

    private static func stringOrReal(
      _ text: String, in container: any SingleValueDecodingContainer
    ) throws -> Value {
      guard text.hasPrefix(mark) else { return .string(text) }
      guard let number = Double(AsciiSpace.trimming(String(text.dropFirst(mark.count)))) else {
        throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a number")
      }
      return .double(number)
    }
  }
}
