// From UserDefaults to Coffer: a property list is imported, and everything reads as before, or better.
//
//   Migration [FOLDER]  in a temporary folder by default

import Coffer
import Foundation

let arguments = CommandLine.arguments.dropFirst()
let temporary = FileManager.default.temporaryDirectory.appending(path: "coffer-\(UUID().uuidString)").path
let folder = arguments.first ?? temporary
defer { if arguments.isEmpty { try? FileManager.default.removeItem(atPath: temporary) } }
try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)

// MARK: - The file of UserDefaults for an application

// A program would use the existing file: on Linux ~/.config/NAME.plist, on a Mac ~/Library/Preferences/NAME.plist.
let old: [String: Any] = [
  "theme": "dark",
  "fontSize": 14,
  "lineHeight": 1.5,
  "wordWrap": true,
  "launches": "41 and counting",
  "recentFiles": ["letters.txt", "poem.txt"],
  "window": ["width": 800, "height": 600],
  "lastOpened": Date(timeIntervalSince1970: 1_700_000_000),
  "token": Data([0x5e, 0xc2, 0xe7]),
]
let path = "\(folder)/org.example.editor.plist"
try PropertyListSerialization.data(fromPropertyList: old, format: .binary, options: 0)
  .write(to: URL(filePath: path))

// MARK: - The import: all or nothing, and on disk when it returns

try KeyFile.create(at: "\(folder)/key")
let preferences = try Preferences.open(
  application: "org.example.editor", at: "\(folder)/settings.coffer", key: .keyFile("\(folder)/key"))
try preferences.importPropertyList(at: path)
print("Imported \(try preferences.proxy.numberOfKeys(inCollection: preferences.collection)) settings")

// MARK: - The getters of UserDefaults, with the same names and coercions

print("theme is \(preferences.string(forKey: "theme") ?? "missing")")
print("fontSize is \(preferences.integer(forKey: "fontSize")), as text \(preferences.string(forKey: "fontSize") ?? "")")
print("wordWrap is \(preferences.bool(forKey: "wordWrap")), as a number \(preferences.integer(forKey: "wordWrap"))")
print("launches is \(preferences.integer(forKey: "launches"))")
print("recentFiles is \(preferences.stringArray(forKey: "recentFiles") ?? [])")
print("token has \(preferences.data(forKey: "token")?.count ?? 0) bytes")

// MARK: - New: settings with a type and a default

struct Window: Codable, Sendable, Equatable {
  var width = 640
  var height = 480
}

extension Keys {
  static let window = Key("window", default: Window())
  static let lineHeight = Key("lineHeight", default: 1.0, limits: .satisfying("more than 0") { $0 > 0 })
  static let lastOpened = Key<Date?>("lastOpened")
}

Preferences.standard = preferences

struct Editor {
  @Preference(.window) var window
  @Preference(.lineHeight) var lineHeight
  @Preference(.lastOpened) var lastOpened
}

let editor = Editor()
print("window is \(editor.window.width) by \(editor.window.height)")
print("lastOpened is \(editor.lastOpened?.formatted(.iso8601) ?? "never")")
editor.lineHeight = 1.25
editor.window.width = 1024
print("now lineHeight is \(editor.lineHeight), window is \(editor.window.width) by \(editor.window.height)")

// MARK: - Errors are reported, and change nothing

try Data("theme = dark".utf8.prefix(8)).write(to: URL(filePath: "\(folder)/broken.plist"))
do {
  try preferences.importPropertyList(at: "\(folder)/broken.plist")
} catch CofferError.malformedSettings {
  print("A broken file is an error; theme is still \(preferences.string(forKey: "theme") ?? "missing")")
}

// MARK: - The way back: no lock-in

let exported = try preferences.exportPropertyList(format: .binary)
let list = try PropertyListSerialization.propertyList(from: exported, format: nil) as? [String: Any] ?? [:]
print("Exported \(list.count) settings, fontSize \(list["fontSize"] ?? "missing")")

// Anyone can read the old file, so delete it after the migration; the store is random noise. (Closed first: a program
// must not read the file of a store that it has open.)
try preferences.close()
try preferences.database.close()
for name in ["org.example.editor.plist", "settings.coffer"] {
  let bytes = try Data(contentsOf: URL(filePath: "\(folder)/\(name)"))
  print("\(name) says \"letters.txt\": \(bytes.range(of: Data("letters.txt".utf8)) != nil)")
}
try FileManager.default.removeItem(atPath: path)
