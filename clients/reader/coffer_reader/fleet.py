"""Reads and verifies a fleet, from its carrier and an invitation.

    fleet = Fleet(load_folder("/srv/shops"), Invitation.parse(line))
    for record in fleet.records: ...
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import pathlib
import struct
import sys

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from .errors import CofferError, Damaged
from .fleet_objects import (
    FORMAT, ROLES, STANDINGS, Authority, Collection, CollectionHead, Invitation, Member, Reader, Record, check_signature, damaged,
    derive, digest, listed, load, load_folder, open_sealed, raw, text,
)
from .text import text as text_of
from .values import decode_value

__all__ = ["Collection", "Fleet", "Invitation", "Member", "Record", "listed", "load", "load_folder"]


class Fleet:
    """A fleet, verified as a whole: as far as the invited member has its keys."""

    def __init__(self, objects: dict[str, bytes], invitation: Invitation):
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
            raise damaged(f"there is no {name}")
        return self.objects[name]

    def _additional_data(self, purpose: str, place: bytes) -> bytes:
        return (
            f"coffer fleet v1 {purpose}".encode() + self.invitation.fleet + struct.pack(">I", self.authority.epoch) + place
        )

    def _last_authority(self) -> tuple[Authority, bytes]:
        data = self._object("authority/0000000001")
        if digest(data) != self.invitation.first:
            raise damaged("the first authority belongs to another fleet")
        authority = Authority.parse(data)
        if authority.version != 1 or authority.signer not in authority.admins or authority.fleet != self.invitation.fleet:
            raise damaged("the first authority is not the first")
        while True:
            name = f"authority/{authority.version + 1:010}"
            if name not in self.objects:
                if authority.version < self.invitation.version:
                    raise Damaged("The carrier is older than the invitation.")
                return authority, digest(data)
            following = Authority.parse(self.objects[name])
            if (
                following.version != authority.version + 1
                or following.previous != digest(data)
                or following.fleet != authority.fleet
                or following.epoch < authority.epoch
                or following.signer not in authority.admins
            ):
                raise damaged(f"{name} does not follow its predecessor")
            authority, data = following, self.objects[name]

    def _unwrapped_keys(self) -> tuple[bytes, bytes, tuple[bytes, bytes]]:
        invitation = self.invitation
        salt = invitation.fleet + invitation.member
        signing = Ed25519PrivateKey.from_private_bytes(derive(invitation.seed, salt, b"coffer fleet v1 signing"))
        agreement = X25519PrivateKey.from_private_bytes(derive(invitation.seed, salt, b"coffer fleet v1 agreement"))
        data = self._object("members")
        if digest(data) != self.authority.members:
            raise damaged("the members are not those signed by an admin")
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
            raise Damaged("The invitation is not for a member of the fleet.")
        return found[:32], found[32:], (raw(signing), raw(agreement))

    def _read_members(self) -> None:
        prefix, sealed = self.sealed_members
        reader = Reader(open_sealed(self.keys["members"], self._additional_data("members", prefix), sealed))
        if int.from_bytes(prefix[1:], "big") != self.authority.version:
            raise damaged("the members have another version")
        self.name, self.retention_days, self.greatest_age = reader.text(), reader.number(4), reader.number(4)
        self.shared: list[Collection] = []
        for _ in range(reader.number(2)):
            folder, since = reader.take(8), reader.number(4)
            if not 1 <= since <= self.authority.version or len(self.shared) == 100:
                raise damaged("a collection is shared since an impossible version")
            if self.shared and self.shared[-1].folder >= folder:
                raise damaged("the collections are out of order")
            self.shared.append(Collection(folder, reader.take(reader.number(4))))
        rings = []
        for _ in range(reader.number(2)):
            is_of_all = reader.number(1)
            indices = [reader.number(2) for _ in range(reader.number(2))]
            if indices != sorted(set(indices)) or indices and indices[-1] >= len(self.shared) or is_of_all > 1:
                raise damaged("a ring is malformed")
            if is_of_all and len(indices) != len(self.shared):
                raise damaged("a ring of all collections has not all of them")
            rings.append((bool(is_of_all), indices, reader.take(40 + 32 * len(indices))))
        self.members = {}
        numbers = {}
        for _ in range(reader.number(2)):
            member, role, standing = reader.take(16), reader.number(1), reader.number(1)
            if role not in ROLES or standing not in STANDINGS or STANDINGS[standing] == "many" and ROLES[role] != "reader":
                raise damaged("a member has an unknown role or standing")
            numbers[member] = reader.number(2)
            if numbers[member] >= len(rings):
                raise damaged("a member has an unknown ring")
            has_all, indices, _ = rings[numbers[member]]
            if ROLES[role] == "admin" and not has_all:
                raise damaged("an admin does not have all collections")
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
            raise damaged("a member is a former one, too")
        admins = [member.signing_key for member in self.members.values() if member.role == "admin" and member.may_write]
        if admins != self.authority.admins or list(self.members) != self.wrapped_ids:
            raise damaged("the list of members is inconsistent")
        own = self.members[self.invitation.member]
        if (own.signing_key, own.public_key) != self.identity_keys:
            raise damaged("the member's keys are not those of the invitation")
        _, indices, sealed_keys = rings[numbers[own.id]]
        self._open_ring(numbers[own.id], [self.shared[index] for index in indices], sealed_keys)
        if own.standing == "invited" and f"j/{own.id.hex()}" in self.objects:
            raise Damaged("Another host has used the invitation.")

    def _open_ring(self, number: int, collections: list[Collection], sealed: bytes) -> None:
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
            named = Reader(open_sealed(collection.keys["collection"], place, collection.sealed_name))
            collection.name, flag = named.text(), named.number(1)
            if flag > 1:
                raise Damaged("a collection has an unknown flag")
            collection.is_sealed = flag == 1
        self.by_folder = {collection.folder: collection for collection in collections}
        self.collections = sorted((collection.name or "" for collection in collections), key=str.encode)
        if len(set(self.collections)) != len(collections):
            raise damaged("a collection is shared twice")

    def _read_head(self) -> None:
        data = self._object("head")
        Reader.of(data)
        content = open_sealed(self.keys["head"], self._additional_data("head", data[:5]), data[5:])
        if len(content) < 64:
            raise damaged("the head is incomplete")
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
                raise damaged("the head's numbers are out of range")
        self.heads = {head.folder: head for head, _, _ in heads}
        self.log_count = reader.number(8)
        if self.number > 1 << 52 or self.log_count >= self.number:
            raise damaged("the head's numbers are out of range")
        self.log, left = [], self.log_count
        while left:
            self.log.append([reader.take(32) for _ in range(left % 16)])
            left //= 16
        self.pieces = [(reader.take(8).hex(), reader.take(32)) for _ in range(reader.number(2))]
        reader.end()
        if version != self.authority.version or data[1:5] != struct.pack(">I", version) or authority != self.authority_digest:
            raise damaged("the head belongs to other members")
        if author not in self.members or not self.members[author].may_write:
            raise damaged("the head's author may not write")
        self.author = self.members[author].name
        epoch = struct.pack(">I", self.authority.epoch)
        check_signature(self.members[author].signing_key, "head", self.invitation.fleet + epoch + signed, signature)
        if [head.folder for head, _, _ in heads] != [collection.folder for collection in self.shared]:
            raise damaged("the head has other collections than the members")
        for head, signed, signature in heads:
            member = self.members.get(head.author)
            if member is None or not member.may_write or head.folder not in member.folders:
                raise damaged(f"{self.author} has changed a collection of others")
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
                    raise damaged("a block of the log is not the one below the head")

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
                raise damaged("a piece is not the one named by the head")
            reader = Reader.of(data)
            while reader.position < len(data):
                place, length = reader.take(28), reader.number(4)
                if place[:8] not in self.heads or self.heads[place[:8]].number != self.number:
                    raise damaged("a piece changes a collection that its commit leaves as it is")
                if length:
                    objects[place] = reader.take(length)
                else:
                    objects.pop(place, None)
        objects = {place: data for place, data in objects.items() if place[:8] in self.by_folder}
        for folder in self.by_folder:
            self._check_set(self.heads[folder], {place[8:]: data for place, data in objects.items() if place[:8] == folder})
        self.records = [self._record(place, data) for place, data in objects.items()]

    @staticmethod
    def _check_set(head: CollectionHead, records: dict[bytes, bytes]) -> None:
        buckets = [b""] * 256
        for name in sorted(records):
            buckets[name[0]] += name + digest(records[name])
        covered = b"".join(digest(bucket) if bucket else bytes(32) for bucket in buckets)
        if len(records) != head.record_count or digest(b"coffer fleet v1 set" + covered) != head.set_digest:
            raise damaged("the records are not those of the signed head")

    @staticmethod
    def _neighbor_count(reader: Reader) -> int:
        count = reader.number(1)
        if count > 10:
            raise damaged("a record's signature is malformed")
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
            raise damaged("a record's setting does not fit its name")
        if not 1 <= counter <= self.heads[place[:8]].number or form not in (1, 2, 3, 4):
            raise damaged("a record is invalid")
        if record.collection != collection.name:
            raise damaged("a record belongs to another collection")
        writer = self.members.get(author) or self.former.get(author)
        if writer is None or not writer.may_write:
            raise damaged("a record's author may not write")
        check_signature(writer.signing_key, "record", self.invitation.fleet + root, signature)
        if form == 3:
            record.application, record.version = reader.text(), reader.text()
            try:
                record.declaration = reader.rest().decode("utf-8")
            except UnicodeDecodeError:
                raise damaged("a text is not UTF-8") from None
        if form == 1:
            fields = reader.number(1)
            if fields & ~7:
                raise damaged("a record has unknown fields")
            record.expires = reader.time() if fields & 1 else None
            record.due = reader.time() if fields & 2 else None
            if fields & 4:
                kind = reader.number(1)
                record.metadata = (kind, reader.take(reader.number(4)))
            record.kind = reader.number(1)
            record.data = reader.rest()
            for kind, value in filter(None, [record.metadata, (record.kind, record.data)]):
                if kind in (0, 14):
                    raise damaged("a value is of a kind that is never shared")
                try:
                    decode_value(kind, value)
                except CofferError:
                    raise damaged("a value is malformed") from None
        reader.end()
        return record


def described(record: Record) -> str:
    name = f"{record.collection}/{record.key}"
    if not record.is_of_declaration:
        return f"{name} was removed" if record.kind is None else f"{name} = {text_of(record.value)}"
    if record.declaration is None:
        return f"{name} is no longer declared"
    return f"{name} is declared by {f'{record.application} {record.version}'.rstrip()}: {record.declaration}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m coffer_reader.fleet", description="Verifies a fleet, and prints what it holds, without secrets.")
    parser.add_argument("place", metavar="FOLDER|FLEET.json", help="the carrier, or a JSON file with objects and invitation")
    parser.add_argument("--invitation", metavar="FILE", help="read the invitation, which is a secret, from this file")
    options = parser.parse_args(arguments)
    try:
        if options.invitation is not None:
            objects, line = load_folder(options.place), pathlib.Path(options.invitation).read_text("utf-8")
        else:
            objects, content = load(options.place)
            line = content["invitation"]
        fleet = Fleet(objects, Invitation.parse(line))
        print(f"{fleet.name}, commit {fleet.number} by {fleet.author}")
        for record in sorted(fleet.records, key=lambda record: (record.collection, record.key)):
            print(described(record))
    except CofferError as error:
        print(f"coffer-reader: {error}", file=sys.stderr)
        return error.code
    except OSError as error:
        print(f"coffer-reader: {error.filename} cannot be read: {error.strerror}.", file=sys.stderr)
        return 14
    except (ValueError, KeyError):
        print(f"coffer-reader: {options.place} does not have the objects and the invitation of a fleet.", file=sys.stderr)
        return 8
    return 0


if __name__ == "__main__":
    sys.exit(main())
