"""Attacks on the store in vectors/, for readers to accept or refuse: what someone can write without its keys, or with them.

`test_attacks.py --write` writes them to vectors/store-attacks.json. Random bytes come from a counter, so that the file is always the
same.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import pathlib
import sqlite3
import struct
import tempfile
from typing import Any, Callable, Optional

import sealing
from coffer_reader.ciphers import XAES, hkdf
from coffer_reader.envelope import PAGE, Envelope
from coffer_reader.keys import KeyFile
from coffer_reader.pages import LABEL, USABLE, Log, SealedPage
from coffer_reader.store import Store
from fleet_writer import Random

VECTORS = pathlib.Path(__file__).resolve().parent / "vectors"
SIZE, COPY, FRAME = Envelope.SIZE, Envelope.COPY, Log.FRAME
# Where SQLite keeps what changes with its version: its counters, and its own number.
COUNTERS = (slice(24, 28), slice(92, 100))


def vector(name: str, folder: pathlib.Path = VECTORS) -> bytes:
    """What a file of lines `offset: 32 bytes` stands for."""
    data = bytearray()
    for line in (folder / name).read_text().splitlines():
        offset, digits = line.split(": ")
        data += bytes(int(offset, 16) - len(data)) + bytes.fromhex(digits)
    return bytes(data)


SECRETS = json.loads((VECTORS / "store-1.json").read_text())
STORE, LOG = vector("store-1.hex"), vector("store-1-wal.hex")


def patches(before: bytes, after: bytes) -> dict:
    """What changes the one into the other: a size, if that differs, and bytes at offsets."""
    found: list = []
    start = None
    common = before.ljust(len(after), b"\0")
    for offset in range(0, len(after), 8):
        differs = common[offset : offset + 8] != after[offset : offset + 8]
        if differs and start is None:
            start = offset
        if start is not None and not differs:
            found.append([start, after[start:offset].hex()])
            start = None
    if start is not None:
        found.append([start, after[start:].hex()])
    return {**({} if len(before) == len(after) else {"size": len(after)}), "bytes": found}


def patched(before: bytes, changes: dict) -> bytes:
    """The reverse; bytes that are not given are zeros behind the end of the original."""
    data = bytearray(before[: changes.get("size", len(before))].ljust(changes.get("size", len(before)), b"\0"))
    for offset, digits in changes["bytes"]:
        data[offset : offset + len(digits) // 2] = bytes.fromhex(digits)
    return bytes(data)


class Crafted:
    """A copy of the vector and its log, with all keys."""

    def __init__(self, seed: str):
        self.random = Random(seed)
        self.store, self.log = bytearray(STORE), bytearray(LOG)
        self.envelope = Envelope.parse(STORE)
        secret = KeyFile(bytes.fromhex(SECRETS["key"]))
        self.id, self.root = self.envelope.store_id, self.envelope.root_key(secret)
        epoch, = self.envelope.epochs
        wrapping = XAES(hkdf(self.root, self.id, "coffer v1 epoch wrapping"))
        self.epoch_key = wrapping.open(epoch.wrapped[:24], epoch.wrapped[24:], epoch.authenticated + self.id)
        self.new = sealing.NewStore(
            [], store_id=self.id, root_key=self.root, epochs={epoch.number: self.epoch_key}, random=self.random.take)

    # MARK: Without the key

    def flip(self, offset: int, bit: int = 3) -> None:
        self.store[offset] ^= 1 << bit

    def flip_both(self, offset: int) -> None:
        """The same bit in both copies of the envelope, under checksums that anyone can compute."""
        copy = bytearray(self.store[:COPY])
        copy[offset] ^= 8
        self.store[:SIZE] = sealing.with_checksum(bytes(copy)) * 2

    def page(self, number: int) -> slice:
        return slice(SIZE + (number - 1) * PAGE, SIZE + number * PAGE)

    def frame(self, number: int) -> slice:
        return slice(32 + (number - 1) * FRAME, 32 + number * FRAME)

    # MARK: With the key

    def records(self) -> list:
        """The slots and the epochs of the envelope, as bytes."""
        found, offset = [], 56
        for _ in range(self.store[54] + self.store[55]):
            length = int.from_bytes(self.store[offset : offset + 2], "big")
            found.append(bytes(self.store[offset + 2 : offset + 2 + length]))
            offset += 2 + length
        return found

    def copy(
        self, head: Callable = lambda head: head, slots: Optional[list] = None, epochs: Optional[list] = None,
        rest: bytes = bytes(104), padding: bytes = b"", root: Optional[bytes] = None
    ) -> bytes:
        """A copy of the envelope with a MAC and a checksum as they must be: a reader refuses it for its contents alone."""
        records = self.records()
        slots, epochs = slots or records[:-1], epochs or records[-1:]
        data = bytearray(self.store[:56])
        data[54:56] = bytes([len(slots), len(epochs)])
        data = bytearray(head(bytes(data)))
        data += b"".join(struct.pack(">H", len(record)) + record for record in slots + epochs) + rest
        key = hkdf(root or self.root, self.id, "coffer v1 envelope MAC")
        data += hmac.new(key, data, hashlib.sha256).digest() + padding
        return sealing.with_checksum(bytes(data).ljust(Envelope.CHECKED, b"\0"))

    def both(self, **fields: Any) -> None:
        self.store[:SIZE] = self.copy(**fields) * 2

    def slot(self, **fields: Any) -> bytes:
        """A slot that the key opens."""
        new = sealing.NewSlot(
            fields.pop("secret", bytes.fromhex(SECRETS["key"])), fields.pop("id", 9), salt=self.random.take(32),
            random=self.random.take, **fields)
        return new.record(self.root, self.id)

    def plain_page(self, number: int) -> bytes:
        sealed = SealedPage(bytes(self.store[self.page(number)]))
        keys = self.envelope.epochs[0].keys(self.root, self.id)
        return sealed.open({sealed.epoch: keys}, LABEL + struct.pack(">II", 1, number))

    def seal(self, number: int, plain: bytes, additional: Optional[bytes] = None, mark: int = 0) -> None:
        place = additional or LABEL + struct.pack(">II", 1, number)
        self.store[self.page(number)] = self.new._seal(self.envelope.epochs[0].number, plain, place, mark)

    def change_page(self, number: int, offset: int, data: bytes) -> None:
        plain = self.plain_page(number)
        self.seal(number, plain[:offset] + data + plain[offset + len(data) :])

    def sql(self, *statements: Any) -> None:
        """Changes rows, and seals the pages that have changed."""
        count = (len(self.store) - SIZE) // PAGE
        before = [self.plain_page(number + 1) for number in range(count)]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "plain.db"
            first = before[0][:18] + b"\1\1" + before[0][20:]
            path.write_bytes(b"".join([first, *before[1:]]))
            with contextlib.closing(sqlite3.connect(path)) as plain:
                plain.execute("PRAGMA secure_delete = ON")
                for statement in statements:
                    plain.execute(*statement) if isinstance(statement, tuple) else plain.execute(statement)
                plain.commit()
            after = path.read_bytes()
        first = bytearray(after[:PAGE])
        first[18:20] = b"\2\2"
        for part in COUNTERS:
            first[part] = before[0][part]
        pages = [bytes(first), *(after[start : start + PAGE] for start in range(PAGE, len(after), PAGE))]
        self.store = self.store.ljust(SIZE + len(after), b"\0")
        for number, page in enumerate(pages, 1):
            if number > count or page[: USABLE] != before[number - 1][: USABLE]:
                self.seal(number, page)


# MARK: - The cases

CASES: list = []
ALL, WITHOUT_LOG = "store-1", "store-1 without its log"


def case(section: str, description: str, *refused: str, **fields: Any):
    """A function that changes a copy of the vector: refused as one of these, or else read."""

    def add(function: Callable) -> Callable:
        CASES.append((section, description, refused, fields, function))
        return function

    return add


def cases() -> list:
    import store_attacks  # noqa: F401 — it adds them.

    found = []
    for number, (section, description, refused, fields, function) in enumerate(CASES):
        crafted = Crafted(f"store {number}")
        function(crafted)
        fields = dict(fields)
        verdict = {"refused": list(refused)} if refused else {"contents": fields.pop("contents", ALL)}
        log = None if fields.pop("without_log", "key" in fields.get("needs", "")) else patches(LOG, bytes(crafted.log))
        if log is None and not refused and verdict["contents"] == ALL:
            verdict["contents"] = WITHOUT_LOG
        found.append(
            {
                "case": description, "section": section, "needs": fields.pop("needs", "no key"),
                "store": patches(STORE, bytes(crafted.store)), "log": log, **fields, **verdict,
            })
    return found


def put(found: dict, folder: pathlib.Path) -> pathlib.Path:
    """Writes the store of a case into a folder, with its log and the keys beside it."""
    store = folder / "settings.coffer"
    files = {
        store: patched(STORE, found["store"]),
        folder / "key": f"coffer-key-1:{SECRETS['key']}\n".encode(),
        folder / "vault-key": f"coffer-key-1:{SECRETS['vaultKey']}\n".encode(),
    }
    if found["log"] is not None:
        files[folder / "settings.coffer-wal"] = patched(LOG, found["log"])
    for path, data in files.items():
        path.write_bytes(data)
        path.chmod(0o600)
    return store


def contents(plain: sqlite3.Connection) -> dict:
    """The items of a plain database that have not expired: kind and bytes, by collection and key."""
    found: dict = {}
    rows = plain.execute(
        "SELECT name, key, type, data FROM items JOIN collections ON collections.id = items.collection"
        " WHERE expires IS NULL OR expires > ? ORDER BY 1, 2", (sealing.NOW,))
    for name, key, kind, data in rows:
        found.setdefault(name.decode(), {})[key.decode()] = [kind, data.hex()]
    return found


def states() -> dict:
    """What the store holds, sealed values as they are, with its log and without."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "settings.coffer"
        path.write_bytes(STORE)
        for name in (WITHOUT_LOG, ALL):
            if name == ALL:
                path.with_name(path.name + "-wal").write_bytes(LOG)
            found[name] = contents(Store(path, KeyFile(bytes.fromhex(SECRETS["key"]))).plain())
    return found


def document() -> dict:
    from store_attacks import LENIENT_VALUES, REFUSED_VALUES

    def values(found: dict, **verdict: Any) -> list:
        return [{"case": name, "kind": kind, "bytes": data.hex(), **verdict} for name, (kind, data) in found.items()]

    return {
        "states": states(), "cases": cases(),
        "values": values(REFUSED_VALUES, refused=["damaged"]) + values(LENIENT_VALUES, mayRead=True),
    }

