#!/bin/sh
# Builds the tool as it is meant to be used: optimized and, on Linux, with Swift's own libraries inside, so that it starts
# quickly and runs where Swift is not installed.
set -eu
cd "$(dirname "$0")/.."

case "$(uname -s)" in
  Linux) set -- --static-swift-stdlib ;;
  *) set -- ;;
esac
exec "${SWIFT:-swift}" build -c release --product prefs "$@"
