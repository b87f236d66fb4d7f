#!/bin/sh
# Imports point down only. Fails when a module imports one that is not below it, or when a system library is imported by
# another module than the one that wraps it.
#
#   prefs-formats -> PrefsFormats -> PrefsCommands
#   prefs-fleet -> PrefsFleet -> PrefsCommands, CofferFleet
#   prefs-keyring -> PrefsKeyring -> PrefsCommands, CofferCrypto, CSystemd
#   prefs-serve -> PrefsServe -> PrefsCommands, CSystemCalls
#   prefs-ui -> PrefsPage -> PrefsCommands, CofferMaintenance, CofferCrypto
#   prefs -> PrefsCommands -> CofferMaintenance -> Coffer -> CofferStorage -> CofferCrypto -> COpenSSL
#   CofferFleet -> Coffer, CofferCrypto, CCurl
#   CofferCompat, CofferObservation, CofferMetrics, CofferConfiguration, CofferService -> Coffer
#                                                            CofferStorage -> CSQLite
#           PrefsPage, PrefsCommands, Coffer, CofferStorage -> CSystemCalls
set -eu
cd "${1:-"$(dirname "$0")/.."}"

# The project's modules that the sources of the given module may import. A test may import what it tests and what that is
# built on.
allowed() {
  case "$1" in
    Sources/CSQLite | Sources/COpenSSL | Sources/CSystemCalls | Sources/CCurl | Sources/CSystemd) echo "" ;;
    Sources/CofferCrypto) echo "COpenSSL" ;;
    Sources/CofferStorage) echo "CofferCrypto CSQLite CSystemCalls" ;;
    Sources/CofferExtension) echo "CofferStorage CSQLite" ;;
    Sources/Coffer) echo "CofferStorage CofferCrypto CSystemCalls" ;;
    Sources/CofferMaintenance) echo "Coffer CofferStorage CofferCrypto" ;;
    Sources/CofferCompat | Sources/CofferObservation | Sources/CofferMetrics | Sources/CofferConfiguration | Sources/CofferService) echo "Coffer" ;;
    Sources/CofferFleet) echo "Coffer CofferCrypto CCurl" ;;
    Sources/PrefsCommands) echo "Coffer CofferMaintenance CSystemCalls" ;;
    Sources/PrefsFormats) echo "PrefsCommands Coffer" ;;
    Sources/PrefsFleet) echo "PrefsCommands CofferFleet Coffer" ;;
    Sources/prefs) echo "PrefsCommands" ;;
    Sources/prefs-formats) echo "PrefsFormats" ;;
    Sources/prefs-fleet) echo "PrefsFleet" ;;
    Sources/PrefsPage) echo "PrefsCommands CofferMaintenance Coffer CofferCrypto CSystemCalls" ;;
    Sources/prefs-ui) echo "PrefsPage" ;;
    Sources/PrefsKeyring) echo "PrefsCommands Coffer CofferCrypto CSystemd" ;;
    Sources/prefs-keyring) echo "PrefsKeyring" ;;
    Sources/PrefsServe) echo "PrefsCommands Coffer CSystemCalls" ;;
    Sources/prefs-serve) echo "PrefsServe" ;;
    Tests/TestSupport) echo "Coffer CofferCompat CofferMaintenance CofferStorage CofferCrypto CSQLite" ;;
    Tests/StoreWorker) echo "Coffer CofferMaintenance CofferStorage" ;;
    Tests/CofferCryptoTests) echo "CofferCrypto COpenSSL" ;;
    Tests/CofferStorageTests) echo "CofferStorage CofferCrypto CSQLite" ;;
    Tests/CofferTests) echo "Coffer CofferCompat CofferMaintenance CofferObservation CofferStorage CofferCrypto CSQLite" ;;
    Tests/CofferCompatTests) echo "Coffer CofferCompat" ;;
    Tests/CofferMaintenanceTests) echo "Coffer CofferMaintenance CofferStorage CofferCrypto CSQLite" ;;
    Tests/PrefsFormatsTests) echo "PrefsFormats PrefsCommands Coffer CofferMaintenance" ;;
    Tests/CofferMetricsTests) echo "Coffer CofferMaintenance CofferMetrics" ;;
    Tests/CofferConfigurationTests) echo "Coffer CofferMaintenance CofferConfiguration CofferService" ;;
    Tests/CofferFleetTests) echo "CofferFleet PrefsFleet Coffer CofferMaintenance CofferCrypto" ;;
    Tests/Acceptance) echo "Coffer CofferCompat CofferMaintenance CofferStorage CofferCrypto CSQLite" ;;
    Benchmarks/StorageBenchmark) echo "Coffer CofferStorage CofferCrypto" ;;
    Tests/Fuzzing) echo "PrefsCommands PrefsFormats Coffer CofferMaintenance CofferStorage CofferCrypto" ;;
    Tests/PrefsCommandsTests) echo "PrefsCommands PrefsFormats PrefsFleet PrefsKeyring PrefsPage PrefsServe Coffer CofferMaintenance CofferConfiguration" ;;
    Tests/PrefsPageTests) echo "PrefsPage PrefsCommands Coffer CofferCrypto" ;;
    # All other modules depend only on the library.
    *) echo "Coffer CofferCompat CofferMaintenance CofferObservation CofferMetrics CofferConfiguration CofferService CofferFleet" ;;
  esac
}

is_ours() {
  [ -d "Sources/$1" ]
}

# The modules that a file imports: `import X`, also `@testable public import struct X.Y`, also after `#if`.
imports_of() {
  sed -n -E \
    -e 's/^[[:space:]]*((@[A-Za-z_]+(\([A-Za-z]*\))?|public|package|internal|fileprivate|private)[[:space:]]+)*import[[:space:]]+((struct|class|enum|protocol|typealias|func|let|var)[[:space:]]+)?([A-Za-z_][A-Za-z0-9_]*).*/\6/p' \
    "$1"
}

failures=$(
  for folder in Sources/* Tests/* Benchmarks/* Examples/*; do
    [ -d "$folder" ] || continue
    permitted=" $(allowed "$folder") "
    find "$folder" -name '*.swift' | sort | while IFS= read -r file; do
      for module in $(imports_of "$file"); do
        is_ours "$module" || continue
        case "$permitted" in
          *" $module "*) ;;
          *) echo "$file: imports $module, which is not below it (architecture: imports point down only)" ;;
        esac
      done
    done
  done
)

if [ -n "$failures" ]; then
  echo "$failures" >&2
  exit 1
fi
