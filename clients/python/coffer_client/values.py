"""Items and values, as Python objects and in the form of the protocol, which is that of `prefs export --format json`."""

from __future__ import annotations

import base64
import datetime
import hmac
import json
import math
import uuid
from dataclasses import dataclass, field
from typing import Any, Callable
from urllib.parse import urljoin

from .errors import CofferError, InvalidValue, NotFound

EPOCH = datetime.datetime(2001, 1, 1, tzinfo=datetime.timezone.utc)
NOTHING: Any = object()


class Secret:
    """A secret, which is printed as its length; no dataclass, for `asdict` would show it."""

    def __init__(self, value: str | bytes) -> None:
        self.data = value.encode() if isinstance(value, str) else value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(self.data, other.data)

    def __hash__(self) -> int:
        return hash(self.data)

    @property
    def text(self) -> str:
        """`ValueError` for a secret that is not text."""
        return self.data.decode()

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
    stored: Any = field(default=NOTHING, repr=False)
    store: str = field(default="", repr=False, compare=False)

    @staticmethod
    def of(store: str, members: dict[str, Any]) -> Item:
        """One of the store with this ID; "" if that is unknown."""
        known = {name: members[name] for name in Item.__slots__ if name in members}
        return Item(**known | {"store": store, "stored": decode(members["value"]) if "value" in members else NOTHING})

    @property
    def expected(self) -> dict[str, Any]:
        """The store that the version is of, for a request."""
        return {"store": self.store} if self.store else {}

    @property
    def is_set(self) -> bool:
        """Whether it has a value or a default."""
        return self.type is not None

    @property
    def value(self) -> Any:
        """`NotFound` if there is none, `InvalidValue` if the protocol has no form for it; "hidden" if it is a secret that was not asked
        for, or sealed."""
        if self.stored is not NOTHING:
            return self.stored
        name = f"{self.collection}/{self.key}"
        if not self.is_set:
            raise NotFound(f"There is no {name}: {self.problem}." if self.problem else f"There is no {name}.")
        if self.sealed:
            raise CofferError(f"{name} is sealed, and the vault is locked: prefs unlock opens it.", "hidden")
        if self.type == "secret":
            raise CofferError(f"{name} is a secret: read it with secret(), or give Settings reveal=True.", "hidden")
        if self.problem:
            raise InvalidValue(f"{name} has a value that cannot be read: {self.problem}.")
        raise CofferError(f"This item of {name} is the answer to a change, without a value: read it with get().", "hidden")


def plain(value: Any) -> Any:
    """For programs that know nothing of this package."""
    return value.text if isinstance(value, Secret) else value.value if isinstance(value, JSON) else value


def decode(value: Any) -> Any:
    if isinstance(value, list):
        return [decode(element) for element in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and (mark := next(iter(value))) in MARKS:
        return MARKS[mark](value[mark])
    return decode_members(value)


def decode_members(members: dict[str, Any]) -> dict[str, Any]:
    return {key: decode(element) for key, element in members.items()}


def decode_date(content: Any) -> Any:
    try:
        if isinstance(content, str):
            return datetime.datetime.fromisoformat(content)
        return EPOCH + datetime.timedelta(seconds=decode(content))
    except (ValueError, OverflowError):
        return Marked({"$date": content})


MARKS: dict[str, Callable[[Any], Any]] = {
    "$null": lambda _: None,
    "$int": int,
    "$double": lambda text: math.nan if text.startswith("0x") else float(text),
    "$string": str,
    "$data": base64.b64decode,
    "$date": decode_date,
    "$url": lambda url: URL(url if isinstance(url, str) else urljoin(url[1], url[0])),
    "$uuid": uuid.UUID,
    "$json": lambda content: JSON(json.loads(content) if isinstance(content, str) else decode(content)),
    "$secret": lambda content: Secret(decode(content)),
    "$dict": decode_members,
}


def encode(value: Any) -> Any:
    if isinstance(value, URL):
        return {"$url": str(value)}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$double": str(value)}
    if isinstance(value, (list, tuple)):
        return [encode(element) for element in value]
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("A dictionary whose keys are not all strings cannot be stored.")
        members = {key: encode(element) for key, element in value.items()}
        return {"$dict": members} if len(members) == 1 and MARKS.keys() & members.keys() else members
    if isinstance(value, (bytes, bytearray)):
        return {"$data": base64.b64encode(value).decode()}
    if isinstance(value, datetime.datetime):
        if not value.tzinfo:
            raise TypeError("A datetime without a time zone cannot be stored.")
        if value.microsecond % 1000:
            return {"$date": (value - EPOCH).total_seconds()}
        return {"$date": value.astimezone(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")}
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
    raise TypeError(f"A {type(value).__name__} cannot be stored: use None, bool, int, float, str, bytes, datetime, UUID, list, dict, "
                    "URL, JSON or Secret.")
