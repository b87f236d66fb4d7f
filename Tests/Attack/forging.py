"""What someone with keys writes: stores sealed as FORMAT.md says, with other contents."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import pathlib
import sqlite3
import struct
from typing import Any, Optional

import sealing
from coffer_reader.changes import split_changed_keys
from coffer_reader.ciphers import XAES, hkdf
from coffer_reader.envelope import Envelope
from coffer_reader.keys import Key
from samples import COPY, SIZE
from workshop import Place


class Keys:
    """The root key of a store, and those of its epochs, by one of its secrets."""

    def __init__(self, data: bytes, secret: Key):
        self.envelope = Envelope.parse(data)
        self.id, self.root = self.envelope.store_id, self.envelope.root_key(secret)
        wrapping = XAES(hkdf(self.root, self.id, "coffer v1 epoch wrapping"))
        self.epochs = {
            epoch.number: wrapping.open(epoch.wrapped[:24], epoch.wrapped[24:], epoch.authenticated + self.id)
            for epoch in self.envelope.epochs
        }

    def named(self) -> dict:
        """Each key that a program with an open store has."""
        found = {"the root key": self.root}
        for number, key in self.epochs.items():
            found[f"the key of epoch {number}"] = key
            found[f"the page key of epoch {number}"] = hkdf(key, self.id, "coffer v1 page")
        return found

    def pages(self, plain: bytes) -> bytes:
        """All pages under the newest epoch."""
        newest = max(self.epochs)
        new = sealing.NewStore([], store_id=self.id, root_key=self.root, epochs={newest: self.epochs[newest]})
        return new.pages(plain)


@contextlib.contextmanager
def plain_database(path: pathlib.Path):
    """Rows to change; text is bytes."""
    with contextlib.closing(sqlite3.connect(path)) as plain:
        plain.execute("PRAGMA secure_delete = ON")
        plain.text_factory = bytes
        yield plain
        plain.commit()


def as_sealed(path: pathlib.Path) -> bytes:
    """A plain database, as one that has a log."""
    data = path.read_bytes()
    return data[:18] + b"\2\2" + data[20:]


def forge(place: Place, *changes: Any, keys: Optional[Keys] = None) -> None:
    """Changes rows of a store with its key, leaving no trace but what the changes leave."""
    path = place.plain()
    with plain_database(path) as plain:
        for change in changes:
            change(plain) if callable(change) else plain.execute(change)
    data = place.store.read_bytes()
    keys = keys or Keys(data, place.secret)
    place.write(place.store, data[:SIZE] + keys.pages(as_sealed(path)))
    place.log.unlink(missing_ok=True)
    place.shared.unlink(missing_ok=True)


def rebuild_chain(plain: sqlite3.Connection) -> None:
    """Gives every row of the change log the link that it must have: the chain has no key."""
    total, link = 0, bytes(16)
    start = plain.execute("SELECT value FROM meta WHERE name = 'log_start'").fetchone()
    if start is not None:
        total, link = struct.unpack(">q", start[0][8:16])[0], start[0][16:]
    rows = plain.execute(
        "SELECT sequence, noise, time, writer, author, digest, action, keys FROM changes ORDER BY sequence"
    ).fetchall()
    for sequence, noise, time, writer, author, digest, action, keys in rows:
        size = len(keys) + sum(len(part) for part in (author, action) if part is not None)
        text = link + struct.pack(">qqqqq", total, sequence, time, writer, total + size) + noise
        for part in (author, action):
            text += struct.pack(">I", 2**32 - 1 if part is None else len(part)) + (part or b"")
        first, parts = split_changed_keys(keys)
        text += bytes([first])
        digests = [hashlib.sha256(noise + listed).digest()[:16] for _, _, listed in parts]
        for (collection, form, _), committed in zip(parts, digests):
            text += struct.pack(">QB", collection, form) + committed
        total, link = total + size, hashlib.sha256(text).digest()[:16]
        plain.execute(
            "UPDATE changes SET total = ?, link = ?, digest = ? WHERE sequence = ?", (total, link, b"".join(digests), sequence)
        )


def records(copy: bytes) -> list:
    """The slots and epochs of a copy of the envelope, as bytes, after one another."""
    found, offset = [], 56
    for _ in range(copy[54] + copy[55]):
        length = int.from_bytes(copy[offset : offset + 2], "big")
        found.append(copy[offset + 2 : offset + 2 + length])
        offset += 2 + length
    return found


def forged_envelope(older: bytes, keys: Keys, sequence: int, epochs: dict) -> bytes:
    """An envelope with the slots of an older one, and epochs and a sequence of one's own, under its root key."""
    slots = records(older)[: older[54]]
    new = sealing.NewStore([], store_id=keys.id, root_key=keys.root, epochs=epochs)
    wrapped = [new._epoch_record(number, key) for number, key in epochs.items()]
    data = older[:12] + bytes(4) + struct.pack(">Q", sequence) + older[24:54] + bytes([len(slots), len(wrapped)])
    data += b"".join(struct.pack(">H", len(record)) + record for record in slots + wrapped)
    end = 56 + sum(2 + len(record) for record in records(older))
    data += older[end : end + 104]
    mac = hmac.new(hkdf(keys.root, keys.id, "coffer v1 envelope MAC"), data, hashlib.sha256).digest()
    return sealing.with_checksum((data + mac).ljust(COPY - 96, b"\0"))


def new_epoch() -> bytes:
    return os.urandom(32)
