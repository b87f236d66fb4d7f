#!/bin/sh
# Means that the compiler does not check are confined to the folders named Hot, behind small interfaces. Fails if another
# file of Sources/Coffer uses one that Scripts/unchecked-files does not permit it, or no longer uses one that it does.
set -eu
cd "${1:-"$(dirname "$0")/.."}"

uses=$(
  find Sources/Coffer -name '*.swift' -not -path '*/Hot/*' | LC_ALL=C sort | xargs awk '
    function found(kind) { print FILENAME, kind, FNR }
    { sub(/^[ \t]*\/\/.*/, "") }
    /Unmanaged|fromOpaque|toOpaque|passRetained|passUnretained|take(Unr|R)etainedValue/ { found("reference") }
    /unsafeBitCast|unsafeDowncast|assumingMemoryBound|withMemoryRebound|bindMemory/ { found("cast") }
    /@exclusivity[(]unchecked[)]/ { found("exclusivity") }
    /@unchecked|nonisolated[(]unsafe[)]/ { found("sendable") }
    /withUnsafe|Unsafe(Mutable)?(Raw)?(Buffer)?Pointer/ { found("bytes") }'
)

failures=$(
  printf '%s\n' "$uses" | awk '
    FILENAME != "-" && /^[^#]/ && NF {
      file = $1; sub(/:$/, "", file)
      if (NF < 3) print file ": Scripts/unchecked-files has to say why"
      count = split($2, kinds, ","); sub(/:$/, "", kinds[count])
      for (i = 1; i <= count; i++) permitted[file, kinds[i]] = 1
      next
    }
    FILENAME == "-" && NF == 3 {
      used[$1, $2] = 1
      if (!(($1, $2) in permitted))
        print $1 ":" $3 ": unchecked means (" $2 ") belong in a folder named Hot, or the file in Scripts/unchecked-files"
    }
    END {
      for (entry in permitted) {
        split(entry, parts, SUBSEP)
        if (!(entry in used)) print parts[1] ": uses no unchecked means (" parts[2] ") any more; take it out of Scripts/unchecked-files"
      }
    }' Scripts/unchecked-files -
)

if [ -n "$failures" ]; then
  printf '%s\n' "$failures" >&2
  exit 1
fi
