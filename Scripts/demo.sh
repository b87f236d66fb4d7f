#!/bin/sh
# A short tour of the tool in a temporary folder. Every step checks itself: the exit code is 0
# only if all of them succeeded.
#
# Usage: demo.sh PATH-OF-PREFS
set -eu

# Messages and bytes of files are compared and searched in the C locale.
LC_ALL=C
export LC_ALL

case "$1" in
  /*) tool=$1 ;;
  *) tool=$PWD/$1 ;;
esac
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM

HOME=$folder
XDG_CONFIG_HOME=$folder/config
XDG_DATA_HOME=$folder/data
export HOME XDG_CONFIG_HOME XDG_DATA_HOME
unset PREFS_STORE PREFS_KEY_FILE PREFS_KEY_COMMAND CREDENTIALS_DIRECTORY
cd "$folder"
store=$XDG_DATA_HOME/prefs/settings.coffer

# --- helpers ---------------------------------------------------------------------------------------------------------

say() { printf '\n%s\n\n' "$*"; }

redirection=

fail() {
  printf '\ndemo: %s\n' "$*" >&2
  exit 1
}

# Shows a command as it would be typed.
show() {
  line=
  for word in "$@"; do
    case "$word" in
      *[!A-Za-z0-9_./:=@%+,-]* | "") line="$line '$word'" ;;
      *) line="$line $word" ;;
    esac
  done
  printf '  $ prefs%s%s\n' "$line" "$redirection"
}

# Runs a command with a file as its descriptor 3, from which prefs reads a passphrase.
with_passphrase() {
  file=$1
  shift
  redirection=" 3<$file"
  "$@" --passphrase-fd 3 3<"$file"
  redirection=
}

# Runs prefs and shows its output.
prefs() {
  show "$@"
  code=0
  "$tool" "$@" >answer 2>&1 || code=$?
  sed 's/^/    /' answer
}

# Runs prefs, which must succeed.
works() {
  prefs "$@"
  [ "$code" -eq 0 ] || fail "this ought to work, and ended with exit code $code"
}

# Runs prefs, which must end with the exit code in the first argument.
ends_with() {
  expected=$1
  shift
  prefs "$@"
  printf '    (exit code %s)\n' "$code"
  [ "$code" -eq "$expected" ] || fail "exit code $expected was expected"
}

# Runs prefs, which must print the first argument.
answers() {
  expected=$1
  shift
  works "$@"
  [ "$(cat answer)" = "$expected" ] || fail "the answer ought to be: $expected"
}

# --- the tour --------------------------------------------------------------------------------------------------------

say "1. Settings of several types go in. The first one makes the key and the store."
works set editor/theme solarized-midnight
works set editor/font-size --int 14
works set editor/line-height --double 1.5
works set editor/word-wrap --bool yes
works set editor/last-opened --date 2026-01-31T08:30:00Z
works set editor/recent '["letters.txt", "poem.txt"]'
works set editor/icon --data iVBORw0KGgo=

say "2. They come back, to another process, as what they were."
answers solarized-midnight get editor/theme
answers 14 get editor/font-size
answers 1.5 get editor/line-height
answers true get editor/word-wrap
answers 2026-01-31T08:30:00.000Z get editor/last-opened
answers '["letters.txt","poem.txt"]' get editor/recent
answers date type editor/last-opened
ends_with 3 get editor/teme

say "3. All at a glance."
works list editor -l --values

say "4. On the disk there is noise."
middle=$(($(wc -c <"$store") / 2))
printf '  $ od -A d -t x1c -N 64 -j %s %s\n' "$middle" "${store#"$folder"/}"
od -A d -t x1c -N 64 -j "$middle" "$store" | sed 's/^/    /'
for word in solarized-midnight editor font-size letters.txt 'SQLite format'; do
  for file in "$store"*; do
    if grep -q -F -e "$word" "$file"; then fail "\"$word\" stands in $file for all to read"; fi
  done
  printf '    "%s": not to be found in any byte\n' "$word"
done

say "5. A flipped bit does not go unnoticed."
for file in "$store"*; do cp "$file" "copy.coffer${file#"$store"}"; done
size=$(wc -c <copy.coffer)
place=$((size - 2048))
byte=$(od -A n -t u1 -j "$place" -N 1 copy.coffer | tr -d ' ')
printf "\\$(printf '%03o' $((byte ^ 1)))" | dd of=copy.coffer bs=1 seek="$place" conv=notrunc 2>/dev/null
printf '  (one bit of byte %s of a copy is now another)\n' "$place"
ends_with 7 doctor --store copy.coffer
printf '\n  The original is as it was:\n\n'
works doctor

say "6. A wrong passphrase is a wrong passphrase, and not a damaged file."
printf 'correct horse battery staple\n' >right
printf 'correct horse battery stapel\n' >wrong
with_passphrase right works init --store letters.coffer --passphrase
with_passphrase right works set greeting "Dear Sir or Madam" --store letters.coffer
with_passphrase wrong ends_with 5 get greeting --store letters.coffer
with_passphrase right answers "Dear Sir or Madam" get greeting --store letters.coffer

say "That was the tour: each step did what it should."
