#!/bin/sh
# Fails if comments, messages, tests or documents use a phrase that readers stumble over; CONTRIBUTING.md, "Words", says what
# to write instead.
set -eu
cd "$(dirname "$0")/.."

status=0

# check PATTERN ADVICE PATH…: prints the lines that match, with what to write instead.
check() {
  pattern=$1 advice=$2
  shift 2
  if grep -rnE --include='*.swift' --include='*.md' --include='*.py' "$pattern" "$@" | grep -v '^CONTRIBUTING.md:[0-9]*:| '; then
    echo "check-words: write $advice instead." >&2
    status=1
  fi
}

documents="ARCHITECTURE.md FLEET.md FORMAT.md SECURITY.md TESTING.md Documentation"
# shellcheck disable=SC2086 # A list of names.
check '[Ww]hoever|\bin clear\b|of no account|\bto be had\b' \
  '"anyone who", "plaintext" or "unencrypted", "ignored", "available"' \
  Sources Tests Benchmarks/*Benchmark Examples README.md CONTRIBUTING.md $documents
# shellcheck disable=SC2086 # A list of names.
check '\banew\b|\bas ever\b|\ball the same\b|\blet go of\b|\b(is|are) told\b' \
  '"again" or "re-…", "as usual", "still" or "anyway", "released", "is notified" or "gets"' Sources Tests $documents
# Strings may have them as sample values.
check '(//|^ *#) .*\b([Ss]omebody|[Nn]obody)\b' '"someone", "another program" or "no one", or say what is missing,' Sources Tests
# shellcheck disable=SC2086 # A list of names.
check '\b([Ss]omebody|[Nn]obody)\b' '"someone" or "no one"' $documents
exit $status
