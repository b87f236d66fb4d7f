#!/usr/bin/env python3
"""Whether FORMAT.md says everything: a reader that knows nothing else reads what Coffer writes, and the reverse.

    test_interop.py --bin DIR        (DIR holds the built StoreWorker and prefs)
    COFFER_BIN=DIR python3 -m unittest
"""

from __future__ import annotations

import base64
import concurrent.futures
import contextlib
import hashlib
import json
import math
import os
import pathlib
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import urllib.parse
import uuid
from typing import Any, Iterator, Optional

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
READER = HERE.parents[1] / "clients/reader"
sys.path[:0] = [str(HERE), str(READER)]

import coffer_reader as reader  # noqa: E402
import sealing  # noqa: E402
from coffer_reader.changes import decode_changed_keys, log_problems, split_changed_keys  # noqa: E402
from coffer_reader.ciphers import XAES, hkdf  # noqa: E402
from coffer_reader.envelope import ARGON2ID, PAGE, PBKDF2, SCRYPT, Argon2id  # noqa: E402
from coffer_reader.pages import SQLITE_MAGIC, USABLE, Log  # noqa: E402
from coffer_reader.values import (  # noqa: E402
    ARRAY, BOOL, DATA, DATE, DEEPEST, DICTIONARY, DOUBLE, INT, JSON_KIND, NULL, SEALED, STRING, UINT64, URL_KIND, UUID, decode_value,
)
from coffer_reader.vault import unseal  # noqa: E402
from cryptography.exceptions import InvalidTag  # noqa: E402

BIN = pathlib.Path(os.environ.get("COFFER_BIN", HERE / "../../.build/debug")).resolve()
ACKNOWLEDGED_TEXT = "acknowledged value " * 20
TYPES = {"dictionary": "dict", "uint64": "int"}
PATIENCE = 120  # seconds, for any one program
FORMAT = (HERE / "../../FORMAT.md").read_text("utf-8")

# MARK: - Programs


class Workshop:
    """A folder with a home of its own, which goes away at the end."""

    def __init__(self) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="coffer-interop-"))
        self._made = 0
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PREFS_", "XDG_")) and name != "CREDENTIALS_DIRECTORY"
        }
        self.environment["PYTHONPATH"] = str(READER)
        for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"):
            place = self.folder / "home" / name.lower()
            place.mkdir(parents=True, mode=0o700)
            self.environment[name] = str(place)

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def new_folder(self) -> pathlib.Path:
        self._made += 1
        folder = self.folder / f"folder {self._made}"
        folder.mkdir(mode=0o700)
        return folder

    def run(self, *arguments: Any, passphrase: Optional[bytes] = None) -> subprocess.CompletedProcess:
        """Runs a program; it may read a passphrase from descriptor 0."""
        return subprocess.run(
            [str(argument) for argument in arguments],
            env=self.environment, cwd=self.folder, input=passphrase or b"", capture_output=True, timeout=PATIENCE,
        )

    def worker(self, command: str, place: "Place", *arguments: Any) -> None:
        done = self.run(BIN / "StoreWorker", command, place.store, place.key, *arguments)
        if done.returncode != 0:
            raise AssertionError(f"StoreWorker {command} ended with {done.returncode}: {done.stderr.decode()}")


class Place:
    """A folder with a store, its log and its key file."""

    def __init__(self, folder: Optional[pathlib.Path] = None):
        self.folder = folder or WORKSHOP.new_folder()
        self.store = self.folder / "settings.coffer"
        self.log = self.folder / "settings.coffer-wal"
        self.key = self.folder / "key"
        self.plain = self.folder / "plain.db"

    def copy(self) -> "Place":
        """As after a crash: store, log and key file."""
        other = Place()
        for name in ("store", "log", "key"):
            if getattr(self, name).exists():
                shutil.copy(getattr(self, name), getattr(other, name))
        return other

    def write(self, path: pathlib.Path, data: bytes) -> None:
        path.write_bytes(data)
        path.chmod(0o600)

    def flip(self, path: pathlib.Path, offset: int, bit: int = 0) -> None:
        data = bytearray(path.read_bytes())
        data[offset] ^= 1 << bit
        self.write(path, bytes(data))

    # MARK: Coffer

    def prefs(self, *arguments: Any, passphrase: Optional[bytes] = None) -> subprocess.CompletedProcess:
        secret = ["--key-file", self.key] if passphrase is None else ["--passphrase-fd", "0"]
        return WORKSHOP.run(
            BIN / "prefs", *arguments[:1], "--store", self.store, *secret, "--no-input", *arguments[1:],
            passphrase=passphrase,
        )

    def ask(self, *arguments: Any, passphrase: Optional[bytes] = None) -> bytes:
        """What prefs answers, which has to succeed."""
        done = self.prefs(*arguments, passphrase=passphrase)
        if done.returncode != 0:
            raise AssertionError(f"prefs {arguments} ended with {done.returncode}: {done.stderr.decode()}")
        return done.stdout

    def all_of_prefs(self, passphrase: Optional[bytes] = None) -> dict:
        """What prefs says of every item, by collection and key. It opens the store, and so takes the log in."""
        found = {}
        for collection in json.loads(self.ask("collections", "--json", passphrase=passphrase)):
            listed = self.ask("list", "-l", "--values", "--json", "-c", collection, passphrase=passphrase)
            for item in json.loads(listed):
                found[item["collection"], item["key"]] = item
        return found

    def worker_says(self, command: str, *arguments: Any) -> str:
        done = WORKSHOP.run(BIN / "StoreWorker", command, self.store, self.key, *arguments)
        if done.returncode != 0:
            raise AssertionError(f"StoreWorker {command} ended with {done.returncode}: {done.stderr.decode()}")
        return done.stdout.decode()

    # MARK: The reader

    def read(
        self, secret: Optional[reader.Key] = None, vault_secret: Optional[reader.Key] = None
    ) -> "Contents":
        """What the reader makes of the store."""
        self.plain.unlink(missing_ok=True)
        store = reader.Store(self.store, secret or reader.KeyFile.read(self.key))
        store.write_plain(self.plain, vault_secret)
        return Contents(store, self.plain)

    def run_reader(self, *secret: Any, passphrase: Optional[bytes] = None) -> subprocess.CompletedProcess:
        if not secret:
            secret = ("--key-file", self.key) if passphrase is None else ("--passphrase-fd", 0)
        elif secret[0].startswith("--vault"):
            secret = ("--key-file", self.key, *secret)
        return WORKSHOP.run(
            sys.executable, "-B", "-m", "coffer_reader", self.store, *secret, "-o", self.plain,
            passphrase=passphrase,
        )


class Contents:
    """Everything in a plain database."""

    def __init__(self, store: reader.Store, path: pathlib.Path):
        self.log = store.log
        self.envelope = store.envelope
        self.page_count = store.page_count
        with contextlib.closing(sqlite3.connect(path)) as plain:
            self.integrity = plain.execute("PRAGMA integrity_check").fetchall()
            found = reader.Contents(plain)
            self.collections = found.collections()
            self.items = {(item.collection, item.key): item for item in found.items()}
            self.history = list(found.history())
            self.history_limits = found.history_limits()
            self.changes = list(found.changes())
            self.log_problems = found.log_problems()
            self.declarations = found.declarations()

    def value(self, collection: str, key: str) -> Any:
        return self.items[collection, key].value


WORKSHOP: Workshop
CRASHED: Place  # with an unfinished log; tests take copies of it
CONTENTS: "Contents"  # what the reader makes of it
ACKNOWLEDGED: int


def setUpModule() -> None:
    global WORKSHOP, CRASHED, CONTENTS, ACKNOWLEDGED
    for name in ("prefs", "StoreWorker"):
        if not os.access(BIN / name, os.X_OK):
            raise RuntimeError(f"There is no {name} in {BIN}.")
    WORKSHOP = Workshop()
    place = Place()
    place.ask("init")
    WORKSHOP.worker("set-samples", place)
    WORKSHOP.worker("insert", place, "row ", 300)
    for number in range(4):
        place.ask("set", f"gone/{number}", "soon")
    place.ask("unset", "-c", "gone", "--all", "--purge", "--force")
    place.ask("set", "typed/short-lived", "soon")
    place.ask("unset", "typed/short-lived")
    place.ask("set", "typed/short-lived", "again")
    place.ask("set", "theme", "of the default collection")
    place.ask("set", "-c", "odd names 🗝", "a/b\n\tc", "slash, line feed, tab")
    # A command that sets refuses the empty key, which an empty variable of a shell leaves; a file may have it.
    named = place.folder / "unnamed.json"
    named.write_text(json.dumps({"": "no name at all"}))
    place.ask("import", named, "-c", "odd names 🗝")
    place.ask("set", "typed/date", "--date", "2026-01-31T08:30:00.123Z")
    place.ask("set", "typed/url", "--url", "https://example.org/?q=%20")
    place.ask("set", "typed/uuid", "--uuid", str(uuid.UUID(int=7)))
    place.ask("set", "typed/array", "--array", '["x", 1, 2.5, true, {"k": []}]')
    place.ask("set", "typed/json", "--type", "json", '{"b": [1.5e300, null], "a": "é"}')
    for number in range(5):
        place.ask("set", "typed/often", "--int", number)
    WORKSHOP.worker("keep-history", place, "kept earlier", 40)
    WORKSHOP.worker("rename", place, 3)
    large = place.folder / "large"
    large.write_bytes(large_data())
    place.ask("set", "typed/large", "--data", "--value-file", large)
    ACKNOWLEDGED = crash(place, "kept ", 60)
    CRASHED = place
    CONTENTS = place.read()


def tearDownModule() -> None:
    WORKSHOP.remove()


def large_data() -> bytes:
    """Much more than a page."""
    return b"".join(hashlib.sha256(bytes([number])).digest() for number in range(250)) * 20


def crash(place: Place, prefix: str, lines: int) -> int:
    """Kills a writer after so many acknowledged commits; returns how many it acknowledged."""
    arguments = [BIN / "StoreWorker", "acknowledge", place.store, place.key, prefix]
    worker = subprocess.Popen(
        [str(argument) for argument in arguments], env=WORKSHOP.environment, stdout=subprocess.PIPE
    )
    try:
        found = [worker.stdout.readline() for _ in range(lines)]
        worker.kill()
        found += worker.stdout.read().splitlines(keepends=True)
    finally:
        worker.kill()
        worker.wait(PATIENCE)
        worker.stdout.close()
    numbers = [int(line) for line in found if line.endswith(b"\n")]
    assert numbers == list(range(len(numbers))) and len(numbers) >= lines
    return len(numbers)


# MARK: - Comparing


def seconds_of(text: str) -> float:
    """Seconds since 2001 of a time as prefs prints it, in a calendar that has a year 0."""
    match = re.fullmatch(r"(-?\d+)-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)\.(\d{3})Z", text)
    if match is None:
        raise AssertionError(f"{text} is not a time")
    year, month, day, hour, minute, second, thousandth = map(int, match.groups())
    years, months = (year - 1, month + 9) if month < 3 else (year, month - 3)
    days = 365 * years + years // 4 - years // 100 + years // 400 + (153 * months + 2) // 5 + day
    days -= 365 * 2000 + 500 - 20 + 5 + 307  # 2001-01-01
    return days * 86_400 + hour * 3_600 + minute * 60 + second + thousandth / 1_000


def is_same(ours: Any, theirs: Any) -> bool:
    """Whether a value is what prefs prints as JSON."""
    if isinstance(ours, reader.JSON):
        return is_same(ours.value, theirs)
    if isinstance(ours, reader.Date):
        return abs(seconds_of(theirs) - ours.seconds) <= 0.001
    if isinstance(ours, reader.URL):
        return theirs == (ours.text if ours.base is None else urllib.parse.urljoin(ours.base, ours.text))
    if isinstance(ours, uuid.UUID):
        return theirs == str(ours).upper()
    if isinstance(ours, bytes):
        return base64.b64decode(theirs, validate=True) == ours
    if isinstance(ours, list):
        return isinstance(theirs, list) and len(ours) == len(theirs) and all(map(is_same, ours, theirs))
    if isinstance(ours, dict):
        return list(ours) == list(theirs) and all(is_same(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, bool) or ours is None or isinstance(ours, str):
        return ours is theirs or (isinstance(ours, str) and ours == theirs)
    if isinstance(ours, int):
        # Numbers that JSON readers round are printed as strings.
        return not isinstance(theirs, bool) and theirs in (ours, str(ours))
    if not math.isfinite(ours):
        return theirs == str(ours)
    return isinstance(theirs, float) and struct.pack(">d", ours) == struct.pack(">d", theirs)


class InteropTestCase(unittest.TestCase):
    maxDiff = 2_000

    def assertAgrees(self, contents: Contents, listed: dict) -> None:
        """Every collection, key, type, size, version, time and value."""
        self.assertEqual(contents.integrity, [("ok",)])
        self.assertEqual(contents.items.keys(), listed.keys())
        for name, item in contents.items.items():
            theirs = listed[name]
            self.assertEqual(TYPES.get(item.kind, item.kind), theirs["type"], name)
            self.assertEqual(item.version, theirs["version"], name)
            self.assertEqual(item.size, theirs["size"], name)
            modified = round((seconds_of(theirs["modified"]) + 978_307_200) * 1_000)
            self.assertEqual(item.modified, modified, name)
            self.assertTrue(is_same(item.value, theirs["value"]), f"{name}: {item.value!r}, {theirs['value']!r}")

    def assertRefuses(self, place: Place, code: int, *secret: Any, passphrase: Optional[bytes] = None) -> str:
        """The command line says why in one sentence, ends with `code`, and leaves nothing behind."""
        before = sorted(place.folder.iterdir())
        done = place.run_reader(*secret, passphrase=passphrase)
        message = done.stderr.decode()
        self.assertEqual(done.returncode, code, message)
        self.assertRegex(message, r"\Acoffer-reader: [A-Z/][^\n]*\.\n\Z")
        self.assertEqual(done.stdout, b"")
        self.assertEqual(sorted(place.folder.iterdir()), before)
        return message

    def assertBothRefuse(self, place: Place, code: int, passphrase: Optional[bytes] = None) -> None:
        self.assertRefuses(place, code, passphrase=passphrase)
        done = place.prefs("collections", passphrase=passphrase)
        self.assertEqual(done.returncode, code, f"prefs: {done.stderr.decode()}")


# MARK: - Reading what Coffer wrote


class AReaderThatKnowsOnlyTheSpecification(InteropTestCase):
    def test_finds_an_unfinished_log_after_a_kill(self) -> None:
        self.assertGreater(CRASHED.log.stat().st_size, 32)
        log = CONTENTS.log
        self.assertGreaterEqual(log.commits, ACKNOWLEDGED)

    def test_finds_in_store_and_log_what_prefs_finds(self) -> None:
        contents = CONTENTS
        listed = CRASHED.copy().all_of_prefs()
        self.assertGreater(len(listed), 400)
        self.assertAgrees(contents, listed)
        self.assertEqual(set(contents.collections.values()), {name for name, _ in listed})
        self.assertEqual(set(contents.history_limits), {"kept earlier"})

    def test_finds_what_settings_were_declared_to_be(self) -> None:
        self.assertEqual(
            [(found.collection, found.key, found.application, found.version) for found in CONTENTS.declarations],
            [("shop", f"new{number}", "shop", "2") for number in range(3)])
        self.assertEqual(
            CONTENTS.declarations[0].members,
            {"collection": "shop", "name": "new0", "type": "int", "default": -1,
             "formerly": [{"collection": "shop", "name": "old0"}]})

    def test_finds_what_prefs_finds_after_the_log_was_taken_in(self) -> None:
        place = CRASHED.copy()
        before = CONTENTS
        listed = place.all_of_prefs()
        after = place.read()
        self.assertFalse(place.log.exists())
        self.assertAgrees(after, listed)
        self.assertEqual(before.changes, after.changes)

    def test_finds_every_acknowledged_commit(self) -> None:
        contents = CONTENTS
        for number in range(ACKNOWLEDGED):
            self.assertEqual(contents.value("kept", f"kept {number}"), f"{ACKNOWLEDGED_TEXT}{number}")

    def test_finds_each_value_as_prefs_prints_it_alone(self) -> None:
        contents, place = CONTENTS, CRASHED.copy()
        for (collection, key), item in contents.items.items():
            if collection not in ("samples", "typed", "odd names 🗝", ""):
                continue
            told = json.loads(place.ask("get", "--json", "-c", collection, "--", key))
            self.assertTrue(is_same(item.value, told["value"]), f"{key}: {item.value!r}, {told['value']!r}")
            self.assertEqual((item.version, told["collection"], told["key"]), (told["version"], collection, key))
            if item.kind == "data":
                self.assertEqual(place.ask("get", "-n", "-c", collection, "--", key), item.value)

    def test_finds_every_sample_bit_by_bit(self) -> None:
        found = {key: item for (collection, key), item in CONTENTS.items.items() if collection == "samples"}
        self.assertEqual(found.keys(), SAMPLES.keys())
        for key, (kind, value) in SAMPLES.items():
            self.assertEqual(found[key].kind, kind, key)
            self.assertEqual(repr(found[key].value), repr(value), key)
            self.assertEqual(found[key].metadata, None)

    def test_finds_values_that_fill_many_pages(self) -> None:
        self.assertEqual(CONTENTS.value("typed", "large"), large_data())

    def test_finds_the_change_log_chained_and_sees_what_is_done_to_it(self) -> None:
        self.assertEqual(CONTENTS.log_problems, [])
        place = CRASHED.copy()
        place.read()
        with contextlib.closing(sqlite3.connect(place.plain)) as plain:
            plain.text_factory = bytes
            for attack, problem in (
                ("DELETE FROM changes WHERE sequence = 3", "commits are missing before 4"),
                ("UPDATE changes SET time = time + 1 WHERE sequence = 3", "commit 3, or what was before it, was changed"),
                ("UPDATE changes SET author = 'x' WHERE sequence = 3", "commit 3, or what was before it, was changed"),
                ("UPDATE changes SET digest = x'00' WHERE sequence = 3", "commit 3, or what was before it, was changed"),
                ("UPDATE changes SET action = 'x' WHERE sequence = 3", "commit 3, or what was before it, was changed"),
            ):
                plain.execute(attack)
                self.assertEqual(log_problems(plain), [problem])
                plain.rollback()
            rows = plain.execute("SELECT sequence, keys FROM changes WHERE sequence > 3 ORDER BY sequence").fetchall()
            for sequence, keys in rows:
                first, parts = split_changed_keys(keys)
                if len(parts) == 1 and parts[0][2] != b"\0":
                    break
            collection, form, _ = parts[0]
            emptied = bytes([first]) + sealing.varint(collection) + bytes([form | 2, 0])
            plain.execute("UPDATE changes SET keys = ? WHERE sequence = ?", (emptied, sequence))
            self.assertEqual(
                log_problems(plain),
                [f"keys were taken out of commit {sequence}, and nothing erased collection {collection}"])
            plain.rollback()

    def test_finds_in_the_change_log_how_everything_came_about(self) -> None:
        there: dict = {}  # the versions of the keys of each collection: the last commit that changed them
        total = 0
        for expected, change in enumerate(CONTENTS.changes):
            self.assertEqual(change.sequence, expected)
            self.assertEqual(len(change.noise), 16)
            for part in change.collections:
                versions = there.setdefault(part.collection, {})
                if part.cleared:
                    versions.clear()
                for key in part.keys:
                    self.assertTrue(key.object_changed)
                    if key.what == "removed":
                        versions.pop(key.key)
                        continue
                    self.assertEqual(key.what, "updated" if key.key in versions else "inserted")
                    versions[key.key] = change.sequence
            # A row that lost the keys of an erased collection keeps the total it was written with.
            if any(part.more for part in change.collections):
                self.assertGreater(change.total - total, change.size)
            else:
                self.assertEqual(change.total - total, change.size)
            total = change.total
        expected = {
            (CONTENTS.collections[collection], key): version
            for collection, versions in there.items()
            for key, version in versions.items()
        }
        self.assertEqual(expected, {name: item.version for name, item in CONTENTS.items.items()})
        self.assertEqual(len({change.noise for change in CONTENTS.changes}), len(CONTENTS.changes))
        kinds = {key.what for change in CONTENTS.changes for part in change.collections for key in part.keys}
        self.assertEqual(kinds, {"inserted", "updated", "removed"})

    def test_finds_the_earlier_values_that_the_change_log_tells_of(self) -> None:
        name, limits = next(iter(CONTENTS.history_limits.items()))
        self.assertEqual((limits.count, limits.age), (32, 90 * 86_400_000))
        collection, = (id for id, found in CONTENTS.collections.items() if found == name)
        expected: dict = {}  # key: where its values began and ended
        for change in CONTENTS.changes:
            for part in change.collections:
                for key in part.keys if part.collection == collection else ():
                    story = expected.setdefault(key.key, [])
                    if key.what != "inserted":
                        story[-1][1] = change.sequence
                    if key.what != "removed":
                        story.append([change.sequence, None])
        found: dict = {}
        for earlier in CONTENTS.history:
            item = earlier.item
            self.assertEqual(item.collection, name)
            self.assertEqual(item.modified, CONTENTS.changes[item.version].time)
            self.assertEqual(earlier.time, CONTENTS.changes[earlier.ended].time)
            found.setdefault(item.key, []).append([item.version, earlier.ended])
        self.assertEqual(found["gone"], expected["gone"][-limits.count :])
        self.assertEqual(found["there"], expected["there"][:-1])
        self.assertEqual(found.keys(), expected.keys())
        self.assertEqual(CONTENTS.items[name, "there"].version, expected["there"][-1][0])
        gone = [earlier.item for earlier in CONTENTS.history if earlier.item.key == "gone"]
        self.assertEqual([item.value for item in gone], list(range(40 - limits.count, 40)))
        self.assertEqual([item.metadata for item in gone], [f"metadata {item.value}" for item in gone])

    def test_finds_in_the_change_log_only_the_number_of_a_removed_collection(self) -> None:
        parts = [
            part
            for change in CONTENTS.changes
            for part in change.collections
            if part.collection not in CONTENTS.collections
        ]
        self.assertEqual(len({part.collection for part in parts}), 1)
        self.assertTrue(parts[-1].cleared)
        self.assertTrue(all(part.keys == () for part in parts))
        self.assertTrue(all(part.more for part in parts[:-1]))

    def test_finds_in_the_change_log_that_more_keys_changed_than_are_listed(self) -> None:
        place = Place()
        place.ask("init")
        WORKSHOP.worker("insert", place, "row ", 1_500)
        place.ask("unset", "-c", "numbers", "--match", "row 2*")
        place.ask("unset", "-c", "numbers", "--match", "row *")
        contents = place.read()
        self.assertAgrees(contents, {})
        few, = contents.changes[-2].collections
        many, = contents.changes[-1].collections
        self.assertEqual((few.cleared, few.more, len(few.keys)), (False, False, 1 + 10 + 100))
        self.assertEqual({key.what for key in few.keys}, {"removed"})
        self.assertFalse(many.cleared)
        self.assertEqual(many.more, len(many.keys) < 1_500 - 111)

    def test_reads_a_log_that_was_begun_anew(self) -> None:
        # After about a thousand frames the log is taken in and begins again, over what is left of it.
        place = CRASHED.copy()
        for _ in range(5):
            crash(place, "again ", 700)
            log = place.read().log
            if log.commits > 0 and log.committed_frames * Log.FRAME + 32 < place.log.stat().st_size:
                break
        else:
            self.fail("The log never restarted.")
        self.assertAgrees(place.read(), place.all_of_prefs())

    def test_reads_what_a_program_makes_with_a_key_file_of_its_own(self) -> None:
        place = Place()
        WORKSHOP.worker("create", place)
        contents = place.read()
        self.assertAgrees(contents, place.all_of_prefs())
        self.assertEqual([item.value for item in contents.items.values()], [True])
        self.assertRegex(place.key.read_bytes(), rb"\Acoffer-key-1:[0-9a-f]{64}\n\Z")

    def test_reads_a_store_with_a_passphrase(self) -> None:
        secrets = {
            "correct horse battery staple": "correct horse battery staple ",
            "zwei\nZeilen": "zwei\nZeilen\n\n",
            "caf\u00e9 🗝": "cafe\u0301 🗝",
        }
        for right, wrong in secrets.items():
            place, secret = Place(), right.encode()
            place.ask("init", "--passphrase", passphrase=secret + b"\n")
            place.ask("set", "a/b", "c", passphrase=secret)
            contents = place.read(reader.Passphrase(secret))
            self.assertEqual(contents.value("a", "b"), "c")
            slot, = contents.envelope.slots
            self.assertEqual((slot.kind, slot.stretching), (2, SCRYPT))
            self.assertBothRefuse(place, 5, passphrase=wrong.encode())
        self.assertBothRefuse(place, 6, passphrase=b"")
        self.assertAgrees(contents, place.all_of_prefs(passphrase=secret))

    def test_reads_a_store_by_each_of_its_slots_after_its_keys_were_changed(self) -> None:
        place = CRASHED.copy()
        before = place.read()
        told = place.worker_says("change-keys", "a label of mine")
        recovery_key = told.splitlines()[-1]
        self.assertRegex(recovery_key, r"\A([0-9A-HJKMNP-TV-Z]{5}-){7}[0-9A-HJKMNP-TV-Z]{5}\Z")
        for text in (recovery_key, recovery_key.lower().replace("-", " ").replace("0", "o")):
            contents = place.read(reader.RecoveryKey.parse(text))
            # By their texts: one is not a number, and so equals nothing.
            self.assertEqual(sorted(map(repr, contents.items.items())), sorted(map(repr, before.items.items())))
        envelope = contents.envelope
        self.assertEqual([(slot.kind, slot.label) for slot in envelope.slots], [(1, "a label of mine"), (3, "paper"), (4, "")])
        # Of another epoch and another root key, and nothing of the old ones is left.
        self.assertEqual([epoch.number for epoch in envelope.epochs], [before.envelope.epochs[-1].number + 1])
        self.assertGreater(envelope.sequence, before.envelope.sequence)
        secret = reader.KeyFile.read(place.key)
        former, present = before.envelope.root_key(secret), envelope.root_key(secret)
        self.assertNotEqual(present, former)
        # The old root key vouches for the new one, and its records can still be read.
        self.assertTrue(before.envelope.is_succeeded_by(envelope, former, present))
        self.assertFalse(before.envelope.is_succeeded_by(envelope, former, former))
        self.assertIsNone(before.envelope.former_witness_key(former))
        self.assertEqual(
            envelope.former_witness_key(present), hkdf(former, envelope.store_id, "coffer v1 witness"))
        old = place.store.read_bytes()
        for record in before.envelope.epochs:
            self.assertNotIn(record.wrapped, old)
        place.plain.unlink()
        done = place.run_reader("--recovery-key-fd", 0, passphrase=recovery_key.encode())
        self.assertEqual(done.returncode, 0, done.stderr)
        wrong = recovery_key[:-1] + ("0" if recovery_key[-1] != "0" else "1")
        self.assertEqual(place.run_reader("--recovery-key-fd", 0, passphrase=wrong.encode()).returncode, 6)

    def test_writes_a_database_that_only_its_owner_can_read_and_other_tools_open(self) -> None:
        place = CRASHED.copy()
        done = place.run_reader()
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))
        self.assertEqual(place.plain.stat().st_mode & 0o777, 0o600)
        self.assertEqual(place.plain.read_bytes()[18:21], bytes([1, 1, 48]))
        plain = sqlite3.connect(place.plain)
        self.assertEqual(plain.execute("PRAGMA journal_mode").fetchone(), ("delete",))
        self.assertGreater(plain.execute("SELECT count(*) FROM items").fetchone()[0], 400)
        plain.close()
        for start in range(0, place.plain.stat().st_size, PAGE):
            page = place.plain.read_bytes()[start : start + PAGE]
            self.assertEqual(page[USABLE :], bytes(48))


SAMPLES = {
    "string": ("string", "dark"),
    "string.empty": ("string", ""),
    "string.nul": ("string", "a\0b"),
    "string.unicode": ("string", "cafe\u0301 🗝"),
    "int": ("int", 42),
    "int.min": ("int", -(2**63)),
    "int.max": ("int", 2**63 - 1),
    "uint64.max": ("uint64", 2**64 - 1),
    "int8": ("int", -128),
    "bool.true": ("bool", True),
    "bool.false": ("bool", False),
    "double": ("double", 12.34),
    "double.whole": ("double", 1.0),
    "double.nan": ("double", math.nan),
    "double.infinity": ("double", math.inf),
    "double.negativeInfinity": ("double", -math.inf),
    "double.negativeZero": ("double", -0.0),
    "double.least": ("double", 5e-324),
    "float": ("double", struct.unpack(">f", struct.pack(">f", 0.1))[0]),
    "data": ("data", bytes([0, 1, 2, 255])),
    "data.empty": ("data", b""),
    "date": ("date", reader.Date(812_345_678.901_234_5)),
    "date.past": ("date", reader.Date(-63_114_076_800.0)),
    "url": ("url", reader.URL("https://example.org/a?b=c#d")),
    "url.file": ("url", reader.URL("file:///tmp/x%20y")),
    "url.relative": ("url", reader.URL("b/c", "https://example.org/a/")),
    "uuid": ("uuid", uuid.UUID("6BA7B810-9DAD-11D1-80B4-00C04FD430C8")),
    "array.strings": ("array", ["b", "a", ""]),
    "array.empty": ("array", []),
    "array.nested": ("array", [[1, 2], []]),
    "array.optional": ("array", [1, None, 3]),
    "array.dates": ("array", [reader.Date(0.5 - 978_307_200)]),
    "dict.ints": ("dictionary", {"one": 1, "two": 2}),
    "dict.nested": ("dictionary", {"a": {"b": b"\x07"}}),
    "codable": ("json", reader.JSON('{"host":"h","ports":[1,65535],"ratio":-0,"since":63113904000}')),
    "codable.array": ("json", reader.JSON('[{"host":"é","note":"n","ports":[],"ratio":"inf","since":-63114076800}]')),
    "codable.enum": ("string", "dark"),
    "value": ("dictionary", {"mixed": [1, 2.5, True, "x", None, uuid.UUID("6BA7B810-9DAD-11D1-80B4-00C04FD430C8")]}),
}


# MARK: - Keys


class TheKey(InteropTestCase):
    def test_has_to_be_this_stores(self) -> None:
        place = CRASHED.copy()
        place.write(place.key, b"coffer-key-1:" + b"5" * 64 + b"\n")
        self.assertBothRefuse(place, 5)

    def test_has_to_be_of_a_kind_that_the_store_has_a_slot_for(self) -> None:
        self.assertBothRefuse(CRASHED.copy(), 5, passphrase=b"correct horse battery staple")

    def test_is_read_from_every_form_of_key_file(self) -> None:
        digits = CRASHED.key.read_bytes()[13:77]
        forms = [
            b"coffer-key-1:" + digits.upper() + b"\n", b"coffer-key-1:" + digits + b" \r\n",
            b"coffer-key-1:" + digits + b"  \n", b"coffer-key-1:" + digits, bytes.fromhex(digits.decode()),
        ]
        for form in forms:
            place = CRASHED.copy()
            place.write(place.key, form)
            self.assertEqual(place.read().value("samples", "int"), 42)
            self.assertEqual(place.ask("get", "samples/int"), b"42\n", form)

    def test_is_missed(self) -> None:
        place = CRASHED.copy()
        place.key.unlink()
        self.assertBothRefuse(place, 6)

    def test_is_no_text_of_another_kind(self) -> None:
        digits = CRASHED.key.read_bytes()[13:77]
        for text in (b"", b"key\n", b"coffer-key-1:" + digits[1:] + b"\n", b"coffer-key-2:" + digits + b"\n",
                     b"coffer-key-1:" + digits[:-1] + b"g\n", b"coffer-key-1: " + digits + b"\n"):
            place = CRASHED.copy()
            place.write(place.key, text)
            self.assertRefuses(place, 6)
            self.assertNotEqual(place.prefs("collections").returncode, 0, text)


# MARK: - Vault


class ASealedCollection(InteropTestCase):
    PASSPHRASE = b"correct horse battery staple"

    @classmethod
    def setUpClass(cls) -> None:
        """A store with every kind of value in a sealed collection, earlier ones, and the same values before they were."""
        cls.place = Place()
        cls.place.ask("init")
        WORKSHOP.worker("set-samples", cls.place)
        cls.before = cls.place.read()
        cls.vault_key = cls.place.folder / "vault-key"
        cls.place.write(cls.vault_key, b"coffer-key-1:" + os.urandom(32).hex().encode() + b"\n")
        WORKSHOP.worker("make-vault", cls.place, cls.vault_key, "samples")
        WORKSHOP.worker("add-vault-passphrase", cls.place, cls.vault_key, cls.PASSPHRASE.decode())
        WORKSHOP.worker("rotate-vault", cls.place, cls.vault_key, cls.PASSPHRASE.decode())
        WORKSHOP.worker("keep-sealed", cls.place, cls.vault_key, "samples", "token", 5)
        cls.secret = reader.KeyFile.read(cls.vault_key)

    def setUp(self) -> None:
        self.place.plain.unlink(missing_ok=True)

    def test_is_read_with_a_secret_of_the_vault(self) -> None:
        for secret in (self.secret, reader.Passphrase(self.PASSPHRASE)):
            contents = self.place.read(vault_secret=secret)
            self.assertEqual(contents.integrity, [("ok",)])
            for name, item in self.before.items.items():
                self.assertTrue(is_same_value(contents.items[name].value, item.value), name)
                self.assertEqual(contents.items[name].version, item.version)
            self.assertEqual(contents.value("samples", "token"), reader.Secret(b"secret 4"))
            self.assertEqual(contents.items["samples", "token"].metadata, 4)
            earlier = [row.item for row in contents.history]
            self.assertEqual([item.value for item in earlier], [reader.Secret(f"secret {n}".encode()) for n in range(4)])
            self.assertEqual([item.metadata for item in earlier], list(range(4)))

    def test_stays_sealed_without_one(self) -> None:
        contents = self.place.read()
        self.assertEqual(contents.items.keys(), self.before.items.keys() | {("samples", "token")})
        for name, item in contents.items.items():
            self.assertEqual(item.kind, "sealed", name)
            self.assertIsInstance(item.value, reader.Sealed, name)
        for row in contents.history:
            self.assertIsInstance(row.item.value, reader.Sealed)
            self.assertIsInstance(row.item.metadata, reader.Sealed)
        for text in (b"secret 4", b"secret 0"):
            self.assertNotIn(text, self.place.plain.read_bytes())

    def test_is_opened_on_the_command_line(self) -> None:
        for secret, text in (("--vault-key-file", self.vault_key), None), (("--vault-passphrase-fd", 0), self.PASSPHRASE):
            self.place.plain.unlink(missing_ok=True)
            done = self.place.run_reader(*secret, passphrase=text)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))
            self.assertIn(b"secret 4", self.place.plain.read_bytes())

    def test_has_a_key_of_its_own(self) -> None:
        self.assertRefuses(self.place, 5, "--vault-key-file", self.place.key)
        self.assertRefuses(self.place, 5, "--vault-passphrase-fd", 0, passphrase=b"wrong")
        self.assertRefuses(CRASHED.copy(), 5, "--vault-key-file", self.vault_key)

    def test_is_damaged_when_values_or_slots_were_edited(self) -> None:
        edits = [
            "UPDATE items SET data = (SELECT data FROM items WHERE key = 'int') WHERE key = 'token'",
            "UPDATE items SET metadata = CAST(x'0e' || data AS BLOB) WHERE key = 'token'",
            "UPDATE items SET data = substr(metadata, 2) WHERE key = 'token'",
            "UPDATE collections SET name = 'elsewhere'", "UPDATE items SET key = 'renamed' WHERE key = 'token'",
            "UPDATE history SET key = 'renamed'", "UPDATE vault SET generation = generation + 1",
            "UPDATE vault SET slots = x'' ", "UPDATE collections SET flags = 0", "UPDATE vault SET sealed = x''",
            "UPDATE vault SET mac = zeroblob(32)", "UPDATE vault SET succession = zeroblob(32)",
            "UPDATE vault SET succession = randomblob(32)", "UPDATE items SET type = 5 WHERE key = 'token'",
            "UPDATE items SET metadata = x'0578' WHERE key = 'token'",
        ]
        for edit in edits:
            self.place.read()
            with contextlib.closing(sqlite3.connect(self.place.plain)) as plain:
                plain.execute(edit)
                plain.text_factory = bytes
                with self.assertRaises(reader.Damaged, msg=edit):
                    unseal(plain, self.secret)


def is_same_value(one: Any, other: Any) -> bool:
    """Whether two decoded values are the same, NaN included."""
    return repr(one) == repr(other)


# MARK: - Envelope


class TheEnvelope(InteropTestCase):
    def test_opens_with_a_flipped_bit_in_one_copy(self) -> None:
        expected = CONTENTS.items
        for offset in (0, 9, 30, 60, 200, 5_000, 8_191):
            for copy in (0, 8_192):
                place = CRASHED.copy()
                place.flip(place.store, copy + offset)
                self.assertEqual(repr(place.read().items), repr(expected))
                self.assertEqual(place.ask("get", "samples/int"), b"42\n")

    def test_is_damaged_with_a_flipped_bit_in_both_copies(self) -> None:
        for offset in (9, 30, 60, 200, 5_000, 8_191):
            place = CRASHED.copy()
            place.flip(place.store, offset)
            place.flip(place.store, 8_192 + offset)
            self.assertBothRefuse(place, 7)

    def test_tells_files_that_are_no_stores(self) -> None:
        for data in (b"", b"hello\n", b"x" * 50_000, b"SQLite format 3\0" + bytes(8_176)):
            place = CRASHED.copy()
            place.write(place.store, data)
            self.assertBothRefuse(place, 8)

    def test_is_not_looked_for_in_a_folder(self) -> None:
        place = CRASHED.copy()
        place.store.unlink()
        place.store.mkdir()
        self.assertBothRefuse(place, 8)

    def test_is_damaged_when_it_ends_too_early(self) -> None:
        place = CRASHED.copy()
        place.write(place.store, place.store.read_bytes()[:8_000])
        self.assertBothRefuse(place, 7)

    def test_tells_that_there_is_no_store(self) -> None:
        place = CRASHED.copy()
        place.store.unlink()
        place.log.unlink()
        self.assertBothRefuse(place, 4)

    def test_is_damaged_when_someone_edits_it_who_can_make_checksums(self) -> None:
        # The time of creation, the slot's id, salt and label, the commitment, the wrapped keys, the MAC.
        for offset in (47, 58, 80, 117, 150, 180, 220, 240, 300, 340, 360):
            place = CRASHED.copy()
            copy = bytearray(place.store.read_bytes()[:8_192])
            copy[offset] ^= 1
            place.write(place.store, sealing.with_checksum(bytes(copy)) * 2 + place.store.read_bytes()[16_384:])
            self.assertIn(place.run_reader().returncode, (5, 7), offset)
            self.assertIn(place.prefs("collections").returncode, (5, 7), offset)

    def test_is_refused_when_it_is_another_stores(self) -> None:
        place, other = CRASHED.copy(), Place()
        shutil.copy(place.key, other.key)
        other.ask("init")
        place.write(place.store, other.store.read_bytes()[:16_384] + place.store.read_bytes()[16_384:])
        self.assertBothRefuse(place, 7)


# MARK: - Pages


class APage(InteropTestCase):
    def test_is_damaged_with_a_flipped_bit_anywhere(self) -> None:
        for field, offset in PAGE_FIELDS.items():
            place = settled()
            pages = (place.store.stat().st_size - 16_384) // PAGE
            place.flip(place.store, 16_384 + (pages // 2) * PAGE + offset, bit=3)
            message = self.assertRefuses(place, 7)
            self.assertIn(f"page {pages // 2 + 1} ", message, field)
            self.assertEqual(place.prefs("doctor", "--deep").returncode, 7, field)

    def test_does_not_open_in_another_ones_place(self) -> None:
        place = settled()
        data = place.store.read_bytes()
        a, b = (slice(16_384 + number * PAGE, 16_384 + (number + 1) * PAGE) for number in (5, 6))
        swapped = bytearray(data)
        swapped[a], swapped[b] = data[b], data[a]
        place.write(place.store, bytes(swapped))
        self.assertRefuses(place, 7)
        self.assertEqual(place.prefs("doctor", "--deep").returncode, 7)

    def test_is_missed_when_the_file_was_cut(self) -> None:
        for missing in (1, PAGE, 3 * PAGE):
            place = settled()
            place.write(place.store, place.store.read_bytes()[:-missing])
            self.assertRefuses(place, 7)
            self.assertEqual(place.prefs("doctor", "--deep").returncode, 7, missing)

    def test_is_not_missed_when_the_log_replaces_it(self) -> None:
        place = CRASHED.copy()
        replaced = min(CONTENTS.log.pages)
        place.write(
            place.store,
            overwritten(place.store.read_bytes(), 16_384 + (replaced - 1) * PAGE, os.urandom(PAGE)),
        )
        contents = place.read()
        self.assertAgrees(contents, place.all_of_prefs())
        self.assertEqual(repr(contents.items), repr(CONTENTS.items))


PAGE_FIELDS = {
    "first byte": 0, "ciphertext": 2_000, "last byte of the ciphertext": 4_047, "nonce": 4_048,
    "end of the nonce": 4_071, "tag": 4_072, "epoch": 4_091, "zero": 4_095,
}


def settled() -> Place:
    """A copy whose log was taken in."""
    place = CRASHED.copy()
    place.ask("collections")
    assert not place.log.exists()
    return place


def overwritten(data: bytes, offset: int, piece: bytes) -> bytes:
    return data[:offset] + piece + data[offset + len(piece) :]


# MARK: - Log


FRAME_FIELDS = {
    "page number": 3, "size of the database": 7, "salts": 8, "checksum": 23,
    **{name: 24 + offset for name, offset in PAGE_FIELDS.items()},
}


def frames(data: bytes) -> list:
    """Offset, page number and size of each frame, which are plaintext."""
    offsets = range(32, len(data) - Log.FRAME + 1, Log.FRAME)
    return [(offset, *struct.unpack_from(">II", data, offset)) for offset in offsets]


class ALog(InteropTestCase):
    def check(self, place: Place, committed_frames: int) -> Contents:
        """Reads a log that was meddled with; prefs has to come to the same end."""
        contents = place.read()
        self.assertEqual(contents.log.committed_frames, committed_frames)
        self.assertAgrees(contents, place.all_of_prefs())
        return contents

    def commits(self) -> list:
        """The number of the last frame of each commit."""
        return [number for number, frame in enumerate(frames(CRASHED.log.read_bytes()), 1) if frame[2] != 0]

    def test_ends_at_the_commit_before_a_flipped_bit(self) -> None:
        commits = self.commits()
        at = len(commits) // 2
        for field, offset in FRAME_FIELDS.items():
            place = CRASHED.copy()
            place.flip(place.log, 32 + (commits[at] - 1) * Log.FRAME + offset)
            with self.subTest(field):
                contents = self.check(place, commits[at - 1])
                kept = [key for collection, key in contents.items if collection == "kept"]
                self.assertEqual(len(kept), at)
                self.assertIn(f"kept {at - 1}", kept)

    def test_ends_at_the_commit_before_a_flipped_bit_in_the_midst_of_a_commit(self) -> None:
        commits = self.commits()
        at = next(i for i in range(len(commits) // 2, len(commits)) if commits[i] - commits[i - 1] > 1)
        place = CRASHED.copy()
        place.flip(place.log, 32 + commits[at - 1] * Log.FRAME + 1_000)
        self.check(place, commits[at - 1])

    def test_is_empty_with_a_flipped_bit_in_its_header(self) -> None:
        for offset in range(32):
            place = CRASHED.copy()
            place.flip(place.log, offset)
            contents = place.read()
            self.assertEqual(contents.log.committed_frames, 0)
            if offset % 5 == 0:
                self.check(place, 0)

    def test_ends_at_the_commit_before_it_was_cut(self) -> None:
        commits, data = self.commits(), CRASHED.log.read_bytes()
        at = len(commits) // 3
        end = 32 + commits[at] * Log.FRAME
        for length, expected in ((end, at), (end - 1, at - 1), (end + 1, at), (end - Log.FRAME + 24, at - 1)):
            place = CRASHED.copy()
            place.write(place.log, data[:length])
            self.check(place, commits[expected])
        for length in (0, 1, 16, 31, 32, 33, 32 + 24, 32 + Log.FRAME - 1):
            place = CRASHED.copy()
            place.write(place.log, data[:length])
            self.check(place, 0)

    def test_takes_no_frame_from_another_place(self) -> None:
        commits, data = self.commits(), CRASHED.log.read_bytes()
        at = len(commits) // 2
        source, target = (32 + (commits[i] - 1) * Log.FRAME for i in (at, at + 1))
        place = CRASHED.copy()
        place.write(place.log, overwritten(data, target, data[source : source + Log.FRAME]))
        self.check(place, commits[at])

    def test_of_another_store_is_empty(self) -> None:
        place, other = CRASHED.copy(), Place()
        shutil.copy(place.key, other.key)
        other.ask("init")
        crash(other, "other ", 3)
        shutil.copy(other.log, place.log)
        self.check(place, 0)

    def test_may_be_missing(self) -> None:
        place = CRASHED.copy()
        place.log.unlink()
        self.check(place, 0)


# MARK: - Reading while others write


class AStoreInUse(InteropTestCase):
    def test_is_read_as_of_one_commit(self) -> None:
        """Each import sets two keys at once. Each opens the store, takes the log in and removes it, which changes all files."""
        place = Place()
        place.ask("init")
        imported = 0

        def set_both() -> None:
            nonlocal imported
            for number in range(1, 41):
                text = json.dumps({"both": {"one": number, "text": "x" * 9_000 * (number % 5), "other": number}})
                done = subprocess.run(
                    [BIN / "prefs", "import", "-q", "--store", place.store, "--key-file", place.key, "--format", "json", "-"],
                    env=WORKSHOP.environment, input=text.encode(), capture_output=True, timeout=PATIENCE)
                if done.returncode != 0:
                    raise AssertionError(done.stderr.decode())
                imported = number

        with concurrent.futures.ThreadPoolExecutor() as pool:
            writer, seen = pool.submit(set_both), set()
            while not writer.done():
                before = imported
                contents = reader.read(place.store, reader.KeyFile.read(place.key))
                one, other = contents.value("both", "one", 0), contents.value("both", "other", 0)
                self.assertEqual(one, other)
                self.assertGreaterEqual(one, before)
                self.assertEqual(contents.log_problems(), [])
                seen.add(one)
            writer.result()
        self.assertGreater(len(seen), 5)

    def test_shows_every_commit_that_was_acknowledged_before(self) -> None:
        place = Place()
        place.ask("init")
        arguments = [BIN / "StoreWorker", "acknowledge", place.store, place.key, "live "]
        worker = subprocess.Popen(arguments, env=WORKSHOP.environment, stdout=subprocess.PIPE)
        reads = 0
        try:
            # Past checkpoints, and new generations of the log.
            for number, _ in zip(range(800), worker.stdout):
                if number % 50 != 0:
                    continue
                contents = reader.read(place.store, reader.KeyFile.read(place.key))
                found = {int(item.key.removeprefix("live ")) for item in contents.items("kept")}
                self.assertEqual(found, set(range(len(found))))
                self.assertGreater(len(found), number)
                reads += 1
        finally:
            worker.kill()
            worker.wait(PATIENCE)
            worker.stdout.close()
        self.assertEqual(reads, 16)

    def test_is_not_put_together_from_two_moments(self) -> None:
        """Whatever the reader has read when the store changes: of the store first, then of the log, then its header."""
        files = reader.store.contents_of
        for gap in (1, 2, 3):
            place = CRASHED.copy()
            calls = 0

            def contents_of(path: str, *rest: Any, **more: Any) -> bytes:
                nonlocal calls
                data = files(path, *rest, **more)
                calls += 1
                if calls == gap:
                    # The log is taken in, values change, and another log is begun.
                    place.ask("set", "typed/often", "--int", 4_711)
                    place.ask("unset", "-c", "numbers", "--all", "--force")
                    crash(place, "after ", 3)
                return data

            with self.subTest(gap=gap), unittest.mock.patch.object(reader.store, "contents_of", contents_of):
                contents = reader.read(place.store, reader.KeyFile.read(place.key))
                self.assertEqual(contents.value("typed", "often"), 4_711)
                self.assertEqual(contents.value("kept", "after 0"), f"{ACKNOWLEDGED_TEXT}0")
                self.assertEqual(list(contents.items("numbers")), [])
                self.assertEqual(contents.log_problems(), [])
                self.assertGreater(calls, 3)

    def test_is_refused_if_it_changes_all_the_time(self) -> None:
        place = CRASHED.copy()
        files = reader.store.contents_of

        def contents_of(path: str, *rest: Any, **more: Any) -> bytes:
            os.utime(place.store)
            return files(path, *rest, **more)

        with unittest.mock.patch.multiple(reader.store, contents_of=contents_of, PAUSE=0.001, ATTEMPTS=20):
            with self.assertRaises(reader.Busy):
                reader.read(place.store, reader.KeyFile.read(place.key))

    def test_keeps_no_plaintext_on_the_disk(self) -> None:
        place = CRASHED.copy()
        before = sorted(place.folder.iterdir())
        contents = reader.read(place.store, reader.KeyFile.read(place.key))
        self.assertEqual(contents.value("samples", "int"), 42)
        self.assertEqual(sorted(place.folder.iterdir()), before)


# MARK: - Writing what Coffer reads


def passphrase_slot(secret: bytes, id: int, stretching: int, costs: tuple, **other: Any) -> sealing.NewSlot:
    return sealing.NewSlot(secret, id, 2, stretching, costs, **other)


class AStoreMadeFromTheSpecification(InteropTestCase):
    KEY = bytes(range(32))

    def make(self, slots: Optional[list] = None, **fields: Any) -> tuple:
        """A place with a store made from a plain database that Coffer can write to, and what it was made with."""
        place = Place()
        place.write(place.key, self.KEY)
        new = sealing.NewStore(slots or [sealing.NewSlot(self.KEY)], **fields)
        place.write(place.store, new.envelope() + new.pages(self.plain(new)))
        return place, new

    def plain(self, new: sealing.NewStore, statements: Iterator = ()) -> bytes:
        """The samples in a plain database, with the new store's id."""
        place = Place()
        shutil.copy(CRASHED.plain, place.plain)
        with self.writing(place.plain) as plain:
            plain.execute("UPDATE meta SET value = ? WHERE name = 'store_id'", (new.store_id,))
            for statement in statements:
                plain.execute(*statement)
        plain.close()
        return self.as_with_log(place.plain.read_bytes())

    def writing(self, path: pathlib.Path) -> sqlite3.Connection:
        plain = sqlite3.connect(path)
        # Coffer's own setting; what is not overwritten with zeros is no error, though.
        plain.execute("PRAGMA secure_delete = ON")
        return plain

    def as_with_log(self, data: bytes) -> bytes:
        return data[:18] + b"\x02\x02" + data[20:]

    def check(self, place: Place, passphrase: Optional[bytes] = None) -> Contents:
        contents = place.read(None if passphrase is None else reader.Passphrase(passphrase))
        listed = place.all_of_prefs(passphrase)
        self.assertGreater(len(listed), 400)
        self.assertAgrees(contents, listed)
        return contents

    def test_opens_in_prefs(self) -> None:
        place, _ = self.make()
        self.check(place)
        self.assertEqual(json.loads(place.ask("doctor", "--deep", "--json"))["problems"], [])
        place.ask("set", "new/key", "value")
        self.assertEqual(self.check(place).value("new", "key"), "value")

    def test_opens_in_prefs_with_pages_of_several_epochs(self) -> None:
        place, new = self.make(epochs={number: os.urandom(32) for number in (3, 7, 9, 2**32 - 1)})
        self.check(place)
        before = place.store.read_bytes()
        for number in range(20):
            place.ask("set", f"new/{number}", "value")
        after = place.store.read_bytes()
        self.check(place)
        for start in range(16_384, len(after), PAGE):
            page = after[start : start + PAGE]
            if page != before[start : start + PAGE]:
                self.assertEqual(page[4_088:4_092], b"\xff\xff\xff\xff")

    def test_opens_in_prefs_with_any_of_sixteen_slots(self) -> None:
        slots = [sealing.NewSlot(os.urandom(32), 200 + number, label="é" * 32) for number in range(14)]
        slots.append(passphrase_slot(b"scrypt", 7, SCRYPT, (14, 8, 1)))
        slots.append(sealing.NewSlot(self.KEY, 9, label="mine"))
        place, _ = self.make(slots)
        self.check(place)
        self.check(place, passphrase=b"scrypt")
        self.assertBothRefuse(place, 5, passphrase=b"another")

    def test_opens_in_prefs_with_scrypt(self) -> None:
        place, _ = self.make([passphrase_slot(b"secret", 1, SCRYPT, (15, 9, 2), label="mine")])
        self.check(place, passphrase=b"secret")

    def test_opens_in_prefs_with_pbkdf2(self) -> None:
        place, _ = self.make([passphrase_slot(b"secret", 1, PBKDF2, (123_456, 0, 0))])
        self.check(place, passphrase=b"secret")

    def test_opens_in_prefs_with_argon2id(self) -> None:
        if Argon2id is None:
            self.skipTest("the installed cryptography package has no Argon2id")
        place, _ = self.make([passphrase_slot(b"secret", 1, ARGON2ID, (19_456, 3, 2))])
        self.assertEqual(place.read(reader.Passphrase(b"secret")).value("samples", "int"), 42)
        done = place.prefs("collections", passphrase=b"secret")
        if done.returncode != 0 and b"argon2id" in done.stderr.lower():
            self.skipTest("prefs was built with a library that has no Argon2id")
        self.check(place, passphrase=b"secret")

    def test_is_refused_with_costs_outside_the_bounds(self) -> None:
        slots = [
            passphrase_slot(b"secret", 1, SCRYPT, (13, 8, 1)),
            passphrase_slot(b"secret", 1, SCRYPT, (14, 7, 1)),
            passphrase_slot(b"secret", 1, SCRYPT, (14, 8, 17)),
            passphrase_slot(b"secret", 1, PBKDF2, (99_999, 0, 0)),
            # Stretched in a moment, and then not as the record says.
            *(
                sealing.NewSlot(b"secret", 1, 2, stretching, costs, is_unstretched=True)
                for stretching, costs in (
                    (SCRYPT, (21, 8, 1)), (SCRYPT, (20, 8, 2)), (SCRYPT, (63, 8, 1)),
                    (SCRYPT, (64, 8, 1)), (SCRYPT, (2**32 - 1, 8, 1)), (PBKDF2, (2**22 + 1, 0, 0)),
                    (PBKDF2, (100_000, 1, 0)), (PBKDF2, (100_000, 0, 1)),
                    (ARGON2ID, (2**21 + 1, 1, 1)), (ARGON2ID, (2**20, 3, 1)),
                    (ARGON2ID, (19_456, 0, 1)),
                )
            ),
        ]
        for slot in slots:
            with self.subTest(stretching=slot.stretching, costs=slot.costs):
                place, _ = self.make([slot])
                message = self.assertRefuses(place, 7, passphrase=b"secret")
                self.assertIn("The costs of slot 1 are outside their bounds.", message)
                self.assertNotEqual(place.prefs("collections", passphrase=b"secret").returncode, 0)
                # It is only skipped, not damaged: another slot opens the store.
                place, _ = self.make([slot, passphrase_slot(b"secret", 2, SCRYPT, (14, 8, 1))])
                self.assertEqual(place.read(reader.Passphrase(b"secret")).value("samples", "int"), 42)
                self.assertEqual(place.prefs("collections", passphrase=b"secret").returncode, 0)

    def test_opens_by_another_slot_than_one_that_cannot_be_tried(self) -> None:
        costs = SCRYPT, (22, 8, 1)
        place, _ = self.make([
            sealing.NewSlot(b"secret", 1, 2, *costs, is_unstretched=True),
            passphrase_slot(b"secret", 2, SCRYPT, (14, 8, 1)),
        ])
        self.check(place, passphrase=b"secret")

    def test_is_refused_with_what_is_not_known_in_either_copy(self) -> None:
        unknown = [
            {"version": 2}, {"flags": 2}, {"flags": 1 << 31}, {"suite": 2},
            {"slots": [sealing.NewSlot(self.KEY), sealing.NewSlot(self.KEY, 1, kind=6)]},
            {"slots": [sealing.NewSlot(self.KEY), passphrase_slot(b"s", 1, 4, (1, 2, 3))]},
        ]
        for fields in unknown:
            with self.subTest(**fields):
                place, _ = self.make(**fields)
                self.assertBothRefuse(place, 12)
                # Also where the other copy is newer.
                other = place.store.read_bytes()[:8_192]
                place, new = self.make(sequence=2)
                known, pages = new.envelope_copy(), place.store.read_bytes()[16_384:]
                for copies in (known + other, other + known):
                    place.write(place.store, copies + pages)
                    self.assertBothRefuse(place, 12)

    def test_does_not_ask_for_the_other_copys_root_key(self) -> None:
        # As a change of the root key leaves it that was cut off between the copies, the old secret being none any more.
        place, new = self.make()
        old, pages = new.envelope_copy(), place.store.read_bytes()[16_384:]
        new.sequence, new.root_key = 2, os.urandom(32)
        newer = new.envelope_copy()
        forged = bytearray(old)
        forged[47] ^= 1
        for other in (old, sealing.with_checksum(bytes(forged))):
            for copies in (newer + other, other + newer):
                place.write(place.store, copies + pages)
                self.check(place)
                place.ask("set", "new/key", "value")
                self.assertEqual(place.store.read_bytes()[:16_384], newer * 2)
        # Nor does it do instead of the one that counts.
        forged = bytearray(newer)
        forged[47] ^= 1
        place.write(place.store, old + sealing.with_checksum(bytes(forged)) + place.store.read_bytes()[16_384:])
        self.assertBothRefuse(place, 7)

    def test_opens_with_the_first_copy_of_equal_sequences(self) -> None:
        place, new = self.make()
        first, pages = new.envelope_copy(), place.store.read_bytes()[16_384:]
        new.slots = [passphrase_slot(b"s", 1, SCRYPT, (14, 8, 1))]
        second = new.envelope_copy()
        place.write(place.store, second + first + pages)
        self.assertBothRefuse(place, 5)
        self.check(place, passphrase=b"s")
        place.write(place.store, first + second + pages)
        self.assertBothRefuse(place, 5, passphrase=b"s")
        self.check(place)
        place.ask("set", "new/key", "value")
        self.assertEqual(place.store.read_bytes()[:16_384], first * 2)

    def test_keeps_a_collection_shut_whose_flags_are_not_known(self) -> None:
        for flags in (8, 1 << 40, -(1 << 63)):
            place, new = self.make()
            mark = "UPDATE collections SET flags = flags | ? WHERE name = 'samples'", (flags,)
            place.write(place.store, new.envelope() + new.pages(self.plain(new, [mark])))
            for arguments in (
                ("get", "samples/int"), ("list", "-c", "samples"), ("set", "samples/int", "1"),
                ("unset", "-c", "samples", "--all", "--force"), ("export",),
            ):
                done = place.prefs(*arguments)
                self.assertEqual(done.returncode, 12, (arguments, done.stderr))
            self.assertIn(b"samples", place.ask("collections"))
            place.ask("set", "typed/new", "value")
            contents = reader.read(place.store, reader.KeyFile.read(place.key))
            self.assertIn("samples", contents.collections().values())
            for read in (contents.items, contents.history, lambda: contents.items("samples")):
                with self.assertRaises(reader.NewerFormat):
                    list(read())
            self.assertEqual(contents.value("typed", "new"), "value")

    def test_opens_with_the_copy_of_the_higher_sequence(self) -> None:
        place, new = self.make()
        old, new.sequence, new.slots = new.envelope_copy(), 2, [passphrase_slot(b"s", 1, SCRYPT, (14, 8, 1))]
        pages = place.store.read_bytes()[16_384:]
        for copies in (old + new.envelope_copy(), new.envelope_copy() + old):
            place.write(place.store, copies + pages)
            self.assertBothRefuse(place, 5)
            self.check(place, passphrase=b"s")

    def test_is_refused_when_the_envelope_is_older_than_the_pages(self) -> None:
        place, new = self.make(sequence=4)
        newer = "UPDATE meta SET value = ? WHERE name = 'envelope_sequence'", ((5).to_bytes(8, "big"),)
        place.write(place.store, new.envelope() + new.pages(self.plain(new, [newer])))
        self.assertBothRefuse(place, 7)
        new.sequence = 5
        place.write(place.store, new.envelope() + place.store.read_bytes()[16_384:])
        self.check(place)

    def test_opens_in_prefs_with_a_log_of_several_epochs(self) -> None:
        for epochs in ({1: os.urandom(32)}, {4: os.urandom(32), 2: os.urandom(32), 3: os.urandom(32)}):
            place, new = self.make(epochs=epochs)
            place.plain.write_bytes(self.plain(new))
            plain = self.writing(place.plain)
            plain.execute("PRAGMA wal_autocheckpoint = 0")
            for number in range(30):
                with plain:
                    plain.execute("UPDATE items SET version = version + 1 WHERE key LIKE ?", (f"%{number}",))
            with plain:
                plain.execute("DELETE FROM items WHERE collection = (SELECT id FROM collections WHERE name = 'typed')")
            plain.execute("VACUUM")
            place.write(place.log, new.log(pathlib.Path(f"{place.plain}-wal").read_bytes()))
            expected = plain.execute("SELECT count(*), sum(version) FROM items").fetchone()
            size, = plain.execute("PRAGMA page_count").fetchone()
            plain.close()
            contents = place.read()
            found = [item.version for item in contents.items.values()]
            self.assertEqual((len(found), sum(found)), expected)
            # The database got smaller; the file does not know it yet.
            self.assertEqual(contents.page_count, size)
            self.assertGreater(place.store.stat().st_size, 16_384 + size * PAGE)
            self.assertAgrees(contents, place.all_of_prefs())

    def test_holds_values_that_prefs_decodes(self) -> None:
        array, dictionary, text = ARRAY, DICTIONARY, STRING
        deep = b""
        for _ in range(DEEPEST):
            deep = sealing.element(array, deep)
        long = "x" * 20_000
        values = {
            "every kind": (array, b"".join(sealing.element(*part) for part in (
                (NULL, b""), (BOOL, b"\1"), (INT, b"\xff" * 8), (UINT64, b"\xff" * 8),
                (DOUBLE, struct.pack(">d", -0.1)), (text, "é\0".encode()), (DATA, b"\xff"),
                (DATE, struct.pack(">d", 1e9)), (URL_KIND, b"x\0https://example.org/"),
                (URL_KIND, b""), (URL_KIND, b"\0https://example.org/a"), (URL_KIND, b"c\0a/b/"),
                (UUID, bytes(range(16))), (array, b""), (dictionary, b""), (JSON_KIND, b'{"a":[-0,1]}'),
            ))),
            "order": (dictionary, b"".join(
                sealing.entry(key, text, key.encode()) for key in ("", "Z", "a", "é", "🗝")
            )),
            "long": (dictionary, sealing.entry(long, text, long.encode())),
            "deep": (array, deep),
        }
        place, new = self.make()
        place.write(place.store, new.envelope() + new.pages(self.plain(new, map(self.insertion, values.items()))))
        contents = self.check(place)
        for key, (kind, data) in values.items():
            self.assertEqual(contents.items["samples", key].size, len(data))
            # The metadata is the same value again.
            self.assertEqual(contents.items["samples", key].metadata, contents.value("samples", key))

    def test_holds_texts_that_are_no_json_as_they_were_given(self) -> None:
        texts = {"no JSON": "{", "nothing": "", "a name twice": '{"a":1,"a":2}', "much space": ' [ 1 ,\n-0 ] '}
        place, new = self.make()
        rows = [self.insertion((key, (JSON_KIND, text.encode()))) for key, text in texts.items()]
        place.write(place.store, new.envelope() + new.pages(self.plain(new, rows)))
        contents = place.read()
        for key, text in texts.items():
            self.assertEqual(contents.value("samples", key), reader.JSON(text))
            told = json.loads(place.ask("get", "--json", f"samples/{key}"))["value"]
            self.assertEqual(told, [1, -0.0] if key == "much space" else text)
        self.assertEqual(json.loads(place.ask("doctor", "--deep", "--json"))["problems"], [])

    def insertion(self, entry: tuple) -> tuple:
        key, (kind, data) = entry
        return (
            "INSERT INTO items(collection, key, type, data, metadata, version, modified)"
            " SELECT id, ?, ?, ?, ?, 1, 0 FROM collections WHERE name = 'samples'",
            (key, kind, data, bytes([kind]) + data),
        )

    def test_is_damaged_with_values_that_are_malformed(self) -> None:
        array, dictionary = ARRAY, DICTIONARY
        deep = b""
        for _ in range(DEEPEST + 1):
            deep = sealing.element(array, deep)
        values = [
            (15, b""), (SEALED, bytes(44)), (BOOL, b"\2"), (BOOL, b""), (INT, bytes(7)), (UINT64, b"\xff" * 9),
            (DOUBLE, bytes(9)), (DATE, b""), (STRING, b"\xff"),
            (STRING, b"\xed\xa0\x80"), (JSON_KIND, b"\xff"), (UUID, bytes(15)),
            (URL_KIND, b"a\0b\0c"), (URL_KIND, b"a\0b\0"), (URL_KIND, b"a\xff"),
            (array, b"\1"), (array, b"\5\4abc"),
            (array, b"\5" + b"\xff" * 10 + b"\1"), (array, b"\x0d\0"), (array, b"\x0e\0"), (array, b"\x0f\0"), (array, b"\0\1\0"), (array, deep),
            (dictionary, b"\1"), (dictionary, b"\1\xff\0\0"), (dictionary, b"\2a\0\0"),
        ]
        place, new = self.make()
        rows = [self.insertion((f"bad {index}", value)) for index, value in enumerate(values)]
        place.write(place.store, new.envelope() + new.pages(self.plain(new, rows)))
        with self.assertRaises(reader.Damaged):
            place.read()
        self.assertEqual(place.prefs("doctor", "--deep").returncode, 7)
        for index, (kind, data) in enumerate(values):
            with self.subTest(kind=kind, data=data[:20]):
                with self.assertRaises(reader.Damaged):
                    decode_value(kind, data)
                self.assertNotEqual(place.prefs("get", f"samples/bad {index}").returncode, 0)

    def test_is_damaged_with_values_in_a_form_that_is_not_theirs(self) -> None:
        a, b = (sealing.entry(key, NULL, b"") for key in "ab")
        for kind, data in (
            (NULL, b""), (UINT64, bytes(8)), (DICTIONARY, b + a), (DICTIONARY, a + a),
        ):
            with self.assertRaises(reader.Damaged, msg=(kind, data)):
                decode_value(kind, data)


# MARK: - The specification's own


class TheVector(InteropTestCase):
    VECTORS = HERE / "vectors"

    GOLDEN = HERE.parent / "Formats" / "1"

    def place(self, folder: Optional[pathlib.Path] = None, name: str = "store-1") -> tuple:
        """The store in a place, and what it ought to hold."""
        place = Place()
        folder = folder or self.VECTORS
        for file, path in ((f"{name}.hex", place.store), (f"{name}-wal.hex", place.log)):
            if (folder / file).exists():
                place.write(path, self.bytes(file, folder))
        return place, json.loads((folder / f"{name}.json").read_text())

    def bytes(self, name: str, folder: Optional[pathlib.Path] = None) -> bytes:
        data = bytearray()
        for line in ((folder or self.VECTORS) / name).read_text().splitlines():
            offset, digits = line.split(": ")
            data += bytes(int(offset, 16) - len(data)) + bytes.fromhex(digits)
        return bytes(data)

    def test_and_every_golden_store_is_read(self) -> None:
        names = sorted(file.stem for file in self.GOLDEN.glob("*.json"))
        self.assertEqual(names, ["closed", "rotating", "store-1"])
        for name in names:
            place, expected = self.place(self.GOLDEN, name)
            vault = None if name == "rotating" else reader.KeyFile(bytes.fromhex(expected["vaultKey"]))
            contents = place.read(reader.KeyFile(bytes.fromhex(expected["key"])), vault)
            self.assertEqual(contents.integrity, [("ok",)])
            self.assertEqual(contents.changes[-1].sequence, expected["lastCommit"])
            self.assertEqual(contents.log_problems, [])
            self.assertEqual(self.rows(place, "items", ("due",)), self.expected(expected["items"], ("due",)))

    def test_has_the_digests_of_the_specification(self) -> None:
        for name in ("store-1.hex", "store-1-wal.hex"):
            self.assertRegex(FORMAT, rf"\| `{name}` \|.*`{hashlib.sha256(self.bytes(name)).hexdigest()}`")

    def test_is_read_with_each_of_its_secrets(self) -> None:
        place, expected = self.place()
        vault = reader.KeyFile(bytes.fromhex(expected["vaultKey"]))
        for secret in (
            reader.KeyFile(bytes.fromhex(expected["key"])), reader.Passphrase(expected["passphrase"].encode()),
            reader.RecoveryKey.parse(expected["recoveryKey"]),
        ):
            contents = place.read(secret, vault)
            self.assertEqual(contents.integrity, [("ok",)])
            self.assertEqual(contents.envelope.store_id.hex(), expected["storeID"])
            self.assertEqual(contents.changes[-1].sequence, expected["lastCommit"])
            self.assertEqual(self.rows(place, "items", ("due",)), self.expected(expected["items"], ("due",)))
            self.assertEqual(
                self.rows(place, "history", ("ended", "time", "ended_by")),
                self.expected(expected["history"], ("ended", "time", "endedBy")))
            self.assertEqual(len(contents.items), len(expected["items"]))

    def test_has_sealed_collections_and_history(self) -> None:
        place, expected = self.place()
        secret = reader.KeyFile(bytes.fromhex(expected["key"]))
        contents = place.read(secret)
        sealed = {name for (name, _), item in contents.items.items() if item.kind == "sealed"}
        self.assertEqual(sealed, {found["name"] for found in expected["collections"] if found["isSealed"]})
        limits = {
            found["name"]: reader.HistoryLimits(found["historyCount"], found.get("historyAge"))
            for found in expected["collections"] if "historyCount" in found
        }
        self.assertEqual(contents.history_limits, limits)
        self.assertEqual(set(contents.collections.values()), {found["name"] for found in expected["collections"]})

    def test_says_something_else_without_its_log(self) -> None:
        place, expected = self.place()
        place.log.unlink()
        items = place.read(reader.KeyFile(bytes.fromhex(expected["key"]))).items
        self.assertNotIn(("", "newest"), items)
        self.assertIn(("past", "removed"), items)

    def rows(self, place: Place, table: str, more: tuple) -> list:
        columns = ", ".join((
            "name", "key", "type", "lower(hex(data))", "lower(hex(metadata))", "version", "modified", "expires", "author",
            *more))
        with contextlib.closing(sqlite3.connect(place.plain)) as plain:
            found = plain.execute(
                f"SELECT {columns}, metadata IS NULL FROM {table} JOIN collections ON collection = id"
                " WHERE expires IS NULL OR expires > 4102444800000 ORDER BY name, key, version"
            ).fetchall()
        return [(*row[:4], None if row[-1] else row[4], *row[5:-1]) for row in found]

    def expected(self, items: list, more: tuple) -> list:
        names = ("collection", "key", "kind", "data", "metadata", "version", "modified", "expires", "author", *more)
        return [tuple(item.get(name) for name in names) for item in items]

    def test_leaves_out_what_has_expired(self) -> None:
        place, expected = self.place()
        contents = place.read(reader.KeyFile(bytes.fromhex(expected["key"])))
        self.assertNotIn(("dated", "expired"), contents.items)
        self.assertEqual(contents.items["dated", "expires"].expires, 7_258_118_400_000)
        self.assertEqual(contents.changes[-1].author, reader.Author("vector", "maker", "nowhere", None))


class TheTables(InteropTestCase):
    def test_are_those_of_the_specification(self) -> None:
        blocks = re.findall(r"```sql\n(.*?)```", FORMAT, re.DOTALL)
        # The last one, of fleets, is compared in CofferFleetTests: no program here makes any.
        self.assertEqual(len(blocks), 4)
        place = Place()
        place.ask("init")
        self.assertTables(place, blocks[0])
        WORKSHOP.worker("rename", place, 1)
        self.assertTables(place, blocks[0] + blocks[1] + blocks[2])

    def assertTables(self, place: Place, block: str) -> None:
        place.read()
        with contextlib.closing(sqlite3.connect(":memory:")) as told, contextlib.closing(sqlite3.connect(place.plain)) as made:
            told.executescript(block)
            self.assertEqual(*(
                {row[:2]: " ".join(row[2].split()) for row in database.execute(
                    "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL")}
                for database in (told, made)
            ))

    def test_lie_in_pages_as_the_specification_has_them(self) -> None:
        place = settled()
        header = reader.Store(place.store, reader.KeyFile.read(place.key)).page(1)[:100]
        self.assertEqual(header[:16], SQLITE_MAGIC)
        self.assertEqual(struct.unpack(">H4B", header[16:22])[:4], (PAGE, 2, 2, 48))
        self.assertEqual(struct.unpack(">I", header[56:60]), (1,))  # UTF-8


# MARK: - Change log, and the rest of the reader


class TheChangeLog(InteropTestCase):
    def test_decodes_every_form_of_row(self) -> None:
        key = bytes([2 | 8]) + b"\1k"
        row = b"\1" + b"\5\3" + sealing.varint(2) + key + bytes([3 | 4]) + b"\0" + sealing.varint(300) + b"\0\0"
        expected = True, (
            reader.CollectionChange(5, True, True, (
                reader.KeyChange("k", "removed", False, True), reader.KeyChange("", "touched", True, False),
            )),
            reader.CollectionChange(300, False, False, ()),
        )
        self.assertEqual(decode_changed_keys(row), expected)

    def test_is_damaged_with_rows_that_are_malformed(self) -> None:
        for row in (
            b"", b"\2", b"\0\1", b"\0\1\4\0", b"\0\1\0\1", b"\0\1\0\1\x10\0", b"\0\1\0\1\0\5a",
            b"\0\2\0\0\1\0\0",
        ):
            with self.assertRaises(reader.Damaged, msg=row):
                decode_changed_keys(row)


class XAES256GCM(InteropTestCase):
    NONCE = b"ABCDEFGHIJKLMNOPQRSTUVWX"

    def check(self, key: bytes, plain: bytes, additional: bytes, expected: str) -> None:
        cipher = XAES(key)
        self.assertEqual(cipher.seal(self.NONCE, plain, additional).hex(), expected)
        self.assertEqual(cipher.open(self.NONCE, bytes.fromhex(expected), additional), plain)
        for index in range(len(expected) // 2):
            sealed = bytearray.fromhex(expected)
            sealed[index] ^= 0x80
            with self.assertRaises(InvalidTag):
                cipher.open(self.NONCE, bytes(sealed), additional)

    def test_agrees_with_the_vector_whose_subkey_is_not_reduced(self) -> None:
        self.check(b"\1" * 32, b"XAES-256-GCM", b"", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271")

    def test_agrees_with_the_vector_whose_subkey_is_reduced(self) -> None:
        self.check(
            b"\3" * 32, b"XAES-256-GCM", b"c2sp.org/XAES-256-GCM",
            "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d",
        )

    def test_agrees_with_ten_thousand_accumulated_vectors(self) -> None:
        source = hashlib.shake_128().digest(10_000 * (32 + 24 + 2 + 2 * 255))
        found, offset = hashlib.shake_128(), 0

        def take(count: int) -> bytes:
            nonlocal offset
            offset += count
            return source[offset - count : offset]

        for _ in range(10_000):
            key, nonce = take(32), take(24)
            plain = take(take(1)[0])
            additional = take(take(1)[0])
            found.update(XAES(key).seal(nonce, plain, additional))
        self.assertEqual(
            found.digest(32).hex(), "e6b9edf2df6cec60c8cbd864e2211b597fb69a529160cd040d56c0c210081939"
        )


class TheOutput(InteropTestCase):
    def test_is_never_written_over_another_file(self) -> None:
        for suffix in ("", "-journal", "-wal"):
            place = CRASHED.copy()
            other = pathlib.Path(f"{place.plain}{suffix}")
            other.write_bytes(b"another file")
            self.assertRefuses(place, 9)
            self.assertEqual(other.read_bytes(), b"another file")

    def test_needs_a_folder(self) -> None:
        place = CRASHED.copy()
        place.plain = place.folder / "nowhere" / "plain.db"
        self.assertRefuses(place, 14)

    def test_leaves_store_and_log_as_they_were(self) -> None:
        place = CRASHED.copy()
        before = place.store.read_bytes(), place.log.read_bytes()
        self.assertEqual(place.run_reader().returncode, 0)
        self.assertEqual((place.store.read_bytes(), place.log.read_bytes()), before)


# MARK: - Running


def sentence(test: unittest.TestCase) -> str:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=^A)(?=[A-Z])", " ", type(test).__name__)
    words = words.replace("XAES256GCM", "XAES-256-GCM")
    subject = words if words.startswith("XAES") else words[0] + words[1:].lower()
    return f"{subject} {test._testMethodName[5:].replace('_', ' ')}."


class Report(unittest.TestResult):
    """One line a test; `N passed, N failed` at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.passed = 0
        self._wrong: list = []

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.passed += 1
        print(f"ok      {sentence(test)}", flush=True)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        super().addSkip(test, reason)
        print(f"skipped {sentence(test)} ({reason})", flush=True)

    def addFailure(self, test: Any, error: Any) -> None:
        super().addFailure(test, error)
        self._tell(test, self.failures[-1][1])

    def addError(self, test: Any, error: Any) -> None:
        super().addError(test, error)
        self._tell(test, self.errors[-1][1])

    def addSubTest(self, test: Any, part: Any, error: Any) -> None:
        super().addSubTest(test, part, error)
        if error is not None:
            self._tell(test, f"{part._subDescription()}\n{self._exc_info_to_string(error, test)}")

    def _tell(self, test: Any, text: str) -> None:
        if test not in self._wrong:
            self._wrong.append(test)
        name = sentence(test) if hasattr(test, "_testMethodName") else str(test)
        print(f"FAILED  {name}\n{text}", flush=True)

    @property
    def failed(self) -> int:
        return len(self._wrong)


def main() -> int:
    global BIN
    arguments = sys.argv[1:]
    if arguments[:1] == ["--bin"] and len(arguments) >= 2:
        BIN = pathlib.Path(arguments[1]).resolve()
        arguments = arguments[2:]
    if any(name.startswith("-") for name in arguments):
        print("usage: test_interop.py [--bin DIR] [NAME]...", file=sys.stderr)
        return 2
    module = sys.modules["__main__"]
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromNames(arguments, module) if arguments else loader.loadTestsFromModule(module)
    report = Report()
    suite.run(report)
    print(f"{report.passed} passed, {report.failed} failed")
    return 0 if report.failed == 0 and report.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
