// swift-tools-version: 6.1
import PackageDescription

// `make test` sets this, for the whole of the project.
let strict: [SwiftSetting] =
  Context.environment["COFFER_WARNINGS_AS_ERRORS"] == nil ? [] : [.unsafeFlags(["-warnings-as-errors"])]

// A package of its own, as a program that uses Coffer is one; `make examples` builds and runs it.
let package = Package(
  name: "CofferExamples",
  platforms: [.macOS(.v15)],
  // With the traits of the tests, so that nothing is built twice.
  dependencies: [.package(name: "Coffer", path: "..", traits: ["Configuration", "Metrics", "ServiceLifecycle"])],
  targets: ["AppConfiguration", "DownloadManager", "ManySettings", "Migration", "SecretsStore"].map { name in
    .executableTarget(
      name: name, dependencies: [.product(name: "Coffer", package: "Coffer")], path: name, exclude: ["expected.txt"],
      swiftSettings: strict)
  },
  swiftLanguageModes: [.v6]
)
