"""Former holders of keys, leaked keys, and changes of keys."""

from __future__ import annotations

import os
import shutil
import signal
import time

import sealing
from coffer_reader.envelope import Envelope
from coffer_reader.keys import Key, KeyFile
from forging import Keys, as_sealed, forged_envelope, new_epoch, plain_database, records
from registry import attempt, same, untried
from samples import COPY, PAGE, SIZE, Outcomes, closed, refused, snapshot, states, unchanged
from workshop import BINARIES, Home, NotAllowed, Place, started


def by(place: Place, key, command: str, *words):
    """A command with a key of someone else."""
    return place.home.prefs(command, "--store", place.store, "--key-file", key, "--no-input", *words)


def with_guest(name: str) -> tuple:
    """A store with a slot for someone else, and the key."""
    place = closed().copy(name)
    guest = place.folder / "guest"
    place.do("key", "add", "--new-key-file", guest, "--label", "Mallory")
    return place, guest


@attempt("A slot was removed")
def removed(threat) -> None:
    place, guest = with_guest("removed")
    older = place.store.read_bytes()
    slot = records(older[:COPY])[2]
    place.do("key", "remove", "Mallory", "--force")
    now = place.store.read_bytes()
    parts = {"its salt": slot[16:48], "its commitment": slot[-104:-72], "the wrapped key": slot[-72:], "its label": b"Mallory"}
    found = [what for what, data in parts.items() if data in now[:SIZE]]
    threat.tried("the slot's record looked for in both copies of the envelope", ", ".join(found) or "nothing is left", not found)
    threat.tried("its key", refused(by(place, guest, "collections"), 5))
    place.do("rotate", "--new-root-key", "--drop", "pass")
    place.do("set", "late/later", "written later")
    data = place.store.read_bytes()
    for what, envelope in (("the envelope of then", older[:SIZE]), ("its first copy", older[:COPY] + data[COPY:SIZE])):
        other = place.copy("old-envelope")
        other.write(other.store, envelope + data[SIZE:])
        threat.tried(
            f"{what} before the pages of later, under a new root key", refused(by(other, guest, "get", "late/later"), 5, 7)
        )
        output = other.folder / "saved.coffer"
        done = by(other, guest, "salvage", "-o", output)
        read = by_store(other, output, guest, "get", "late/later").code == 0 if output.exists() else False
        threat.tried(f"{what}, by salvage", f"exit code {done.code}, and nothing of later is read", done.code != 0 and not read)


def by_store(place: Place, store, key, command: str, *words):
    return place.home.prefs(command, "--store", store, "--key-file", key, "--no-input", *words)


def rewritten(older: bytes, secret: Key, plain: bytes) -> tuple:
    """The whole store of then, under an epoch of the former holder's and a high sequence: envelope and pages."""
    keys = Keys(older, secret)
    epochs = {max(keys.epochs) + 7: new_epoch()}
    envelope = forged_envelope(older[:COPY], keys, keys.envelope.sequence + 100, epochs)
    new = sealing.NewStore([], store_id=keys.id, root_key=keys.root, epochs=epochs)
    return envelope * 2, new.pages(plain)


@attempt("A former holder of a slot writes")
def former_holder(threat) -> None:
    home = Home("former")
    home.do("set", "a", "1")
    guest = home.folder / "guest"
    home.do("key", "add", "--new-key-file", guest, "--label", "Mallory")
    older = home.store.read_bytes()
    place = Place(home, "older")
    place.write(place.store, older)
    place.write(place.key, guest.read_bytes())
    path = place.plain()
    with plain_database(path) as plain:
        plain.execute("UPDATE items SET data = CAST('his' AS BLOB)")
    envelope, pages = rewritten(older, KeyFile.read(str(guest)), as_sealed(path))
    # Where nothing newer is remembered, it opens: the forgery is well made.
    elsewhere = Place(home, "elsewhere")
    elsewhere.write(elsewhere.store, envelope + pages)
    shutil.copy(home.key, elsewhere.key)
    control = elsewhere.prefs("get", "a")
    home.do("key", "remove", "Mallory", "--force")
    home.do("rotate", "--new-root-key")
    home.do("set", "a", "2")
    now = home.store.read_bytes()
    records_before = snapshot(*home.records.iterdir())
    for what, data in (
        ("the whole store of then, rewritten under his own epoch", envelope + pages), ("the store of then", older),
        ("his envelope before the present pages", envelope + now[SIZE:]),
        ("his envelope as the first copy alone", envelope[:COPY] + now[COPY:]),
        ("his envelope as the second copy alone", now[:COPY] + envelope[COPY:] + now[SIZE:]),
    ):
        for words in (("get", "a"), ("set", "a", "secret of later")):
            home.store.write_bytes(data)
            done = home.prefs(*words)
            if done.code == 0 and done.out.strip() not in (b"", b"2"):
                raise NotAllowed(f"{what}: {done} says {done.text}")
            unchanged(records_before, what)
        threat.tried(f"{what}; get and set by the owner", refused(done, 5, 7, 17))
    home.store.write_bytes(now)
    if home.do("get", "a") != b"2\n":
        raise NotAllowed("the present store does not open again")
    with home.running("watch", "--plain") as watching:
        time.sleep(0.5)
        home.store.write_bytes(envelope + now[SIZE:])
        home.store.write_bytes(now)
        home.do("set", "a", "3")
        still = watching.poll() is None
    threat.tried(
        "his envelope in place of the owner's for a moment, while a program has the store open",
        f"the next commit is the owner's: {home.do('get', 'a').decode().strip()}; watch {'goes on' if still else 'ended'}",
    )
    threat.limit(
        "the same forgery where nothing is remembered", f"exit code {control.code}, {control.text.strip() or control.says}"
    )


@attempt("A slot that was only removed")
def only_removed(threat) -> None:
    place, guest = with_guest("only-removed")
    older = place.store.read_bytes()
    place.do("key", "remove", "Mallory", "--force")
    place.do("set", "late/later", "written later")
    keys = Keys(older, KeyFile.read(str(guest)))
    slots = [sealing.NewSlot(KeyFile.read(str(guest)).material, 5, label="again")]
    new = sealing.NewStore(slots, store_id=keys.id, root_key=keys.root, epochs=keys.epochs, sequence=keys.envelope.sequence + 100)
    place.write(place.store, new.envelope() + place.store.read_bytes()[SIZE:])
    done = by(place, guest, "get", "late/later")
    threat.limit(
        "its former holder, who kept the root key, gives himself a slot", f"exit code {done.code}, reads {done.text.strip()!r}"
    )


@attempt("A key has leaked")
def leaked(threat) -> None:
    place = closed().copy("leaked")
    before = snapshot(place.store)
    for words in (("key", "add", "--new-key-file", place.key), ("key", "change", "0", "--new-key-file", place.key)):
        threat.tried(f"`{' '.join(map(str, words[:2]))}` with the same key", refused(place.prefs(*words), 1, 2, 9, 11))
        unchanged(before, "a key that is one already")
    done = place.prefs("rotate")
    threat.tried("rotate, without a new root key", done.says[-200:], done.code == 0 and b"key replace" in done.err)
    leaked_key, older = place.folder / "leaked", place.store.read_bytes()
    shutil.copy(place.key, leaked_key)
    done = place.prefs("key", "replace", "--drop", "pass")
    done.check(0)
    place.do("set", "late/later", "written later")
    threat.tried("the leaked key after `key replace`", refused(by(place, leaked_key, "get", "late/later"), 5))
    data = place.store.read_bytes()
    place.write(place.store, older[:SIZE] + data[SIZE:])
    threat.tried("the same with the envelope of then", refused(by(place, leaked_key, "get", "late/later"), 7))
    outcomes = Outcomes()
    for number in range(12):
        place = closed().copy("killed")
        shutil.copy(place.key, place.folder / "leaked")
        words = [BINARIES / "prefs", "key", *place.options(), "replace", "--drop", "pass"]
        process = started(words, **place.home.options(), stdout=-3, stderr=-3, stdin=-3)
        time.sleep(number * 0.004)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if place.values() != states()[0]:
            raise NotAllowed("a key replacement that was killed lost data")
        again = place.prefs("key", "replace", "--drop", "pass")
        if again.code != 0:
            again = place.prefs("key", "replace")
        again.check(0)
        by(place, place.folder / "leaked", "collections").check(5)
        outcomes.add("opened, repeated, and the leaked key opens nothing")
    threat.tried("`key replace` killed after 0 to 44 ms", str(outcomes))


@attempt("Copies that Coffer has made")
def copies(threat) -> None:
    place = closed().copy("copies")
    backup = place.folder / "backup.coffer"
    place.do("backup", backup)
    place.do("restore-store", backup, "--accept-keys", "--force")
    names = [file.name for file in place.folder.iterdir() if "replaced" in file.name]
    for words in (("rotate",), ("key", "replace"), ("doctor",)):
        done = place.prefs(*words)
        threat.tried(
            f"`{' '.join(words)}` beside {', '.join(names)}",
            "names it" if b"replaced-1" in done.err + done.out else done.says,
            bool(names) and b"replaced-1" in done.err + done.out,
        )


@attempt("A program that was killed while it made a key file")
def second_name(threat) -> None:
    place = closed().copy("second")
    left = place.folder / ".key.0123456789abcdef.tmp"
    left.hardlink_to(place.key)
    done = place.prefs("doctor")
    threat.tried(
        "a second name of the key file, and doctor", "names it" if left.name.encode() in done.out + done.err else done.says,
        left.name.encode() in done.out + done.err,
    )
    if not left.exists():
        threat.tried("the second name", "removed by doctor")
        return
    place.do("key", "replace", "--drop", "pass")
    threat.tried(
        "the next program that makes a key file there", "removes it" if not left.exists() else "leaves it", not left.exists()
    )


@attempt("An output is given the name of a key file")
def output(threat) -> None:
    place = closed().copy("output")
    hidden = place.folder / "notes.txt"
    shutil.copy(place.key, hidden)
    link = place.folder / "link"
    link.symlink_to(place.key)
    outcomes = Outcomes()
    for target in (place.key, hidden, place.store, link):
        before = snapshot(place.key, hidden, place.store)
        for words in (
            ("export", "-o", target), ("export", "--format", "sqlite", "--reveal", "-o", target), ("backup", target),
            ("salvage", "-o", target),
        ):
            done = place.prefs(*words)
            unchanged(before, f"{words} over {target.name}")
            if done.code == 0 and target is not link:
                raise NotAllowed(f"{done}")
            outcomes.add(f"exit code {done.code}")
    threat.tried(
        "export, backup and salvage over the key file, a copy of it as notes.txt, the store, and a link to the key",
        f"{outcomes}; all stayed as they were",
    )


@attempt("A key must be changed")
def rotated_meanwhile(threat) -> None:
    outcomes = Outcomes()
    for number in range(12):
        place = closed().copy("rotating")
        process = started([BINARIES / "prefs", "rotate", *place.options()], **place.home.options(), stdout=-3, stderr=-3, stdin=-3)
        time.sleep(number * 0.003)
        if number % 2:
            process.send_signal(signal.SIGKILL)
        if place.values() != states()[0]:
            raise NotAllowed("a reader beside a rotation reads other data")
        process.wait()
        place.do("set", "late/after", "x")
        place.do("rotate")
        place.do("doctor", "--deep")
        envelope = Envelope.parse(place.store.read_bytes())
        outcomes.add(f"{len(envelope.epochs)} epoch left")
    threat.tried(
        "12 rotations with a reader beside them, half of them killed, then a write and another rotation", str(outcomes),
        list(outcomes.found) == ["1 epoch left"],
    )


@attempt("A change of keys fails half-way")
def half_way(threat) -> None:
    """of a store with a damaged page"""
    outcomes = Outcomes()
    for words in (
        ("rotate",), ("rotate", "--new-root-key", "--drop", "pass"), ("key", "replace", "--drop", "pass"), ("seal", "tokens"),
    ):
        place = closed().copy("half")
        data = bytearray(place.store.read_bytes())
        # The last page: no command reads it by chance.
        data[-PAGE + 100] ^= 1
        place.write(place.store, bytes(data))
        if words[0] == "seal":
            place.write(place.vault_key, b"coffer-key-1:" + os.urandom(32).hex().encode() + b"\n")
        files = sorted(file.name for file in place.folder.iterdir())
        before = snapshot(place.store, place.key)
        done = place.prefs(*words).check(7)
        unchanged(before, f"{words} with a damaged page")
        if sorted(file.name for file in place.folder.iterdir()) != files:
            raise NotAllowed(f"{words}: it left files")
        outcomes.add(f"exit code {done.code}")
    threat.tried(
        "rotate, a new root key, key replace and seal with a flipped bit in the last page", f"{outcomes}; nothing was changed"
    )


same("an old envelope, and a secret", "Envelope downgrade", "A slot that was only removed")
same("a dropped slot: the root key", "A slot was removed", "A former holder of a slot writes")
untried(
    "the same, beside a program that was idle",
    "that program must have been idle since before the key was replaced, for longer than any command of the tool runs",
)
