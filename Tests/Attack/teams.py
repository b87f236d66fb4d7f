"""Fleets: hosts with the real tool, carriers in folders, and the fleets that another writer made."""

from __future__ import annotations

import json
import pathlib
import re
import secrets
import shutil

from coffer_reader.fleet_objects import digest, load_folder
from etcd import Hostile
from samples import Outcomes
from storage import ACCESS_KEY, SECRET, Storage
from workshop import FOLDER, HERE, Home, NotAllowed, Run

NAMES = {
    what: f"{what}-{secrets.token_hex(10)}" for what in ("fleet", "collection", "key", "value", "member", "earlier", "payroll")
}
# Of a state that is refused, withheld, rolled back, or another host's.
REFUSALS = (1, 3, 7, 9, 11, 12, 18)


class Host(Home):
    """A host with a store of its own, and the access key of a storage."""

    def __init__(self, name: str):
        super().__init__(name)
        folder = self.folder / ".aws"
        folder.mkdir()
        folder.joinpath("credentials").write_text(
            f"[default]\naws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET}\n")
        folder.joinpath("credentials").chmod(0o600)

    def values(self) -> dict:
        done = self.prefs("export", "--reveal", "--format", "json")
        return {} if done.code == 4 else json.loads(done.check(0).out)

    def sync(self):
        return self.prefs("fleet", "sync", patience=60)

    def saved(self) -> pathlib.Path:
        """A copy of its home."""
        copy = self.folder.with_name(self.folder.name + secrets.token_hex(3))
        shutil.copytree(self.folder, copy, symlinks=True)
        return copy

    def put_back(self, copy: pathlib.Path) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(copy, self.folder, symlinks=True)


class Team:
    """A fleet with an admin, in a folder or in a storage."""

    def __init__(self, *options: str, collections: tuple = ("web",), storage: Storage | None = None, admin: Host | None = None):
        self.admin = admin or Host("admin")
        self.carrier = FOLDER / f"carrier-{secrets.token_hex(4)}"
        self.carrier.mkdir()
        address = storage.address if storage else f"file://{self.carrier}"
        for collection in collections if admin is None else ():
            self.admin.do("set", f"{collection}/first", "1")
        named = [word for collection in collections for word in ("-c", collection)]
        self.admin.do("fleet", "create", "team", "--at", address, *named, "--as", "admin", *options)

    def invitation(self, name: str, role: str = "writer", *options: str) -> bytes:
        return self.admin.do("fleet", "invite", name, "--role", role, *options)

    def join(self, name: str, role: str = "writer", *options: str) -> Host:
        host = Host(name)
        host.do("fleet", "join", "-", input=self.invitation(name, role, *options))
        self.admin.sync().check(0)
        host.sync().check(0)
        return host

    def saved(self) -> pathlib.Path:
        copy = self.carrier.with_name(self.carrier.name + secrets.token_hex(3))
        shutil.copytree(self.carrier, copy)
        return copy

    def put_back(self, copy: pathlib.Path) -> None:
        shutil.rmtree(self.carrier)
        shutil.copytree(copy, self.carrier)

    def objects(self) -> dict:
        return load_folder(str(self.carrier))

    def write(self, objects: dict) -> None:
        shutil.rmtree(self.carrier / "objects", ignore_errors=True)
        put_objects(self.carrier, objects)

    def set(self, key: str, value: str, host: Host | None = None) -> None:
        (host or self.admin).do("set", key, value)
        (host or self.admin).sync().check(0)


def reason(done: Run) -> str:
    """Why a carrier was refused: the last line, without its address."""
    done.check(2, *REFUSALS)
    return f"{done.code}, {re.sub(r'[a-z0-9]+://[^ ]+', 'it', done.err.decode().strip().splitlines()[-1])[:150]}"


def put_objects(carrier: pathlib.Path, objects: dict) -> None:
    for name, data in objects.items():
        folder = carrier / "objects" / digest(name.encode())[:1].hex()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name.replace("/", "_")).write_bytes(digest(data) + data)


def vectors(*beginnings: str) -> list:
    document = json.loads((HERE.parent / "Interop/vectors/fleet-attacks.json").read_text())
    return [found for found in document if found["case"].startswith(beginnings)]


def join_at(address: str, invitation: str):
    """What a new host makes of a carrier."""
    host = Host("victim")
    return host, host.prefs("fleet", "join", "-", "--at", address, input=invitation.encode(), patience=60)


def join_vector(found: dict):
    """What a new host makes of it, through a folder, or an etcd that lists more."""
    objects = {name: bytes.fromhex(data) for name, data in found["objects"].items()}
    if not found["listed"]:
        carrier = FOLDER / f"vector-{secrets.token_hex(4)}"
        carrier.mkdir()
        put_objects(carrier, objects)
        return join_at(f"file://{carrier}", found["invitation"])
    more = [(entry["name"], bytes.fromhex(entry["bytes"])) for entry in found["listed"] for _ in range(entry["times"])]
    with Hostile(objects, lambda: iter(more)).running() as address:
        return join_at(address, found["invitation"])


def by_vectors(threat, *beginnings: str) -> None:
    outcomes, found = Outcomes(), vectors(*beginnings)
    if not found:
        raise NotAllowed("there are no such vectors")
    for attack in found:
        host, done = join_vector(attack)
        values = host.values().get("web", {})
        if "contents" in attack:
            if done.code != 0 or values != attack["contents"]:
                raise NotAllowed(f"{attack['case']}: {done}, and it has {values}")
            outcomes.add("accepted, as it must be")
        else:
            if done.code == 0 or values or done.code not in REFUSALS:
                raise NotAllowed(f"{attack['case']}: {done}, and it has {values}")
            outcomes.add(f"refused with {done.code}")
    threat.tried(
        f"{len(found)} fleets of Tests/Interop/vectors/fleet-attacks.json: {'; '.join(sorted({attack['case'][:60] for attack in found})[:6])} …",
        str(outcomes),
    )
