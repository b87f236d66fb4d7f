#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// URLs as UserDefaults keeps them: what NSKeyedArchiver makes of an NSURL, which is a property list of its own.
enum URLArchive {
  // MARK: Writing

  /// The archive of a URL, in XML, which NSKeyedUnarchiver reads as well as the binary form.
  static func data(_ url: URL) -> Data {
    // Objects refer to each other by number, the first one stands for nil.
    var objects = [
      "<string>$null</string>", object(base: url.baseURL == nil ? 0 : 4), string(url.relativeString), urlClass,
    ]
    if let base = url.baseURL { objects += [object(base: 0, text: 5), string(base.absoluteString)] }
    return Data(
      """
      <?xml version="1.0" encoding="UTF-8"?>
      <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
      <plist version="1.0">
      <dict>
      <key>$version</key><integer>100000</integer>
      <key>$archiver</key><string>NSKeyedArchiver</string>
      <key>$top</key><dict><key>root</key>\(reference(1))</dict>
      <key>$objects</key><array>
      \(objects.joined(separator: "\n"))
      </array>
      </dict>
      </plist>

      """.utf8)
  }

  private static let urlClass = """
    <dict><key>$classname</key><string>NSURL</string>\
    <key>$classes</key><array><string>NSURL</string><string>NSObject</string></array></dict>
    """

  private static func object(base: Int, text: Int = 2) -> String {
    """
    <dict><key>$class</key>\(reference(3))<key>NS.base</key>\(reference(base))\
    <key>NS.relative</key>\(reference(text))</dict>
    """
  }

  private static func reference(_ number: Int) -> String {
    "<dict><key>CF$UID</key><integer>\(number)</integer></dict>"
  }

  private static func string(_ text: String) -> String {
    let escaped = text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
    return "<string>\(escaped)</string>"
  }

  // MARK: Reading

  /// The URL of which `value` is an archive; any other value itself.
  static func unwrapped(_ value: Value) -> Value {
    guard case .data(let data) = value,
      data.starts(with: BinaryPropertyListReader.header) || data.starts(with: "<?xml".utf8),
      case .dictionary(let archive)? = try? PropertyListReader.value(data),
      archive["$archiver"] == "NSKeyedArchiver", case .dictionary(let top)? = archive["$top"],
      case .array(let objects)? = archive["$objects"],
      let url = url(top["root"], in: objects, depth: 0)
    else { return value }
    return .url(url)
  }

  private static func url(_ reference: Value?, in objects: [Value], depth: Int) -> URL? {
    // A base has no base of its own; an archive may still say so, and that without end.
    guard depth < 4, case .dictionary(let members)? = object(reference, in: objects),
      case .dictionary(let description)? = object(members["$class"], in: objects),
      description["$classname"] == "NSURL",
      case .string(let text)? = object(members["NS.relative"], in: objects)
    else { return nil }
    guard let base = object(members["NS.base"], in: objects), base != "$null" else { return URL(string: text) }
    return url(members["NS.base"], in: objects, depth: depth + 1).flatMap { URL(string: text, relativeTo: $0) }
  }

  private static func object(_ reference: Value?, in objects: [Value]) -> Value? {
    guard case .dictionary(let members)? = reference, case .int(let number)? = members["CF$UID"],
      objects.indices.contains(Int(clamping: number))
    else { return nil }
    return objects[Int(clamping: number)]
  }
}
