"""What a store holds."""

from __future__ import annotations

import sqlite3
from typing import Any, Iterator

from . import changes, tables
from .changes import Change
from .errors import KeyMissing
from .tables import Declaration, HistoricItem, HistoryLimits, Item


class Contents:
    """Everything in a store, as of one commit, decrypted in memory.

    It has what is stored: neither the defaults of declared settings nor an administrator's values, and an environment,
    such as `web@staging`, is a collection of its own.
    """

    def __init__(self, plain: sqlite3.Connection):
        plain.text_factory = bytes
        self._plain = plain

    def items(self, collection: str | None = None) -> Iterator[Item]:
        """All settings that have not expired, or those of one collection, by collection and key.

        The name of the default collection is empty.
        """
        return tables.items(self._plain, collection)

    def item(self, collection: str, key: str) -> Item:
        """One setting; `KeyMissing` if there is none."""
        for item in tables.items(self._plain, collection, key):
            return item
        raise KeyMissing(f"There is no {collection}/{key}." if collection else f"There is no {key}.")

    def value(self, collection: str, key: str, default: Any = None) -> Any:
        """The value of one setting: None, bool, int, float, str, bytes, list, dict, UUID, or a class of this package."""
        try:
            return self.item(collection, key).value
        except KeyMissing:
            return default

    def collections(self) -> dict[int, str]:
        """The names of the collections, by their numbers, which changes have."""
        return tables.collections(self._plain)

    def history(self) -> Iterator[HistoricItem]:
        """Every earlier value, by collection and key, the oldest first."""
        return tables.history(self._plain)

    def history_limits(self) -> dict[str, HistoryLimits]:
        """How much history the collections keep that keep any, by name."""
        return tables.history_limits(self._plain)

    def declarations(self) -> list[Declaration]:
        """The declared settings, in the order of their collections and keys."""
        return tables.declarations(self._plain)

    def changes(self) -> Iterator[Change]:
        """Every commit of the change log, the oldest first."""
        return changes.changes(self._plain)

    def log_problems(self) -> list[str]:
        """What is wrong with the chain of the change log; nothing if it is as it was written."""
        return changes.log_problems(self._plain)
