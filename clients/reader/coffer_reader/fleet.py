"""Reads and verifies a fleet with nothing but FLEET.md: from a JSON file with its objects, and an invitation.

    fleet_reader.py FLEET.json      (prints what the fleet holds)
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import json
import pathlib
import struct
import sys
from typing import Any, Optional

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from . import store as base

FORMAT = 1
ROLES = {1: "reader", 2: "writer", 3: "admin"}
STANDINGS = {0: "invited", 1: "admitted", 2: "many"}


class Damaged(Exception):
    """Something is not as FLEET.md says."""


class NewerFormat(Exception):
    """Something is of a newer format."""


def digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def derive(secret: bytes, salt: bytes, info: bytes) -> bytes:
    return HKDF(hashes.SHA256(), 32, salt, info).derive(secret)


def open_sealed(key: bytes, additional_data: bytes, sealed: bytes) -> bytes:
    if len(sealed) < 40:
        raise Damaged("a sealed part is incomplete")
    try:
        return base.XAES(key).open(sealed[:24], sealed[24:], additional_data)
    except InvalidTag:
        raise Damaged("a sealed part does not authenticate") from None


def check_signature(key: bytes, purpose: str, signed: bytes, signature: bytes) -> None:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, f"coffer fleet v1 {purpose} signature".encode() + signed)
    except InvalidSignature:
        raise Damaged(f"the signature of the {purpose} is wrong") from None


def raw(key: Any) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


class Reader:
    """Takes fields from the front of an object."""

    def __init__(self, data: bytes):
        self.data, self.position = data, 0

    def take(self, count: int) -> bytes:
        if self.position + count > len(self.data):
            raise Damaged("an object is incomplete")
        self.position += count
        return self.data[self.position - count : self.position]

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count), "big")

    def time(self) -> int:
        return int.from_bytes(self.take(8), "big", signed=True)

    def text(self) -> str:
        try:
            return self.take(self.number(4)).decode("utf-8")
        except UnicodeDecodeError:
            raise Damaged("a text is not UTF-8") from None

    def rest(self) -> bytes:
        return self.take(len(self.data) - self.position)

    def end(self) -> None:
        if self.position != len(self.data):
            raise Damaged("an object has bytes after its end")

    @staticmethod
    def of(data: bytes) -> "Reader":
        reader = Reader(data)
        version = reader.number(1)
        if version > FORMAT:
            raise NewerFormat(f"an object has format {version}")
        if version != FORMAT:
            raise Damaged(f"an object has format {version}")
        return reader


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">I", len(data)) + data


@dataclasses.dataclass
class Invitation:
    fleet: bytes
    first: bytes
    version: int
    member: bytes
    seed: bytes
    expires: int
    carrier: str

    @staticmethod
    def parse(line: str) -> "Invitation":
        line = line.strip()
        prefix = "coffer-fleet-1:"
        if not line.startswith(prefix):
            raise Damaged("this is not an invitation")
        data = bytes.fromhex(line[len(prefix) :])
        if digest(data[:-4])[:4] != data[-4:]:
            raise Damaged("the invitation was mistyped")
        reader = Reader(data[:-4])
        return Invitation(
            reader.take(16),
            reader.take(32),
            reader.number(4),
            reader.take(16),
            reader.take(32),
            reader.time(),
            reader.rest().decode(),
        )


@dataclasses.dataclass
class Authority:
    fleet: bytes
    version: int
    previous: bytes
    epoch: int
    folder: str
    members: bytes
    admins: list
    signer: bytes

    @staticmethod
    def parse(data: bytes) -> "Authority":
        reader = Reader.of(data)
        fleet, version, _ = reader.take(16), reader.number(4), reader.time()
        previous, epoch, folder, members = reader.take(32), reader.number(4), reader.take(8).hex(), reader.take(32)
        reader.number(8), reader.take(32)
        count = reader.number(2)
        if not 1 <= count <= 64 or version < 1 or epoch < 1:
            raise Damaged("an authority is invalid")
        admins = [reader.take(32) for _ in range(count)]
        signer, signature = reader.take(32), reader.take(64)
        reader.end()
        check_signature(signer, "authority", data[:-64], signature)
        return Authority(fleet, version, previous, epoch, folder, members, admins, signer)


@dataclasses.dataclass
class Member:
    id: bytes
    role: str
    standing: str
    signing_key: bytes
    public_key: bytes
    name: str

    # The folders of its collections, and whether it has all.
    folders: frozenset = frozenset()
    has_all: bool = True

    @property
    def may_write(self) -> bool:
        return self.role != "reader" and self.standing == "admitted"


@dataclasses.dataclass
class Record:
    collection: str
    key: str
    counter: int
    clock: int
    author: bytes
    writer: str
    expires: Optional[int] = None
    due: Optional[int] = None
    metadata: Optional[tuple] = None
    kind: Optional[int] = None
    data: Optional[bytes] = None
    is_of_declaration: bool = False
    application: Optional[str] = None
    version: Optional[str] = None
    declaration: Optional[str] = None


@dataclasses.dataclass
class Collection:
    """A shared collection; without a name and keys if the member does not have it."""

    folder: bytes
    sealed_name: bytes
    name: Optional[str] = None
    keys: Optional[dict] = None


@dataclasses.dataclass
class CollectionHead:
    folder: bytes
    set_digest: bytes
    record_count: int
    horizon: int
    number: int
    author: bytes


class Fleet:
    """A fleet, verified as a whole: as far as the invited member has its keys."""

    def __init__(self, objects: dict, invitation: Invitation):
        self.objects, self.invitation = objects, invitation
        self.authority, self.authority_digest = self._last_authority()
        self.fleet_key, self.ring_key, self.identity_keys = self._unwrapped_keys()
        self.keys = {
            purpose: derive(self.fleet_key, invitation.fleet, f"coffer fleet v1 {purpose}".encode())
            for purpose in ("head", "members")
        }
        self._read_members()
        self._read_head()
        self._read_records()

    def _object(self, name: str) -> bytes:
        if name not in self.objects:
            raise Damaged(f"there is no {name}")
        return self.objects[name]

    def _additional_data(self, purpose: str, place: bytes) -> bytes:
        return (
            f"coffer fleet v1 {purpose}".encode() + self.invitation.fleet + struct.pack(">I", self.authority.epoch) + place
        )

    def _last_authority(self) -> tuple:
        data = self._object("authority/0000000001")
        if digest(data) != self.invitation.first:
            raise Damaged("the first authority belongs to another fleet")
        authority = Authority.parse(data)
        if authority.version != 1 or authority.signer not in authority.admins or authority.fleet != self.invitation.fleet:
            raise Damaged("the first authority is not the first")
        while True:
            name = f"authority/{authority.version + 1:010}"
            if name not in self.objects:
                if authority.version < self.invitation.version:
                    raise Damaged("the carrier is older than the invitation")
                return authority, digest(data)
            following = Authority.parse(self.objects[name])
            if (
                following.version != authority.version + 1
                or following.previous != digest(data)
                or following.fleet != authority.fleet
                or following.epoch < authority.epoch
                or following.signer not in authority.admins
            ):
                raise Damaged(f"{name} does not follow its predecessor")
            authority, data = following, self.objects[name]

    def _unwrapped_keys(self) -> tuple:
        invitation = self.invitation
        salt = invitation.fleet + invitation.member
        signing = Ed25519PrivateKey.from_private_bytes(derive(invitation.seed, salt, b"coffer fleet v1 signing"))
        agreement = X25519PrivateKey.from_private_bytes(derive(invitation.seed, salt, b"coffer fleet v1 agreement"))
        data = self._object("members")
        if digest(data) != self.authority.members:
            raise Damaged("the members are not those signed by an admin")
        reader = Reader.of(data)
        version, ephemeral = reader.take(4), reader.take(32)
        found = None
        self.wrapped_ids = []
        for _ in range(reader.number(2)):
            member, wrapped = reader.take(16), reader.take(104)
            self.wrapped_ids.append(member)
            if member == invitation.member:
                agreed = agreement.exchange(X25519PublicKey.from_public_bytes(ephemeral))
                label = b"coffer fleet v1 wrapping"
                key = derive(agreed, invitation.fleet, label + ephemeral + raw(agreement))
                place = label + invitation.fleet + version + struct.pack(">I", self.authority.epoch) + member
                found = open_sealed(key, place, wrapped)
        self.sealed_members = (data[:5], reader.rest())
        if found is None:
            raise Damaged("the invitation is for nobody in the list of members")
        return found[:32], found[32:], (raw(signing), raw(agreement))

    def _read_members(self) -> None:
        prefix, sealed = self.sealed_members
        reader = Reader(open_sealed(self.keys["members"], self._additional_data("members", prefix), sealed))
        if int.from_bytes(prefix[1:], "big") != self.authority.version:
            raise Damaged("the members have another version")
        self.name, self.retention_days, self.greatest_age = reader.text(), reader.number(4), reader.number(4)
        self.shared: list = []
        for _ in range(reader.number(2)):
            folder, since = reader.take(8), reader.number(4)
            if not 1 <= since <= self.authority.version or len(self.shared) == 100:
                raise Damaged("a collection is shared since an impossible version")
            if self.shared and self.shared[-1].folder >= folder:
                raise Damaged("the collections are out of order")
            self.shared.append(Collection(folder, reader.take(reader.number(4))))
        rings = []
        for _ in range(reader.number(2)):
            is_of_all = reader.number(1)
            indices = [reader.number(2) for _ in range(reader.number(2))]
            if indices != sorted(set(indices)) or indices and indices[-1] >= len(self.shared) or is_of_all > 1:
                raise Damaged("a ring is malformed")
            if is_of_all and len(indices) != len(self.shared):
                raise Damaged("a ring of all collections has not all of them")
            rings.append((bool(is_of_all), indices, reader.take(40 + 32 * len(indices))))
        self.members = {}
        numbers = {}
        for _ in range(reader.number(2)):
            member, role, standing = reader.take(16), reader.number(1), reader.number(1)
            if role not in ROLES or standing not in STANDINGS or STANDINGS[standing] == "many" and ROLES[role] != "reader":
                raise Damaged("a member has an unknown role or standing")
            numbers[member] = reader.number(2)
            if numbers[member] >= len(rings):
                raise Damaged("a member has an unknown ring")
            has_all, indices, _ = rings[numbers[member]]
            if ROLES[role] == "admin" and not has_all:
                raise Damaged("an admin does not have all collections")
            signing_key, public_key, _, _ = reader.take(32), reader.take(32), reader.time(), reader.time()
            folders = frozenset(self.shared[index].folder for index in indices)
            self.members[member] = Member(
                member, ROLES[role], STANDINGS[standing], signing_key, public_key, reader.text(), folders, has_all
            )
        self.former = {}
        for _ in range(reader.number(2)):
            member, signing_key = reader.take(16), reader.take(32)
            self.former[member] = Member(member, "former", "admitted", signing_key, b"", reader.text())
        reader.end()
        if set(self.former) & set(self.members):
            raise Damaged("a member is a former one, too")
        admins = [member.signing_key for member in self.members.values() if member.role == "admin" and member.may_write]
        if admins != self.authority.admins or list(self.members) != self.wrapped_ids:
            raise Damaged("the list of members is inconsistent")
        own = self.members[self.invitation.member]
        if (own.signing_key, own.public_key) != self.identity_keys:
            raise Damaged("the member's keys are not those of the invitation")
        _, indices, sealed_keys = rings[numbers[own.id]]
        self._open_ring(numbers[own.id], [self.shared[index] for index in indices], sealed_keys)
        if own.standing == "invited" and f"j/{own.id.hex()}" in self.objects:
            raise Damaged("another host has used the invitation")

    def _open_ring(self, number: int, collections: list, sealed: bytes) -> None:
        fleet = self.invitation.fleet
        place = b"coffer fleet v1 ring" + fleet + struct.pack(">IH", self.authority.version, number)
        keys = open_sealed(self.ring_key, place, sealed)
        for index, collection in enumerate(collections):
            key = keys[32 * index : 32 * index + 32]
            collection.keys = {
                purpose: derive(key, fleet, f"coffer fleet v1 {purpose}".encode())
                for purpose in ("names", "records", "collection")
            }
            place = b"coffer fleet v1 collection" + fleet + collection.folder
            collection.name = Reader(open_sealed(collection.keys["collection"], place, collection.sealed_name)).text()
        self.by_folder = {collection.folder: collection for collection in collections}
        self.collections = sorted((collection.name for collection in collections), key=str.encode)
        if len(set(self.collections)) != len(collections):
            raise Damaged("a collection is shared twice")

    def _read_head(self) -> None:
        data = self._object("head")
        Reader.of(data)
        content = open_sealed(self.keys["head"], self._additional_data("head", data[:5]), data[5:])
        if len(content) < 64:
            raise Damaged("the head is incomplete")
        signed, signature = content[:-64], content[-64:]
        reader = Reader(signed)
        self.number, self.time, author = reader.number(8), reader.time(), reader.take(16)
        version, authority = reader.number(4), reader.take(32)
        heads = []
        for _ in range(reader.number(2)):
            start = reader.position
            head = CollectionHead(
                reader.take(8), reader.take(32), reader.number(8), reader.number(8), reader.number(8), reader.take(16)
            )
            heads.append((head, reader.data[start : reader.position], reader.take(64)))
            if not head.horizon < head.number <= self.number:
                raise Damaged("the head's numbers are out of range")
        self.heads = {head.folder: head for head, _, _ in heads}
        self.log_count = reader.number(8)
        if self.number > 1 << 60 or self.log_count >= self.number:
            raise Damaged("the head's numbers are out of range")
        self.log, left = [], self.log_count
        while left:
            self.log.append([reader.take(32) for _ in range(left % 16)])
            left //= 16
        self.pieces = [(reader.take(8).hex(), reader.take(32)) for _ in range(reader.number(2))]
        reader.end()
        if version != self.authority.version or data[1:5] != struct.pack(">I", version) or authority != self.authority_digest:
            raise Damaged("the head belongs to other members")
        if author not in self.members or not self.members[author].may_write:
            raise Damaged("the head's author may not write")
        self.author = self.members[author].name
        epoch = struct.pack(">I", self.authority.epoch)
        check_signature(self.members[author].signing_key, "head", self.invitation.fleet + epoch + signed, signature)
        if [head.folder for head, _, _ in heads] != [collection.folder for collection in self.shared]:
            raise Damaged("the head has other collections than the members")
        for head, signed, signature in heads:
            member = self.members.get(head.author)
            if member is None or not member.may_write or head.folder not in member.folders:
                raise Damaged(f"{self.author} has changed a collection of others")
            check_signature(member.signing_key, "collection", self.invitation.fleet + signed, signature)

    def has_earlier(self, head: bytes, index: int) -> bool:
        """Whether the log proves that a head was at an index."""
        if index >= self.log_count:
            return False
        expected, level = digest(head), 0
        while index < (blocked := (self.log_count >> 4 * level) & ~15):
            block = self.objects.get(f"l/{level:x}/{index // 16:016x}", b"")
            place = 1 + index % 16 * 32
            if len(block) != 1 + 16 * 32 or block[place : place + 32] != expected:
                return False
            expected, index, level = digest(block), index // 16, level + 1
        return self.log[level][index - blocked] == expected

    def check_log(self) -> None:
        """Checks all blocks: only for tests, as a reader needs a few of them."""
        for level in range(len(self.log) - 1):
            for index in range((self.log_count >> 4 * level) // 16):
                block = self._object(f"l/{level:x}/{index:016x}")
                blocked = (self.log_count >> 4 * (level + 1)) & ~15
                if index >= blocked:
                    expected = self.log[level + 1][index - blocked]
                else:
                    above = self._object(f"l/{level + 1:x}/{index // 16:016x}")
                    expected = above[1 + index % 16 * 32 :][:32]
                if len(block) != 1 + 16 * 32 or block[0] != FORMAT or digest(block) != expected:
                    raise Damaged("a block of the log is not the one below the head")

    def _read_records(self) -> None:
        # By folder and name; of the member's collections only.
        objects = {}
        for name, data in self.objects.items():
            parts = name.split("/")
            if parts[0] == "r" and len(parts) == 3 and bytes.fromhex(parts[1]) in self.by_folder:
                objects[bytes.fromhex(parts[1] + parts[2])] = data
        for piece, expected in self.pieces:
            data = self._object(f"s/{self.authority.folder}/{piece}")
            if digest(data) != expected:
                raise Damaged("a piece is not the one named by the head")
            reader = Reader.of(data)
            while reader.position < len(data):
                place, length = reader.take(28), reader.number(4)
                if place[:8] not in self.heads or self.heads[place[:8]].number != self.number:
                    raise Damaged("a piece changes a collection that its commit leaves as it is")
                if length:
                    objects[place] = reader.take(length)
                else:
                    objects.pop(place, None)
        objects = {place: data for place, data in objects.items() if place[:8] in self.by_folder}
        for folder in self.by_folder:
            self._check_set(self.heads[folder], {place[8:]: data for place, data in objects.items() if place[:8] == folder})
        self.records = [self._record(place, data) for place, data in objects.items()]

    @staticmethod
    def _check_set(head: CollectionHead, records: dict) -> None:
        buckets = [b""] * 256
        for name in sorted(records):
            buckets[name[0]] += name + digest(records[name])
        covered = b"".join(digest(bucket) if bucket else bytes(32) for bucket in buckets)
        if len(records) != head.record_count or digest(b"coffer fleet v1 set" + covered) != head.set_digest:
            raise Damaged("the records are not those of the signed head")

    @staticmethod
    def _neighbor_count(reader: Reader) -> int:
        count = reader.number(1)
        if count > 10:
            raise Damaged("a record's signature is malformed")
        return count

    def _record(self, place: bytes, data: bytes) -> Record:
        Reader.of(data)
        collection = self.by_folder[place[:8]]
        label = b"coffer fleet v1 records" + self.invitation.fleet
        content = open_sealed(collection.keys["records"], label + place + data[:1], data[1:])
        reader = Reader(content)
        neighbors = [reader.take(32) for _ in range(self._neighbor_count(reader))]
        signature = reader.take(64)
        root = digest(b"\0" + content[reader.position :])
        for neighbor in neighbors:
            root = digest(b"\1" + min(root, neighbor) + max(root, neighbor))
        form, counter, clock, author = reader.number(1), reader.number(8), reader.number(8), reader.take(16)
        record = Record(reader.text(), reader.text(), counter, clock, author, reader.text())
        record.is_of_declaration = form in (3, 4)
        setting = text(record.collection) + text(record.key) + (b"declaration" if record.is_of_declaration else b"")
        expected = hmac.new(collection.keys["names"], setting, hashlib.sha256).digest()[:20]
        if place[8:] != expected:
            raise Damaged("a record's setting does not fit its name")
        if not 1 <= counter <= 1 << 60 or form not in (1, 2, 3, 4):
            raise Damaged("a record is invalid")
        if record.collection != collection.name:
            raise Damaged("a record belongs to another collection")
        writer = self.members.get(author) or self.former.get(author)
        if writer is None or not writer.may_write:
            raise Damaged("a record's author may not write")
        check_signature(writer.signing_key, "record", self.invitation.fleet + root, signature)
        if form == 3:
            record.application, record.version = reader.text(), reader.text()
            try:
                record.declaration = reader.rest().decode("utf-8")
            except UnicodeDecodeError:
                raise Damaged("a text is not UTF-8") from None
        if form == 1:
            fields = reader.number(1)
            if fields & ~7:
                raise Damaged("a record has unknown fields")
            record.expires = reader.time() if fields & 1 else None
            record.due = reader.time() if fields & 2 else None
            if fields & 4:
                kind = reader.number(1)
                record.metadata = (kind, reader.take(reader.number(4)))
            record.kind = reader.number(1)
            record.data = reader.rest()
            for kind, value in filter(None, [record.metadata, (record.kind, record.data)]):
                if kind in (0, 14):
                    raise Damaged("a value is of a kind that is never shared")
                try:
                    base.decode_value(kind, value)
                except base.CofferError:
                    raise Damaged("a value is malformed") from None
        reader.end()
        return record


def listed(objects: list) -> dict:
    """The objects that a carrier lists, each once."""
    found = dict(objects)
    if len(found) != len(objects):
        raise Damaged("an object is listed twice")
    return found


def load_folder(path: str) -> dict:
    """The objects that a carrier in a folder keeps: each in a file, behind its digest."""
    objects = {}
    for file in pathlib.Path(path, "objects").glob("*/*"):
        data = file.read_bytes()
        if digest(data[32:]) != data[:32]:
            raise Damaged(f"{file} is incomplete")
        objects[file.name.replace("_", "/")] = data[32:]
    return objects


def load(path: str) -> tuple:
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    if "folder" in content:
        return load_folder(content["folder"]), content
    return {name: bytes.fromhex(data) for name, data in content["objects"].items()}, content


def main(arguments: list) -> int:
    objects, content = load(arguments[0])
    fleet = Fleet(objects, Invitation.parse(content["invitation"]))
    print(f"{fleet.name}, commit {fleet.number} by {fleet.author}")
    for record in sorted(fleet.records, key=lambda record: (record.collection, record.key)):
        if record.is_of_declaration:
            by = f" by {record.application} {record.version}".rstrip()
            what = "is no longer declared" if record.declaration is None else f"is declared{by}: {record.declaration}"
            print(f"{record.collection}/{record.key} {what}")
            continue
        value = "(removed)" if record.kind is None else base.decode_value(record.kind, record.data)
        print(f"{record.collection}/{record.key} = {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
