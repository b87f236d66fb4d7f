#!/bin/sh
# Puts the tool, the programs beside it, its manual page and what shells need to complete its words where they look for
# them, or takes them away.
#
# Usage: install.sh install BINARY | install.sh uninstall
#
# PREFIX says where, /usr/local unless set; DESTDIR comes before it and is written nowhere, for those who make packages.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

root=${DESTDIR:-}${PREFIX:-/usr/local}
tool=$root/bin/prefs
# What prefs starts, and nobody else: the names of the programs, which lie beside BINARY.
beside=$root/libexec/coffer
programs="prefs-formats"
manual=$root/share/man/man1/prefs.1
bash=$root/share/bash-completion/completions/prefs
zsh=$root/share/zsh/site-functions/_prefs
fish=$root/share/fish/vendor_completions.d/prefs.fish

fail() {
  printf 'install: %s\n' "$*" >&2
  exit 1
}

# Writes what a command says to a file, whole or not at all.
write() {
  file=$1
  shift
  mkdir -p "$(dirname "$file")"
  "$@" >"$file.new" || { rm -f "$file.new" && fail "$file could not be made"; }
  chmod 644 "$file.new"
  mv -f "$file.new" "$file"
}

# Copies a program, whole or not at all.
put() {
  [ -x "$1" ] || fail "there is no program at $1; build it with make release"
  mkdir -p "$(dirname "$2")"
  cp "$1" "$2.new"
  # What debuggers need is half of it. macOS has it in another file.
  if [ "$(uname -s)" = Linux ] && command -v strip >/dev/null 2>&1; then strip "$2.new"; fi
  chmod 755 "$2.new"
  mv -f "$2.new" "$2"
}

install_all() {
  binary=$1
  page=$(dirname "$binary")/prefs.1
  [ -f "$page" ] && [ ! "$binary" -nt "$page" ] || fail "there is no manual page beside $binary; build it with make release"
  # prefs starts nothing from a folder that others may write to.
  (umask 022 && mkdir -p "$beside")
  for program in $programs; do
    put "$(dirname "$binary")/$program" "$beside/$program"
  done
  put "$binary" "$tool"
  write "$manual" cat "$page"
  write "$bash" "$tool" completion bash
  write "$zsh" "$tool" completion zsh
  write "$fish" "$tool" completion fish
  for program in $programs; do printf '%s\n' "$beside/$program"; done
  printf '%s\n' "$tool" "$manual" "$bash" "$zsh" "$fish"
}

case "${1:-}" in
  install) install_all "${2:?which program?}" ;;
  # The folders stay: others may have made them.
  uninstall)
    rm -f "$tool" "$manual" "$bash" "$zsh" "$fish"
    for program in $programs; do rm -f "$beside/$program"; done
    ;;
  *) fail "usage: install.sh install BINARY | install.sh uninstall" ;;
esac
