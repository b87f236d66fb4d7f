#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Writes property lists in XML, in the form of Foundation's encoder.
///
/// That encoder takes names that differ only in their Unicode normalization for one.
package struct XMLPropertyListWriter {
  private var text = """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0">

    """

  /// - Throws: `PropertyListReader.Problem` for a value that property lists lack.
  package static func text(_ tree: FileTree) throws(PropertyListReader.Problem) -> String {
    var writer = XMLPropertyListWriter()
    try writer.write(tree, indent: "")
    return writer.text + "</plist>\n"
  }

  private mutating func write(_ tree: FileTree, indent: String) throws(PropertyListReader.Problem) {
    if let members = tree.sortedMembers {
      guard !members.isEmpty else { return text += "\(indent)<dict/>\n" }
      text += "\(indent)<dict>\n"
      for member in members {
        text += "\(indent)\t<key>\(Self.escaped(member.name))</key>\n"
        try write(member.tree, indent: indent + "\t")
      }
      text += "\(indent)</dict>\n"
    } else if case .value(.array(let elements)) = tree {
      guard !elements.isEmpty else { return text += "\(indent)<array/>\n" }
      text += "\(indent)<array>\n"
      for element in elements { try write(.value(element), indent: indent + "\t") }
      text += "\(indent)</array>\n"
    } else if case .value(let value) = tree {
      text += "\(indent)\(try Self.element(value, indent))\n"
    }
  }

  private static func element(_ value: Value, _ indent: String) throws(PropertyListReader.Problem) -> String {
    switch value {
    case .bool(let isTrue): isTrue ? "<true/>" : "<false/>"
    case .int(let number): "<integer>\(number)</integer>"
    case .uint64(let number): "<integer>\(number)</integer>"
    case .double(let number): "<real>\(real(number))</real>"
    case .date(let date): "<date>\(Timestamp.text(date).replacing(".000Z", with: "Z"))</date>"
    case .data(let data): "<data>\(wrapped(data, indent))</data>"
    case .string(let text): "<string>\(escaped(text))</string>"
    default: throw PropertyListReader.Problem(reason: "a value has no form in property lists")
    }
  }

  private static func real(_ number: Double) -> String {
    number.isInfinite ? (number < 0 ? "-infinity" : "+infinity") : number.description
  }

  /// Base64 in lines of 76 characters, each on a line of its own.
  private static func wrapped(_ data: Data, _ indent: String) -> String {
    var rest = Array(data.base64EncodedString().utf8)[...]
    var result = "\n"
    while !rest.isEmpty {
      result += "\(indent)\(String(decoding: rest.prefix(76), as: UTF8.self))\n"
      rest = rest.dropFirst(76)
    }
    return result + indent
  }

  private static func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}
