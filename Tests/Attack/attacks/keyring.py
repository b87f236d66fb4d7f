"""The Secret Service of `prefs keyring`, on a bus of its own, beside programs of the same user."""

from __future__ import annotations

import pathlib
import re
import shutil
import sys

from registry import attempt, untried
from samples import PASSPHRASE
from workshop import BINARIES, Home, NotAllowed, Skip, found_in, needs, run

SECRET = "sesame-of-keyring"
# Answers with the passphrase, after a while, and notes how it was started.
PINENTRY = f"""#!{sys.executable}
import os, pathlib, sys, time
folder = pathlib.Path(__file__).parent
with open(folder / "started", "a") as file:
    print(sys.argv, dict(os.environ), file=file)
print("OK", flush=True)
for line in sys.stdin:
    if line == "GETPIN\\n":
        time.sleep(2)
        print("D " + open(folder.parent / "answer").read(), flush=True)
    print("OK", flush=True)
"""


class Desk:
    """A store with one secret in its keyring, sealed under a passphrase."""

    def __init__(self) -> None:
        needs("dbus-run-session", "gdbus", "secret-tool")
        if b"without libsystemd" in run([BINARIES / "prefs", "keyring", "--help"]).out:
            raise Skip("this build has no Secret Service")
        self.home = Home("desk")
        self.bin = self.home.folder / "bin"
        self.bin.mkdir()
        self.answer = self.home.folder / "answer"
        self.answer.write_bytes(PASSPHRASE)
        pinentry = self.bin / "pinentry"
        pinentry.write_text(PINENTRY)
        pinentry.chmod(0o755)
        self.home.do("set", "machine/role", "test")
        self.home.do("seal", "keyring", "--vault-passphrase-fd", "0", "--cost", "14", input=PASSPHRASE)

    def session(self, script: str, *options: str) -> str:
        """What a script prints on a bus with the service, and what the service prints."""
        service = " ".join(["prefs", "keyring", *options])
        text = f"{service} 2>log & gdbus wait --session --timeout 60 org.freedesktop.secrets\n{script}\nkill $!; wait $! || true; cat log"
        # The bus does not take the home from HOME.
        environment = {
            "XDG_DATA_HOME": f"{self.home.folder}/.local/share", "PATH": f"{self.bin}:{BINARIES}:{self.home.environment['PATH']}",
        }
        done = run(["dbus-run-session", "--", "sh", "-uc", text], **self.home.options(environment))
        return done.text

    def unlocked(self, script: str, *options: str) -> str:
        self.home.do("unlock", "--vault-passphrase-fd", "0", input=PASSPHRASE)
        store = f"printf {SECRET} | secret-tool store --label=One server h\n"
        return self.session(store + script, *options)


@attempt("A program of the user reads all secrets")
def any_program(threat) -> None:
    said = Desk().unlocked("secret-tool lookup server h; echo", "--verbose")
    noted = re.search(r"(secret-tool) \(process \d+\) reads the secret", said)
    if SECRET not in said.splitlines()[0]:
        raise NotAllowed(f"it cannot be read at all: {said[:200]}")
    threat.limit("secret-tool reads one that it has not stored", "it gets it")
    threat.tried("whether that is noted, without the secret", noted.group(0) if noted else said[-200:], bool(noted) and said.count(SECRET) == 1)


@attempt("The name of a process sends commands")
def names(threat) -> None:
    desk = Desk()
    shutil.copy(shutil.which("secret-tool"), desk.bin / "x\x1b[2J\ny")
    said = desk.unlocked('"$(printf \'x\\033[2J\\ny\')" lookup server h; echo', "--verbose")
    noted = next((line for line in said.splitlines() if "reads the secret" in line), "")
    threat.tried("a program whose name clears the screen", noted[:60], "\x1b" not in said and "x\\u{1b}[2J\\ny" in noted)


@attempt("The vault stays unlocked")
def locked(threat) -> None:
    for what, script, options in (
        # Debian 12's secret-tool crashes when it has locked.
        ("prefs lock", "prefs lock", ()), ("a client that locks the collection", "(secret-tool lock; true) 2>/dev/null", ()),
        ("--lock-after 1s, and two seconds", "sleep 3", ("--lock-after", "1s")),
    ):
        # The answer of pinentry is wrong from here on.
        desk = Desk()
        said = desk.unlocked(f"echo wrong >{desk.answer}\n{script} >/dev/null\nsecret-tool lookup server h && echo; true", *options)
        threat.tried(f"a look-up after {what}", "it gets nothing" if SECRET not in said else said[:200], SECRET not in said)


@attempt("The passphrase is left behind")
def passphrase(threat) -> None:
    desk = Desk()
    said = desk.unlocked("prefs lock; secret-tool lookup server h; echo; cat /proc/$!/cmdline /proc/$!/environ | tr '\\0' ' '", "--verbose")
    if SECRET not in said:
        raise NotAllowed(f"pinentry does not unlock: {said[:200]}")
    desk.answer.unlink()
    files = [path for path in desk.home.folder.rglob("*") if path.is_file()]
    left = found_in({"the passphrase": PASSPHRASE}, files)
    threat.tried(
        f"{len(files)} files of the home, how pinentry was started, the arguments and variables of the service, its messages",
        left or "nothing of it", not left and PASSPHRASE.decode() not in said,
    )


@attempt("A client asks without end")
def dialogs(threat) -> None:
    desk = Desk()
    said = desk.unlocked('prefs lock; N=; for i in $(seq 20); do secret-tool lookup server h & N="$N $!"; done; wait $N')
    count = len((desk.bin / "started").read_text().splitlines())
    threat.tried("20 clients ask at once while it is locked", f"{count} dialog, {said.count(SECRET)} answers", count == 1 and said.count(SECRET) == 20)


untried("A dialog that another program shows looks like pinentry's", "nothing of the tool is involved")
