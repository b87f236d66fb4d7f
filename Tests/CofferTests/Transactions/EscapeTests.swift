import Foundation
import TestSupport
import Testing

/// What must not compile: given to the compiler, as far as its checks of ownership, with the package's own modules.
@Suite("A transaction") struct EscapeTests {
  /// The compiler's errors for statements with a `connection`; nil if it accepts them.
  private func errors(_ statements: String) throws -> String? {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("coffer-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let file = folder.appendingPathComponent("snippet.swift")
    try Data("import Coffer\nfunc snippet(_ connection: Connection) throws {\n\(statements)\n}\n".utf8).write(to: file)
    let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../../Sources")
    let maps = ["CSQLite", "COpenSSL", "CSystemCalls"].flatMap { name in
      ["-Xcc", "-fmodule-map-file=\(sources.path)/\(name)/module.modulemap"]
    }
    let run = try Child.run(
      "/usr/bin/env",
      [
        "swiftc", "-emit-sil", "-o", "/dev/null", "-swift-version", "6", "-I",
        Child.products.appendingPathComponent("Modules").path,
      ] + maps + [file.path], capturesMessages: true)
    return run.status == 0 ? nil : run.text + run.message
  }

  @Test("is used inside its closure")
  func control() throws {
    let text = try errors("try connection.readWrite { try $0.setObject(1, forKey: \"k\") }")
    #expect(text == nil)
  }

  @Test(
    "cannot leave its closure",
    arguments: [
      "var kept: [ReadWriteTransaction] = []\ntry connection.readWrite { kept.append($0) }",
      "let kept: ReadWriteTransaction = try connection.readWrite { $0 }\n_ = kept",
      """
      let kept = try connection.read { (transaction: borrowing ReadTransaction) in { try transaction.numberOfKeys() } }
      _ = try kept()
      """,
    ])
  func escape(_ statements: String) throws {
    let text = try #require(try errors(statements))
    #expect(text.contains("error: ") && !text.contains("cannot find"), "\(text)")
  }

  @Test(
    "cannot leave its closure if `borrowing` is omitted, though the compiler may crash on it",
    arguments: [
      "let kept = try connection.read { transaction in { try transaction.numberOfKeys() } }\n_ = try kept()",
      "try connection.readWrite { transaction in _ = Task { try transaction.setObject(1, forKey: \"k\") } }",
    ])
  func escapeImplicitly(_ statements: String) throws {
    // Swift 6.3 crashes instead of reporting an error here; what counts is that it produces no program.
    #expect(try errors(statements) != nil)
  }
}
