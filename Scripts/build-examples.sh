#!/bin/sh
# Builds the examples in the build folder of the package, to reuse what is built there.
#
# Usage: build-examples.sh [BUILD-FOLDER]
#
# Prints the folder of the programs.
set -eu
cd "$(dirname "$0")/.."
build=${1:-$PWD/.build}
swift=${SWIFT:-swift}

# SwiftPM keeps the plan of the last build in that folder, and takes it for the next one without asking whose it is: after
# the examples, a build of the package would build the examples again, and nothing else. Without a plan it makes a new one;
# the build products stay.
forget_plan() {
  rm -f "$build"/debug.yaml "$build"/*/debug/description.json
}
trap forget_plan EXIT
trap 'exit 1' HUP INT TERM

forget_plan
$swift build --package-path Examples --scratch-path "$build" >&2
$swift build --package-path Examples --scratch-path "$build" --show-bin-path
