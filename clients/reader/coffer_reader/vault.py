"""The vault of a store, which opens sealed values."""

from __future__ import annotations

import hmac
import re
import sqlite3
import struct

from cryptography.exceptions import InvalidTag

from .ciphers import XAES, hkdf
from .envelope import Slot, key_behind
from .errors import Damaged, WrongKey
from .fields import Fields
from .keys import Key
from .tables import reading, refuse_unknown_flags
from .values import SEALED, as_bytes


class Vault:
    """The vault of a plain database, opened with one of its secrets."""

    def __init__(self, plain: sqlite3.Connection, secret: Key):
        with reading():
            row = plain.execute("SELECT generation, id, mac, sealed, slots, succession FROM vault").fetchall()
        if not row:
            raise WrongKey("The store has no vault.")
        if len(row) > 1:
            raise Damaged("The store is damaged: it has more than one vault.")
        (self.generation, *blobs), = row
        self.id, mac, sealed, slots, self.succession = map(as_bytes, blobs)
        if (
            len(self.id) != 16
            or not 0 < self.generation < 1 << 32
            or len(self.succession) != 32
            or (self.generation == 1) == any(self.succession)
        ):
            raise Damaged("The store is damaged: its vault is invalid.")
        key = self._key(slots, secret)
        mac_key = hkdf(key, self.id, "coffer v1 vault MAC")
        lengths = struct.pack(">I", self.generation) + self.succession + struct.pack(">I", len(slots))
        covered = self.id + lengths + slots + sealed
        if not hmac.compare_digest(hmac.new(mac_key, covered, "sha256").digest(), mac):
            raise Damaged("The store is damaged: its vault was changed.")
        self.sealed = self._names(sealed)
        self._cipher = XAES(hkdf(key, self.id, "coffer v1 sealed value"))

    @staticmethod
    def _names(data: bytes) -> list[bytes]:
        """The collections that the vault says are sealed."""
        fields, names = Fields(data, "the vault"), list[bytes]()
        while not fields.at_end:
            names.append(fields.bytes(fields.integer(4)))
        if names != sorted(set(names)):
            raise Damaged("The store is damaged: its vault has a collection twice, or out of order.")
        return names

    def _key(self, data: bytes, secret: Key) -> bytes:
        fields, slots = Fields(data, "the vault"), list[Slot]()
        while not fields.at_end:
            slots.append(Slot.parse(fields.bytes(fields.integer(2))))
        if not 1 <= len(slots) <= 16 or len({slot.id for slot in slots}) < len(slots):
            raise Damaged("The store is damaged: its vault has too few or too many slots, or one twice.")
        return key_behind(slots, secret, self.id)

    def open(self, sealed: bytes, collection: bytes, key: bytes, field: int) -> bytes:
        """Kind and bytes of a sealed value."""
        fields = Fields(sealed, "a sealed value")
        if fields.integer(4) != self.generation:
            raise Damaged("The store is damaged: a value is sealed under a key that is not in the vault.")
        nonce = fields.bytes(24)
        additional = b"coffer/1 sealed" + self.id
        for name in (collection, key):
            additional += struct.pack(">Q", len(name)) + name
        try:
            plain = self._cipher.open(nonce, sealed[fields.offset :], additional + bytes([field]))
        except InvalidTag:
            raise Damaged("The store is damaged: a sealed value does not authenticate.")
        if not plain or plain[0] == SEALED:
            raise Damaged("The store is damaged: the contents of a sealed value are invalid.")
        return plain


def parent_of(name: bytes) -> bytes | None:
    """The collection whose environment has this name; None if it is no environment."""
    parent, at, environment = name.rpartition(b"@")
    if not at or not re.fullmatch(rb"[A-Za-z0-9_-]+", environment) or parent_of(parent) is not None:
        return None
    return parent


def unseal(plain: sqlite3.Connection, secret: Key) -> None:
    """Opens all sealed values of a plain database, in their places."""
    with reading():
        vault = Vault(plain, secret)
        refuse_unknown_flags(plain)
        sealed = dict(plain.execute("SELECT id, name FROM collections WHERE flags & 1"))
        if sorted(sealed.values()) != vault.sealed:
            raise Damaged("The store is damaged: its vault names other sealed collections than the collections do.")
        for (name,) in plain.execute("SELECT name FROM collections WHERE NOT flags & 1"):
            if parent_of(name) in vault.sealed:
                raise Damaged("The store is damaged: an environment of a sealed collection is not sealed.")
        for table in ("items", "history"):
            for row in plain.execute(f"SELECT collection, key, version, type, data, metadata FROM {table}").fetchall():
                collection, key, version, kind, data, metadata = row
                if (kind == SEALED) != (collection in sealed):
                    raise Damaged("The store is damaged: an unsealed value in a sealed collection, or the reverse.")
                if kind != SEALED:
                    continue
                opened = vault.open(as_bytes(data), sealed[collection], as_bytes(key), 1)
                if metadata is not None:
                    if as_bytes(metadata)[:1] != bytes([SEALED]):
                        raise Damaged("The store is damaged: metadata in a sealed collection is not sealed.")
                    metadata = vault.open(as_bytes(metadata)[1:], sealed[collection], as_bytes(key), 2)
                plain.execute(
                    f"UPDATE {table} SET type = ?, data = ?, metadata = ?"
                    " WHERE collection = ? AND key = CAST(? AS TEXT) AND version = ?",
                    (opened[0], opened[1:], metadata, collection, key, version),
                )
        plain.execute("UPDATE collections SET flags = flags & ~1")
        plain.commit()
