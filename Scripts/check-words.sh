#!/bin/sh
# Fails if comments, messages, names, tests or documents use a phrase that readers stumble over; CONTRIBUTING.md, "Words", says
# what to write instead.
set -eu
cd "${1:-"$(dirname "$0")/.."}"

status=0

# check PATTERN ADVICE PATH…: prints the lines that match, in whatever case, with what to write instead.
check() {
  pattern=$1 advice=$2
  shift 2
  if grep -rniE --include='*.swift' --include='*.js' --include='*.css' --include='*.html' --include='*.md' --include='*.py' \
    --include='*.c' --include='*.h' --exclude=test_words.py "$pattern" "$@" | grep -v '^CONTRIBUTING.md:[0-9]*:| '; then
    echo "check-words: write $advice instead." >&2
    status=1
  fi
}

sources="Sources Tests clients Package.swift"
documents="ARCHITECTURE.md FLEET.md FORMAT.md SECURITY.md TESTING.md Documentation"
# shellcheck disable=SC2086 # Lists of names.
check '\bwhoever\b|\bin clear\b|of no account|\bto be had\b' \
  '"anyone who", "plaintext" or "unencrypted", "ignored", "available"' \
  $sources Benchmarks/*Benchmark Examples README.md CONTRIBUTING.md $documents
# shellcheck disable=SC2086
check '\banew\b|\bas ever\b|\ball the same\b|\blet go of\b|\b(is|are) told\b' \
  '"again" or "re-…", "as usual", "still" or "anyway", "released", "is notified" or "gets"' \
  $sources Benchmarks/*Benchmark Examples $documents
# Strings may have them as sample values.
# shellcheck disable=SC2086
check '(//|/\*|<!--|^ *#) .*\b(somebody|nobody|anybody)\b' \
  '"someone", "another program" or "no one", or say what is missing,' $sources
# shellcheck disable=SC2086
check '\b(somebody|nobody)\b' '"someone" or "no one"' $documents

# Names. `make lint` reads those of the fleet's library once its words are done, too.
names=$(
  grep -rnE --include='*.swift' --include='*.js' '\w+Anew\b|\bfunc tell\b|\btell = |\bgoOn|[a-z]GoOn|\bfoldLog' Sources Tests Benchmarks/*Benchmark |
    grep -v '^Sources/CofferFleet/'
) || true
if [ -n "$names" ]; then
  echo "$names"
  echo 'check-words: name it for what it does instead: "again…" or "re…", "notify" or "report", "continue", "checkpoint".' >&2
  status=1
fi
exit $status
