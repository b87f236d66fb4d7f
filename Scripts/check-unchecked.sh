#!/bin/sh
# Unchecked code is confined to one folder of the proxy, behind a small interface. Fails if the rest of the
# proxy, or the typed keys over it, use such constructs themselves.
set -eu
cd "${1:-"$(dirname "$0")/.."}"

means='Unmanaged|unsafe[A-Z]|Unsafe[A-Z]|[(]unsafe[)]|[(]unchecked[)]|@unchecked|assumingMemoryBound|withMemoryRebound|fromOpaque|toOpaque|passRetained|[.]release[(]'

failures=$(
  find Sources/Coffer/Proxy Sources/Coffer/Preferences/*+Keys.swift -name '*.swift' -not -path '*/Hot/*' | sort |
    xargs grep -nE "$means" | sed 's|$|  (unchecked means belong in Sources/Coffer/Proxy/Hot)|'
) || true

if [ -n "$failures" ]; then
  echo "$failures" >&2
  exit 1
fi
