// swift-tools-version: 6.2
import PackageDescription

// `make test` sets this for the whole project.
let strict: [SwiftSetting] =
  Context.environment["COFFER_WARNINGS_AS_ERRORS"] == nil ? [] : [.unsafeFlags(["-warnings-as-errors"])]

// A separate package, like any program that uses Coffer; `make examples` builds and runs it.
let package = Package(
  name: "CofferExamples",
  platforms: [.macOS(.v15)],
  // With the same traits as the tests, so that nothing is built twice.
  dependencies: [
    .package(name: "Coffer", path: "..", traits: ["Configuration", "Metrics", "ServiceLifecycle"]),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0", traits: []),
    .package(url: "https://github.com/apple/swift-configuration", from: "1.0.0", traits: []),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.8.0"),
  ],
  targets: ["AppConfiguration", "DownloadManager", "ManySettings", "Migration", "SecretsStore"].map { name in
    .executableTarget(
      name: name, dependencies: [.product(name: "Coffer", package: "Coffer")], path: name, exclude: ["expected.txt"],
      swiftSettings: strict)
  } + [
    .executableTarget(
      name: "Fleet", dependencies: ["Coffer", "CofferFleet"].map { .product(name: $0, package: "Coffer") },
      path: "Fleet", exclude: ["expected.txt"], swiftSettings: strict),
    .executableTarget(
      name: "Office", dependencies: ["Coffer", "CofferFleet"].map { .product(name: $0, package: "Coffer") },
      path: "Office", exclude: ["expected.txt"], swiftSettings: strict),
    .executableTarget(
      name: "Shop",
      dependencies: [
        .product(name: "Coffer", package: "Coffer"), .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "Logging", package: "swift-log"),
      ],
      path: "OtherLanguages", exclude: ["service.mjs", "service.py", "shop.json"], swiftSettings: strict),
    .executableTarget(
      name: "WebService",
      dependencies: ["Coffer", "CofferConfiguration", "CofferMetrics", "CofferService"].map { name in
        .product(name: name, package: "Coffer")
      } + [
        .product(name: "Configuration", package: "swift-configuration"),
        .product(name: "Hummingbird", package: "hummingbird"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
      ],
      path: "WebService", exclude: ["expected.txt"], swiftSettings: strict),
  ],
  swiftLanguageModes: [.v6]
)
