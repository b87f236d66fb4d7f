"""A loader for dynaconf: `LOADERS_FOR_DYNACONF=["dynaconf.loaders.env_loader", "coffer_client.dynaconf"]`."""

from __future__ import annotations

import json
from typing import Any

from .errors import CofferError
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
        items = [item for collection in collections for item in settings.items(collection)]
    named = {item.key.replace("-", "_").upper(): item for item in items}
    wanted = {name: item for name, item in named.items() if key is None or key.upper() == name}
    for name, item in wanted.items():
        obj.set(name, escaped(plain(item.value)), loader_identifier="coffer")
    for name, item in wanted.items():
        if [obj.get(name)] != [plain(item.value)]:  # In lists, for NaN is not itself.
            place = f"{item.collection}/{item.key}"
            raise CofferError(f'dynaconf makes something else of {place}: it must convert "@json", merge nothing, and split no names at dots.')


def escaped(value: Any) -> Any:
    """Has dynaconf return text as it is, which it evaluates if it begins with a name of its own, such as "@format"."""
    if isinstance(value, str) and value.startswith("@"):
        return "@json " + json.dumps(value)
    if isinstance(value, dict):
        return {key: escaped(element) for key, element in value.items()}
    return [escaped(element) for element in value] if isinstance(value, list) else value
