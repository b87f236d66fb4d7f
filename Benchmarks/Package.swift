// swift-tools-version: 6.2
import PackageDescription

// A separate package, so that building Coffer does not fetch the peers.
let package = Package(
  name: "CofferBenchmarks",
  platforms: [.macOS(.v15)],
  dependencies: [
    // With one trait alone, SwiftPM 6.3 does not resolve what the other would need.
    .package(name: "Coffer", path: "..", traits: ["Configuration", "Metrics"]),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/apple/swift-configuration", from: "1.0.0", traits: ["JSON", "Reloading"]),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    .package(url: "https://github.com/apple/swift-system", from: "1.5.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.8.0"),
  ],
  targets: [
    .systemLibrary(
      name: "CLMDB", path: "CLMDB", pkgConfig: "lmdb", providers: [.apt(["liblmdb-dev"]), .brew(["lmdb"])]),
    .executableTarget(
      name: "Benchmark",
      dependencies: [
        "CLMDB",
        .product(name: "Coffer", package: "Coffer"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "GRDB", package: "GRDB.swift"),
        .product(name: "GRDBSQLite", package: "GRDB.swift"),
      ],
      path: "Benchmark"),
    // Beside swift-configuration's own providers.
    .executableTarget(
      name: "ConfigurationBenchmark",
      dependencies: [
        .product(name: "Coffer", package: "Coffer"),
        .product(name: "CofferConfiguration", package: "Coffer"),
        .product(name: "Configuration", package: "swift-configuration"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "SystemPackage", package: "swift-system"),
      ],
      path: "ConfigurationBenchmark"),
  ],
  swiftLanguageModes: [.v6]
)
