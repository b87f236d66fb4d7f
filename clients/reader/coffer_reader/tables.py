"""The tables of a store: items, earlier values, declarations."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from dataclasses import dataclass
from typing import Any, Iterator

from .errors import Damaged, NewerFormat
from .fields import Fields
from .values import KIND_NAMES, SEALED, as_bytes, as_text, decode_value


@dataclass(frozen=True)
class Item:
    """A setting. Times are in milliseconds since 1970."""

    collection: str
    key: str
    #: `string`, `int` and so on: one of `KIND_NAMES`.
    kind: str
    value: Any
    #: None where there is none.
    metadata: Any
    #: The number of the commit that set it.
    version: int
    modified: int
    #: The bytes of the stored value.
    size: int
    #: None for never.
    expires: int | None = None
    due: int | None = None
    #: None where the collection keeps no history.
    author: Author | None = None


@dataclass(frozen=True)
class HistoricItem:
    """An earlier value, with the commit that ended it."""

    item: Item
    ended: int
    time: int
    ended_by: Author | None


@dataclass(frozen=True)
class Author:
    """Who has changed something."""

    program: str
    user: str
    host: str
    #: The person or job that the program worked for, where it was named.
    actor: str | None


@dataclass(frozen=True)
class HistoryLimits:
    """How many earlier values a collection keeps, and for how long."""

    count: int
    #: In milliseconds.
    age: int | None


@contextlib.contextmanager
def reading() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise Damaged(f"The store is damaged: its tables cannot be read ({error}).")


def collections(plain: sqlite3.Connection) -> dict[int, str]:
    """The names of the collections, by id."""
    with reading():
        return {id: as_text(name) for id, name in plain.execute("SELECT id, name FROM collections")}


def refuse_unknown_flags(plain: sqlite3.Connection, collection: str | None = None) -> None:
    """Refuses a collection, or any, that a newer version may have filled with something else."""
    with reading():
        for name, flags in plain.execute("SELECT name, flags FROM collections"):
            if flags & ~7 and collection in (None, as_text(name)):
                raise NewerFormat(f"Collection {as_text(name)} has flags unknown to this reader.")


def sealed_collections(plain: sqlite3.Connection) -> frozenset[int]:
    """The collections whose values, and no others, are sealed."""
    with reading():
        return frozenset(id for id, in plain.execute("SELECT id FROM collections WHERE flags & 1"))


def items(plain: sqlite3.Connection, collection: str | None = None, key: str | None = None) -> Iterator[Item]:
    """Every item that has not expired, or those of one collection, or a single one, decoded, by collection and key."""
    refuse_unknown_flags(plain, collection)
    names, sealed = collections(plain), sealed_collections(plain)
    query = (
        "SELECT collection, key, type, data, metadata, version, modified, author, expires, due"
        " FROM items LEFT JOIN collections ON id = collection WHERE (expires IS NULL OR expires > ?)"
    )
    values: list[Any] = [int(time.time() * 1000)]
    if collection is not None:
        query += " AND collection = ?"
        values.append(next((id for id, name in names.items() if name == collection), None))
    if key is not None:
        query += " AND key = CAST(? AS TEXT)"
        values.append(key.encode())
    with reading():
        for row in plain.execute(query + " ORDER BY name, key", values):
            yield item_of(names, sealed, *row)


def item_of(
    names: dict[int, str], sealed: frozenset[int], collection: int, key: Any, kind: int, data: Any, metadata: Any, version: int,
    modified: int, author: Any, expires: int | None, due: int | None = None
) -> Item:
    if collection not in names or kind not in range(len(KIND_NAMES)):
        raise Damaged("The store is damaged: an item has no collection or an unknown type.")
    if (kind == SEALED) != (collection in sealed):
        raise Damaged("The store is damaged: an unsealed value in a sealed collection, or the reverse.")
    if metadata is not None:
        fields = Fields(as_bytes(metadata), "the metadata of an item")
        metadata = decode_value(fields.integer(1), fields.data[1:])
    return Item(
        names[collection], as_text(key), KIND_NAMES[kind], decode_value(kind, as_bytes(data)), metadata,
        version, modified, len(data), expires, due, author_of(author),
    )


def author_of(text: Any) -> Author | None:
    """Who wrote something, where that is noted; a note of another form says nothing."""
    lines = [] if text is None else as_text(text).split("\n")
    if len(lines) not in (3, 4):
        return None
    return Author(lines[0], lines[1], lines[2], lines[3] if len(lines) == 4 else None)


def history(plain: sqlite3.Connection) -> Iterator[HistoricItem]:
    """Every earlier value, decoded, by collection and key, the oldest first."""
    refuse_unknown_flags(plain)
    names, sealed = collections(plain), sealed_collections(plain)
    with reading():
        rows = plain.execute(
            "SELECT ended, time, ended_by, collection, key, type, data, metadata, version, modified, author, expires"
            " FROM history ORDER BY collection, key, version"
        )
        for ended, time, ended_by, *row in rows:
            yield HistoricItem(item_of(names, sealed, *row), ended, time, author_of(ended_by))


@dataclass(frozen=True)
class Declaration:
    """A setting as an application declared it."""

    collection: str
    key: str
    application: str
    #: The application's version, None where it says nothing.
    version: str | None
    #: Type, default, limits and so on, by name.
    members: dict[str, Any]


def declarations(plain: sqlite3.Connection) -> list[Declaration]:
    """The declared settings, in the order of their collections and keys."""
    with reading():
        if plain.execute("PRAGMA user_version").fetchone()[0] == 11:
            return []
        result = []
        for collection, key, application, version, text in plain.execute(
            "SELECT collection, key, application, version, declaration FROM declarations"
            " JOIN applications ON applications.name = application ORDER BY collection, key, application"
        ):
            members = json.loads(as_text(text))
            if (members["collection"], members["name"]) != (as_text(collection), as_text(key)):
                raise Damaged("The store is damaged: a declaration belongs to another setting.")
            result.append(
                Declaration(
                    as_text(collection), as_text(key), as_text(application),
                    None if version is None else as_text(version), members))
        return result


def history_limits(plain: sqlite3.Connection) -> dict[str, HistoryLimits]:
    """How much history the collections keep that keep any, by name."""
    found = {}
    refuse_unknown_flags(plain)
    with reading():
        for name, flags, count, age in plain.execute("SELECT name, flags, history_count, history_age FROM collections"):
            if flags & 2:
                if count is None or count < 1:
                    raise Damaged("The store is damaged: the history limit of a collection is invalid.")
                found[as_text(name)] = HistoryLimits(count, age)
    return found
