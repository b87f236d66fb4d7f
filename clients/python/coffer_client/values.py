"""Items and values, as Python objects and in the form of the protocol, which is that of `prefs export --format json`."""

from __future__ import annotations

import base64
import datetime
import json
import math
import uuid
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

from .errors import Hidden, NotFound

EPOCH = datetime.datetime(2001, 1, 1, tzinfo=datetime.timezone.utc)
MARKS = {"$null", "$int", "$double", "$string", "$data", "$date", "$url", "$uuid", "$json", "$secret", "$dict"}
NOTHING: Any = object()


class Secret:
    """A secret, which is printed as its length."""

    def __init__(self, value: str | bytes) -> None:
        self.data = value.encode() if isinstance(value, str) else value

    @property
    def text(self) -> str:
        """`ValueError` for a secret that is not text."""
        return self.data.decode()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other.data == self.data

    def __hash__(self) -> int:
        return hash(self.data)

    def __repr__(self) -> str:
        return f"<secret: {len(self.data)} byte{'' if len(self.data) == 1 else 's'}>"


class URL(str):
    """A URL, which is not a string to the store."""


@dataclass(frozen=True)
class JSON:
    """JSON that the store keeps as one text."""

    value: Any


@dataclass(frozen=True)
class Marked:
    """A value that Python has no type for, such as a date beyond its calendar, in the form of the protocol."""

    form: Any


@dataclass(frozen=True, slots=True)
class Item:
    """A setting: its value, and what the store knows of it."""

    collection: str
    key: str
    version: int = 0
    type: str | None = None
    origin: str | None = None
    modified: str | None = None
    expires: str | None = None
    due: str | None = None
    sealed: bool = False
    problem: str | None = None
    stored: Any = NOTHING

    @staticmethod
    def of(members: dict[str, Any]) -> Item:
        known = {name: members[name] for name in Item.__slots__ if name in members}
        return Item(**known, stored=decode(members["value"])) if "value" in members else Item(**known)

    @property
    def is_set(self) -> bool:
        """Whether it has a value or a default."""
        return self.type is not None

    @property
    def value(self) -> Any:
        """`NotFound` if there is none; `Hidden` if it is a secret that was not asked for, or sealed."""
        if self.stored is not NOTHING:
            return self.stored
        if self.sealed:
            raise Hidden(f"{self.collection}/{self.key} is sealed, and the vault is locked: prefs unlock opens it.")
        if self.type == "secret":
            raise Hidden(f"{self.collection}/{self.key} is a secret: read it with secret(), or give Settings reveal=True.")
        if self.is_set:
            raise Hidden(f"This item of {self.collection}/{self.key} is the answer to a change, without a value: read it with get().")
        raise NotFound(f"There is no {self.collection}/{self.key}.")

    def __repr__(self) -> str:
        return f"<{self.collection}/{self.key}: {'no value' if self.stored is NOTHING else repr(self.stored)}>"


def decode(value: Any) -> Any:
    if isinstance(value, list):
        return [decode(element) for element in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and (mark := next(iter(value))) in MARKS:
        return decode_marked(mark, value[mark])
    return {key: decode(element) for key, element in value.items()}


def decode_marked(mark: str, content: Any) -> Any:
    match mark:
        case "$null":
            return None
        case "$int":
            return int(content)
        case "$double":
            return math.nan if content.startswith("0x") else float(content)
        case "$data":
            return base64.b64decode(content)
        case "$date":
            return date(decode(content))
        case "$url":
            return URL(content if isinstance(content, str) else urljoin(content[1], content[0]))
        case "$uuid":
            return uuid.UUID(content)
        case "$json":
            return JSON(json.loads(content) if isinstance(content, str) else decode(content))
        case "$secret":
            return Secret(decode(content))
        case "$dict":
            return {key: decode(element) for key, element in content.items()}
    return content


def date(content: str | float) -> Any:
    try:
        if isinstance(content, str):
            return datetime.datetime.fromisoformat(content)
        return EPOCH + datetime.timedelta(seconds=content)
    except (ValueError, OverflowError):
        return Marked({"$date": content})


def encode(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, URL):
        return {"$url": str(value)}
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$double": str(value)}
    if isinstance(value, (list, tuple)):
        return [encode(element) for element in value]
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("A dictionary whose keys are not all strings cannot be stored.")
        members = {key: encode(element) for key, element in value.items()}
        return {"$dict": members} if len(members) == 1 and MARKS & members.keys() else members
    if isinstance(value, (bytes, bytearray)):
        return {"$data": base64.b64encode(value).decode()}
    if isinstance(value, datetime.datetime) and value.tzinfo:
        value = value.astimezone(datetime.timezone.utc)
        if value.microsecond % 1000:
            return {"$date": (value - EPOCH).total_seconds()}
        return {"$date": value.isoformat(timespec="milliseconds").replace("+00:00", "Z")}
    if isinstance(value, uuid.UUID):
        return {"$uuid": str(value)}
    if isinstance(value, Marked):
        return value.form
    if isinstance(value, JSON):
        return {"$json": json.dumps(value.value, ensure_ascii=False, separators=(",", ":"))}
    if isinstance(value, Secret):
        try:
            return {"$secret": value.text}
        except ValueError:
            return {"$secret": encode(value.data)}
    raise TypeError(f"A {type(value).__name__} cannot be stored" + ("; give the date a time zone." if isinstance(
        value, datetime.datetime) else ": use None, bool, int, float, str, bytes, datetime, UUID, list, dict, URL, JSON or Secret."))
