"""Sealed collections of a fleet: hosts that have not sealed them, locked vaults, members without them, and readers of stores."""

from __future__ import annotations

import os
import secrets
import shutil

from coffer_reader.fleet import Fleet
from coffer_reader.fleet_objects import Invitation
from coffer_reader.keys import KeyFile
from coffer_reader.store import Store
from forging import forge
from registry import attempt
from samples import refused
from teams import Host, Team, join_at, put_objects, reason, vectors
from workshop import FOLDER, NotAllowed, Place, Run, found_in

ROW = "A secret of a sealed collection"
FIRST, SECOND, THIRD, NAME = (f"sealed-{secrets.token_hex(12)}" for _ in range(4))


def locked(host: Host, *words: object, **options: object) -> Run:
    return host.prefs(*words, "--no-input", **options)


def opened(host: Host, *words: object, **options: object) -> Run:
    """With the key of the host's own vault, which is elsewhere."""
    key = FOLDER / f"vault-of-{host.folder.name}"
    if not key.exists():
        key.write_bytes(b"coffer-key-1:" + os.urandom(32).hex().encode() + b"\n")
        key.chmod(0o600)
    return host.prefs(*words, "--no-input", environment={"PREFS_VAULT_KEY_FILE": str(key)}, **options)


def put(host: Host, key: str, value: str) -> None:
    opened(host, "set", key, "--secret", "-", input=value.encode()).check(0)


def got(host: Host, key: str = f"tokens/{NAME}") -> str:
    return opened(host, "get", key).check(0).text.strip()


def plain(host: Host, files: tuple = ()) -> list:
    """What of the secrets is in the decrypted pages of a host's store, in the other files of its home, and in these files."""
    path = FOLDER / f"plain-{secrets.token_hex(4)}"
    Store(host.store, KeyFile.read(host.key)).write_plain(path)
    files = [path, *files, *(file for file in host.folder.rglob("*") if file.is_file())]
    found = found_in({"the first": FIRST, "the second": SECOND, "the third": THIRD}, files)
    path.unlink()
    return found


def fleet() -> Team:
    """An admin whose host has `tokens` sealed, and in the fleet so, with the first secret."""
    admin = Host("admin")
    admin.do("set", "web/first", "1")
    opened(admin, "seal", "tokens").check(0)
    opened(admin, "history", "--keep", "tokens").check(0)
    put(admin, f"tokens/{NAME}", FIRST)
    team = Team(collections=("web", "tokens"), admin=admin)
    opened(admin, "fleet", "sync").check(0)
    return team


def joined(team: Team, name: str, *options: str, role: str = "writer") -> Host:
    """A host that has joined, and sealed nothing."""
    host = Host(name)
    host.do("fleet", "join", "-", input=team.invitation(name, role, *options))
    opened(team.admin, "fleet", "sync").check(0)
    return host


def carrier(team: Team) -> tuple:
    return tuple(file for file in team.carrier.rglob("*") if file.is_file())


@attempt(ROW)
def unsealed(threat) -> None:
    """a host where the collection is not sealed"""
    team = fleet()
    host = joined(team, "lab")
    done = locked(host, "fleet", "sync")
    put(team.admin, f"tokens/{NAME}", SECOND)
    opened(team.admin, "fleet", "sync").check(0)
    said = [
        locked(host, "fleet", *words)
        for words in (("sync",), ("status",), ("status", "--json"), ("log",), ("conflicts",), ("members",))
    ]
    found = plain(host, carrier(team))
    shown = [str(run) for run in said if FIRST.encode() in run.out + run.err or SECOND.encode() in run.out + run.err]
    threat.tried(
        "a host that has not sealed it joins, and syncs",
        f"{reason(done)}; in its decrypted pages, its home and the carrier: {'; '.join(found + shown) or 'no value'}",
        done.code == 11 and not found + shown and "tokens" not in host.values(),
    )
    host.do("set", "tokens/mine", "--secret", "-", input=b"plain here")
    locked(host, "fleet", "sync").check(11)
    opened(team.admin, "fleet", "sync").check(0)
    threat.tried(
        "the same host sets a secret there in plaintext, and syncs",
        "the others do not get it",
        opened(team.admin, "get", "tokens/mine").code == 3,
    )
    refusals = [locked(host, "fleet", "unseal", "tokens"), locked(host, "fleet", "seal", "tokens")]
    threat.tried("a writer unseals or seals it in the fleet", "; ".join(refused(run, 11)[:100] for run in refusals))
    opened(host, "seal", "tokens").check(0)
    done = locked(host, "fleet", "sync")
    found = plain(host, carrier(team))
    threat.tried(
        "it is sealed there, and the vault is locked",
        f"{refused(done, 6)[:100]}; {'; '.join(found) or 'no value anywhere'}",
        not found and locked(host, "get", f"tokens/{NAME}").code in (3, 6),
    )
    opened(host, "fleet", "sync").check(0)
    found = plain(host, carrier(team))
    threat.tried(
        "the vault is unlocked",
        f"it has the secret with the key of its vault: {got(host) == SECOND}, without: "
        f"{refused(locked(host, 'get', f'tokens/{NAME}'), 6)[:60]}; "
        f"{'; '.join(found) or 'no value in its pages or on the carrier'}",
        got(host) == SECOND and not found,
    )


@attempt(ROW)
def conflicts(threat) -> None:
    """values that lose, in the history and in messages"""
    team = fleet()
    host = joined(team, "lab")
    opened(host, "seal", "tokens").check(0)
    opened(host, "history", "--keep", "tokens").check(0)
    opened(host, "fleet", "sync").check(0)
    put(host, f"tokens/{NAME}", SECOND)
    put(team.admin, f"tokens/{NAME}", THIRD)
    for each in (host, team.admin, host):
        opened(each, "fleet", "sync").check(0)
    kept = opened(host, "history", f"tokens/{NAME}", "--reveal").text
    said = b"".join(
        run.out + run.err
        for each in (host, team.admin)
        for words in (
            ("fleet", "conflicts"),
            ("fleet", "conflicts", "--json"),
            ("fleet", "log"),
            ("log", "tokens", "--json"),
            ("history", f"tokens/{NAME}", "--reveal"),
        )
        for run in [locked(each, *words)]
    )
    found = plain(host, carrier(team)) + plain(team.admin)
    shown = [value for value in (FIRST, SECOND, THIRD) if value.encode() in said]
    threat.tried(
        "a sealed setting is changed on two hosts at once: both secrets looked for in pages, on the carrier, and in what is said"
        " without the vault",
        f"{'; '.join(found + shown) or 'not there'}; the one that lost is in the history, with the vault:"
        f" {SECOND in kept or THIRD in kept}",
        not found and not shown and got(host) == got(team.admin) and (SECOND in kept or THIRD in kept),
    )


@attempt(ROW)
def without(threat) -> None:
    """members who were not given it, or have it no longer, whom an admin with a locked vault removes"""
    team = fleet()
    invitation = team.invitation("contractor", "reader", "--many", "-c", "web").decode()
    read = Fleet(team.objects(), Invitation.parse(invitation))
    host = Host("contractor")
    host.do("fleet", "join", "-", input=invitation.encode())
    said = b"".join(locked(host, "fleet", *words).out for words in (("status", "--json"), ("members", "--json"), ("log",)))
    threat.tried(
        "a member who was not given it",
        f"its keys open {read.collections}, its host has {sorted(host.values())}",
        read.collections == ["web"] and b"tokens" not in said and not plain(host),
    )
    lab = joined(team, "lab")
    opened(lab, "seal", "tokens").check(0)
    opened(lab, "fleet", "sync").check(0)
    copy = lab.saved()
    done = locked(team.admin, "fleet", "remove", "lab").check(0)
    threat.tried(
        "an admin whose vault is locked removes a member",
        f"exit code {done.code}; pages: {plain(team.admin) or 'no value'}",
        not plain(team.admin),
    )
    put(team.admin, f"tokens/{NAME}", THIRD)
    opened(team.admin, "fleet", "sync").check(0)
    for put_back in (lambda: None, lambda: lab.put_back(copy)):
        put_back()
        opened(lab, "fleet", "sync")
        if got(lab) == THIRD:
            raise NotAllowed("a removed member reads what is written later")
    threat.tried(
        "the removed member, with its vault unlocked, also with its store of then", "it reads nothing that was written later"
    )


@attempt(ROW)
def no_longer(threat) -> None:
    """a collection that an admin unseals in the fleet"""
    team = fleet()
    host = joined(team, "lab")
    opened(host, "seal", "tokens").check(0)
    opened(host, "fleet", "sync").check(0)
    opened(team.admin, "fleet", "unseal", "tokens").check(0)
    put(host, f"tokens/{NAME}", SECOND)
    done = opened(host, "fleet", "sync")
    found = plain(host, carrier(team)) + plain(team.admin)
    opened(team.admin, "fleet", "sync")
    threat.tried(
        "an admin unseals it in the fleet, and a host that has it sealed sets a secret",
        f"{refused(done, 11)[:120]}; {'; '.join(found) or 'no value in pages or on the carrier'}",
        not found and got(team.admin) == FIRST and got(host) == SECOND,
    )


@attempt(ROW)
def vector(threat) -> None:
    """fleets of another writer"""
    outcomes = []
    for found in vectors("a collection that is"):
        path = FOLDER / f"vector-{secrets.token_hex(4)}"
        path.mkdir()
        put_objects(path, {name: bytes.fromhex(data) for name, data in found["objects"].items()})
        host, done = join_at(f"file://{path}", found["invitation"])
        if host.values():
            raise NotAllowed(f"{found['case']}: {done}; it has {host.values()}")
        if "refused" in found:
            # Joining has a name of its own for a list of members that it cannot use.
            outcomes.append(f"refused with {done.check(7, 9).code}")
            continue
        opened(host, "seal", "web").check(0)
        opened(host, "fleet", "sync").check(0)
        values = {name: got(host, f"web/{name}") for name in found["contents"]}
        if values != found["contents"] or locked(host, "get", "web/x").code != 6:
            raise NotAllowed(f"{found['case']}: it has {values}")
        outcomes.append("taken once it is sealed there")
    threat.tried("a collection that is sealed in the fleet, and one that is neither", "; ".join(outcomes), len(outcomes) == 2)


def change(host: Host, *statements: str) -> None:
    """Changes rows of a host's store, with its key."""
    place = Place(host)
    shutil.copy(host.key, place.key)
    log = host.store.with_name(host.store.name + "-wal")
    for source, target in ((host.store, place.store), (log, place.log)):
        if source.exists():
            shutil.copy(source, target)
    forge(place, *statements)
    log.unlink(missing_ok=True)
    host.store.write_bytes(place.store.read_bytes())
    place.remove()


WITHOUT_VAULT = (
    "DELETE FROM vault",
    "DELETE FROM items WHERE type = 14",
    "DELETE FROM history WHERE type = 14",
    "UPDATE collections SET flags = flags & ~1",
)


@attempt(ROW)
def forged_rows(threat) -> None:
    """rows that someone with the store's key changes, before the owner syncs with the vault's"""
    for what, statements in (
        ("the vault and the seal removed", WITHOUT_VAULT),
        ("the seal removed", ("UPDATE collections SET flags = flags & ~1",)),
        (
            "a secret in plaintext planted",
            ("UPDATE items SET type = 13, data = CAST('planted' AS BLOB), version = version + 50 WHERE type = 14",),
        ),
        (
            "a new key in plaintext planted",
            (
                "INSERT INTO items(collection, key, version, modified, type, data) SELECT id, 'new', 99, 0, 5,"
                " CAST('planted' AS BLOB) FROM collections WHERE name = 'tokens'",
            ),
        ),
        (
            "sealed values swapped",
            (
                "UPDATE items SET data = (SELECT data FROM items WHERE key = 'other'), version = version + 50"
                " WHERE type = 14 AND key <> 'other'",
            ),
        ),
    ):
        team = fleet()
        host = joined(team, "lab")
        opened(host, "seal", "tokens").check(0)
        put(host, "tokens/other", FIRST)
        opened(host, "fleet", "sync").check(0)
        change(host, *statements)
        put(team.admin, f"tokens/{NAME}", SECOND)
        opened(team.admin, "fleet", "sync").check(0)
        host.do("set", "web/first", "2")
        done = opened(host, "fleet", "sync")
        found = plain(host, carrier(team))
        opened(team.admin, "fleet", "sync").check(0)
        values = [got(team.admin), opened(team.admin, "get", "tokens/new").text]
        threat.tried(
            f"{what}; the owner syncs with the vault's key",
            f"{done.code}, {done.says[:130]}; {'; '.join(found) or 'no value in the pages'}, and the others keep theirs",
            done.code in (6, 7, 11, 17) and not found and values == [SECOND, ""],
        )


@attempt(ROW)
def store_and_carrier(threat) -> None:
    """someone with a member's store and its key, without the vault's, and the carrier"""
    team = fleet()
    host = joined(team, "lab")
    opened(host, "seal", "tokens").check(0)
    opened(host, "fleet", "sync").check(0)
    thief = Host("thief")
    thief.put_back(host.saved())
    change(thief, *WITHOUT_VAULT)
    put(team.admin, f"tokens/{NAME}", SECOND)
    opened(team.admin, "fleet", "sync").check(0)
    sealed = opened(thief, "seal", "tokens")
    done = opened(thief, "fleet", "sync")
    value = opened(thief, "get", f"tokens/{NAME}")
    threat.limit(
        "a member's store without its vault, and another vault made in its place, then a sync",
        f"seal {sealed.code}, sync {done.code}; it reads what others push: {SECOND in value.text}, and what was in the store:"
        f" {FIRST in value.text}",
    )
