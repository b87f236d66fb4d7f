"""Live settings of a Coffer store: read from memory, followed as they change, and set with every check of `prefs`.

    from coffer_client import Settings

    with Settings("web", store="settings.coffer", key_file="settings.key") as settings:
        print(settings.get("web", "port", int))

It speaks with a child, `prefs serve`; Documentation/Serve.md of Coffer has the protocol.
"""

from .errors import (
    Busy, CofferError, Conflict, Hidden, InvalidValue, KeyUnavailable, Locked, NotFound, Refused, Unavailable, WrongKey, WrongType,
)
from .settings import Settings, Transaction
from .values import JSON, URL, Item, Marked, Secret

__all__ = [
    "JSON", "URL", "Busy", "CofferError", "Conflict", "Hidden", "InvalidValue", "Item", "KeyUnavailable", "Locked", "Marked",
    "NotFound", "Refused", "Secret", "Settings", "Transaction", "Unavailable", "WrongKey", "WrongType",
]
