// swift-tools-version: 6.2
import PackageDescription

// `make fuzz` sets this: libFuzzer without a `main` of its own.
let fuzzer = Context.environment["COFFER_FUZZER_LIBRARY"]

// `make test` sets this; a program that depends on Coffer must not inherit unsafe flags.
let strict: [SwiftSetting] =
  if fuzzer != nil {
    [.unsafeFlags(["-sanitize=fuzzer,address"])]
  } else if Context.environment["COFFER_WARNINGS_AS_ERRORS"] != nil {
    [.unsafeFlags(["-warnings-as-errors"])]
  } else {
    []
  }

// `make docs` sets this; otherwise the plugin for the documentation is not fetched.
let documentation: [Package.Dependency] =
  Context.environment["COFFER_DOCUMENTATION"] == nil
  ? [] : [.package(url: "https://github.com/swiftlang/swift-docc-plugin", from: "1.4.0")]

// `make acceptance` sets this; otherwise there is no library that replaces another program's SQLite.
let preload: (products: [Product], targets: [Target]) =
  Context.environment["COFFER_ACCEPTANCE"] == nil
  ? ([], [])
  : (
    [.library(name: "CofferPreload", type: .dynamic, targets: ["CofferPreload"])],
    [
      .target(name: "COpening", dependencies: ["CSQLite"], path: "Tests/Acceptance/grdb/COpening"),
      .target(
        name: "CofferPreload", dependencies: ["COpening", "CofferStorage", "CSQLite"],
        path: "Tests/Acceptance/grdb/CofferPreload", swiftSettings: strict),
    ]
  )

// The Secret Service needs libsystemd, which no distribution has as an archive, so a static build is without.
#if os(Linux)
  let hasBus = (Context.environment["STATIC"] ?? "").isEmpty
#else
  let hasBus = false
#endif

let package = Package(
  name: "Coffer",
  platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
  products: [
    .library(name: "Coffer", targets: ["Coffer", "CofferMaintenance", "CofferCompat", "CofferObservation"]),
    .library(name: "CofferMetrics", targets: ["CofferMetrics"]),
    .library(name: "CofferConfiguration", targets: ["CofferConfiguration"]),
    .library(name: "CofferService", targets: ["CofferService"]),
    // Without a trait: it fetches no package, and only programs that name the product need libcurl.
    .library(name: "CofferFleet", targets: ["CofferFleet"]),
    // Loaded by other programs' SQLite; see the article "The prefs tool".
    .library(name: "CofferExtension", type: .dynamic, targets: ["CofferExtension"]),
  ] + preload.products,
  // Only programs that enable a trait resolve its packages.
  traits: [
    .trait(name: "Metrics", description: "The product CofferMetrics: numbers for swift-metrics."),
    .trait(name: "Configuration", description: "The product CofferConfiguration: a provider for swift-configuration."),
    .trait(name: "ServiceLifecycle", description: "The product CofferService: a service for swift-service-lifecycle."),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.5.0"),
    .package(url: "https://github.com/apple/swift-configuration", from: "1.0.0", traits: []),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.8.0"),
  ] + documentation,
  targets: [
    .systemLibrary(
      name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]),
    .systemLibrary(
      name: "COpenSSL", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]),
    .systemLibrary(name: "CSystemCalls"),
    .systemLibrary(
      name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]),
    .target(name: "CofferCrypto", dependencies: ["COpenSSL"], swiftSettings: strict),
    .target(name: "CofferStorage", dependencies: ["CofferCrypto", "CSQLite", "CSystemCalls"], swiftSettings: strict),
    .target(name: "CofferExtension", dependencies: ["CofferStorage", "CSQLite"], swiftSettings: strict),
    .target(
      name: "Coffer",
      dependencies: ["CofferStorage", "CSystemCalls", .product(name: "Logging", package: "swift-log")],
      swiftSettings: strict),
    .target(name: "CofferMaintenance", dependencies: ["Coffer", "CofferStorage"], swiftSettings: strict),
    // The names of YapDatabase and GRDB, for programs that move from there.
    .target(name: "CofferCompat", dependencies: ["Coffer"], swiftSettings: strict),
    // A separate module: many programs have a type named `Setting`.
    .target(name: "CofferObservation", dependencies: ["Coffer"], swiftSettings: strict),
    .target(
      name: "CofferMetrics",
      dependencies: [
        "Coffer", .product(name: "Metrics", package: "swift-metrics", condition: .when(traits: ["Metrics"])),
      ],
      swiftSettings: strict),
    .target(
      name: "CofferConfiguration",
      dependencies: [
        "Coffer",
        .product(
          name: "Configuration", package: "swift-configuration", condition: .when(traits: ["Configuration"])),
      ],
      swiftSettings: strict),
    .target(
      name: "CofferService",
      dependencies: [
        "Coffer", .product(name: "Logging", package: "swift-log"),
        .product(
          name: "ServiceLifecycle", package: "swift-service-lifecycle",
          condition: .when(traits: ["ServiceLifecycle"])),
      ],
      swiftSettings: strict),
    .target(name: "CofferFleet", dependencies: ["Coffer", "CCurl"], swiftSettings: strict),
  ] + preload.targets,
  swiftLanguageModes: [.v6]
)

// A package that depends on Coffer by URL needs neither the tool and the tests nor their dependencies. SwiftPM then reads this
// file from the repository, as if it were at the root, and later in a checkout.
let folder = Context.packageDirectory
let isFetched =
  folder == "/"
  || ["/.build/checkouts/", "/SourcePackages/checkouts/", "/registry/downloads/"].contains { folder.contains($0) }
if !isFetched {
  if hasBus {
    package.targets.append(
      .systemLibrary(name: "CSystemd", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]))
  }
  package.products += [
    .executable(name: "prefs", targets: ["prefs"]),
    .executable(name: "prefs-formats", targets: ["prefs-formats"]),
    .executable(name: "prefs-fleet", targets: ["prefs-fleet"]),
    .executable(name: "prefs-keyring", targets: ["prefs-keyring"]),
    .executable(name: "prefs-serve", targets: ["prefs-serve"]),
    .executable(name: "prefs-ui", targets: ["prefs-ui"]),
  ]
  package.dependencies += [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
    .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
    .package(url: "https://github.com/LebJe/TOMLKit", from: "0.6.0"),
  ]
  package.targets += [
    .target(
      name: "PrefsCommands",
      dependencies: [
        "Coffer", "CofferMaintenance", "CSystemCalls",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),
    .executableTarget(name: "prefs", dependencies: ["PrefsCommands"], swiftSettings: strict),
    // A separate program, because its parsers bring all of Foundation.
    .target(
      name: "PrefsFormats", dependencies: ["PrefsCommands", "Coffer", "Yams", "TOMLKit"], swiftSettings: strict),
    .executableTarget(name: "prefs-formats", dependencies: ["PrefsFormats"], swiftSettings: strict),
    // A separate program, because nothing else needs libcurl.
    .target(
      name: "PrefsFleet",
      dependencies: [
        "PrefsCommands", "CofferFleet", "Coffer", .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),
    .executableTarget(name: "prefs-fleet", dependencies: ["PrefsFleet"], swiftSettings: strict),
    // A separate program, because git and docker start it, too, by other names.
    .target(
      name: "PrefsKeyring",
      dependencies: [
        "PrefsCommands", "Coffer", "CofferCrypto", .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ] + (hasBus ? ["CSystemd"] : []),
      swiftSettings: strict + (hasBus ? [.define("COFFER_BUS")] : [])),
    .executableTarget(name: "prefs-keyring", dependencies: ["PrefsKeyring"], swiftSettings: strict),
    // A separate program, so that the code of its protocol does not slow down the start of others.
    .target(
      name: "PrefsServe",
      dependencies: [
        "PrefsCommands", "Coffer", "CSystemCalls",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),
    .executableTarget(name: "prefs-serve", dependencies: ["PrefsServe"], swiftSettings: strict),
    // A separate program: few users need its server.
    .target(
      name: "PrefsPage",
      dependencies: [
        "PrefsCommands", "Coffer", "CofferMaintenance", "CofferCrypto", "CSystemCalls",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      resources: [.embedInCode("Page")], swiftSettings: strict),
    .executableTarget(name: "prefs-ui", dependencies: ["PrefsPage"], swiftSettings: strict),
    // In this package, because it measures layers that are not public.
    .executableTarget(
      name: "StorageBenchmark", dependencies: ["Coffer", "CofferStorage", "CofferCrypto"],
      path: "Benchmarks/StorageBenchmark", swiftSettings: strict),
    // What `make bench ROWS=fleet` runs.
    .executableTarget(
      name: "FleetBenchmark", dependencies: ["CofferFleet", "Coffer", "TestSupport"], path: "Benchmarks/FleetBenchmark",
      swiftSettings: strict),
    // The other process of the tests that need one.
    .executableTarget(
      name: "StoreWorker", dependencies: ["Coffer", "CofferMaintenance", "CofferStorage", "TestSupport"],
      path: "Tests/StoreWorker",
      swiftSettings: strict),
    .executableTarget(
      name: "Load", dependencies: ["Coffer", "CofferMaintenance"], path: "Tests/Load", exclude: ["Results"],
      swiftSettings: strict),
    .target(
      name: "TestSupport",
      dependencies: ["Coffer", "CofferCompat", "CofferMaintenance", "CofferStorage", "CofferCrypto", "CSQLite"],
      path: "Tests/TestSupport",
      swiftSettings: strict),
    .testTarget(name: "CofferCryptoTests", dependencies: ["CofferCrypto"], swiftSettings: strict),
    .testTarget(
      name: "CofferStorageTests",
      dependencies: ["CofferStorage", "CofferCrypto", "CofferExtension", "CSQLite", "TestSupport"],
      exclude: ["VFS/AccessPatterns.md"], swiftSettings: strict),
    .testTarget(
      name: "CofferTests",
      dependencies: [
        "Coffer", "CofferCompat", "CofferMaintenance", "CofferObservation", "CSQLite", "StoreWorker", "TestSupport",
        "prefs",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "CofferCompatTests", dependencies: ["CofferCompat", "Coffer", "TestSupport"], swiftSettings: strict),
    .testTarget(
      name: "CofferMaintenanceTests",
      dependencies: [
        "CofferMaintenance", "Coffer", "CofferStorage", "CofferCrypto", "CSQLite", "StoreWorker", "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "CofferMetricsTests",
      dependencies: [
        "CofferMetrics", "CofferMaintenance", "TestSupport",
        .product(name: "MetricsTestKit", package: "swift-metrics", condition: .when(traits: ["Metrics"])),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "CofferConfigurationTests",
      dependencies: [
        "CofferConfiguration", "CofferService", "CofferMaintenance",
        .product(
          name: "ConfigurationTesting", package: "swift-configuration", condition: .when(traits: ["Configuration"])),
        .product(
          name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle",
          condition: .when(traits: ["ServiceLifecycle"])),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "CofferFleetTests",
      dependencies: ["CofferFleet", "CofferMaintenance", "PrefsFleet", "TestSupport", "prefs", "prefs-fleet"],
      swiftSettings: strict),
    .testTarget(
      name: "PrefsCommandsTests",
      dependencies: [
        "PrefsCommands", "PrefsFleet", "PrefsFormats", "PrefsKeyring", "PrefsPage", "PrefsServe", "Coffer",
        "CofferConfiguration", "StoreWorker", "TestSupport", "prefs", "prefs-fleet", "prefs-formats", "prefs-keyring",
        "prefs-serve",
        .product(name: "Configuration", package: "swift-configuration", condition: .when(traits: ["Configuration"])),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "PrefsFormatsTests",
      dependencies: [
        "PrefsFormats", "PrefsCommands", "Coffer", "CofferMaintenance", "TestSupport", "prefs", "prefs-formats",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "PrefsPageTests",
      dependencies: ["PrefsPage", "PrefsCommands", "Coffer", "CofferCrypto", "TestSupport", "prefs-ui"],
      swiftSettings: strict),
  ]
}

// The same readers, either replayed by a test or driven by libFuzzer.
if let fuzzer {
  package.targets += [
    .systemLibrary(name: "CFuzzer", path: "Tests/Fuzzing/CFuzzer"),
    .executableTarget(
      name: "Fuzz",
      dependencies: [
        "CFuzzer", "PrefsCommands", "PrefsFormats", "Coffer", "CofferMaintenance", "CofferStorage",
        "CofferCrypto",
      ],
      path: "Tests/Fuzzing", exclude: ["Corpus", "CFuzzer", "Replay", "run"], sources: ["Targets", "Driver"],
      swiftSettings: strict, linkerSettings: [.unsafeFlags(["-sanitize=address", fuzzer])]),
  ]
} else if !isFetched {
  package.targets.append(
    .testTarget(
      name: "FuzzingTests",
      dependencies: [
        "PrefsCommands", "PrefsFormats", "Coffer", "CofferMaintenance", "CofferStorage", "CofferCrypto",
      ],
      path: "Tests/Fuzzing", exclude: ["Corpus", "CFuzzer", "Driver", "run"], sources: ["Targets", "Replay"],
      swiftSettings: strict))
}
