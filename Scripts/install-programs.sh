#!/bin/sh
# Installs the packages of missing programs.
#
# Usage: install-programs.sh PROGRAM[=PACKAGE,…]...
#
# A program is in the package with its name unless packages are given.
set -eu

missing=
for program in "$@"; do
  command -v "${program%%=*}" >/dev/null 2>&1 || missing="$missing $(echo "${program#*=}" | tr , ' ')"
done
[ -n "$missing" ] || exit 0

fail() {
  echo "install-programs: $1; please install:$missing" >&2
  exit 1
}

as_root=
case "$(uname -s)" in
  # shellcheck disable=SC2086 # A list of names.
  Darwin) exec brew install $missing ;;
esac
command -v apt-get >/dev/null 2>&1 || fail "this system has no apt-get"
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null 2>&1 || fail "installing packages needs root, and there is no sudo"
  as_root="sudo -n"
fi
echo "install-programs: installing$missing" >&2
$as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q >&2 || true
# shellcheck disable=SC2086 # A list of names.
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing >&2 ||
  fail "apt-get could not install them"
