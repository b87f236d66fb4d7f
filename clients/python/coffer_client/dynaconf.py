"""A loader for dynaconf: `LOADERS_FOR_DYNACONF=["dynaconf.loaders.env_loader", "coffer_client.dynaconf"]`."""

from __future__ import annotations

from typing import Any

from .settings import Settings
from .values import plain


def load(obj: Any, env: str | None = None, silent: bool = True, key: str | None = None, filename: str | None = None) -> None:
    """Sets the values of the collections, now and at each `reload()`.

    `COFFER_FOR_DYNACONF` is a dictionary: `collections`, a list, and further arguments of `Settings`. A key `database-url` becomes
    `DATABASE_URL`.
    """
    options = dict(obj.get("COFFER_FOR_DYNACONF"))
    collections = options.pop("collections")
    with Settings(*collections, **options | {"reveal": True}) as settings:
        for collection in collections:
            for item in settings.items(collection):
                name = item.key.replace("-", "_").upper()
                if key is None or key.upper() == name:
                    obj.set(name, plain(item.value), loader_identifier="coffer")
