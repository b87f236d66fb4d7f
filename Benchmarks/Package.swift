// swift-tools-version: 6.1
import PackageDescription

// A package of its own: whoever builds Coffer does not fetch the peers that it is measured against.
let package = Package(
  name: "CofferBenchmarks",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "Coffer", path: ".."),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
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
  ],
  swiftLanguageModes: [.v6]
)
