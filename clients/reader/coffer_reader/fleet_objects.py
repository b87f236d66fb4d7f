"""The objects of a fleet on its carrier, one by one."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pathlib
import struct
from typing import Any

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from .ciphers import XAES
from .errors import Damaged, NewerFormat, StoreMissing
from .values import decode_value

FORMAT = 1
ROLES = {1: "reader", 2: "writer", 3: "admin"}
STANDINGS = {0: "invited", 1: "admitted", 2: "many"}


def damaged(what: str) -> Damaged:
    return Damaged(f"The fleet is damaged: {what}.")


def digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def derive(secret: bytes, salt: bytes, info: bytes) -> bytes:
    return HKDF(hashes.SHA256(), 32, salt, info).derive(secret)


def open_sealed(key: bytes, additional_data: bytes, sealed: bytes) -> bytes:
    if len(sealed) < 40:
        raise damaged("a sealed part is incomplete")
    try:
        return XAES(key).open(sealed[:24], sealed[24:], additional_data)
    except InvalidTag:
        raise damaged("a sealed part does not authenticate") from None


def check_signature(key: bytes, purpose: str, signed: bytes, signature: bytes) -> None:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, f"coffer fleet v1 {purpose} signature".encode() + signed)
    except InvalidSignature:
        raise damaged(f"the signature of the {purpose} is wrong") from None


def raw(key: Ed25519PrivateKey | X25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


class Reader:
    """Takes fields from the front of an object."""

    def __init__(self, data: bytes):
        self.data, self.position = data, 0

    def take(self, count: int) -> bytes:
        if self.position + count > len(self.data):
            raise damaged("an object is incomplete")
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
            raise damaged("a text is not UTF-8") from None

    def rest(self) -> bytes:
        return self.take(len(self.data) - self.position)

    def end(self) -> None:
        if self.position != len(self.data):
            raise damaged("an object has bytes after its end")

    @staticmethod
    def of(data: bytes) -> "Reader":
        reader = Reader(data)
        version = reader.number(1)
        if version > FORMAT:
            raise NewerFormat(f"The fleet has an object of format {version}; this reader knows format {FORMAT}.")
        if version != FORMAT:
            raise damaged(f"an object has format {version}")
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
            raise Damaged("This is not an invitation to a fleet.")
        data = bytes.fromhex(line[len(prefix) :])
        if digest(data[:-4])[:4] != data[-4:]:
            raise Damaged("The invitation was mistyped.")
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
    admins: list[bytes]
    signer: bytes

    @staticmethod
    def parse(data: bytes) -> "Authority":
        reader = Reader.of(data)
        fleet, version, _ = reader.take(16), reader.number(4), reader.time()
        previous, epoch, folder, members = reader.take(32), reader.number(4), reader.take(8).hex(), reader.take(32)
        reader.number(8), reader.take(32)
        count = reader.number(2)
        if not 1 <= count <= 64 or version < 1 or epoch < 1:
            raise damaged("an authority is invalid")
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
    folders: frozenset[bytes] = frozenset()
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
    expires: int | None = None
    due: int | None = None
    metadata: tuple[int, bytes] | None = None
    kind: int | None = None
    data: bytes | None = None
    is_of_declaration: bool = False
    application: str | None = None
    version: str | None = None
    declaration: str | None = None

    @property
    def value(self) -> Any:
        """The value, as `Contents.value` has it; None if the setting was removed."""
        return None if self.kind is None or self.data is None else decode_value(self.kind, self.data)


@dataclasses.dataclass
class Collection:
    """A shared collection; without a name and keys if the member does not have it."""

    folder: bytes
    sealed_name: bytes
    name: str | None = None
    keys: dict[str, bytes] = dataclasses.field(default_factory=dict)
    is_sealed: bool = False


@dataclasses.dataclass
class CollectionHead:
    folder: bytes
    set_digest: bytes
    record_count: int
    horizon: int
    number: int
    author: bytes


# MARK: - Carriers


def listed(objects: list[tuple[str, bytes]]) -> dict[str, bytes]:
    """The objects that a carrier lists, each once."""
    found = dict(objects)
    if len(found) != len(objects):
        raise damaged("an object is listed twice")
    return found


def load_folder(path: str | os.PathLike[str]) -> dict[str, bytes]:
    """The objects that a carrier in a folder keeps: each in a file, behind its digest."""
    objects = {}
    if not pathlib.Path(path, "objects").is_dir():
        raise StoreMissing(f"There is no fleet in {path}.")
    for file in pathlib.Path(path, "objects").glob("*/*"):
        data = file.read_bytes()
        if digest(data[32:]) != data[:32]:
            raise damaged(f"{file} is incomplete")
        objects[file.name.replace("_", "/")] = data[32:]
    return objects


def load(path: str) -> tuple[dict[str, bytes], dict[str, Any]]:
    """The objects in a JSON file, or in the folder that it names, and all that the file says."""
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    if "folder" in content:
        return load_folder(content["folder"]), content
    return {name: bytes.fromhex(data) for name, data in content["objects"].items()}, content
