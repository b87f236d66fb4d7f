#!/usr/bin/env python3
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

import coffer_reader as base
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

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


class Fleet:
    """A fleet, verified as a whole."""

    def __init__(self, objects: dict, invitation: Invitation):
        self.objects, self.invitation = objects, invitation
        self.authority, self.authority_digest = self._last_authority()
        self.fleet_key, self.identity_keys = self._fleet_key()
        self.keys = {
            purpose: derive(self.fleet_key, invitation.fleet, f"coffer fleet v1 {purpose}".encode())
            for purpose in ("names", "records", "head", "members")
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

    def _fleet_key(self) -> tuple:
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
            member, wrapped = reader.take(16), reader.take(72)
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
        return found, (raw(signing), raw(agreement))

    def _read_members(self) -> None:
        prefix, sealed = self.sealed_members
        reader = Reader(open_sealed(self.keys["members"], self._additional_data("members", prefix), sealed))
        if int.from_bytes(prefix[1:], "big") != self.authority.version:
            raise Damaged("the members have another version")
        self.name, self.retention_days, self.greatest_age = reader.text(), reader.number(4), reader.number(4)
        self.collections = []
        for _ in range(reader.number(2)):
            self.collections.append(reader.text())
            if not 1 <= reader.number(4) <= self.authority.version:
                raise Damaged("a collection is shared since an impossible version")
        self.members = {}
        for _ in range(reader.number(2)):
            member, role, standing = reader.take(16), reader.number(1), reader.number(1)
            if role not in ROLES or standing not in STANDINGS or STANDINGS[standing] == "many" and ROLES[role] != "reader":
                raise Damaged("a member has an unknown role or standing")
            signing_key, public_key, _, _ = reader.take(32), reader.take(32), reader.time(), reader.time()
            self.members[member] = Member(member, ROLES[role], STANDINGS[standing], signing_key, public_key, reader.text())
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
        if own.standing == "invited" and f"j/{own.id.hex()}" in self.objects:
            raise Damaged("another host has used the invitation")

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
        self.set_digest, self.record_count = reader.take(32), reader.number(8)
        self.horizon, self.log_count = reader.number(8), reader.number(8)
        if not self.horizon < self.number <= 1 << 60 or self.log_count >= self.number:
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
        prefix = f"r/{self.authority.folder}/"
        objects = {bytes.fromhex(name[len(prefix) :]): data for name, data in self.objects.items() if name.startswith(prefix)}
        for piece, expected in self.pieces:
            data = self._object(f"s/{self.authority.folder}/{piece}")
            if digest(data) != expected:
                raise Damaged("a piece is not the one named by the head")
            reader = Reader.of(data)
            while reader.position < len(data):
                name, length = reader.take(20), reader.number(4)
                if length:
                    objects[name] = reader.take(length)
                else:
                    objects.pop(name, None)
        buckets = [b""] * 256
        for name in sorted(objects):
            buckets[name[0]] += name + digest(objects[name])
        covered = b"".join(digest(bucket) if bucket else bytes(32) for bucket in buckets)
        if len(objects) != self.record_count or digest(b"coffer fleet v1 set" + covered) != self.set_digest:
            raise Damaged("the records are not those of the signed head")
        self.records = [self._record(name, data) for name, data in objects.items()]

    @staticmethod
    def _neighbor_count(reader: Reader) -> int:
        count = reader.number(1)
        if count > 10:
            raise Damaged("a record's signature is malformed")
        return count

    def _record(self, name: bytes, data: bytes) -> Record:
        Reader.of(data)
        content = open_sealed(self.keys["records"], self._additional_data("records", name + data[:1]), data[1:])
        reader = Reader(content)
        neighbors = [reader.take(32) for _ in range(self._neighbor_count(reader))]
        signature = reader.take(64)
        root = digest(b"\0" + content[reader.position :])
        for neighbor in neighbors:
            root = digest(b"\1" + min(root, neighbor) + max(root, neighbor))
        form, counter, clock, author = reader.number(1), reader.number(8), reader.number(8), reader.take(16)
        record = Record(reader.text(), reader.text(), counter, clock, author, reader.text())
        record.is_of_declaration = form in (3, 4)
        place = text(record.collection) + text(record.key) + (b"declaration" if record.is_of_declaration else b"")
        expected = hmac.new(self.keys["names"], place, hashlib.sha256).digest()[:20]
        if name != expected:
            raise Damaged("a record's setting does not fit its name")
        if not 1 <= counter <= 1 << 60 or form not in (1, 2, 3, 4):
            raise Damaged("a record is invalid")
        if record.collection not in self.collections:
            raise Damaged("a record belongs to a collection that is not shared")
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
