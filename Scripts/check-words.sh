#!/bin/sh
# Fails where the sources use a phrase that readers stumble over; CONTRIBUTING.md, "Words", says what to write instead.
set -eu
cd "$(dirname "$0")/.."

if grep -rnE --include=*.swift --include=*.md '[Ww]hoever|\bin clear\b|of no account|\bis to be had\b' Sources README.md CONTRIBUTING.md |
  grep -v 'CONTRIBUTING.md.*| '; then
  echo "check-words: write \"anyone who\", \"plaintext\" or \"unencrypted\", \"ignored\", \"available\" instead." >&2
  exit 1
fi
