"""The change log of a store."""

from __future__ import annotations

import hashlib
import sqlite3
import struct
from dataclasses import dataclass
from typing import Any, Iterator

from .errors import Damaged
from .fields import Fields
from .tables import Author, author_of, reading
from .values import as_bytes, as_text


@dataclass(frozen=True)
class KeyChange:
    """What became of a key."""

    key: str
    #: `inserted`, `updated`, `removed` or `touched`.
    what: str
    object_changed: bool
    metadata_changed: bool
    #: When it expired, if it was removed for that.
    expired: int | None = None


@dataclass(frozen=True)
class CollectionChange:
    """What became of a collection, by its number."""

    collection: int
    cleared: bool
    #: Whether more keys changed than are listed.
    more: bool
    keys: tuple[KeyChange, ...]


@dataclass(frozen=True)
class Change:
    """A commit."""

    sequence: int
    noise: bytes
    #: In milliseconds since 1970.
    time: int
    writer: Any
    author: Author | None
    total: int
    size: int
    #: What it did besides changing keys: phrases, each with the collection concerned or None.
    actions: tuple[tuple[str, str | None], ...]
    #: Whether it cleared the whole store.
    cleared: bool
    collections: tuple[CollectionChange, ...]


def decode_changed_keys(data: bytes) -> tuple[bool, tuple[CollectionChange, ...]]:
    """What `changes.keys` holds: whether everything was cleared, and what became of each collection."""
    fields = Fields(data, "a row of the change log")
    cleared = flags_of(fields, 0b101) & 1 == 1
    found: list[CollectionChange] = []
    while not fields.at_end:
        collection, form, count = fields.varint(), flags_of(fields, 0b111), fields.varint()
        keys = []
        for _ in range(count):
            bits = flags_of(fields, 0b11111)
            key = as_text(fields.bytes(fields.varint()))
            what = ("inserted", "updated", "removed", "touched")[bits & 3]
            if bits & 16 and what != "removed":
                raise Damaged("The store is damaged: a key expired according to the change log, but exists.")
            expired = struct.unpack(">q", fields.bytes(8))[0] if bits & 16 else None
            keys.append(KeyChange(key, what, bool(bits & 4), bool(bits & 8), expired))
        if found and collection <= found[-1].collection:
            raise Damaged("The store is damaged: the collections of a row of the change log are not in order.")
        found.append(CollectionChange(collection, bool(form & 1), bool(form & 2), tuple(keys)))
    return cleared, tuple(found)


def flags_of(fields: Fields, known: int) -> int:
    bits = fields.integer(1)
    if bits & ~known:
        raise Damaged("The store is damaged: a row of the change log has unknown bits.")
    if known in (0b101, 0b111) and bits & 5 == 4:
        raise Damaged("The store is damaged: the change log has erased what it did not clear.")
    return bits


def actions_of(text: Any) -> tuple[tuple[str, str | None], ...]:
    """What a commit did besides changing keys: phrases, each with the collection concerned or None."""
    lines = [] if text is None else as_text(text).split("\n")
    return tuple((phrase, name if tab else None) for phrase, tab, name in (line.partition("\t") for line in lines))


def changes(plain: sqlite3.Connection) -> Iterator[Change]:
    """Every row of the change log, decoded, the oldest first."""
    with reading():
        rows = plain.execute(
            "SELECT sequence, noise, time, writer, author, total, action, keys FROM changes ORDER BY sequence")
        for sequence, noise, time, writer, author, total, action, keys in rows:
            keys = as_bytes(keys)
            size = len(keys) + sum(0 if text is None else len(as_bytes(text)) for text in (author, action))
            yield Change(
                sequence, as_bytes(noise), time, writer, author_of(author), total, size, actions_of(action),
                *decode_changed_keys(keys))


def split_changed_keys(data: bytes) -> tuple[int, list[tuple[int, int, bytes]]]:
    """The first byte of `changes.keys`, and id, form and list of each collection as they lie there."""
    fields = Fields(data, "a row of the change log")
    first = fields.integer(1)
    parts = []
    while not fields.at_end:
        collection, form = fields.varint(), fields.integer(1)
        before = fields.offset
        for _ in range(fields.varint()):
            bits = fields.integer(1)
            fields.bytes(fields.varint() + (8 if bits & 16 else 0))
        parts.append((collection, form, data[before : fields.offset]))
    return first, parts


def log_problems(plain: sqlite3.Connection) -> list[str]:
    """What is wrong with the chain of the change log."""
    with reading():
        start = plain.execute("SELECT value FROM meta WHERE name = 'log_start'").fetchone()
        rows = plain.execute(
            "SELECT sequence, noise, time, writer, author, total, digest, action, link, keys FROM changes"
            " ORDER BY sequence"
        ).fetchall()
    previous, previous_total, previous_link = None, 0, bytes(16)
    if start is not None:
        if len(start[0]) != 32:
            raise Damaged("The store is damaged: the start of the change log does not parse.")
        previous, previous_total = struct.unpack(">qq", start[0][:16])
        previous_link = start[0][16:]
    problems = []
    emptied: dict[int, int] = {}  # collection: the first commit whose list of its keys was emptied, and that nothing explains yet
    sweep = None  # the last commit after which old rows were dropped
    for sequence, noise, time, writer, author, total, digest, action, link, keys in rows:
        noise, digest, link = as_bytes(noise), as_bytes(digest), as_bytes(link)
        if sequence % 64 == 0:
            sweep = sequence, total
        if previous is not None and sequence != previous + 1:
            problems.append(f"commits are missing before {sequence}")
        else:
            size = len(as_bytes(keys))
            size += sum(0 if part is None else len(as_bytes(part)) for part in (author, action))
            text = previous_link + struct.pack(">qqqqq", previous_total, sequence, time, writer, total) + noise
            for part in (author, action):
                part = None if part is None else as_bytes(part)
                text += struct.pack(">I", 2**32 - 1 if part is None else len(part)) + (part or b"")
            first, parts = split_changed_keys(as_bytes(keys))
            text += bytes([first])
            lost, changed = [], len(noise) != 16 or len(digest) != 16 * len(parts)
            for index, (collection, form, listed) in enumerate(parts):
                committed = digest[16 * index : 16 * index + 16]
                found = hashlib.sha256(noise + listed).digest()[:16]
                if found != committed and form & 2 and listed == b"\0":
                    lost.append(collection)
                    form &= ~2
                elif found != committed:
                    changed = True
                text += struct.pack(">QB", collection, form) + committed
            if changed or hashlib.sha256(text).digest()[:16] != link:
                problems.append(f"commit {sequence}, or what was before it, was changed")
            elif total - previous_total < size or (total - previous_total > size and not lost):
                problems.append(f"commit {sequence} says that it is larger or smaller than it is")
            else:
                erased = {collection for collection, form, _ in parts if form & 4}
                emptied = {
                    collection: where for collection, where in emptied.items()
                    if not first & 4 and collection not in erased
                }
                for collection in lost:
                    emptied.setdefault(collection, sequence)
        previous, previous_total, previous_link = sequence, total, link
    for collection, where in sorted(emptied.items(), key=lambda item: item[1]):
        problems.append(f"keys were taken out of commit {where}, and nothing erased collection {collection}")
    if start is not None and rows:
        first, dropped = struct.unpack(">qq", start[0][:16])
        old = sweep is not None and (first <= sweep[0] - 10_000 or dropped < sweep[1] - (4 << 20))
        if rows[0][0] == first + 1 and not old:
            problems.append(f"the commits up to {first} were taken out before their time")
    return problems
