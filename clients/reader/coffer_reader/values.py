"""Values, as Python objects."""

from __future__ import annotations

import datetime
import json
import struct
import uuid
from dataclasses import dataclass, field
from typing import Any, Iterator, NoReturn

from .ciphers import XAES
from .errors import Damaged
from .fields import Fields


@dataclass(frozen=True)
class Secret:
    """A secret, which is printed as its length."""

    data: bytes = field(repr=False)

    @property
    def text(self) -> str:
        """`ValueError` for a secret that is not text."""
        return self.data.decode("utf-8")

    def __repr__(self) -> str:
        return f"<secret: {len(self.data)} byte{'' if len(self.data) == 1 else 's'}>"


@dataclass(frozen=True)
class Sealed:
    """A value that only the vault opens."""

    data: bytes = field(repr=False)

    def __repr__(self) -> str:
        return "<sealed>"


BEFORE_2001 = 978_307_200  # seconds since 1970
EPOCH = datetime.datetime(2001, 1, 1, tzinfo=datetime.timezone.utc)


@dataclass(frozen=True)
class Date:
    """Seconds since 2001, all 64 bits of them."""

    seconds: float

    @property
    def datetime(self) -> datetime.datetime:
        """`OverflowError` or `ValueError` where Python's calendar does not reach that far."""
        return EPOCH + datetime.timedelta(seconds=self.seconds)

    @property
    def text(self) -> str:
        """`2026-01-31T08:30:00.250Z`; seconds since 1970 where Python's calendar does not reach that far."""
        try:
            moment = EPOCH + datetime.timedelta(milliseconds=round(self.seconds * 1000))
        except (OverflowError, ValueError):
            return str(self.seconds + BEFORE_2001)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    @property
    def is_of_milliseconds(self) -> bool:
        """Whether `text` stands for exactly this date."""
        if not self.text.endswith("Z"):
            return False
        # Dates are read from text as seconds since 1970, whose fractions have fewer bits.
        seconds, rest = divmod(round(self.seconds * 1000) + BEFORE_2001 * 1000, 1000)
        return seconds + rest / 1000 - BEFORE_2001 == self.seconds


@dataclass(frozen=True)
class URL:
    """A reference and its base, either of which may be empty."""

    text: str
    base: str | None = None


@dataclass(frozen=True)
class JSON:
    """JSON, as a program stored it."""

    text: str

    @property
    def value(self) -> Any:
        """`ValueError` where a program stored what is no JSON."""
        # Encoders write the double -0.0 as -0, which Python would read as the integer 0.
        return json.loads(self.text, parse_int=lambda digits: -0.0 if digits == "-0" else int(digits))


KIND_NAMES = (
    "null", "bool", "int", "uint64", "double", "string", "data", "date", "url", "uuid", "array", "dictionary", "json",
    "secret", "sealed",
)
(
    NULL, BOOL, INT, UINT64, DOUBLE, STRING, DATA, DATE, URL_KIND, UUID, ARRAY, DICTIONARY, JSON_KIND, SECRET, SEALED
) = range(15)
DEEPEST = 128  # levels below the outermost value


def malformed(kind: int) -> NoReturn:
    name = KIND_NAMES[kind] if kind < len(KIND_NAMES) else f"unknown kind {kind}"
    raise Damaged(f"The store is damaged: a value of type {name} is malformed.")


def as_bytes(data: Any) -> bytes:
    if not isinstance(data, bytes):
        raise Damaged("The store is damaged: a column does not contain bytes.")
    return data


def as_text(data: Any) -> str:
    try:
        return as_bytes(data).decode("utf-8")
    except UnicodeDecodeError:
        raise Damaged("The store is damaged: a name is not UTF-8.")


def decode_value(kind: int, data: bytes, depth: int = 0) -> Any:
    """A value as a Python object: None, bool, int, float, str, bytes, `Date`, `URL`, UUID, list, dict, `JSON`, `Secret`, or
    `Sealed`."""
    if depth > DEEPEST or (kind == NULL and depth == 0) or (kind in (SECRET, SEALED) and depth > 0):
        malformed(kind)
    try:
        if kind == NULL and not data:
            return None
        if kind == BOOL and data in (b"\0", b"\1"):
            return data == b"\1"
        if kind == INT:
            return struct.unpack(">q", data)[0]
        if kind == UINT64 and data >= b"\x80":
            return struct.unpack(">Q", data)[0]
        if kind == DOUBLE:
            return struct.unpack(">d", data)[0]
        if kind == STRING:
            return data.decode("utf-8")
        if kind == DATA:
            return data
        if kind == DATE:
            return Date(struct.unpack(">d", data)[0])
        if kind == URL_KIND:
            text, separator, base = data.decode("utf-8").partition("\0")
            if "\0" not in base:
                return URL(text, base if separator else None)
        if kind == UUID:
            return uuid.UUID(bytes=data)
        if kind == ARRAY:
            return list(decode_elements(data, depth + 1))
        if kind == DICTIONARY:
            return dict(decode_entries(data, depth + 1))
        if kind == JSON_KIND:
            return JSON(data.decode("utf-8"))
        if kind == SECRET:
            return Secret(data)
        if kind == SEALED and len(data) > 4 + XAES.NONCE + XAES.TAG:
            return Sealed(data)
    except (struct.error, UnicodeDecodeError, ValueError, RecursionError):
        pass
    malformed(kind)


def decode_element(fields: Fields, depth: int) -> Any:
    kind = fields.integer(1)
    return decode_value(kind, fields.bytes(fields.varint()), depth)


def decode_elements(data: bytes, depth: int) -> Iterator[Any]:
    fields = Fields(data, "an array")
    while not fields.at_end:
        yield decode_element(fields, depth)


def decode_entries(data: bytes, depth: int) -> Iterator[tuple[str, Any]]:
    fields = Fields(data, "a dictionary")
    last = None
    while not fields.at_end:
        key = fields.bytes(fields.varint())
        if last is not None and key <= last:
            raise Damaged("The store is damaged: the keys of a dictionary are not in order.")
        last = key
        yield key.decode("utf-8"), decode_element(fields, depth)
