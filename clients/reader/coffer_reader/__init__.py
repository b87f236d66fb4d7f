"""Reads stores and fleets of Coffer without Coffer, and changes nothing.

    import coffer_reader

    settings = coffer_reader.read("settings.coffer", coffer_reader.KeyFile.read("key"))
    print(settings.value("web", "port"))

Fleets are in `coffer_reader.fleet`. Written from FORMAT.md and FLEET.md of Coffer and nothing else.
"""

from .changes import Change, CollectionChange, KeyChange
from .contents import Contents
from .errors import (
    Busy, CofferError, Damaged, KeyMissing, KeyUnavailable, NewerFormat, NotAStore, OutputExists, StoreMissing, Unreadable, WrongKey,
)
from .keys import Key, KeyFile, Passphrase, RecoveryKey
from .store import Store, read
from .tables import Author, Declaration, HistoricItem, HistoryLimits, Item
from .values import JSON, KIND_NAMES, URL, Date, Sealed, Secret

__all__ = [
    "JSON", "KIND_NAMES", "URL", "Author", "Busy", "Change", "CofferError", "CollectionChange", "Contents", "Damaged", "Date",
    "Declaration", "HistoricItem", "HistoryLimits", "Item", "Key", "KeyChange", "KeyFile", "KeyMissing", "KeyUnavailable",
    "NewerFormat", "NotAStore", "OutputExists", "Passphrase", "RecoveryKey", "Sealed", "Secret", "Store", "StoreMissing",
    "Unreadable", "WrongKey", "read",
]
