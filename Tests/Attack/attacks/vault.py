"""Someone with the store's key, and not the vault's; and the vault that is unlocked for a while."""

from __future__ import annotations

import os
import pathlib
import secrets
import shutil
import struct
import time

from forging import forge, plain_database
from registry import attempt, same
from samples import PASSPHRASE, Outcomes, home, once, refused, snapshot
from workshop import NOBODY, Home, NotAllowed, Place, found_in, processes, until

SEALED = "sealed-" + secrets.token_hex(16)


@once
def sealed() -> Place:
    """A store with a sealed collection, and the vault's key beside it; two values, one of which has been changed."""
    place = Place(home(), "sealed")
    place.do("init")
    place.do("set", "tokens/t", "--secret", "-", input=(SEALED + "-before").encode())
    place.do("history", "--keep", "tokens")
    place.write(place.vault_key, b"coffer-key-1:" + os.urandom(32).hex().encode() + b"\n")
    place.do("seal", "tokens")
    place.do("history", "--keep", "tokens")
    for value in (SEALED + "-first", SEALED):
        place.do("set", "tokens/t", "--secret", "-", input=value.encode())
    place.do("set", "tokens/u", "--secret", "-", input=(SEALED + "-other").encode())
    place.do("set", "web/host", "example.org")
    return place


def locked(place: Place, command: str, *words: object, **options: object):
    """A command without the vault's key."""
    return place.home.prefs(command, "--store", place.store, "--key-file", place.key, "--no-input", *words, **options)


READS = (
    ("get", "tokens/t"), ("get", "tokens/t", "--json"), ("list", "tokens", "--values"),
    ("list", "tokens", "-l", "--values", "--json", "--reveal"), ("find", "sealed"), ("history", "tokens/t", "--reveal"),
    ("log", "tokens", "--json"), ("export", "--reveal"), ("export", "tokens", "--reveal"), ("export",),
    ("diff", "tokens", "web", "--reveal"), ("exec", "-c", "tokens", "--", "env"), ("revert", "tokens/t@2"),
    ("type", "tokens/t"), ("copy", "tokens", "plain"), ("rename", "tokens/t", "web/t"), ("doctor", "--deep", "--json"),
    ("validate",), ("status", "--json"),
)


@attempt("The open store is read")
def reads(threat) -> None:
    place, outcomes, shown = sealed().copy("locked"), Outcomes(), []
    for words in READS:
        done = locked(place, *words)
        outcomes.add(f"exit code {done.code}")
        if SEALED.encode() in done.out + done.err:
            shown.append(str(done))
    threat.tried(f"{len(READS)} commands without the vault's key", "; ".join(shown) or f"{outcomes}; none shows a value", not shown)
    found = found_in({"a sealed value": SEALED}, [place.plain()])
    threat.tried(
        "sealed values, and what they were before, looked for in the decrypted pages", "; ".join(found) or "none is there",
        not found,
    )
    if place.values().get("tokens", {}).get("t") is None:
        raise NotAllowed("with the vault's key nothing is read either")


def tampered(threat, changes: dict) -> None:
    """Edits of rows with the store's key, then reads with the vault's."""
    for what, (statements, key) in changes.items():
        place = sealed().copy("tampered")
        forge(place, *statements)
        done = place.prefs("get", key)
        place.prefs("doctor", "--deep").check(7)
        # Of damage, and not that the vault is locked.
        threat.tried(what, f"{done.code}, {done.says[:160]}", done.code in (3, 7))


ITEM = "UPDATE items SET %s WHERE key = 't'"


@attempt("A sealed value is changed")
def changed(threat) -> None:
    flip = "data = CAST(substr(data, 1, 33) || x'%s' || substr(data, 35) AS BLOB)"
    tampered(
        threat,
        {
            "bytes of the ciphertext changed": ([ITEM % (flip % "00"), ITEM % (flip % "01")], "tokens/t"),
            "the value of another key": ([ITEM % "data = (SELECT data FROM items WHERE key = 'u')"], "tokens/t"),
            "its key renamed": (["UPDATE items SET key = 'v' WHERE key = 't'"], "tokens/v"),
            "moved to another collection": (
                ["UPDATE items SET (type, data) = (SELECT type, data FROM items WHERE key = 't') WHERE key = 'host'"],
                "web/host",
            ),
            "the generation changed": ([ITEM % "data = CAST(x'00000009' || substr(data, 5) AS BLOB)"], "tokens/t"),
            "cut to 10 bytes": ([ITEM % "data = substr(data, 1, 10)"], "tokens/t"),
        },
    )
    place = sealed().copy("replace")
    forge(place, ITEM % (flip % "00"), ITEM % (flip % "01"))
    place.do("unset", "tokens/t")
    place.do("set", "tokens/t", "--secret", "-", input=b"new")
    threat.tried("a damaged value removed, and another one set", f"it is {place.values()['tokens']['t']}")


@attempt("Replay of one sealed value")
def replayed(threat) -> None:
    place = sealed().copy("replayed")
    forge(place, ITEM % "data = (SELECT data FROM history WHERE key = 't' ORDER BY version LIMIT 1)")
    done = place.prefs("get", "tokens/t")
    threat.limit(
        "an earlier sealed value of the same key put back",
        f"exit code {done.code}, and the value is that of before: {done.text.strip() == SEALED + '-before'}",
    )


@attempt("A plaintext value is planted")
def planted(threat) -> None:
    tampered(
        threat,
        {
            "text in place of a sealed value": ([ITEM % "type = 5, data = CAST('planted' AS BLOB)"], "tokens/t"),
            "a secret in place of a sealed value": ([ITEM % "type = 13, data = CAST('planted' AS BLOB)"], "tokens/t"),
            "a new key with text": (
                [
                    "INSERT INTO items(collection, key, version, modified, type, data) SELECT id, 'new', 3, 0, 5, CAST('planted' AS BLOB) FROM"
                    " collections WHERE name = 'tokens'"
                ],
                "tokens/new",
            ),
            "metadata in plaintext": ([ITEM % "metadata = CAST(x'05' || 'planted' AS BLOB)"], "tokens/t"),
        },
    )
    place = sealed().copy("listed")
    forge(place, ITEM % "type = 5, data = CAST('planted' AS BLOB)")
    for words in (("export", "--reveal"), ("list", "tokens", "--values", "--reveal"), ("exec", "-c", "tokens", "--", "env")):
        done = place.prefs(*words)
        if b"planted" in done.out:
            raise NotAllowed(f"{done} shows it")
    threat.tried("export, list and exec with the vault's key", "none shows the planted value")


@attempt("The vault's slots, or its list")
def row(threat) -> None:
    own = Place(home(), "own-vault")
    own.write(own.vault_key, b"coffer-key-1:" + os.urandom(32).hex().encode() + b"\n")
    own.do("init")
    own.do("set", "tokens/t", "--secret", "-", input=b"mine")
    own.do("seal", "tokens")
    with plain_database(own.plain()) as plain:
        mine = plain.execute("SELECT id, mac, sealed, slots, succession FROM vault").fetchone()

    def his(plain) -> None:
        plain.execute("UPDATE vault SET id = ?, mac = ?, sealed = ?, slots = ?, succession = ?", mine)

    def his_slot(plain) -> None:
        (slots,) = plain.execute("SELECT slots FROM vault").fetchone()
        record = mine[3][2:]
        record = bytes([9]) + record[1:]
        plain.execute("UPDATE vault SET slots = ?", (slots + struct.pack(">H", len(record)) + record,))

    for what, change in (
        ("the list of sealed collections emptied", "UPDATE vault SET sealed = x''"),
        ("a bit of a slot flipped", "UPDATE vault SET slots =" " CAST(substr(slots, 1, 30) || x'ff' || substr(slots, 32) AS BLOB)"),
        ("a slot of his own added", his_slot), ("a vault of his own", his),
        ("a MAC of zeros", "UPDATE vault SET mac = zeroblob(32)"), ("another generation", "UPDATE vault SET generation = 2"),
    ):
        place = sealed().copy("row")
        forge(place, change)
        before = snapshot(place.store)
        done = place.prefs("get", "tokens/t")
        written = place.prefs("set", "tokens/t", "--secret", "-", input=b"next secret")
        if written.code == 0 or snapshot(place.store) != before and change == his:
            raise NotAllowed(f"{what}: a secret was written: {written}")
        threat.tried(
            f"{what}; get and set with the vault's key", f"{refused(done, 5, 7, 17)}; set {refused(written, 5, 7, 17)[:30]}"
        )


@attempt("A declaration is removed")
def unsealed(threat) -> None:
    place = sealed().copy("unsealed")
    forge(
        place, "UPDATE collections SET flags = flags & ~1 WHERE name = 'tokens'", "DELETE FROM items WHERE type = 14",
        "DELETE FROM history WHERE type = 14",
    )
    done = place.prefs("set", "tokens/t", "--secret", "-", input=b"next-secret")
    threat.tried("the seal removed with all values; the owner sets a secret, with the vault's key", refused(done, 7))
    found = found_in({"the secret": "next-secret"}, [place.plain()])
    threat.tried("the secret looked for in the decrypted pages", "; ".join(found) or "not there", not found)
    threat.tried("doctor without the vault's key", refused(locked(place, "doctor"), 7))


@attempt("An unsealed environment")
def environment(threat) -> None:
    place = sealed().copy("environment")
    forge(
        place, "INSERT INTO collections(name, flags) VALUES ('tokens@staging', 0)",
        "INSERT INTO items(collection, key, version, modified, type, data) SELECT id, 't', 3, 0, 5, CAST('planted' AS BLOB) FROM collections"
        " WHERE name = 'tokens@staging'",
    )
    for words in (
        ("get", "--env", "staging", "tokens/t"), ("list", "--env", "staging", "tokens", "--values"),
        ("set", "--env", "staging", "tokens/t", "x"), ("export", "--env", "staging", "tokens", "--reveal"),
        ("exec", "--env", "staging", "-c", "tokens", "--", "env"), ("get", "tokens@staging/t"), ("export", "tokens@staging"),
        ("export", "--reveal"),
    ):
        for run in (place.prefs(*words), locked(place, *words)):
            if run.code == 0 or b"planted" in run.out:
                raise NotAllowed(f"{run} {run.text[:80]}")
    place.prefs("doctor").check(7)
    threat.tried(
        "an environment of a sealed collection made with a value in plaintext: 8 commands with and without the vault's key, doctor",
        "refused, all of them",
    )


@attempt("The same in the vault")
def former_vault_holder(threat) -> None:
    """by a former holder of its slot, where the present key is remembered"""
    person = Home("vault")
    person.do("init")
    key = person.folder / "vault-key"
    key.write_bytes(b"coffer-key-1:" + os.urandom(32).hex().encode() + b"\n")
    key.chmod(0o600)
    options = ["--vault-key-file", key]
    person.do("set", "tokens/t", "--secret", "-", input=b"first")
    person.do("seal", "tokens", *options)

    def as_place() -> Place:
        place = Place(person, "vault")
        shutil.copy(person.store, place.store)
        shutil.copy(person.key, place.key)
        return place

    with plain_database(as_place().plain()) as plain:
        former = plain.execute("SELECT generation, id, mac, sealed, slots, succession FROM vault").fetchone()
        values = plain.execute("SELECT key, data FROM items WHERE type = 14").fetchall()
    person.do("rotate", "--vault", *options)
    person.do("set", "tokens/t", "--secret", "-", *options, input=b"second")
    now = person.store.read_bytes()

    def put_back(plain) -> None:
        plain.execute("DELETE FROM vault")
        plain.execute("INSERT INTO vault(generation, id, mac, sealed, slots, succession) VALUES (?, ?, ?, ?, ?, ?)", former)
        for name, data in values:
            plain.execute("UPDATE items SET data = ? WHERE key = CAST(? AS TEXT)", (data, name))

    place = as_place()
    forge(place, put_back)
    for words, input in ((("get", "tokens/t"), b""), (("set", "tokens/t", "--secret", "-"), b"next secret")):
        person.store.write_bytes(place.store.read_bytes())
        before = person.store.read_bytes()
        done = person.prefs(*words, *options, input=input)
        if person.store.read_bytes() != before:
            raise NotAllowed(f"{done}: the store was changed")
        threat.tried(
            f"the vault's former row and values put back by someone with the store's key, then {words[0]}", refused(done, 7, 17)
        )
    person.store.write_bytes(now)
    if person.do("get", "tokens/t", *options) != b"second\n":
        raise NotAllowed("the present store does not open again")


def others_copy(threat, person: Home) -> None:
    """Another user with the store's key, a copy of the store, and the way to the socket."""
    other = Home("other", user=NOBODY)
    for source, target in ((person.store, other.store), (person.key, other.key)):
        target.parent.mkdir(parents=True)
        shutil.copy(source, target)
    for path in other.folder.rglob("*"):
        os.chown(path, NOBODY, NOBODY)
    os.chmod(person.folder, 0o755)
    for path in [person.runtime, *person.runtime.rglob("*")]:
        os.chmod(path, 0o777)
    done = other.prefs("get", "tokens/t", "--no-input", environment={"XDG_RUNTIME_DIR": str(person.runtime)}, patience=30)
    threat.tried("another user with a copy of the store and its key, who may enter the socket's folder", refused(done, 6))
    os.chmod(person.runtime, 0o700)


@attempt("The vault is unlocked for a while")
def unlocked(threat) -> None:
    person = Home("unlocked")
    person.do("init")
    person.do("set", "tokens/t", "--secret", "-", input=SEALED.encode())
    person.do("seal", "tokens", "--vault-passphrase-fd", "0", "--cost", "14", input=PASSPHRASE)
    person.do("unlock", "--ttl", "60s", "--vault-passphrase-fd", "0", input=PASSPHRASE)
    try:
        if person.do("get", "tokens/t") != (SEALED + "\n").encode():
            raise NotAllowed("the vault was not unlocked")
        agents = processes(person)
        where = "an agent" if agents else "the kernel's keyring"
        shown = [
            f"{name} of {pid}"
            for pid in agents
            for name in ("cmdline", "environ")
            if PASSPHRASE in pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
        ]
        threat.tried(
            f"the key is with {where}; the passphrase looked for in its arguments and environment",
            "; ".join(shown) or "not there", not shown,
        )
        files = [file for file in person.folder.rglob("*") if file.is_file() and file != person.key]
        found = found_in({"the passphrase": PASSPHRASE}, files)
        threat.tried(f"and in {len(files)} files of the home", "; ".join(found) or "not there", not found)
        if os.geteuid() == 0:
            others_copy(threat, person)
    finally:
        person.prefs("lock")
    threat.tried("after `prefs lock`", refused(person.prefs("get", "tokens/t", "--no-input"), 6))
    gone = until(lambda: not processes(person), 10)
    threat.tried("the agent after `prefs lock`", "has ended" if gone else "still runs", gone)
    person.do("unlock", "--ttl", "1s", "--vault-passphrase-fd", "0", input=PASSPHRASE)
    time.sleep(1.5)
    threat.tried("after its time", refused(person.prefs("get", "tokens/t", "--no-input"), 6))


same("a slot, and no vault", "The open store is read", "A plaintext value is planted", "A sealed value is changed")
same("a dropped slot of the vault, and the store's key", "The same in the vault")
