"""Which secrets are where in the memory of the programs, after use: the table of SECURITY.md."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pathlib
import secrets
import signal
import subprocess
import sys
import unittest
from collections.abc import Iterator

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Attack"))

from workshop import BINARIES, Home, ask, clean_up, processes, until

from coffer_reader.errors import CofferError
from coffer_reader.fleet import Fleet, Invitation, load_folder
from coffer_reader.keys import KeyFile, Passphrase
from forging import Keys
from memory import find, keys_of_vault
from program import Descriptor, Page

SECURITY = pathlib.Path(__file__).resolve().parents[2] / "SECURITY.md"
# How a secret is found, the best first.
ORDER = NOWHERE, PROTECTED, ORDINARY = "no", "protected", "ordinary"
COLUMNS = ("the store's key file", "keys of the store", "passphrase of the vault", "keys of the vault", "sealed value", "`Secret`", "text")


class Person(Home):
    """Someone with a vault, and a value of each kind."""

    def __init__(self) -> None:
        super().__init__("memory")
        self.binaries = str(BINARIES)
        self.values = {kind: f"{kind}-{secrets.token_hex(12)}" for kind in ("sealed", "secret", "text")}
        # As releases are linked: a symbol that is bound late has the registers of vectors, and what was copied through them, on the stack.
        self.environment["LD_BIND_NOW"] = "1"
        self.shared = self.store.with_name(self.store.name + "-shm")
        self.passphrase = f"passphrase-{secrets.token_hex(12)}"
        self.do("set", "open/text", self.values["text"])
        self.do("set", "open/token", "--secret", "-", input=self.values["secret"].encode())
        self.do("set", "closed/token", "--secret", "-", input=self.values["sealed"].encode())
        with Descriptor(self.passphrase) as descriptor:
            self.do("seal", "closed", "--vault-passphrase-fd", descriptor, fds=(descriptor,))
        self.needles = self.what_is_sought()

    def what_is_sought(self) -> dict[str, dict[str, bytes]]:
        key = KeyFile.read(self.key)
        copy = self.folder / "copy.coffer"
        self.do("backup", copy)
        vault = keys_of_vault(copy, key, Passphrase(self.passphrase.encode()))
        return dict(zip(COLUMNS, (
            {"key": key.material, "line": self.key.read_bytes().strip()},
            # A backup has other keys.
            Keys(self.store.read_bytes(), key).named(),
            {"passphrase": self.passphrase.encode()}, vault,
            *({kind: value.encode()} for kind, value in self.values.items()))))

    def unlock(self, *before: str) -> None:
        with Descriptor(self.passphrase) as descriptor:
            words = ["unlock", "--vault-passphrase-fd", str(descriptor)]
            subprocess.run(
                [*before, str(BINARIES / "prefs"), *words], pass_fds=(descriptor,), check=True, stderr=subprocess.DEVNULL, **self.options())

    def row(self, process: int) -> list[str]:
        """Where a process has what is sought: the worst place of each."""
        row = []
        for needles in self.needles.values():
            found = find(process, needles)
            row.append(ORDINARY if any(one.mapping.is_dumped for one in found) else PROTECTED if found else NOWHERE)
        return row


def printing(person: Person) -> Iterator[tuple[str, list[str]]]:
    """Into a pipe without room, so that it has read, and has not ended."""
    rows = []
    person.unlock()
    for place in ("closed/token", "open/token", "open/text"):
        reader, writer = os.pipe()
        size = fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        os.write(writer, bytes(size))
        child = subprocess.Popen([BINARIES / "prefs", "get", place], stdout=writer, **person.options())
        os.close(writer)
        waits = pathlib.Path(f"/proc/{child.pid}/wchan")
        if not until(lambda: "pipe" in waits.read_text()):
            raise AssertionError(f"prefs get {place} does not wait for room: {waits.read_text()}")
        rows.append(person.row(child.pid))
        os.close(reader)
        child.wait()
    person.do("lock")
    yield "`prefs get`, while it prints", [max(cells, key=ORDER.index) for cells in zip(*rows)]


def watching(person: Person) -> Iterator[tuple[str, list[str]]]:
    person.do("unset", "open/text", "open/token")
    with person.running("watch", "open", "--values", "--reveal") as child:
        if not until(person.shared.exists):
            raise AssertionError("prefs watch does not open the store")
        person.do("set", "open/text", person.values["text"])
        person.do("set", "open/token", "--secret", "-", input=person.values["secret"].encode())
        for kind in ("text", "secret"):
            line = child.stdout.readline()
            if person.values[kind].encode() not in line:
                raise AssertionError(f"prefs watch prints {line!r}")
        yield "`prefs watch --reveal`, after changes", person.row(child.pid)


def serving(person: Person) -> Iterator[tuple[str, list[str]]]:
    person.unlock()
    with person.running("serve", stdin=subprocess.PIPE) as child:
        child.stdout.readline()

        def get(collection: str, key: str) -> dict:
            request = {"id": 1, "do": "get", "collection": collection, "key": key, "reveal": True}
            return json.loads(ask(child, json.dumps(request))[0])["ok"]

        values = [get(*place)["value"] for place in (("closed", "token"), ("open", "token"), ("open", "text"))]
        if values != [{"$secret": person.values["sealed"]}, {"$secret": person.values["secret"]}, person.values["text"]]:
            raise AssertionError(f"prefs serve reads other values: {values}")
        yield "`prefs serve`, values read", person.row(child.pid)
        person.do("lock")
        if not until(lambda: "value" not in get("closed", "token")):
            raise AssertionError("prefs serve is not locked")
        yield "`prefs serve`, after `prefs lock`", person.row(child.pid)
        child.stdin.close()


def showing(person: Person) -> Iterator[tuple[str, list[str]]]:
    with contextlib.closing(Page(person)) as page:
        session = page.session()

        def call(name: str, request=None) -> bytes:
            status, _, body = page.call(name, request, session=session)
            if status != 200:
                raise AssertionError(f"{name}: status {status}, {body!r}")
            return body

        call("unlock", person.passphrase.encode())
        for collection, key in (("closed", "token"), ("open", "token")):
            call("reveal", {"collection": collection, "key": key})
        call("setting", {"collection": "open", "key": "text"})
        yield "`prefs ui`, secrets shown", person.row(page.process.pid)
        call("lock")
        yield "`prefs ui`, after Lock", person.row(page.process.pid)


def exchanged(carrier: pathlib.Path, invitation: Invitation) -> set[str]:
    """What another member finds there."""
    try:
        return {f"{record.collection}/{record.key}" for record in Fleet(load_folder(carrier), invitation).records}
    except CofferError:  # It reads while the program writes.
        return set()


def exchanging(person: Person) -> Iterator[tuple[str, list[str]]]:
    person.unlock()
    carrier = person.folder / "carrier"
    carrier.mkdir()
    person.do("fleet", "create", "team", "--at", f"file://{carrier}", "-c", "open", "-c", "closed")
    invitation = Invitation.parse(person.do("fleet", "invite", "--role", "reader", "auditor").decode().strip())
    with person.running("fleet", "run") as child:
        for place, kind in (("open/again", "text"), ("closed/again", "sealed")):
            person.do("set", place, "--secret", "-", input=person.values[kind].encode())
            if not until(lambda: place in exchanged(carrier, invitation)):
                raise AssertionError(f"prefs fleet run does not exchange {place}")
        yield "`prefs fleet run`, after exchanges", person.row(child.pid)
        person.do("lock")
        if not until(lambda: not find(child.pid, person.needles["keys of the vault"])):
            raise AssertionError("prefs fleet run is not locked")
        yield "`prefs fleet run`, after `prefs lock`", person.row(child.pid)


def keeping(person: Person) -> Iterator[tuple[str, list[str]]]:
    """The agent, where there is no keyring of the kernel."""
    person.unlock(str(BINARIES / "StoreWorker"), "without-keyring", "-", "-")
    (agent,) = processes(person)
    yield "the agent of `prefs unlock`", person.row(agent)
    os.kill(agent, signal.SIGTERM)


def said() -> dict[str, list[str]]:
    """The rows of SECURITY.md."""
    section = SECURITY.read_text().split("### What is where in memory\n")[1].split("\n### ")[0]
    head, _, *rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    if head[1:] != list(COLUMNS):
        raise AssertionError(f"SECURITY.md has other columns: {head}")
    return {name: cells for name, *cells in rows}


@unittest.skipIf(os.geteuid() != 0, "root alone may read the memory of the programs")
class Table(unittest.TestCase):
    def test_says_where_the_secrets_are(self) -> None:
        self.addCleanup(clean_up)
        table, seen = said(), set()
        expected = {column for cells in table.values() for column, cell in zip(COLUMNS, cells) if cell != NOWHERE}
        for use in (printing, watching, serving, showing, exchanging, keeping):
            person = Person()
            for name, row in use(person):
                with self.subTest(name):
                    worse = [
                        f"{column} is {found}, and not {allowed}"
                        for column, found, allowed in zip(COLUMNS, row, table.pop(name)) if ORDER.index(found) > ORDER.index(allowed)]
                    self.assertEqual(worse, [])
                seen |= {column for column, found in zip(COLUMNS, row) if found != NOWHERE}
        self.assertEqual(table, {}, "SECURITY.md has rows that nothing shows")
        # Else nothing would be found anywhere.
        self.assertEqual(seen, expected)
        self.assertEqual(set(person.row(os.getpid())), {ORDINARY})


if __name__ == "__main__":
    unittest.main()
