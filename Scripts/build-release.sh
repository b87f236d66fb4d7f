#!/bin/sh
# Builds the tool and the programs beside it, or the products of other names that are given, as it is meant to be used: optimized and, on Linux, with
# the libraries of Swift and C++ inside, so that it starts quickly and runs where Swift is not installed. OpenSSL and SQLite
# stay outside, where the system keeps them safe.
#
# With STATIC=1, on Linux with glibc, they and the C library are inside as well: the tool starts faster, and runs in an empty
# folder with /proc. It has to be built again when one of them gets a security update. `prefs-fleet` is not: distributions do
# not have all of what libcurl needs as archives. `prefs-keyring` is without the Secret Service then, as they have no archive of libsystemd.
#
# The same commit, compiler and libraries give the same bytes, in the same folder; `dist` has one for all, and `make reproducible` compares.
set -eu
cd "$(dirname "$0")/.."
swift=${SWIFT:-swift}
# For the date of the manual pages.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH

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
#
# Symbols are bound at the start: one that is bound later has the registers saved on the stack, with the key that was copied through them.
use_fast_start() {
  linker="-Xlinker --no-export-dynamic -Xlinker -z -Xlinker now"
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

# An executable that is moved to an address of its own at each start, as the dynamic one is, without a loader.
use_static_libraries() {
  clang=$(dirname "$(command -v "$swift")")/clang
  for archive in libc.a libcrypto.a libsqlite3.a; do
    [ -f "$("$clang" -print-file-name="$archive")" ] || {
      echo "build-release: STATIC=1 needs $archive; on Debian: libc6-dev libssl-dev libsqlite3-dev" >&2
      exit 1
    }
  done
  static="-Xclang-linker -static-pie -Xlinker -lm"
}

options=
static_cxx=
linker=
static=
case "$(uname -s)" in
  Linux)
    use_static_cxx
    use_fast_start
    # SQLite and OpenSSL must be the system's: by default the tool's own folder would be searched first.
    options="--static-swift-stdlib --disable-local-rpath"
    [ -z "${STATIC:-}" ] || use_static_libraries
    ;;
  *) [ -z "${STATIC:-}" ] || echo "build-release: STATIC=1 is for Linux; ignored" >&2 ;;
esac
# Names of folders must not get into the programs: there is no debug information, which installing strips anyway, and
# assertions in C name files as seen from here.
here=$(pwd -P)
options="$options -debug-info-format none -Xswiftc -file-prefix-map -Xswiftc $here=. -Xcc -ffile-prefix-map=$here=. -Xcxx -ffile-prefix-map=$here=."
# In a file, whose name stays the same: with other words on the command line everything would be compiled again.
link_options=$here/.build/link-options
folder=$("$swift" build -c release --show-bin-path)
mkdir -p .build/linked
[ $# -gt 0 ] || set -- prefs-fleet prefs-formats prefs-keyring prefs-serve prefs-ui prefs
for product; do
  if [ "$product" = prefs-fleet ]; then : >"$link_options"; else printf '%s\n' "$static" >"$link_options"; fi
  cmp -s "$link_options" ".build/linked/$product" || rm -f "$folder/$product"
  # shellcheck disable=SC2086 # Words.
  "$swift" build -c release --product "$product" $options $static_cxx $linker -Xswiftc "@$link_options"
  cp "$link_options" ".build/linked/$product"
  # Manual pages are needed only to install the tool; that of prefs also calls prefs-keyring, prefs-serve and prefs-ui, so prefs comes last.
  case "$product" in
    prefs | prefs-fleet)
      if command -v python3 >/dev/null 2>&1; then
        Scripts/manual-page "$folder/$product" >"$folder/$product.1"
      fi
      ;;
  esac
done
