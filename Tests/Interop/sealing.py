"""The other direction, for the tests: makes stores from FORMAT.md that Coffer has to read."""

from __future__ import annotations

import hashlib
import hmac
import os
import struct
from dataclasses import dataclass, field
from typing import Callable

from coffer_reader.ciphers import XAES, LogHeaderCipher, hkdf
from coffer_reader.envelope import ARGON2ID, NO_STRETCHING, PAGE, PBKDF2, RESERVED, SCRYPT, Argon2id, Envelope
from coffer_reader.pages import USABLE
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

NOW = 1_790_000_000_000


def varint(number: int) -> bytes:
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(found + bytes([number]))


def element(kind: int, data: bytes) -> bytes:
    return bytes([kind]) + varint(len(data)) + data


def entry(key: str, kind: int, data: bytes) -> bytes:
    return varint(len(key.encode())) + key.encode() + element(kind, data)


@dataclass
class NewSlot:
    secret: bytes
    id: int = 0
    kind: int = 1
    stretching: int = NO_STRETCHING
    costs: tuple = (0, 0, 0)
    label: str = ""
    salt: bytes = field(default_factory=lambda: os.urandom(32))
    # For absurd costs: the secret is not stretched at all.
    is_unstretched: bool = False
    random: Callable = os.urandom

    def stretched(self) -> bytes:
        first, second, third = self.costs
        if self.is_unstretched:
            return self.secret
        if self.stretching == SCRYPT:
            return Scrypt(salt=self.salt, length=32, n=1 << first, r=second, p=third).derive(self.secret)
        if self.stretching == PBKDF2:
            return PBKDF2HMAC(hashes.SHA512(), 32, self.salt, first).derive(self.secret)
        if self.stretching == ARGON2ID:
            return Argon2id(
                salt=self.salt, length=32, iterations=second, lanes=third, memory_cost=first
            ).derive(self.secret)
        return self.secret

    def record(self, root_key: bytes, store_id: bytes) -> bytes:
        label = self.label.encode()
        head = struct.pack(">BBBB3I", self.id, self.kind, self.stretching, 0, *self.costs)
        head += self.salt + struct.pack(">QH", NOW, len(label)) + label
        stretched, salt = self.stretched(), self.salt + store_id
        nonce = self.random(24)
        wrapping = XAES(hkdf(stretched, salt, "coffer v1 slot wrapping"))
        commitment = hkdf(stretched, salt, "coffer v1 slot commitment")
        return head + commitment + nonce + wrapping.seal(nonce, root_key, head[:56] + store_id)


@dataclass
class NewStore:
    """Keys and numbers of a store that is made from a plain database."""

    slots: list
    store_id: bytes = field(default_factory=lambda: os.urandom(16))
    root_key: bytes = field(default_factory=lambda: os.urandom(32))
    epochs: dict = field(default_factory=lambda: {1: os.urandom(32)})
    sequence: int = 1
    version: int = 1
    suite: int = 1
    flags: int = 0
    page_size: int = PAGE
    reserved: int = RESERVED
    padding: bytes = b""
    random: Callable = os.urandom

    # MARK: - Envelope

    def _epoch_record(self, number: int, key: bytes) -> bytes:
        head, nonce = struct.pack(">IQ", number, NOW), self.random(24)
        wrapping = XAES(hkdf(self.root_key, self.store_id, "coffer v1 epoch wrapping"))
        return head + nonce + wrapping.seal(nonce, key, head + self.store_id)

    def envelope_copy(self) -> bytes:
        slots = [slot.record(self.root_key, self.store_id) for slot in self.slots]
        epochs = [self._epoch_record(number, key) for number, key in self.epochs.items()]
        copy = Envelope.MAGIC + struct.pack(">HHIQ", self.version, self.suite, self.flags, self.sequence)
        copy += self.store_id + struct.pack(">QIHBB", NOW, self.page_size, self.reserved, len(slots), len(epochs))
        copy += b"".join(struct.pack(">H", len(record)) + record for record in slots + epochs)
        # Its root key was never replaced: no succession, and no former witness key.
        copy += bytes(32 + 72)
        key = hkdf(self.root_key, self.store_id, "coffer v1 envelope MAC")
        copy += hmac.new(key, copy, "sha256").digest() + self.padding
        return with_checksum(copy.ljust(Envelope.CHECKED, b"\0"))

    def envelope(self) -> bytes:
        return self.envelope_copy() * 2

    # MARK: - Pages

    def _seal(self, epoch: int, plain: bytes, additional: bytes, mark: int = 0) -> bytes:
        nonce = self.random(24)
        cipher = XAES(hkdf(self.epochs[epoch], self.store_id, "coffer v1 page"))
        sealed = cipher.seal(nonce, plain[: USABLE], additional)
        return sealed[: USABLE] + nonce + sealed[USABLE :] + struct.pack(">II", epoch, mark)

    def _epoch_of(self, number: int) -> int:
        """Takes turns, so that every epoch has pages."""
        return sorted(self.epochs)[number % len(self.epochs)]

    def pages(self, plain: bytes) -> bytes:
        found = []
        for start in range(0, len(plain), PAGE):
            number = start // PAGE + 1
            additional = b"coffer/1" + struct.pack(">II", 1, number)
            found.append(self._seal(self._epoch_of(number), plain[start : start + PAGE], additional))
        return b"".join(found)

    # MARK: - Log

    def _log_header_cipher(self, epoch: int) -> LogHeaderCipher:
        return LogHeaderCipher(hkdf(self.epochs[epoch], self.store_id, "coffer v1 log header", 64))

    def log(self, plain: bytes) -> bytes:
        """A log of SQLite's, every frame of it, sealed."""
        header, salts, size = plain[:32], plain[16:24], 24 + PAGE
        found = [header[:16], self._log_header_cipher(self._epoch_of(0)).encipher(header[16:], 0)]
        for number in range(1, (len(plain) - 32) // size + 1):
            frame = plain[32 + (number - 1) * size :][:size]
            epoch = self._epoch_of(number)
            additional = b"coffer/1" + struct.pack(">II", 2, number) + frame[:8] + salts
            # As if each frame had been synced before the next one was written.
            mark = number - 1
            additional += struct.pack(">I", mark)
            found += [
                frame[:8],
                self._log_header_cipher(epoch).encipher(frame[8:24], number),
                self._seal(epoch, frame[24:], additional, mark),
            ]
        return b"".join(found)


def with_checksum(copy: bytes) -> bytes:
    """A copy of the envelope, with the checksum it ought to have."""
    body = copy[: Envelope.CHECKED]
    return body + bytes(64) + hashlib.sha256(body).digest()
