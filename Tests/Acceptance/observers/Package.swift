// swift-tools-version: 6.2
import PackageDescription

// A separate package, so that building Coffer does not fetch GRDB.
let package = Package(
  name: "CofferObserverComparison",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "Coffer", path: "../../.."),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
  ],
  targets: [
    .executableTarget(
      name: "ObserverComparison",
      dependencies: [
        .product(name: "Coffer", package: "Coffer"),
        .product(name: "GRDB", package: "GRDB.swift"),
      ],
      path: "ObserverComparison")
  ],
  swiftLanguageModes: [.v6]
)
