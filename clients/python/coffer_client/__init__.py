"""Live settings of a Coffer store: read from memory, followed as they change, and set with every check of `prefs`.

    from coffer_client import Settings

    with Settings("web", store="settings.coffer", key_file="settings.key") as settings:
        print(settings.get("web", "port", int))
"""

from .errors import CofferError, Conflict, InvalidValue, NotFound, Unavailable
from .settings import Settings, Transaction
from .values import JSON, URL, Item, Marked, Secret

__all__ = [
    "JSON", "URL", "CofferError", "Conflict", "InvalidValue", "Item", "Marked", "NotFound", "Secret", "Settings", "Transaction", "Unavailable",
]
