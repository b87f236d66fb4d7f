#!/bin/sh
# Builds the tool and the programs beside it, or the products of other names that are given, as it is meant to be used: optimized and, on Linux, with
# the libraries of Swift and C++ inside, so that it starts quickly and runs where Swift is not installed. OpenSSL and SQLite
# stay outside, where the system keeps them safe.
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

# Nothing looks up symbols in the tool, so it needs no symbol table. And Swift's libraries have 46,000 addresses that are
# written at each start: packed (DT_RELR), their list has 9 KB instead of 1 MB. The C library reads that form since 2.36; a tool made
# where it is older has the long list, and runs on both.
use_fast_start() {
  linker="-Xlinker --no-export-dynamic"
  version=$(getconf GNU_LIBC_VERSION 2>/dev/null) || return 0
  version=${version#glibc }
  # A development version has three parts.
  minor=${version#*.}
  minor=${minor%%.*}
  [ -x "$(dirname "$(command -v "$swift")")/ld.lld" ] || return 0
  if [ "${version%%.*}" -gt 2 ] || { [ "${version%%.*}" -eq 2 ] && [ "$minor" -ge 36 ]; }; then
    linker="$linker -Xswiftc -use-ld=lld -Xlinker -z -Xlinker pack-relative-relocs"
  fi
}

options=
static_cxx=
linker=
case "$(uname -s)" in
  Linux)
    use_static_cxx
    use_fast_start
    # SQLite and OpenSSL must be the system's: by default the tool's own folder would be searched first.
    options="--static-swift-stdlib --disable-local-rpath"
    ;;
esac
[ $# -gt 0 ] || set -- prefs-formats prefs-fleet prefs-ui prefs
for product; do
  # shellcheck disable=SC2086 # Words.
  "$swift" build -c release --product "$product" $options $static_cxx $linker
  # Manual pages are needed only to install the tool; that of prefs also calls prefs-ui, so prefs comes last.
  case "$product" in
    prefs | prefs-fleet)
      if command -v python3 >/dev/null 2>&1; then
        folder=$("$swift" build -c release --show-bin-path)
        Scripts/manual-page "$folder/$product" >"$folder/$product.1"
      fi
      ;;
  esac
done
