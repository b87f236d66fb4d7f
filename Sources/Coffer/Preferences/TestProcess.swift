#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Whether this process runs tests.
enum TestProcess {
  /// SwiftPM builds tests as a bundle of their own, which it runs, or loads into a helper; Xcode loads it into a program of its
  /// choice.
  static let isThis: Bool = {
    let program = CommandLine.arguments.first ?? ""
    return program.hasSuffix(".xctest") || program.hasSuffix("/xctest") || program.hasSuffix("/swiftpm-testing-helper")
      || ProcessInfo.processInfo.environment["XCTestConfigurationFilePath"] != nil
  }()
}
