#!/bin/sh
# Installs the tool, the programs beside it, their manual pages, shell completions, and on Linux the units of
# systemd and of D-Bus, or removes them.
#
# Usage: install.sh install BINARY | install.sh uninstall
#
# PREFIX is the destination, /usr/local by default; DESTDIR is prepended to it without being recorded, to build packages.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

root=${DESTDIR:-}${PREFIX:-/usr/local}
tool=$root/bin/prefs
# The programs that only prefs starts, by name; they are beside BINARY.
beside=$root/libexec/coffer
programs="prefs-formats prefs-fleet prefs-keyring prefs-serve prefs-ui"
# The names by which git and docker look for prefs-keyring.
helpers="git-credential-prefs docker-credential-prefs"
manual=$root/share/man/man1
pages="prefs.1 prefs-fleet.1"
unit=$root/lib/systemd/system/prefs-fleet@.service
keyring_unit=$root/lib/systemd/user/prefs-keyring.service
# Not where the bus looks: it would take the place of a desktop's keyring.
activation=$root/share/coffer/org.freedesktop.secrets.service
bash=$root/share/bash-completion/completions/prefs
zsh=$root/share/zsh/site-functions/_prefs
fish=$root/share/fish/vendor_completions.d/prefs.fish

fail() {
  printf 'install: %s\n' "$*" >&2
  exit 1
}

# Writes the output of a command to a file, completely or not at all.
write() {
  file=$1
  shift
  mkdir -p "$(dirname "$file")"
  "$@" >"$file.new" || { rm -f "$file.new" && fail "$file could not be made"; }
  chmod 644 "$file.new"
  mv -f "$file.new" "$file"
}

# Copies a program, completely or not at all.
put() {
  [ -x "$1" ] || fail "there is no program at $1; build it with make release"
  mkdir -p "$(dirname "$2")"
  cp "$1" "$2.new"
  # A third of it is symbols. macOS has debug information in another file.
  if [ "$(uname -s)" = Linux ] && command -v strip >/dev/null 2>&1; then strip "$2.new"; fi
  chmod 755 "$2.new"
  mv -f "$2.new" "$2"
}

install_all() {
  binary=$1
  for page in $pages; do
    made=$(dirname "$binary")/$page
    [ -f "$made" ] && [ ! "${made%.1}" -nt "$made" ] || fail "there is no $page beside $binary; build it with make release"
  done
  # prefs starts no program from a folder that others can write to.
  (umask 022 && mkdir -p "$beside")
  for program in $programs; do
    put "$(dirname "$binary")/$program" "$beside/$program"
  done
  put "$binary" "$tool"
  for helper in $helpers; do ln -sf ../libexec/coffer/prefs-keyring "$root/bin/$helper"; done
  for page in $pages; do write "$manual/$page" cat "$(dirname "$binary")/$page"; done
  # prefs(1) has them.
  for helper in $helpers; do ln -sf prefs.1 "$manual/$helper.1"; done
  write "$bash" "$tool" completion bash
  write "$zsh" "$tool" completion zsh
  write "$fish" "$tool" completion fish
  if [ "$(uname -s)" = Linux ]; then
    write "$unit" sed "s,@PREFIX@,${PREFIX:-/usr/local}," "$here/prefs-fleet@.service"
    printf '%s\n' "$unit"
    # With all libraries inside there is no Secret Service that they could start.
    case $("$tool" --version --verbose) in
      *"They are inside this program."*) rm -f "$keyring_unit" "$activation" ;;
      *)
        write "$keyring_unit" sed "s,@PREFIX@,${PREFIX:-/usr/local}," "$here/prefs-keyring.service"
        write "$activation" sed "s,@PREFIX@,${PREFIX:-/usr/local}," "$here/org.freedesktop.secrets.service"
        printf '%s\n' "$keyring_unit" "$activation"
        ;;
    esac
  fi
  for program in $programs; do printf '%s\n' "$beside/$program"; done
  for helper in $helpers; do printf '%s\n' "$root/bin/$helper" "$manual/$helper.1"; done
  for page in $pages; do printf '%s\n' "$manual/$page"; done
  printf '%s\n' "$tool" "$bash" "$zsh" "$fish"
}

case "${1:-}" in
  install) install_all "${2:?which program?}" ;;
  # The folders stay: others may have made them.
  uninstall)
    rm -f "$tool" "$bash" "$zsh" "$fish" "$unit" "$keyring_unit" "$activation"
    for page in $pages; do rm -f "$manual/$page"; done
    for program in $programs; do rm -f "$beside/$program"; done
    for helper in $helpers; do rm -f "$root/bin/$helper" "$manual/$helper.1"; done
    ;;
  *) fail "usage: install.sh install BINARY | install.sh uninstall" ;;
esac
