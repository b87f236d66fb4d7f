import Foundation
import Testing

@testable import CofferCrypto

/// Project Wycheproof's vectors, read where `COFFER_VECTORS` points, or else from `../shared/vectors` beside the package.
enum Wycheproof {
  static let note: Comment = "Wycheproof vectors are not here; set COFFER_VECTORS to their folder"

  static var isPresent: Bool { FileManager.default.fileExists(atPath: url(of: "aes_gcm").path) }

  static func groups<Group: Decodable>(_ file: String, of type: Group.Type) throws -> [Group] {
    try JSONDecoder().decode(File<Group>.self, from: Data(contentsOf: url(of: file))).testGroups
  }

  private struct File<Group: Decodable>: Decodable {
    let testGroups: [Group]
  }

  private static func url(of file: String) -> URL {
    folder.appendingPathComponent("\(file)_test.json")
  }

  private static let folder: URL =
    if let path = ProcessInfo.processInfo.environment["COFFER_VECTORS"] {
      URL(fileURLWithPath: path)
    } else {
      // Package/Tests/CofferCryptoTests/Support/Wycheproof.swift
      URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("shared/vectors")
    }
}
