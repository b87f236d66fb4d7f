"""Someone who can read and write the files, and has no key."""

from __future__ import annotations

import random
import shutil
import struct
import threading

import sealing
from coffer_reader.envelope import SCRYPT, Envelope
from coffer_reader.pages import LABEL, Checksum, Log, SealedPage
from coffer_reader.store import Store
from registry import attempt, same
from samples import (
    COPY, PASSPHRASE, REFUSED, SIZE, Outcomes, canaries, closed, frames, home, logged, page, pages, refused, with_envelope,
)
from workshop import NotAllowed, Place, found_in

# The same choices in each run.
RANDOM = random.Random(46)


@attempt("A copy of the files is read")
def read_without_a_key(threat) -> None:
    """looked for names and values"""
    place = logged().copy("read")
    with place.with_log():
        place.do("set", "late/more", canaries()["the value"])
        files = [file for file in place.folder.iterdir() if file.name.startswith("settings")]
        found = found_in(canaries(), files)
        control = found_in(canaries(), [place.plain()])
        names = ", ".join(sorted(file.name for file in files))
    if len(control) < len(canaries()) - 1:
        raise NotAllowed(f"the canaries are not in the plain database either: {control}")
    threat.tried(
        f"{len(canaries())} names and values looked for in {names}, as UTF-8, UTF-16, hexadecimal and base64",
        "; ".join(found) or "none is there", not found,
    )
    data = place.store.read_bytes()[SIZE:]
    counts = [data.count(byte) / len(data) for byte in range(256)]
    threat.tried("the bytes of its pages counted", f"each occurs with {min(counts):.4%} to {max(counts):.4%}", max(counts) < 0.006)
    one, other = Place(home(), "twin"), Place(home(), "twin")
    one.do("init")
    shutil.copy(one.key, other.key)
    for twin in (one, other):
        twin.do("set", "web/host", "example.org")
    parts = [{twin.store.read_bytes()[page(n)] for n in range(1, pages(twin.store.read_bytes()) + 1)} for twin in (one, other)]
    threat.tried(
        "two stores with the same key and contents compared", f"{len(parts[0] & parts[1])} of {len(parts[0])} pages in common",
        not parts[0] & parts[1],
    )
    outcomes = Outcomes()
    for number in range(20):
        wrong = Place(home(), "guess")
        shutil.copy(place.store, wrong.store)
        wrong.write(wrong.key, b"coffer-key-1:" + bytes([number] * 32).hex().encode() + b"\n")
        outcomes.add(f"exit code {wrong.prefs('collections').check(5).code}")
    threat.tried("20 other keys", str(outcomes))


@attempt("The log's checksums confirm a guess")
def checksums(threat) -> None:
    """SQLite's checksums over plaintext looked for"""
    place = logged()
    epochs = Store(place.store, place.secret)._epochs
    log, found = place.log.read_bytes(), []
    running = None
    for keys in epochs.values():
        rest = keys.log_header.decipher(log[16:32], 0)
        running = Checksum(struct.unpack(">I", log[:4])[0] == Log.MAGIC_LITTLE_ENDIAN)
        running.add(log[:16] + rest[:8])
        if running.bytes == rest[8:]:
            salts = rest[:8]
            break
    for number, (place_of, _) in enumerate(frames(log), 1):
        frame = log[place_of]
        sealed = SealedPage(frame[24:])
        additional = LABEL + struct.pack(">II", 2, number) + frame[:8] + salts + struct.pack(">I", sealed.mark)
        running.add(frame[:8] + sealed.open(epochs, additional))
        found.append(running.bytes)
    there = [checksum for checksum in found if checksum in log or checksum[::-1] in log]
    threat.tried(
        f"the checksums of {len(found)} frames computed with the key, and looked for in the log", f"{len(there)} are there",
        bool(found) and not there,
    )


@attempt("A passphrase is guessed")
def guess(threat) -> None:
    """what a guess costs"""
    place = Place(home(), "passphrase")
    store = ["--store", place.store, "--no-input"]
    home().do("init", *store, "--passphrase", "--passphrase-fd", "0", input=PASSPHRASE)
    done = home().prefs("collections", *store, "--passphrase-fd", "0", input=b"correct horse").check(5)
    threat.tried(
        "a wrong passphrase, with the costs that init chooses",
        f"{done.seconds:.2f} s of processor time and {done.kilobytes // 1024} MiB", done.kilobytes > 128 << 10,
    )


def slot_offset(copy: bytes, index: int) -> int:
    offset = 56
    for _ in range(index):
        offset += 2 + int.from_bytes(copy[offset : offset + 2], "big")
    return offset + 2


def with_costs(*costs: int) -> Place:
    """The passphrase's slot with other costs, and checksums as they must be."""
    place = closed().copy("costs")
    copy = bytearray(place.store.read_bytes()[:COPY])
    start = slot_offset(copy, 1) + 4
    copy[start : start + 12] = struct.pack(">III", *costs)
    with_envelope(place, sealing.with_checksum(bytes(copy)))
    return place


def by_passphrase(place: Place, passphrase: bytes = PASSPHRASE):
    return place.home.prefs("collections", "--store", place.store, "--passphrase-fd", "0", "--no-input", input=passphrase)


@attempt("Cost lowered")
def cheaper(threat) -> None:
    for costs in ((13, 8, 1), (14, 8, 2), (15, 8, 1), (0, 0, 0)):
        place = with_costs(*costs)
        threat.tried(f"scrypt with {costs}, by its passphrase", refused(by_passphrase(place), 1, 5, 7))
        refused(place.prefs("collections"), 7)
    threat.tried("the same stores by the key", "exit code 7, each")


@attempt("Cost raised to the absurd")
def dearer(threat) -> None:
    for costs in ((63, 8, 1), (20, 8, 16), (2**32 - 1, 2**32 - 1, 2**32 - 1)):
        done = by_passphrase(with_costs(*costs))
        threat.tried(
            f"scrypt with {costs}", f"{refused(done, 1, 5, 7)} (after {done.seconds:.2f} s)",
            done.seconds < 3 and done.kilobytes < 200 << 10,
        )
    place = closed().copy("sixteen")
    slots = [sealing.NewSlot(b"unknown", number, 2, SCRYPT, (20, 8, 1), is_unstretched=True) for number in range(16)]
    new = sealing.NewStore(slots)
    place.write(place.store, new.envelope() + place.store.read_bytes()[SIZE:])
    done = by_passphrase(place)
    threat.tried(
        "16 slots of the highest allowed cost, and a wrong passphrase",
        f"{refused(done, 1, 5, 7)} (after {done.seconds:.1f} s)", done.seconds < 60,
    )


@attempt("The envelope is edited")
def edited(threat) -> None:
    place, data = closed().copy("edited"), closed().store.read_bytes()
    used = len(data[: COPY - 96].rstrip(b"\0"))
    outcomes = Outcomes()
    for offset in [*range(8, used, 9), used + 10]:
        copy = bytearray(data[:COPY])
        copy[offset] ^= 1 << offset % 8
        with_envelope(place, sealing.with_checksum(bytes(copy)))
        done = place.prefs("export", "--reveal")
        if done.code not in REFUSED:
            raise NotAllowed(f"byte {offset} of both copies edited, with the checksum: {done}")
        outcomes.add(f"exit code {done.code}")
    threat.tried("a bit of every ninth byte, with the checksums", str(outcomes))


@attempt("Envelope downgrade")
def downgrade(threat) -> None:
    place = closed().copy("downgrade")
    stolen = place.folder / "stolen"
    place.do("key", "add", "--new-key-file", stolen, "--label", "Mallory")
    older = place.store.read_bytes()[:SIZE]
    place.do("key", "remove", "Mallory", "--force")
    by_stolen = ["--store", place.store, "--key-file", stolen, "--no-input"]
    threat.tried("a removed key, before anything is put back", refused(home().prefs("collections", *by_stolen), 5))
    for what, copies in (
        ("both copies of the older envelope", (older[:COPY], older[COPY:])), ("its first copy", (older[:COPY], None)),
        ("its second copy", (None, older[COPY:])),
    ):
        other = place.copy("older")
        data = other.store.read_bytes()
        with_envelope(other, copies[0] or data[:COPY], copies[1] or data[COPY:SIZE])
        words = ["--store", other.store, "--key-file", stolen, "--no-input"]
        threat.tried(f"{what} put back, and opened with the removed key", refused(home().prefs("collections", *words), 5, 7))


@attempt("Slot of another store")
def slot(threat) -> None:
    place, other = closed().copy("slot"), Place(home(), "mine")
    other.do("init")
    mine, copy = other.store.read_bytes()[:COPY], place.store.read_bytes()[:COPY]
    record = lambda data, index: data[slot_offset(data, index) - 2 :][
        : 2 + int.from_bytes(data[slot_offset(data, index) - 2 : slot_offset(data, index)], "big")  # noqa: E731
    ]
    for what, changed in (
        ("in the place of the owner's", copy[:56] + record(mine, 0) + copy[56 + len(record(copy, 0)) :]),
        ("beside the owner's", copy[:54] + bytes([copy[54] + 1]) + copy[55:56] + with_id(record(mine, 0), 7) + copy[56:]),
    ):
        with_envelope(place, sealing.with_checksum(changed[: COPY - 96].ljust(COPY - 96, b"\0")))
        words = ["--store", place.store, "--key-file", other.key, "--no-input"]
        threat.tried(f"a slot of another store {what}, by its key", refused(home().prefs("collections", *words), 5, 7))
        threat.tried("the same, by the owner's", refused(place.prefs("collections"), 5, 7))


def with_id(record: bytes, number: int) -> bytes:
    return record[:2] + bytes([number]) + record[3:]


@attempt("Envelope of another store")
def foreign_envelope(threat) -> None:
    place, other = closed().copy("envelope"), Place(home(), "mine")
    other.do("init")
    with_envelope(place, other.store.read_bytes()[:COPY])
    words = ["--store", place.store, "--key-file", other.key, "--no-input"]
    threat.tried("the envelope of a store of his own before the pages, by its key", refused(home().prefs("collections", *words), 7))
    done = home().prefs("salvage", *words, "-o", place.folder / "saved.coffer")
    threat.tried("the same, saved by salvage", f"exit code {done.code}: {done.says[:120]}", done.code != 0)


@attempt("Shared memory is changed")
def shared_memory(threat) -> None:
    """changed while a program has the store open"""
    outcomes, rounds = Outcomes(), 18
    for number in range(rounds):
        place = closed().copy("shared")
        with place.with_log():
            place.do("set", "seen/0", "0")
            before = place.shared.read_bytes()
            for key in ("1", "2"):
                place.do("set", f"seen/{key}", key)
            now = place.shared.read_bytes()
            with open(place.shared, "r+b") as file:
                if number == 0:
                    file.write(before[:136])
                elif number == 1:
                    file.write(before)
                elif number == 2:
                    file.write(bytes(136))
                elif number == 3:
                    file.write(RANDOM.randbytes(136))
                else:
                    # One field of both copies of the header, or of what was checkpointed.
                    offset = (number - 4) * 4 % 48
                    field = struct.pack("=I", RANDOM.choice([0, 1, 0xFFFF, 0xFFFFFFFF]))
                    for start in (0, 48) if number < 16 else (96,):
                        file.seek(start + min(offset, 36))
                        file.write(field)
            done = place.prefs("set", "seen/3", "3")
            if done.code not in (0, 7, 10):
                raise NotAllowed(f"round {number}: {done}")
            outcomes.add("written" if done.code == 0 else f"refused with {done.code}")
            wrote = {"3": "3"} if done.code == 0 else {}
            del now
        place.shared.unlink(missing_ok=True)
        found = place.values()["seen"]
        if found != {"0": "0", "1": "1", "2": "2", **wrote}:
            raise NotAllowed(f"round {number}: acknowledged commits are lost: {found}")
    threat.tried(
        f"an earlier header, zeros, random bytes, and single fields, in {rounds} rounds; then another program writes",
        f"{outcomes}; no acknowledged commit was lost",
    )


@attempt("A store is used under two names")
def two_names(threat) -> None:
    place = closed().copy("names")
    other = place.folder / "other.coffer"
    other.hardlink_to(place.store)
    second = ["--store", other, "--key-file", place.key, "--no-input"]
    with place.with_log():
        place.do("set", "one/a", "1")
        for words in (("get", "one/a"), ("set", "one/b", "2")):
            threat.tried(
                f"`{' '.join(words)}` under a hard link, while the log of the first name has commits",
                refused(home().prefs(words[0], *second, *words[1:]), 9),
            )
        place.do("set", "one/c", "3")
    done = home().prefs("restore-store", *second, "--accept-keys", closed().store)
    threat.tried("restore-store under a hard link", f"exit code {done.code}: {done.says[:140]}", done.code != 0)
    if place.values()["one"] != {"a": "1", "c": "3"}:
        raise NotAllowed("a commit was lost")
    threat.tried("what was acknowledged under the first name", "is there")


@attempt("Leftovers")
def leftovers(threat) -> None:
    """files that appear while the store is used"""
    place, seen, stop = closed().copy("left"), set(), threading.Event()

    def look() -> None:
        while not stop.is_set():
            seen.update(file.name for folder in (place.folder, place.home.folder) for file in folder.iterdir())

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for words in (("rotate",), ("compact",), ("unset", "-c", "rows", "--all", "--force"), ("compact",)):
            place.do(*words)
    finally:
        stop.set()
        watcher.join()
    expected = ("settings.coffer", "key", "vault-key", "run", "samples", "home")
    strange = {name for name in seen if "journal" in name or "etilqs" in name or "stmt" in name}
    threat.tried(
        f"two vacuums, a rotation and 200 removals, while the folders are looked at: {len(seen)} names",
        "; ".join(strange) or "no journal and no temporary file", not strange and expected[0] in seen,
    )
    found = found_in({"removed value": "x" * 300}, [place.plain()])
    threat.tried("removed values looked for in the decrypted pages", "; ".join(found) or "gone", not found)


@attempt("What a copy of the files shows")
def envelope_is_plain(threat) -> None:
    data = closed().store.read_bytes()
    envelope = Envelope.parse(data)
    threat.limit(
        "the envelope read without a key",
        f"slots {[slot.label or 'without a label' for slot in envelope.slots]}, their costs, id and times",
    )


same("a copy, and no key", "A copy of the files is read", "A passphrase is guessed")
same("write access, and none of these", "Bits are flipped", "Pages are swapped", "The store is truncated", "The envelope is edited")
