"""Where secrets and keys must not get: lists, errors, arguments, dumps."""

from __future__ import annotations

import os
import pathlib
import re
import secrets
import signal
import subprocess

from forging import Keys
from memory import find
from registry import attempt
from samples import Outcomes, home, once
from workshop import BINARIES, Home, NotAllowed, Place, Skip, as_root, found_in, run, until

CANARY = "canary-" + secrets.token_hex(12)


@once
def place_with_secret() -> Place:
    place = Place(home(), "secret")
    place.do("init")
    place.do("history", "--keep", "api")
    for value in (CANARY + "-earlier", CANARY):
        place.do("set", "api/token", "--secret", "-", input=value.encode())
    place.do("set", "api/name", "open")
    place.do("set", "other/name", "open")
    return place


LOOKS = (
    ("list", "api", "--values"), ("list", "api", "-l", "--values", "--json"), ("find", CANARY[:15]), ("log", "--json"),
    ("log", "api"), ("history", "api/token"), ("history", "api/token", "--json"), ("export",), ("export", "--format", "yaml"),
    ("export", "--format", "toml"), ("export", "--format", "plist"), ("diff", "api", "other"),
    ("diff", "api", "other", "--json"), ("describe", "api/token"), ("status", "--json", "--verbose"),
    ("doctor", "--deep", "--json"), ("validate",), ("schema", "infer", "api"), ("type", "api/token"),
    ("set", "api/token", "5", "--int", "--if-version", "1"), ("increment", "api/token"), ("append", "api/token", "x"),
    ("copy", "api", "copied", "--verbose"), ("rename", "api/token", "api/renamed", "--verbose"),
    ("revert", "api/renamed@2", "--verbose"), ("unset", "api/renamed", "--verbose"),
    ("exec", "--mask", "-c", "copied", "--", "env"), ("import", "-", "--dry-run"),
)


@attempt("A secret shows in a log, a list, a mirror")
def shows(threat) -> None:
    place, outcomes, shown = place_with_secret().copy("shows"), Outcomes(), []
    for words in LOOKS:
        done = place.prefs(*words, input=b'{"api": {"token": {"$secret": "new"}}}')
        outcomes.add(f"exit code {done.code}")
        if CANARY.encode() in done.out + done.err:
            shown.append(str(done))
    threat.tried(
        f"a secret, and an earlier one, in {len(LOOKS)} commands that were not asked to reveal it",
        "; ".join(shown) or f"{outcomes}; none shows it", not shown,
    )
    refusals, place, argument = Outcomes(), place_with_secret(), CANARY + "-argument"
    for words in (
        ("set", *place.options(), "api/token", "--secret", argument), ("list", *place.options(), "--passphrase-fd", argument),
        ("unlock", *place.options(), "--vault-passphrase-fd", argument),
        ("fleet", "join", "coffer-fleet-1:" + argument.encode().hex()),
    ):
        done = home().prefs(*words)
        said = argument.encode() in done.err + done.out or argument.encode().hex().encode() in done.err + done.out
        if done.code == 0 or said and words[0] in ("set", "fleet"):
            raise NotAllowed(f"a secret as an argument is accepted, or repeated: {done}")
        refusals.add(f"exit code {done.code}")
    threat.tried(
        "secrets given as arguments of set, list, unlock and fleet join", f"{refusals}; those of set and join are not repeated"
    )
    wrong = Place(home(), "wrong")
    wrong.write(wrong.key, f"coffer-key-1:{secrets.token_hex(31)}\n".encode())
    wrong.write(wrong.store, place.store.read_bytes())
    content = wrong.key.read_bytes()[13:40]
    done = wrong.prefs("collections", "--verbose")
    threat.tried(
        "a key file that is cut off",
        f"exit code {done.code}, its digits {'in' if content in done.err + done.out else 'not in'} the message",
        content not in done.err + done.out,
    )


def secrets_of(place: Place) -> dict:
    """What opens the store, in the forms that memory may have."""
    return {
        "the key file's key": place.secret.material, **Keys(place.store.read_bytes(), place.secret).named(),
        "the digits of the key file": place.key.read_bytes()[13:77],
    }


@attempt("Keys stay in memory")
def in_memory(threat) -> None:
    """while prefs has a store open"""
    as_root()
    if not os.path.exists("/proc/self/smaps"):
        raise Skip("there is no /proc")
    place = place_with_secret().copy("memory")
    with place.running("watch") as process:
        if not until(place.shared.exists):
            raise Skip("prefs watch did not open the store")
        place.do("set", "other/name", "changed")
        limits = pathlib.Path(f"/proc/{process.pid}/limits").read_text()
        core = re.search(r"Max core file size +(\S+) +(\S+)", limits)
        owner = os.stat(f"/proc/{process.pid}/maps").st_uid
        outside, inside = [], 0
        for found in find(process.pid, secrets_of(place)):
            inside += 1
            if found.mapping.is_dumped:
                outside.append(f"{found.name}, {found.form}, in {found.mapping.line}")
        arguments = (
            pathlib.Path(f"/proc/{process.pid}/cmdline").read_bytes() + pathlib.Path(f"/proc/{process.pid}/environ").read_bytes()
        )
        words = [name for name, key in secrets_of(place).items() if key in arguments]
        threat.tried(
            "its whole memory searched for five keys",
            "; ".join(outside) or f"{inside} found, all of them in memory that dumps leave out", not outside and inside > 0,
        )
        threat.tried("its arguments and environment", "; ".join(words) or "no key", not words)
        threat.tried(
            "its limit of core dumps", f"{core[1]}, and for good {core[2]}; its entries in /proc are root's: {owner == 0}",
            core[1] == "0",
        )
        if subprocess.run(["sh", "-c", "command -v gcore"], capture_output=True).returncode == 0:
            dump = place.folder / "dump"
            run(["gcore", "-o", dump, str(process.pid)], env=os.environ)
            files = list(place.folder.glob("dump*"))
            found = [name for name, key in secrets_of(place).items() if files and key in files[0].read_bytes()]
            threat.tried(
                "a dump by gdb, which takes what the kernel's would",
                "; ".join(found) or f"no key in {files[0].stat().st_size >> 20} MiB" if files else "none was made",
                bool(files) and not found,
            )
    place = place_with_secret().copy("abort")
    words = ["sh", "-c", 'ulimit -c unlimited && exec "$@"', "sh", str(BINARIES / "prefs"), "watch", *map(str, place.options())]
    process = subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=place.home.environment, cwd=place.folder
    )
    opened = until(place.shared.exists)
    process.send_signal(signal.SIGABRT)
    _, status = os.waitpid(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    cores = [file.name for file in place.folder.iterdir() if "core" in file.name]
    threat.tried(
        "SIGABRT while it has the store open, where the limit of core dumps was lifted",
        f"dumped: {os.WCOREDUMP(status)}; {'; '.join(cores) or 'no core file'}",
        opened and not os.WCOREDUMP(status) and not cores,
    )


@attempt("Keys stay in memory")
def in_files(threat) -> None:
    """keys looked for in every file of the home"""
    person = Home("files")
    place = Place(person, "files")
    place.do("init")
    with place.with_log():
        for words in (
            ("set", "web/a", "1"), ("rotate",), ("set", "web/a", "2"), ("backup", place.folder / "backup.coffer"),
            ("export", "-o", place.folder / "out.json"),
        ):
            place.do(*words)
        files = [file for file in person.folder.rglob("*") if file.is_file() and file != place.key]
        found = found_in({name: key for name, key in secrets_of(place).items()}, files)
    threat.tried(
        f"five keys looked for in {len(files)} files: store, log, shared memory, backup, export",
        "; ".join(found) or "none is there", not found,
    )
