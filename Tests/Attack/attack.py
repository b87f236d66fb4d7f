#!/usr/bin/env python3
"""Tries what SECURITY.md says the tool withstands, and prints threat, what was tried, and what happened.

    attack.py BIN_DIR [WORD…]

Ends with 1 if anything happened that SECURITY.md does not allow, or if a threat has neither attempts nor a reason.
"""

from __future__ import annotations

import concurrent.futures
import importlib
import os
import sys
import time

sys.dont_write_bytecode = True
os.umask(0o022)
os.environ["COFFER_BIN"] = os.path.abspath(sys.argv[1])

import registry  # noqa: E402
import workshop  # noqa: E402

CHAPTERS = (
    "files", "pages", "older", "keys", "tpm", "vault", "crafted", "names", "managed", "host", "serving", "keyring", "leaks", "carriers", "buckets",
    "members", "sealed", "page", "page_contents", "challenge", "untried",
)


def main(words: list) -> int:
    for chapter in CHAPTERS:
        importlib.import_module(f"attacks.{chapter}")
    report = registry.REPORT
    missing = report.missing()
    for name in missing:
        print(f"attack: neither tried nor with a reason, or both: {name}", file=sys.stderr)
    chosen = [
        (threat, function)
        for threat, function in report.attempts
        if not words or any(word.lower() in f"{threat.chapter} {threat.name} {function.__module__}".lower() for word in words)
    ]
    start = time.monotonic()
    try:
        with concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() or 1)) as pool:
            list(pool.map(lambda pair: report.run(*pair), chosen))
    finally:
        workshop.clean_up()
    for line in report.lines(is_whole=not words):
        print(line)
    print(f"{time.monotonic() - start:.0f} seconds.")
    return 1 if report.failed or missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[2:]))
