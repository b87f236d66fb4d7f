#!/bin/sh
# Builds the tool, or the products of other names that are given, as it is meant to be used: optimized and, on Linux, with the libraries of Swift and C++ inside, so that it
# starts quickly and runs where Swift is not installed. OpenSSL and SQLite stay outside, where the system keeps them safe.
set -eu
cd "$(dirname "$0")/.."
swift=${SWIFT:-swift}

# The linker takes the shared library of C++ where there is one, so it gets a folder to look into first that has the other.
use_static_cxx() {
  clang=$(dirname "$(command -v "$swift")")/clang
  archive=$("$clang" -print-file-name=libstdc++.a) || return 0
  [ -f "$archive" ] || return 0
  mkdir -p .build/static
  ln -sf "$archive" .build/static/libstdc++.a
  static_cxx="-Xlinker -L$PWD/.build/static -Xswiftc -Xclang-linker -Xswiftc -static-libgcc"
}

options=
static_cxx=
case "$(uname -s)" in
  Linux)
    use_static_cxx
    options=--static-swift-stdlib
    ;;
esac
[ $# -gt 0 ] || set -- prefs
for product; do
  # shellcheck disable=SC2086 # Words.
  "$swift" build -c release --product "$product" $options $static_cxx
done
