#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// URLs as UserDefaults stores them: an NSURL archived by NSKeyedArchiver, which is a property list of its own.
package enum URLArchive {
  // MARK: Writing

  /// The archive of a URL, in XML; NSKeyedUnarchiver reads it as well as the binary form.
  package static func data(_ url: URL) -> Data {
    // Objects refer to each other by number; the first one stands for nil.
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

  /// The archived URL, if `value` is an archive of one; otherwise `value` itself.
  package static func unwrapped(_ value: Value) -> Value {
    guard case .data(let data) = value,
      data.starts(with: BinaryPropertyListReader.header) || data.starts(with: "<?xml".utf8),
      let list = try? PropertyListReader.value(data), case .url(let url)? = KeyedArchive.value(list)
    else { return value }
    return .url(url)
  }
}
