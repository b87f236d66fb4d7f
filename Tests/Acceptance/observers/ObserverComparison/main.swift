import Foundation

// Runs each script on GRDB and on Coffer, and compares the notifications of the observers.
//
// The argument is the folder of the repository.

guard CommandLine.arguments.count == 2 else {
  print("usage: ObserverComparison REPOSITORY")
  exit(2)
}
let repository = CommandLine.arguments[1]

/// The text of a document without line breaks and comment signs.
func text(of document: String) throws -> String {
  try String(contentsOfFile: "\(repository)/\(document)", encoding: .utf8)
    .split(separator: "\n")
    .map { line in line.drop { " /".contains($0) } }
    .joined(separator: " ")
}

func withFolder<Result>(_ body: (String) throws -> Result) throws -> Result {
  let folder = FileManager.default.temporaryDirectory.appendingPathComponent("coffer-\(UUID().uuidString)").path
  try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(atPath: folder) }
  return try body(folder)
}

/// The problem with the notifications of a script; nil if there is none.
func complaint(_ script: Script, _ inGRDB: [String], _ inCoffer: [String]) throws -> String? {
  guard let difference = differences.first(where: { $0.script == script.name }) else {
    return inGRDB == inCoffer ? nil : "no document announces this"
  }
  guard difference.inGRDB == inGRDB, difference.inCoffer == inCoffer else { return "another difference is announced" }
  guard try text(of: difference.document).contains(difference.sentence) else {
    return "\(difference.document) does not say \"\(difference.sentence)\""
  }
  print("  \(difference.document): \"\(difference.sentence)\"")
  return nil
}

var failureCount = 0
for script in scripts {
  let inGRDB = try withFolder { try GRDBPlayer.play(script, in: $0) }
  let inCoffer = try withFolder { try CofferPlayer.play(script, in: $0) }
  print("\(script.name): \(inGRDB == inCoffer ? "the same, \(inCoffer.count) lines" : "different")")
  if inGRDB != inCoffer {
    print("  GRDB:   \(inGRDB.joined(separator: "; "))\n  Coffer: \(inCoffer.joined(separator: "; "))")
  }
  if let complaint = try complaint(script, inGRDB, inCoffer) {
    print("  failed: \(complaint)")
    failureCount += 1
  }
}
for difference in differences where !scripts.contains(where: { $0.name == difference.script }) {
  print("failed: there is no script \"\(difference.script)\"")
  failureCount += 1
}
print("\(scripts.count) scripts, \(differences.count) announced differences, \(failureCount) failures")
exit(failureCount == 0 ? 0 : 1)
