"""The envelope of a store: slots, which keys open, and the keys of its epochs."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from .ciphers import XAES, LogHeaderCipher, hkdf
from .errors import CofferError, Damaged, NewerFormat, NotAStore, WrongKey
from .fields import Fields
from .keys import Key

try:
    from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
except ImportError:  # before cryptography 44, or with an OpenSSL before 3.2
    Argon2id = None  # type: ignore[assignment, misc]


NO_STRETCHING, SCRYPT, PBKDF2, ARGON2ID = range(4)
PASSPHRASE, CREDENTIAL = 2, 5

#: The sizes that an envelope has to name.
PAGE, RESERVED = 4_096, 48

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
    costs: tuple[int, ...]
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

    def stretch(self, secret: Key) -> bytes:
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

    def root_key(self, secret: Key, store_id: bytes) -> bytes | None:
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


def key_behind(slots: list[Slot], secret: Key, owner: bytes) -> bytes:
    """The key in the first slot that the secret opens, of a store or a vault."""
    refusal: CofferError | None = None
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
    slots: list[Slot]
    epochs: list[Epoch]
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

    def root_key(self, secret: Key) -> bytes:
        return key_behind(self.slots, secret, self.store_id)

    def check(self, root_key: bytes) -> None:
        key = hkdf(root_key, self.store_id, "coffer v1 envelope MAC")
        if not hmac.compare_digest(hmac.new(key, self.authenticated, "sha256").digest(), self.mac):
            raise Damaged("The store is damaged: its envelope does not authenticate.")

    def former_witness_key(self, root_key: bytes) -> bytes | None:
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
