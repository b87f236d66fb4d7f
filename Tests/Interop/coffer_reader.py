#!/usr/bin/env python3
"""Reads a Coffer store without Coffer. Written from FORMAT.md and nothing else.

    coffer_reader.py STORE (--key-file FILE | --passphrase-fd N | --recovery-key-fd N)
                     [--vault-key-file FILE | --vault-passphrase-fd N] -o PLAIN.db

decrypts a store, the log beside it included, into a plain SQLite database. With a secret of the vault, sealed values are
opened in it, too; without one they stay as they are. The store is only read. No program may be writing to it meanwhile:
this reader takes no locks.

As a module:

    with Store("settings.coffer", KeyFileSecret.read("key")) as store:
        store.write_plain("plain.db")
    with open_plain("plain.db") as plain:
        for item in items(plain): ...
        for change in changes(plain): ...
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import hashlib
import hmac
import json
import os
import pathlib
import re
import sqlite3
import string
import struct
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass
from typing import Any, BinaryIO, Iterator, NoReturn, Optional

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF
    from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
except ImportError:
    if __name__ == "__main__":
        sys.exit("coffer_reader: The Python package cryptography is not installed.")
    raise

try:
    from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
except ImportError:
    Argon2id = None

# MARK: - Errors


class CofferError(Exception):
    """What went wrong, in one sentence, and the exit code that goes with it."""

    code = 1

    def __init__(self, sentence: str, code: Optional[int] = None):
        super().__init__(sentence)
        if code is not None:
            self.code = code


class StoreMissing(CofferError):
    code = 4


class WrongKey(CofferError):
    code = 5


class KeyUnavailable(CofferError):
    code = 6


class Damaged(CofferError):
    code = 7


class NotAStore(CofferError):
    code = 8


class OutputExists(CofferError):
    code = 9


class NewerFormat(CofferError):
    code = 12


# MARK: - Cryptography


class AESBlock:
    """AES-256 on single blocks."""

    def __init__(self, key: bytes):
        self._encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
        self._decryptor = Cipher(algorithms.AES(key), modes.ECB()).decryptor()

    def encrypt(self, block: bytes) -> bytes:
        return self._encryptor.update(block)

    def decrypt(self, block: bytes) -> bytes:
        return self._decryptor.update(block)


def xor(a: bytes, b: bytes) -> bytes:
    return bytes(x ^ y for x, y in zip(a, b))


class XAES:
    """XAES-256-GCM of C2SP: a key for AES-256-GCM out of the key and the first half of the nonce."""

    NONCE = 24
    TAG = 16

    def __init__(self, key: bytes):
        if len(key) != 32:
            raise ValueError("the key has 32 bytes")
        self._block = AESBlock(key)
        whole = int.from_bytes(self._block.encrypt(bytes(16)), "big")
        doubled = (whole << 1) & ((1 << 128) - 1)
        if whole >> 127:
            doubled ^= 0x87
        self._subkey = doubled.to_bytes(16, "big")

    def _gcm(self, nonce: bytes) -> AESGCM:
        if len(nonce) != self.NONCE:
            raise ValueError("the nonce has 24 bytes")
        halves = (bytes([0, number, 0x58, 0]) + nonce[:12] for number in (1, 2))
        return AESGCM(b"".join(self._block.encrypt(xor(half, self._subkey)) for half in halves))

    def seal(self, nonce: bytes, plain: bytes, additional: bytes) -> bytes:
        return self._gcm(nonce).encrypt(nonce[12:], plain, additional)

    def open(self, nonce: bytes, sealed: bytes, additional: bytes) -> bytes:
        """The plaintext; `cryptography.exceptions.InvalidTag` if it does not authenticate."""
        return self._gcm(nonce).decrypt(nonce[12:], sealed, additional)


class LogHeaderCipher:
    """The XEX construction over sixteen bytes."""

    def __init__(self, keys: bytes):
        self._outer = AESBlock(keys[:32])
        self._mask = AESBlock(keys[32:])

    def _tweak(self, number: int) -> bytes:
        return self._mask.encrypt(bytes(8) + struct.pack(">Q", number))

    def encipher(self, block: bytes, number: int) -> bytes:
        tweak = self._tweak(number)
        return xor(self._outer.encrypt(xor(block, tweak)), tweak)

    def decipher(self, block: bytes, number: int) -> bytes:
        tweak = self._tweak(number)
        return xor(self._outer.decrypt(xor(block, tweak)), tweak)


def hkdf(secret: bytes, salt: bytes, info: str, length: int = 32) -> bytes:
    return HKDF(hashes.SHA256(), length, salt, info.encode("ascii")).derive(secret)


# MARK: - Secrets


class Secret:
    kinds: tuple = ()
    name = "secret"

    def __init__(self, material: bytes):
        self.material = material


class KeyFileSecret(Secret):
    # Whichever of them the key was given to.
    kinds = (1, 4, 5)
    name = "key file"
    PREFIX = b"coffer-key-1:"

    @classmethod
    def parse(cls, data: bytes) -> "KeyFileSecret":
        if len(data) == 32:
            return cls(data)
        line = data.rstrip(b" \r\n")
        digits = line[len(cls.PREFIX) :]
        if not line.startswith(cls.PREFIX) or len(digits) != 64 or not set(digits) <= set(string.hexdigits.encode()):
            raise KeyUnavailable("This is not a key file.")
        return cls(bytes.fromhex(digits.decode("ascii")))

    @classmethod
    def read(cls, path: str) -> "KeyFileSecret":
        try:
            with open(path, "rb") as file:
                data = file.read(4096)
        except OSError as error:
            raise KeyUnavailable(f"The key file {path} cannot be read: {error.strerror}.")
        return cls.parse(data)


def read_descriptor(descriptor: int, what: str) -> bytes:
    try:
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    except OSError as error:
        raise KeyUnavailable(f"No {what} can be read from descriptor {descriptor}: {error.strerror}.")


class PassphraseSecret(Secret):
    kinds = (2,)
    name = "passphrase"

    @classmethod
    def read(cls, descriptor: int) -> "PassphraseSecret":
        """Everything up to the end, a line feed at the end left out."""
        text = read_descriptor(descriptor, cls.name)
        text = text[:-1] if text.endswith(b"\n") else text
        if not text:
            raise KeyUnavailable(f"There is no passphrase in descriptor {descriptor}.")
        return cls(text)


class RecoveryKeySecret(Secret):
    kinds = (3,)
    name = "recovery key"
    ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

    @classmethod
    def parse(cls, text: str) -> "RecoveryKeySecret":
        letters = "".join(text.upper().replace("-", "").split()).translate(str.maketrans("OIL", "011"))
        if len(letters) != 40 or not set(letters) <= set(cls.ALPHABET):
            raise KeyUnavailable("This is not a recovery key.")
        digits = [cls.ALPHABET.index(letter) for letter in letters]
        bits = 0
        for group in range(8):
            *values, check = digits[group * 5 : group * 5 + 5]
            expected = group
            for value in values:
                bits = bits << 5 | value
                expected = (expected ^ value) << 1
                expected ^= 0b100101 if expected & 32 else 0
            if check != expected:
                raise KeyUnavailable(f"Group {group + 1} of the recovery key was mistyped.")
        return cls(bits.to_bytes(20, "big"))

    @classmethod
    def read(cls, descriptor: int) -> "RecoveryKeySecret":
        return cls.parse(read_descriptor(descriptor, cls.name).decode("ascii", "replace"))


# MARK: - Envelope


class Fields:
    """Takes one field after the other, and never past the end."""

    def __init__(self, data: bytes, what: str):
        self.data = data
        self.what = what
        self.offset = 0

    def bytes(self, count: int) -> bytes:
        if count > len(self.data) - self.offset:
            raise Damaged(f"The store is damaged: {self.what} ends too early.")
        self.offset += count
        return self.data[self.offset - count : self.offset]

    def integer(self, count: int) -> int:
        return int.from_bytes(self.bytes(count), "big")

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.integer(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        if value >= 1 << 64:
            raise Damaged(f"The store is damaged: {self.what} has a number with more than 64 bits.")
        return value

    @property
    def at_end(self) -> bool:
        return self.offset == len(self.data)

    def expect_end(self) -> None:
        if not self.at_end:
            raise Damaged(f"The store is damaged: {self.what} has bytes after its end.")


NO_STRETCHING, SCRYPT, PBKDF2, ARGON2ID = range(4)
PASSPHRASE, CREDENTIAL = 2, 5

MOST_WORK = 1 << 23
COST_BOUNDS = {
    NO_STRETCHING: ((0, 0), (0, 0), (0, 0)),
    SCRYPT: ((14, 20), (8, 32), (1, 16)),
    PBKDF2: ((100_000, MOST_WORK // 2), (0, 0), (0, 0)),
    ARGON2ID: ((19_456, MOST_WORK // 4), (1, MOST_WORK), (1, 64)),
}


class CannotBeTried(CofferError):
    """A slot that asks for what is not allowed, or not there."""

    code = 7


@dataclass
class Slot:
    id: int
    kind: int
    stretching: int
    costs: tuple
    salt: bytes
    created: int
    label: str
    authenticated: bytes
    commitment: bytes
    wrapped: bytes

    @classmethod
    def parse(cls, record: bytes) -> "Slot":
        fields = Fields(record, "a slot of the envelope")
        id, kind, stretching = fields.integer(1), fields.integer(1), fields.integer(1)
        if fields.integer(1) != 0:
            raise Damaged("The store is damaged: a reserved byte of a slot is not zero.")
        if kind > CREDENTIAL or stretching > ARGON2ID:
            raise NewerFormat("The store has a slot of a kind unknown to this reader.")
        costs = tuple(fields.integer(4) for _ in range(3))
        is_stretched = stretching != NO_STRETCHING
        # Costs outside their bounds are no damage: such a slot is skipped.
        if kind < 1 or (kind == PASSPHRASE) != is_stretched or (not is_stretched and any(costs)):
            raise Damaged("The store is damaged: the key derivation of a slot does not fit its kind.")
        salt, created, length = fields.bytes(32), fields.integer(8), fields.integer(2)
        if length > 64:
            raise Damaged("The store is damaged: the label of a slot is too long.")
        try:
            label = fields.bytes(length).decode("utf-8")
        except UnicodeDecodeError:
            raise Damaged("The store is damaged: the label of a slot is not UTF-8.")
        authenticated = record[:56]
        commitment, wrapped = fields.bytes(32), fields.bytes(72)
        fields.expect_end()
        return cls(id, kind, stretching, costs, salt, created, label, authenticated, commitment, wrapped)

    def stretch(self, secret: Secret) -> bytes:
        first, second, third = self.costs
        work = {SCRYPT: (1 << min(first, 64)) * second * third, ARGON2ID: 4 * first * second}.get(self.stretching, 0)
        bounds = zip(self.costs, COST_BOUNDS[self.stretching])
        if work > MOST_WORK or not all(low <= cost <= high for cost, (low, high) in bounds):
            raise CannotBeTried(f"The costs of slot {self.id} are outside their bounds.")
        if self.stretching == SCRYPT:
            return Scrypt(salt=self.salt, length=32, n=1 << first, r=second, p=third).derive(secret.material)
        if self.stretching == PBKDF2:
            return PBKDF2HMAC(hashes.SHA512(), 32, self.salt, first).derive(secret.material)
        if self.stretching == ARGON2ID:
            if Argon2id is None:
                raise CannotBeTried("This slot needs Argon2id, which the installed cryptography package does not have.")
            return Argon2id(
                salt=self.salt, length=32, iterations=second, lanes=third, memory_cost=first
            ).derive(secret.material)
        return secret.material

    def root_key(self, secret: Secret, store_id: bytes) -> Optional[bytes]:
        """The root key, or None if the secret is not this slot's."""
        stretched = self.stretch(secret)
        salt = self.salt + store_id
        if not hmac.compare_digest(hkdf(stretched, salt, "coffer v1 slot commitment"), self.commitment):
            return None
        cipher = XAES(hkdf(stretched, salt, "coffer v1 slot wrapping"))
        try:
            return cipher.open(self.wrapped[:24], self.wrapped[24:], self.authenticated + store_id)
        except InvalidTag:
            raise Damaged(f"The store is damaged: the root key in slot {self.id} does not authenticate.")


def key_behind(slots: list, secret: Secret, owner: bytes) -> bytes:
    """The key in the first slot that the secret opens, of a store or a vault."""
    refusal: Optional[CofferError] = None
    for slot in slots:
        if slot.kind not in secret.kinds:
            continue
        try:
            key = slot.root_key(secret, owner)
        except CannotBeTried as error:
            refusal = refusal or error
            continue
        if key is not None:
            return key
    raise refusal or WrongKey(f"No slot opens with this {secret.name}.")


@dataclass
class Epoch:
    number: int
    created: int
    authenticated: bytes
    wrapped: bytes

    @classmethod
    def parse(cls, record: bytes) -> "Epoch":
        fields = Fields(record, "an epoch of the envelope")
        number, created = fields.integer(4), fields.integer(8)
        authenticated, wrapped = record[: fields.offset], fields.bytes(72)
        fields.expect_end()
        return cls(number, created, authenticated, wrapped)

    def keys(self, root_key: bytes, store_id: bytes) -> "EpochKeys":
        cipher = XAES(hkdf(root_key, store_id, "coffer v1 epoch wrapping"))
        try:
            key = cipher.open(self.wrapped[:24], self.wrapped[24:], self.authenticated + store_id)
        except InvalidTag:
            raise Damaged(f"The store is damaged: the key of epoch {self.number} does not authenticate.")
        return EpochKeys(
            XAES(hkdf(key, store_id, "coffer v1 page")),
            LogHeaderCipher(hkdf(key, store_id, "coffer v1 log header", 64)),
        )


@dataclass
class EpochKeys:
    page: XAES
    log_header: LogHeaderCipher


@dataclass
class Envelope:
    SIZE = 16_384
    COPY = 8_192
    CHECKED = COPY - 96  # The log notice and the checksum follow.
    MAGIC = b"COFFER\r\n"

    sequence: int
    store_id: bytes
    created: int
    slots: list
    epochs: list
    succession: bytes
    witness_key: bytes
    authenticated: bytes
    mac: bytes
    # Whether a restore put the file in its place: a log beside it is another store's.
    is_placed: bool

    @classmethod
    def parse(cls, data: bytes) -> "Envelope":
        """The copy with the higher sequence, of those that are whole; the first one of equals."""
        copies = [data[: cls.COPY], data[cls.COPY : cls.SIZE]]
        known = [copy for copy in copies if copy.startswith(cls.MAGIC)]
        if not known:
            raise NotAStore("This file is not a Coffer store.")
        whole = [
            copy
            for copy in known
            if len(copy) == cls.COPY and hashlib.sha256(copy[: cls.CHECKED]).digest() == copy[-32:]
        ]
        if not whole:
            raise Damaged("The store is damaged: both copies of its envelope are incomplete.")
        # All of them: what this reader doesn't know in one may be what is newer.
        return max(map(cls.parse_copy, whole), key=lambda copy: copy.sequence)

    @classmethod
    def parse_copy(cls, copy: bytes) -> "Envelope":
        fields = Fields(copy[: cls.CHECKED], "the envelope")
        fields.bytes(8)
        version, suite = fields.integer(2), fields.integer(2)
        if version > 1:
            raise NewerFormat(f"The store has format version {version}; this reader knows version 1.")
        if suite > 1:
            raise NewerFormat("The store uses a suite of algorithms unknown to this reader.")
        if version < 1 or suite < 1:
            raise Damaged("The store is damaged: its format version is invalid.")
        flags = fields.integer(4)
        if flags > 1:
            raise NewerFormat("The store has flags unknown to this reader.")
        sequence, store_id, created = fields.integer(8), fields.bytes(16), fields.integer(8)
        if fields.integer(4) != PAGE or fields.integer(2) != RESERVED:
            raise Damaged("The store is damaged: its pages have the wrong size.")
        slot_count, epoch_count = fields.integer(1), fields.integer(1)
        if not 1 <= slot_count <= 16 or not 1 <= epoch_count <= 4:
            raise Damaged("The store is damaged: its envelope has too few or too many slots or epochs.")
        slots = [Slot.parse(fields.bytes(fields.integer(2))) for _ in range(slot_count)]
        epochs = [Epoch.parse(fields.bytes(fields.integer(2))) for _ in range(epoch_count)]
        if len({slot.id for slot in slots}) < slot_count or len({epoch.number for epoch in epochs}) < epoch_count:
            raise Damaged("The store is damaged: two slots or epochs of its envelope have the same number.")
        succession, witness_key = fields.bytes(32), fields.bytes(72)
        if any(succession) != any(witness_key):
            raise Damaged("The store is damaged: its envelope has half a succession.")
        authenticated = copy[: fields.offset]
        mac = fields.bytes(32)
        if any(copy[fields.offset : cls.CHECKED]):
            raise Damaged("The store is damaged: the rest of its envelope is not zero.")
        return cls(sequence, store_id, created, slots, epochs, succession, witness_key, authenticated, mac, flags == 1)

    def root_key(self, secret: Secret) -> bytes:
        return key_behind(self.slots, secret, self.store_id)

    def check(self, root_key: bytes) -> None:
        key = hkdf(root_key, self.store_id, "coffer v1 envelope MAC")
        if not hmac.compare_digest(hmac.new(key, self.authenticated, "sha256").digest(), self.mac):
            raise Damaged("The store is damaged: its envelope does not authenticate.")

    def former_witness_key(self, root_key: bytes) -> Optional[bytes]:
        """The key of records that were made under the former root key; None if there was none."""
        if not any(self.witness_key):
            return None
        cipher = XAES(hkdf(root_key, self.store_id, "coffer v1 witness wrapping"))
        try:
            return cipher.open(self.witness_key[:24], self.witness_key[24:], self.store_id)
        except InvalidTag:
            raise Damaged("The store is damaged: the key of former records does not authenticate.")

    def is_succeeded_by(self, other: "Envelope", root_key: bytes, other_root_key: bytes) -> bool:
        """Whether this root key vouches for that of a later envelope."""
        commitment = hkdf(other_root_key, self.store_id, "coffer v1 root commitment")
        key = hkdf(root_key, self.store_id, "coffer v1 root succession")
        code = hmac.new(key, self.store_id + commitment, "sha256").digest()
        return hmac.compare_digest(code, other.succession)


# MARK: - Pages

PAGE = 4_096
RESERVED = 48
USABLE = PAGE - RESERVED
LOCK_PAGE = 262_145
LABEL = b"coffer/1"
SQLITE_MAGIC = b"SQLite format 3\0"


class SealedPage:
    def __init__(self, data: bytes):
        self.ciphertext = data[:USABLE]
        self.nonce = data[USABLE : USABLE + 24]
        self.tag = data[USABLE + 24 : USABLE + 40]
        self.epoch, self.mark = struct.unpack(">II", data[USABLE + 40 :])

    def open(self, epochs: dict, additional: bytes) -> bytes:
        """The plaintext page, its reserved bytes zero; InvalidTag if it does not open."""
        keys = epochs.get(self.epoch)
        if keys is None:
            raise InvalidTag()
        return keys.page.open(self.nonce, self.ciphertext + self.tag, additional) + bytes(RESERVED)


# MARK: - Log


class Checksum:
    """The running checksum of SQLite's write-ahead log."""

    MASK = 0xFFFF_FFFF

    def __init__(self, little_endian: bool):
        self._order = "<" if little_endian else ">"
        self._first = self._second = 0

    def add(self, data: bytes) -> None:
        first, second, mask = self._first, self._second, self.MASK
        words = iter(struct.unpack(f"{self._order}{len(data) // 4}I", data))
        for even, odd in zip(words, words):
            first = (first + even + second) & mask
            second = (second + odd + first) & mask
        self._first, self._second = first, second

    @property
    def bytes(self) -> bytes:
        return struct.pack(">II", self._first, self._second)


class Log:
    """What a log says: the pages it replaces, and the size it leaves the database with (None: it says nothing)."""

    HEADER = 32
    FRAME_HEADER = 24
    FRAME = FRAME_HEADER + PAGE
    MAGIC_LITTLE_ENDIAN = 0x377F_0682
    MAGIC_BIG_ENDIAN = 0x377F_0683
    VERSION = 3_007_000

    def __init__(self) -> None:
        self.pages: dict = {}
        self.size: Optional[int] = None
        self.valid_frames = 0
        self.committed_frames = 0
        self.commits = 0

    @classmethod
    def read(cls, file: BinaryIO, epochs: dict) -> "Log":
        log = cls()
        header = file.read(cls.HEADER)
        if len(header) < cls.HEADER:
            return log
        magic, version, page = struct.unpack(">III", header[:12])
        known = magic in (cls.MAGIC_LITTLE_ENDIAN, cls.MAGIC_BIG_ENDIAN)
        if not known or version != cls.VERSION or page != PAGE:
            return log
        for keys in epochs.values():
            rest = keys.log_header.decipher(header[16:], 0)
            checksum = Checksum(magic == cls.MAGIC_LITTLE_ENDIAN)
            checksum.add(header[:16] + rest[:8])
            if checksum.bytes == rest[8:]:
                log._read_frames(file, epochs, rest[:8], checksum)
                break
        return log

    def _read_frames(self, file: BinaryIO, epochs: dict, salts: bytes, checksum: Checksum) -> None:
        pending: dict = {}
        number = 0
        while True:
            frame = file.read(self.FRAME)
            if len(frame) < self.FRAME:
                return
            number += 1
            head, sealed = frame[: self.FRAME_HEADER], SealedPage(frame[self.FRAME_HEADER :])
            page, size = struct.unpack(">II", head[:8])
            keys = epochs.get(sealed.epoch)
            if keys is None or page == 0:
                return
            rest = keys.log_header.decipher(head[8:], number)
            if rest[:8] != salts:
                return
            try:
                place = LABEL + struct.pack(">IIII", 2, number, page, size) + salts
                plain = sealed.open(epochs, place + struct.pack(">I", sealed.mark))
            except InvalidTag:
                return
            checksum.add(head[:8] + plain)
            if checksum.bytes != rest[8:]:
                return
            self.valid_frames = number
            pending[page] = plain
            if size != 0:
                self.pages.update(pending)
                pending.clear()
                self.size = size
                self.committed_frames = number
                self.commits += 1


# MARK: - Store


class Store:
    """A store that is opened with one of its secrets, for reading."""

    def __init__(self, path: str, secret: Secret):
        self.path = path
        try:
            self._file = open(path, "rb")
        except FileNotFoundError:
            raise StoreMissing(f"There is no store at {path}.")
        except IsADirectoryError:
            raise NotAStore(f"{path} is a folder, not a store.")
        except OSError as error:
            raise CofferError(f"{path} cannot be read: {error.strerror}.", 14)
        try:
            self.envelope = Envelope.parse(self._file.read(Envelope.SIZE))
            root_key = self.envelope.root_key(secret)
            self.envelope.check(root_key)
            self._epochs = {
                epoch.number: epoch.keys(root_key, self.envelope.store_id) for epoch in self.envelope.epochs
            }
            self.log = self._read_log()
            self.page_count = self._count_pages()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: Any) -> None:
        self._file.close()

    def _read_log(self) -> Log:
        if self.envelope.is_placed:
            return Log()
        try:
            with open(self.path + "-wal", "rb") as file:
                return Log.read(file, self._epochs)
        except FileNotFoundError:
            return Log()
        except OSError as error:
            raise CofferError(f"{self.path}-wal cannot be read: {error.strerror}.", 14)

    def _count_pages(self) -> int:
        """The log says it, else the header of the database does, if its counters agree, else the length of the file."""
        if self.log.size is not None:
            return self.log.size
        header = self.page(1)
        size, = struct.unpack(">I", header[28:32])
        if size != 0 and header[24:28] == header[92:96]:
            return size
        return (os.fstat(self._file.fileno()).st_size - Envelope.SIZE) // PAGE

    def page(self, number: int) -> bytes:
        """The plaintext of page `number`, with the log applied."""
        if number in self.log.pages:
            return self.log.pages[number]
        if number == LOCK_PAGE:
            return bytes(PAGE)
        self._file.seek(Envelope.SIZE + (number - 1) * PAGE)
        data = self._file.read(PAGE)
        if len(data) < PAGE:
            raise Damaged(f"The store is damaged: page {number} is missing.")
        try:
            sealed = SealedPage(data)
            # Only a frame of the log has a mark, which its tag covers.
            if sealed.mark != 0:
                raise InvalidTag()
            return sealed.open(self._epochs, LABEL + struct.pack(">II", 1, number))
        except InvalidTag:
            raise Damaged(f"The store is damaged: page {number} does not authenticate.")

    def pages(self) -> Iterator[bytes]:
        """Every page of the plain database, which says of itself that it has no log."""
        first = bytearray(self.page(1))
        if not first.startswith(SQLITE_MAGIC) or first[16:18] != b"\x10\x00" or first[20] != RESERVED:
            raise Damaged("The store is damaged: its first page is not that of a database.")
        first[18:20] = b"\x01\x01"
        yield bytes(first)
        for number in range(2, self.page_count + 1):
            yield self.page(number)

    def write_plain(self, path: str, vault_secret: Optional[Secret] = None) -> None:
        """Writes the plain database, readable by its owner only; on an error there is no file at all.

        With a secret of the vault, nothing is sealed in it.
        """
        for suffix in ("", "-wal", "-shm", "-journal"):
            if os.path.lexists(path + suffix):
                raise OutputExists(f"{path}{suffix} already exists.")
        folder, name = os.path.split(os.path.abspath(path))
        temporary = None
        try:
            descriptor, temporary = tempfile.mkstemp(prefix=f".{name}.", suffix=".tmp", dir=folder)
            with open(descriptor, "wb") as file:
                for page in self.pages():
                    file.write(page)
                file.flush()
                os.fsync(file.fileno())
            self._check_plain(temporary)
            if vault_secret is not None:
                unseal(temporary, vault_secret)
            os.rename(temporary, path)
            temporary = None
        except OSError as error:
            raise CofferError(f"{path} cannot be written: {error.strerror}.", 14)
        finally:
            if temporary is not None:
                os.unlink(temporary)

    def _check_plain(self, path: str) -> None:
        """Whether envelope and pages belong together."""
        with open_plain(path) as plain, reading():
            version, = plain.execute("PRAGMA user_version").fetchone()
            if version > 16:
                raise NewerFormat(f"The tables have version {version}; this reader knows version 16.")
            if version < 11:
                raise Damaged("The store is damaged: the version of its tables was never released.")
            meta = {as_text(name): as_bytes(value) for name, value in plain.execute("SELECT name, value FROM meta")}
        if meta.get("store_id") != self.envelope.store_id:
            raise Damaged("The store is damaged: its envelope is another store's.")
        sequence = meta.get("envelope_sequence", b"")
        if len(sequence) != 8 or self.envelope.sequence < int.from_bytes(sequence, "big"):
            raise Damaged("The store is damaged: its envelope is older than its pages.")


# MARK: - Vault


class Vault:
    """The vault of a plain database, opened with one of its secrets."""

    def __init__(self, plain: sqlite3.Connection, secret: Secret):
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
    def _names(data: bytes) -> list:
        """The collections that the vault says are sealed."""
        fields, names = Fields(data, "the vault"), []
        while not fields.at_end:
            names.append(fields.bytes(fields.integer(4)))
        if names != sorted(set(names)):
            raise Damaged("The store is damaged: its vault has a collection twice, or out of order.")
        return names

    def _key(self, data: bytes, secret: Secret) -> bytes:
        fields, slots = Fields(data, "the vault"), []
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


def parent_of(name: bytes) -> Optional[bytes]:
    """The collection whose environment has this name; None if it is no environment."""
    parent, at, environment = name.rpartition(b"@")
    if not at or not re.fullmatch(rb"[A-Za-z0-9_-]+", environment) or parent_of(parent) is not None:
        return None
    return parent


def unseal(path: str, secret: Secret) -> None:
    """Opens all sealed values of a plain database, in their places."""
    with contextlib.closing(sqlite3.connect(path)) as plain, reading():
        plain.text_factory = bytes
        plain.execute("PRAGMA journal_mode=MEMORY")
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


# MARK: - Values


@dataclass(frozen=True)
class Hidden:
    """A secret."""

    data: bytes


@dataclass(frozen=True)
class Sealed:
    """A value that was not opened."""

    data: bytes


@dataclass(frozen=True)
class Date:
    """Seconds since 2001, all 64 bits of them; `datetime` where the calendar of Python reaches that far."""

    seconds: float

    @property
    def datetime(self) -> datetime.datetime:
        return datetime.datetime(2001, 1, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(seconds=self.seconds)


@dataclass(frozen=True)
class URL:
    """A reference and its base, either of which may be empty."""

    text: str
    base: Optional[str] = None


@dataclass(frozen=True)
class JSON:
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
    """A value as a Python object: None, bool, int, float, str, bytes, `Date`, `URL`, UUID, list, dict, `JSON`, `Hidden`, or
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
            return Hidden(data)
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


def decode_entries(data: bytes, depth: int) -> Iterator[tuple]:
    fields = Fields(data, "a dictionary")
    last = None
    while not fields.at_end:
        key = fields.bytes(fields.varint())
        if last is not None and key <= last:
            raise Damaged("The store is damaged: the keys of a dictionary are not in order.")
        last = key
        yield key.decode("utf-8"), decode_element(fields, depth)


# MARK: - Tables


@dataclass(frozen=True)
class Item:
    collection: str
    key: str
    kind: str
    value: Any
    metadata: Any  # None where there is none
    version: int
    modified: int
    size: int
    expires: Optional[int] = None  # in milliseconds since 1970; None for never
    due: Optional[int] = None
    author: Optional["Author"] = None  # None where the collection keeps no history


@dataclass(frozen=True)
class HistoricItem:
    item: Item
    ended: int
    time: int
    ended_by: Optional["Author"]


@dataclass(frozen=True)
class Author:
    program: str
    user: str
    host: str
    actor: Optional[str]


@dataclass(frozen=True)
class HistoryLimits:
    count: int
    age: Optional[int]  # in milliseconds


@dataclass(frozen=True)
class KeyChange:
    key: str
    what: str  # inserted, updated, removed, touched
    object_changed: bool
    metadata_changed: bool
    expired: Optional[int] = None  # when, if it was removed for that


@dataclass(frozen=True)
class CollectionChange:
    collection: int
    cleared: bool
    more: bool  # than are listed
    keys: tuple


@dataclass(frozen=True)
class Change:
    sequence: int
    noise: bytes
    time: int
    writer: Any
    author: Optional[Author]
    total: int
    size: int
    #: What it did besides changing keys: phrases, each with the collection concerned or None.
    actions: tuple
    cleared: bool
    collections: tuple


def open_plain(path: str) -> contextlib.closing:
    """A plain database, for reading, every text and blob as bytes."""
    plain = sqlite3.connect(pathlib.Path(path).absolute().as_uri() + "?mode=ro&immutable=1", uri=True)
    plain.text_factory = bytes
    return contextlib.closing(plain)


@contextlib.contextmanager
def reading() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise Damaged(f"The store is damaged: its tables cannot be read ({error}).")


def collections(plain: sqlite3.Connection) -> dict:
    """The names of the collections, by id."""
    with reading():
        return {id: as_text(name) for id, name in plain.execute("SELECT id, name FROM collections")}


def refuse_unknown_flags(plain: sqlite3.Connection, collection: Optional[str] = None) -> None:
    """Refuses a collection, or any, that a newer version may have filled with something else."""
    with reading():
        for name, flags in plain.execute("SELECT name, flags FROM collections"):
            if flags & ~7 and collection in (None, as_text(name)):
                raise NewerFormat(f"Collection {as_text(name)} has flags unknown to this reader.")


def refuse_misplaced(plain: sqlite3.Connection, table: str) -> None:
    """Refuses a sealed value in a collection that is not sealed, or the reverse."""
    with reading():
        rows = plain.execute(
            f"SELECT 1 FROM {table} JOIN collections ON id = collection WHERE (type = ?) <> (flags & 1) LIMIT 1", (SEALED,))
        if rows.fetchone() is not None:
            raise Damaged("The store is damaged: an unsealed value in a sealed collection, or the reverse.")


def items(plain: sqlite3.Connection, collection: Optional[str] = None) -> Iterator[Item]:
    """Every item that has not expired, or those of one collection, decoded."""
    refuse_unknown_flags(plain, collection)
    refuse_misplaced(plain, "items")
    names = collections(plain)
    with reading():
        rows = plain.execute(
            "SELECT collection, key, type, data, metadata, version, modified, author, expires, due FROM items"
            " WHERE expires IS NULL OR expires > ?", (int(time.time() * 1000),))
        for row in rows:
            if collection is None or names.get(row[0]) == collection:
                yield item_of(names, *row)


def item_of(
    names: dict, collection: int, key: Any, kind: int, data: Any, metadata: Any, version: int, modified: int,
    author: Any, expires: Optional[int], due: Optional[int] = None
) -> Item:
    if collection not in names or kind not in range(len(KIND_NAMES)):
        raise Damaged("The store is damaged: an item has no collection or an unknown type.")
    if metadata is not None:
        fields = Fields(as_bytes(metadata), "the metadata of an item")
        metadata = decode_value(fields.integer(1), fields.data[1:])
    return Item(
        names[collection], as_text(key), KIND_NAMES[kind], decode_value(kind, as_bytes(data)), metadata,
        version, modified, len(data), expires, due, author_of(author),
    )


def author_of(text: Any) -> Optional[Author]:
    """Who wrote something, where that is noted; a note of another form says nothing."""
    lines = [] if text is None else as_text(text).split("\n")
    return Author(*lines, *[None] * (4 - len(lines))) if len(lines) in (3, 4) else None


def history(plain: sqlite3.Connection) -> Iterator[HistoricItem]:
    """Every earlier value, decoded, by collection and key, the oldest first."""
    refuse_unknown_flags(plain)
    refuse_misplaced(plain, "history")
    names = collections(plain)
    with reading():
        rows = plain.execute(
            "SELECT ended, time, ended_by, collection, key, type, data, metadata, version, modified, author, expires"
            " FROM history ORDER BY collection, key, version"
        )
        for ended, time, ended_by, *row in rows:
            yield HistoricItem(item_of(names, *row), ended, time, author_of(ended_by))


@dataclass(frozen=True)
class Declaration:
    """A setting as an application declared it."""

    collection: str
    key: str
    application: str
    #: The application's version, None where it says nothing.
    version: Optional[str]
    #: Type, default, limits and so on, by name.
    members: dict


def declarations(plain: sqlite3.Connection) -> list[Declaration]:
    """The declared settings, in the order of their collections and keys."""
    with reading():
        if plain.execute("PRAGMA user_version").fetchone()[0] == 11:
            return []
        result = []
        for collection, key, application, version, text in plain.execute(
            "SELECT collection, key, application, version, declaration FROM declarations"
            " JOIN applications ON applications.name = application ORDER BY collection, key, application"
        ):
            members = json.loads(as_text(text))
            if (members["collection"], members["name"]) != (as_text(collection), as_text(key)):
                raise Damaged("The store is damaged: a declaration belongs to another setting.")
            result.append(
                Declaration(
                    as_text(collection), as_text(key), as_text(application),
                    None if version is None else as_text(version), members))
        return result


def history_limits(plain: sqlite3.Connection) -> dict:
    """How much history the collections keep that keep any, by name."""
    found = {}
    refuse_unknown_flags(plain)
    with reading():
        for name, flags, count, age in plain.execute("SELECT name, flags, history_count, history_age FROM collections"):
            if flags & 2:
                if count is None or count < 1:
                    raise Damaged("The store is damaged: the history limit of a collection is invalid.")
                found[as_text(name)] = HistoryLimits(count, age)
    return found


def decode_changed_keys(data: bytes) -> tuple:
    """What `changes.keys` holds: whether everything was cleared, and what became of each collection."""
    fields = Fields(data, "a row of the change log")
    cleared = flags_of(fields, 0b101) & 1 == 1
    found = []
    while not fields.at_end:
        collection, form, count = fields.varint(), flags_of(fields, 0b111), fields.varint()
        keys = []
        for _ in range(count):
            bits = flags_of(fields, 0b11111)
            key = as_text(fields.bytes(fields.varint()))
            what = ("inserted", "updated", "removed", "touched")[bits & 3]
            if bits & 16 and what != "removed":
                raise Damaged("The store is damaged: a key expired according to the change log, but exists.")
            expired = struct.unpack(">q", fields.bytes(8))[0] if bits & 16 else None
            keys.append(KeyChange(key, what, bool(bits & 4), bool(bits & 8), expired))
        if found and collection <= found[-1].collection:
            raise Damaged("The store is damaged: the collections of a row of the change log are not in order.")
        found.append(CollectionChange(collection, bool(form & 1), bool(form & 2), tuple(keys)))
    return cleared, tuple(found)


def flags_of(fields: Fields, known: int) -> int:
    bits = fields.integer(1)
    if bits & ~known:
        raise Damaged("The store is damaged: a row of the change log has unknown bits.")
    if known in (0b101, 0b111) and bits & 5 == 4:
        raise Damaged("The store is damaged: the change log has erased what it did not clear.")
    return bits


def actions_of(text: Any) -> tuple:
    """What a commit did besides changing keys: phrases, each with the collection concerned or None."""
    lines = [] if text is None else as_text(text).split("\n")
    return tuple((phrase, name if tab else None) for phrase, tab, name in (line.partition("\t") for line in lines))


def changes(plain: sqlite3.Connection) -> Iterator[Change]:
    """Every row of the change log, decoded, the oldest first."""
    with reading():
        rows = plain.execute(
            "SELECT sequence, noise, time, writer, author, total, action, keys FROM changes ORDER BY sequence")
        for sequence, noise, time, writer, author, total, action, keys in rows:
            keys = as_bytes(keys)
            size = len(keys) + sum(0 if text is None else len(as_bytes(text)) for text in (author, action))
            yield Change(
                sequence, as_bytes(noise), time, writer, author_of(author), total, size, actions_of(action),
                *decode_changed_keys(keys))


def split_changed_keys(data: bytes) -> tuple:
    """The first byte of `changes.keys`, and id, form and list of each collection as they lie there."""
    fields = Fields(data, "a row of the change log")
    first = fields.integer(1)
    parts = []
    while not fields.at_end:
        collection, form = fields.varint(), fields.integer(1)
        before = fields.offset
        for _ in range(fields.varint()):
            bits = fields.integer(1)
            fields.bytes(fields.varint() + (8 if bits & 16 else 0))
        parts.append((collection, form, data[before : fields.offset]))
    return first, parts


def log_problems(plain: sqlite3.Connection) -> list:
    """What is wrong with the chain of the change log."""
    with reading():
        start = plain.execute("SELECT value FROM meta WHERE name = 'log_start'").fetchone()
        rows = plain.execute(
            "SELECT sequence, noise, time, writer, author, total, digest, action, link, keys FROM changes"
            " ORDER BY sequence"
        ).fetchall()
    previous, previous_total, previous_link = None, 0, bytes(16)
    if start is not None:
        if len(start[0]) != 32:
            raise Damaged("The store is damaged: the start of the change log does not parse.")
        previous, previous_total = struct.unpack(">qq", start[0][:16])
        previous_link = start[0][16:]
    problems = []
    emptied: dict = {}  # collection: the first commit whose list of its keys was emptied, and that nothing explains yet
    sweep = None  # the last commit after which old rows were dropped
    for sequence, noise, time, writer, author, total, digest, action, link, keys in rows:
        noise, digest, link = as_bytes(noise), as_bytes(digest), as_bytes(link)
        if sequence % 64 == 0:
            sweep = sequence, total
        if previous is not None and sequence != previous + 1:
            problems.append(f"commits are missing before {sequence}")
        else:
            size = len(as_bytes(keys))
            size += sum(0 if part is None else len(as_bytes(part)) for part in (author, action))
            text = previous_link + struct.pack(">qqqqq", previous_total, sequence, time, writer, total) + noise
            for part in (author, action):
                part = None if part is None else as_bytes(part)
                text += struct.pack(">I", 2**32 - 1 if part is None else len(part)) + (part or b"")
            first, parts = split_changed_keys(as_bytes(keys))
            text += bytes([first])
            lost, changed = [], len(noise) != 16 or len(digest) != 16 * len(parts)
            for index, (collection, form, listed) in enumerate(parts):
                committed = digest[16 * index : 16 * index + 16]
                found = hashlib.sha256(noise + listed).digest()[:16]
                if found != committed and form & 2 and listed == b"\0":
                    lost.append(collection)
                    form &= ~2
                elif found != committed:
                    changed = True
                text += struct.pack(">QB", collection, form) + committed
            if changed or hashlib.sha256(text).digest()[:16] != link:
                problems.append(f"commit {sequence}, or what was before it, was changed")
            elif total - previous_total < size or (total - previous_total > size and not lost):
                problems.append(f"commit {sequence} says that it is larger or smaller than it is")
            else:
                erased = {collection for collection, form, _ in parts if form & 4}
                emptied = {
                    collection: where for collection, where in emptied.items()
                    if not first & 4 and collection not in erased
                }
                for collection in lost:
                    emptied.setdefault(collection, sequence)
        previous, previous_total, previous_link = sequence, total, link
    for collection, where in sorted(emptied.items(), key=lambda item: item[1]):
        problems.append(f"keys were taken out of commit {where}, and nothing erased collection {collection}")
    if start is not None and rows:
        first, dropped = struct.unpack(">qq", start[0][:16])
        old = sweep is not None and (first <= sweep[0] - 10_000 or dropped < sweep[1] - (4 << 20))
        if rows[0][0] == first + 1 and not old:
            problems.append(f"the commits up to {first} were taken out before their time")
    return problems


# MARK: - Command line


def main(arguments: Optional[list] = None) -> int:
    parser = argparse.ArgumentParser(
        prog="coffer_reader.py", description="Decrypts a Coffer store into a plain SQLite database."
    )
    parser.add_argument("store", metavar="STORE", help="the store; its log, STORE-wal, is read too")
    secret = parser.add_mutually_exclusive_group(required=True)
    secret.add_argument("--key-file", metavar="FILE", help="open the store with this key file")
    secret.add_argument("--passphrase-fd", metavar="N", type=int, help="read the passphrase from this file descriptor")
    secret.add_argument("--recovery-key-fd", metavar="N", type=int, help="read a recovery key from this file descriptor")
    vault = parser.add_mutually_exclusive_group()
    vault.add_argument("--vault-key-file", metavar="FILE", help="open sealed values with this key file")
    vault.add_argument(
        "--vault-passphrase-fd", metavar="N", type=int, help="read the passphrase of the vault from this file descriptor")
    parser.add_argument("-o", "--output", metavar="PLAIN.db", required=True, help="the database to write, a new file")
    options = parser.parse_args(arguments)
    try:
        if not os.path.lexists(options.store):
            raise StoreMissing(f"There is no store at {options.store}.")
        if options.key_file is not None:
            found: Secret = KeyFileSecret.read(options.key_file)
        elif options.recovery_key_fd is not None:
            found = RecoveryKeySecret.read(options.recovery_key_fd)
        else:
            found = PassphraseSecret.read(options.passphrase_fd)
        vault_secret: Optional[Secret] = None
        if options.vault_key_file is not None:
            vault_secret = KeyFileSecret.read(options.vault_key_file)
        elif options.vault_passphrase_fd is not None:
            vault_secret = PassphraseSecret.read(options.vault_passphrase_fd)
        with Store(options.store, found) as store:
            store.write_plain(options.output, vault_secret)
    except CofferError as error:
        print(f"coffer_reader: {error}", file=sys.stderr)
        return error.code
    except MemoryError:
        print("coffer_reader: Out of memory.", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"coffer_reader: {error.strerror}.", file=sys.stderr)
        return 14
    return 0


if __name__ == "__main__":
    sys.exit(main())
