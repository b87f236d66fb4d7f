"""Values as text: as `prefs get` prints them, and as JSON that `prefs import` takes."""

from __future__ import annotations

import base64
import json
import math
import uuid
from typing import Any

from .values import JSON, URL, Date, Sealed, Secret

MARKS = {
    "$null", "$int", "$double", "$string", "$data", "$date", "$url", "$uuid", "$json", "$secret", "$dict",
}


def text(value: Any) -> str:
    """One line, without secrets."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float, Secret, Sealed)):
        return str(value)
    if isinstance(value, (bytes, Date, URL, uuid.UUID)):
        return str(plain(value))
    if isinstance(value, JSON):
        return value.text
    return json.dumps(plain(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def raw(value: Any) -> bytes:
    """The bytes of one value, a secret included."""
    if isinstance(value, (bytes, Secret)):
        return value if isinstance(value, bytes) else value.data
    return text(value).encode()


def plain(value: Any) -> Any:
    """A value in JSON's types, as people read it: dates, data, URLs and UUIDs as text."""
    if isinstance(value, list):
        return [plain(element) for element in value]
    if isinstance(value, dict):
        return {key: plain(element) for key, element in value.items()}
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Date):
        return value.text
    if isinstance(value, URL):
        return value.text if value.base is None else f"{value.text} (relative to {value.base})"
    if isinstance(value, uuid.UUID):
        return str(value).upper()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def marked(value: Any, reveal: bool) -> Any:
    """A value in JSON's types, as `prefs export` writes it: a dictionary with one name says which type it has."""
    if isinstance(value, list):
        return [marked(element, reveal) for element in value]
    if isinstance(value, dict):
        members = {key: marked(element, reveal) for key, element in value.items()}
        return {"$dict": members} if len(members) == 1 and MARKS & members.keys() else members
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$double": str(value)}
    if isinstance(value, bytes):
        return {"$data": plain(value)}
    if isinstance(value, Date):
        # Seconds since 2001, exactly, where milliseconds are not.
        return {"$date": value.text if value.is_of_milliseconds else marked(value.seconds, reveal)}
    if isinstance(value, URL):
        return {"$url": value.text if value.base is None else [value.text, value.base]}
    if isinstance(value, uuid.UUID):
        return {"$uuid": plain(value)}
    if isinstance(value, JSON):
        return {"$json": value.text}
    if isinstance(value, Secret) and reveal:
        try:
            return {"$secret": value.text}
        except ValueError:
            return {"$secret": marked(value.data, reveal)}
    return str(value) if isinstance(value, (Secret, Sealed)) else value
