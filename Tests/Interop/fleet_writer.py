"""Writes fleets with nothing but FLEET.md, and attacks on them, for readers to accept or refuse: `test_fleet.py --write`.

The attackers have the keys of their roles, and the carrier. Random bytes come from a counter, so that the file is always the same.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import pathlib
import struct
import sys
from typing import Optional

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "../../clients/reader"))

from coffer_reader.ciphers import XAES  # noqa: E402
from coffer_reader.fleet_objects import derive, digest, raw, text  # noqa: E402
from coffer_reader.values import STRING  # noqa: E402

START = 1_790_000_000_000
# The last one there is none of.
ROLES = {"reader": 1, "writer": 2, "admin": 3, "unknown": 9}


def numbers(layout: str, *values: int) -> bytes:
    return struct.pack(">" + layout, *values)


class Random:
    def __init__(self, seed: str):
        self.seed, self.count = seed, 0

    def take(self, count: int) -> bytes:
        self.count += 1
        return hashlib.shake_128(f"{self.seed} {self.count}".encode()).digest(count)


@dataclasses.dataclass
class Member:
    name: str
    role: str
    id: bytes
    seed: bytes
    signing: Ed25519PrivateKey
    agreement: X25519PrivateKey
    standing: int = 1
    # The names of its collections; None for all.
    collections: Optional[frozenset] = None

    def has(self, collection: str) -> bool:
        return self.collections is None or collection in self.collections

    def sign(self, purpose: str, signed: bytes) -> bytes:
        return self.signing.sign(f"coffer fleet v1 {purpose} signature".encode() + signed)


@dataclasses.dataclass
class Change:
    """A record that its author has signed."""

    key: str
    value: Optional[str]
    author: Member
    counter: int = 1
    collection: str = "web"
    clock: int = START << 16
    signer: Optional[Member] = None
    fleet: Optional[bytes] = None
    form: int = 0
    # What follows the texts instead of the value.
    rest: Optional[bytes] = None


@dataclasses.dataclass
class Shared:
    """A collection and its key."""

    name: str
    key: bytes
    folder: bytes
    keys: dict
    horizon: int = 0
    # What the head has of it.
    head: bytes = b""
    is_sealed: int = 0


class Fleet:
    """A fleet and all of its keys."""

    def __init__(self, name: str, roles: dict):
        self.random = Random(name)
        self.id, self.name = self.random.take(16), name
        self.members = [self.member(name, role) for name, role in roles.items()]
        self.former: list = []
        self.objects: dict = {}
        self.version, self.epoch, self.number, self.previous = 0, 0, 0, bytes(32)
        self.log: list = []
        self.head = b""
        self.collections: dict = {}
        self.records: dict = {}
        # What the carrier shows instead of its objects, if it lies.
        self.shown: Optional[dict] = None
        # The invitation that the reader has, if it is not the last.
        self.line: Optional[str] = None
        self.renew(["web"])

    def member(self, name: str, role: str) -> Member:
        member, seed = self.random.take(16), self.random.take(32)
        salt = self.id + member
        return Member(
            name,
            role,
            member,
            seed,
            Ed25519PrivateKey.from_private_bytes(derive(seed, salt, b"coffer fleet v1 signing")),
            X25519PrivateKey.from_private_bytes(derive(seed, salt, b"coffer fleet v1 agreement")),
        )

    def named(self, name: str) -> Member:
        return next(member for member in self.members if member.name == name)

    def seal(self, key: bytes, additional: bytes, plain: bytes) -> bytes:
        nonce = self.random.take(24)
        return nonce + XAES(key).seal(nonce, plain, additional)

    def additional(self, purpose: str, place: bytes) -> bytes:
        return f"coffer fleet v1 {purpose}".encode() + self.id + numbers("I", self.epoch) + place

    def derived(self, key: bytes, *purposes: str) -> dict:
        return {purpose: derive(key, self.id, f"coffer fleet v1 {purpose}".encode()) for purpose in purposes}

    # MARK: Members

    def renew(self, names: Optional[list] = None) -> None:
        """New keys of the fleet and of all or some collections, as when the fleet is made or a member removed."""
        self.epoch += 1
        self.fleet_key, self.folder = self.random.take(32), self.random.take(8).hex()
        self.keys = self.derived(self.fleet_key, "head", "members")
        for name in list(self.collections) if names is None else names:
            self.renew_collection(name)
        self.publish(self.members[0])

    def renew_collection(self, name: str) -> None:
        """A new key of a collection, which may be new."""
        earlier = self.collections.get(name)
        key, folder = self.random.take(32), self.random.take(8)
        new = Shared(name, key, folder, self.derived(key, "names", "records", "collection"), earlier.horizon if earlier else 0)
        self.collections[name] = new
        if earlier is None:
            return
        new.is_sealed = earlier.is_sealed
        prefix = f"r/{earlier.folder.hex()}/"
        bodies = [body for name, body in self.records.items() if name.startswith(prefix)]
        self.objects = {name: data for name, data in self.objects.items() if not name.startswith(prefix)}
        self.records = {name: body for name, body in self.records.items() if not name.startswith(prefix)}
        for body in bodies:
            self.put(body, new)

    def share(self, name: str) -> None:
        self.renew_collection(name)
        self.publish(self.members[0])

    def shared(self) -> list:
        return sorted(self.collections.values(), key=lambda shared: shared.folder)

    def publish(self, signer: Member) -> None:
        self.version += 1
        self.objects["members"] = self.sealed_members()
        admins = [raw(member.signing) for member in self.members if member.role == "admin" and member.standing == 1]
        authority = (
            b"\1" + self.id + numbers("Iq", self.version, START) + self.previous + numbers("I", self.epoch)
            + bytes.fromhex(self.folder) + digest(self.objects["members"]) + numbers("Q", len(self.log))
            + (digest(self.head) if self.head else bytes(32)) + numbers("H", len(admins)) + b"".join(admins)
            + raw(signer.signing)
        )
        authority += signer.sign("authority", authority)
        self.objects[f"authority/{self.version:010}"] = authority
        self.previous = digest(authority)
        if self.version == 1:
            self.first = self.previous
        self.commit(signer, new=True)

    def sealed_members(self) -> bytes:
        prefix = b"\1" + numbers("I", self.version)
        ephemeral = X25519PrivateKey.from_private_bytes(self.random.take(32))
        label = b"coffer fleet v1 wrapping"
        data = prefix + raw(ephemeral) + numbers("H", len(self.members))
        accesses = list(dict.fromkeys(member.collections for member in self.members))
        rings = {access: self.random.take(32) for access in accesses}
        for member in self.members:
            public = raw(member.agreement)
            agreed = ephemeral.exchange(X25519PublicKey.from_public_bytes(public))
            key = derive(agreed, self.id, label + raw(ephemeral) + public)
            place = label + self.id + numbers("II", self.version, self.epoch) + member.id
            data += member.id + self.seal(key, place, self.fleet_key + rings[member.collections])
        body = text(self.name) + numbers("IIH", 90, 0, len(self.collections))
        for shared in self.shared():
            name = text(shared.name) + bytes([shared.is_sealed])
            name += bytes(-len(name) % 64)
            place = b"coffer fleet v1 collection" + self.id + shared.folder
            sealed = self.seal(shared.keys["collection"], place, name)
            body += shared.folder + numbers("II", 1, len(sealed)) + sealed
        body += numbers("H", len(rings))
        for number, access in enumerate(accesses):
            found = [(index, shared) for index, shared in enumerate(self.shared()) if access is None or shared.name in access]
            body += bytes([access is None]) + numbers("H", len(found)) + b"".join(numbers("H", index) for index, _ in found)
            place = b"coffer fleet v1 ring" + self.id + numbers("IH", self.version, number)
            body += self.seal(rings[access], place, b"".join(shared.key for _, shared in found))
        body += numbers("H", len(self.members))
        for member in self.members:
            body += member.id + bytes([ROLES[member.role], member.standing]) + numbers("H", accesses.index(member.collections))
            body += raw(member.signing) + raw(member.agreement)
            body += numbers("qq", START, 0) + text(member.name)
        body += numbers("H", len(self.former))
        for member in self.former:
            body += member.id + raw(member.signing) + text(member.name)
        return data + self.seal(self.keys["members"], self.additional("members", prefix), body)

    def remove(self, name: str) -> Member:
        member = self.named(name)
        self.members.remove(member)
        self.former.append(member)
        self.renew([name for name in self.collections if member.has(name)])
        return member

    def give(self, member: Member, *names: str) -> None:
        """Sets which collections a member has; those that it loses get new keys."""
        lost = [name for name in self.collections if member.has(name) and name not in names]
        member.collections = frozenset(names)
        for name in lost:
            self.renew_collection(name)
        self.publish(self.members[0])

    def invitation(self, name: str) -> str:
        member = self.named(name)
        data = self.id + self.first + numbers("I", self.version) + member.id + member.seed
        data += numbers("q", 0) + b"memory:team"
        return "coffer-fleet-1:" + (data + digest(data)[:4]).hex()

    # MARK: Records

    def body(self, change: Change) -> bytes:
        form = change.form or (2 if change.value is None else 1)
        body = numbers("BQQ", form, change.counter, change.clock) + change.author.id
        body += text(change.collection) + text(change.key) + text("")
        if change.rest is not None:
            body += change.rest
        elif change.value is not None:
            body += bytes([0, STRING]) + change.value.encode()
        return body

    def signed(self, changes: list) -> list:
        """The contents of records, each with its signature: those of one signer share it."""
        leaves = [digest(b"\0" + self.body(change)) for change in changes]
        paths: list = [[] for _ in changes]
        nodes = [(leaf, [index]) for index, leaf in enumerate(leaves)]
        while len(nodes) > 1:
            parents = []
            for left, right in zip(nodes[::2], nodes[1::2]):
                for index in left[1]:
                    paths[index].append(right[0])
                for index in right[1]:
                    paths[index].append(left[0])
                parents.append((digest(b"\1" + min(left[0], right[0]) + max(left[0], right[0])), left[1] + right[1]))
            if len(nodes) % 2:
                parents.append(nodes[-1])
            nodes = parents
        signer = changes[0].signer or changes[0].author
        signature = signer.sign("record", (changes[0].fleet or self.id) + nodes[0][0])
        return [
            bytes([len(path)]) + b"".join(path) + signature + self.body(change) for path, change in zip(paths, changes)
        ]

    @staticmethod
    def setting(content: bytes) -> tuple:
        """The collection of a record, and what its name is derived from."""
        start = 1 + 32 * content[0] + 64 + 33
        setting = content[start:]
        length = int.from_bytes(setting[:4], "big")
        key_length = int.from_bytes(setting[4 + length : 8 + length], "big")
        return setting[4 : 4 + length].decode(), setting[: 8 + length + key_length]

    def object(self, content: bytes, shared: Optional[Shared] = None) -> tuple:
        collection, setting = self.setting(content)
        shared = shared or self.collections[collection]
        name = hmac.new(shared.keys["names"], setting, hashlib.sha256).digest()[:20]
        place = b"coffer fleet v1 records" + self.id + shared.folder + name + b"\1"
        return f"r/{shared.folder.hex()}/{name.hex()}", b"\1" + self.seal(shared.keys["records"], place, content)

    def put(self, content: bytes, shared: Optional[Shared] = None) -> str:
        name, data = self.object(content, shared)
        self.objects[name], self.records[name] = data, content
        return name

    def set(self, author: str, key: str, value: Optional[str], counter: int = 1, collection: str = "web") -> None:
        for content in self.signed([Change(key, value, self.named(author), counter, collection)]):
            self.put(content)
        self.commit(self.named(author))

    # MARK: Heads

    def blocks(self) -> tuple:
        """The rest of each level of the log, and the blocks."""
        level, rest, blocks, digests = 0, [], {}, [digest(head) for head in self.log]
        while digests:
            above = []
            for index in range(len(digests) // 16):
                block = b"\1" + b"".join(digests[16 * index : 16 * index + 16])
                blocks[f"l/{level:x}/{index:016x}"] = block
                above.append(digest(block))
            rest.append(digests[len(digests) // 16 * 16 :])
            digests, level = above, level + 1
        return rest, blocks

    def collection_head(self, shared: Shared, author: Member, horizon: Optional[int] = None) -> bytes:
        """What a head has of a collection, as its author signs it now."""
        shared.horizon = shared.horizon if horizon is None else horizon
        prefix = f"r/{shared.folder.hex()}/"
        names = sorted(name for name in self.objects if name.startswith(prefix))
        buckets = [b""] * 256
        for name in names:
            data = bytes.fromhex(name[len(prefix) :])
            buckets[data[0]] += data + digest(self.objects[name])
        records = digest(b"coffer fleet v1 set" + b"".join(digest(bucket) if bucket else bytes(32) for bucket in buckets))
        head = shared.folder + records + numbers("QQQ", len(names), shared.horizon, self.number) + author.id
        return head + author.sign("collection", self.id + head)

    def commit(
        self, author: Member, horizon: Optional[int] = None, new: bool = False, replaced: Optional[dict] = None,
        pieces: bytes = numbers("H", 0)
    ) -> None:
        """A head by a member, who changes the collections that it has; those of others stay, unless they are replaced."""
        if self.head:
            self.log.append(self.head)
        self.number += 1
        for shared in self.shared():
            # Those with new keys are the admin's.
            if author.has(shared.name) or not shared.head or new and shared.head[:8] != shared.folder:
                shared.head = self.collection_head(shared, author, horizon)
        rest, blocks = self.blocks()
        self.objects.update(blocks)
        content = numbers("Qq", self.number, START) + author.id + numbers("I", self.version) + self.previous
        content += numbers("H", len(self.collections))
        content += b"".join((replaced or {}).get(shared.name, shared.head) for shared in self.shared())
        content += numbers("Q", len(self.log)) + b"".join(b"".join(level) for level in rest) + pieces
        content += author.sign("head", self.id + numbers("I", self.epoch) + content)
        prefix = b"\1" + numbers("I", self.version)
        self.head = prefix + self.seal(self.keys["head"], self.additional("head", prefix), content)
        self.objects["head"] = self.head


# MARK: Attacks

CASES: list = []


def case(description: str, accepted: Optional[dict] = None, refused: str = "damaged"):
    """A function that changes a fleet, and returns objects that the carrier lists in addition, with how often."""

    def add(function):
        CASES.append((description, {"refused": refused} if accepted is None else {"contents": accepted}, function))
        return function

    return add


GENUINE = {"x": "new", "y": "by the writer", "z": "by a former member"}


def genuine(name: str) -> Fleet:
    fleet = Fleet(name, {"a": "admin", "w": "writer", "r": "reader", "victim": "reader", "former": "writer"})
    fleet.named("victim").standing = 0
    fleet.publish(fleet.members[0])
    fleet.set("a", "x", "old")
    fleet.set("w", "y", "by the writer")
    fleet.set("former", "z", "by a former member")
    fleet.remove("former")
    fleet.earlier = dict(fleet.objects)
    fleet.set("a", "x", "new", 2)
    return fleet
