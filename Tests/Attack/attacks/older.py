"""Earlier states: of a store, its log, its record, and its backups."""

from __future__ import annotations

import os
import shutil
import signal
import time

from forging import forge, rebuild_chain
from registry import attempt
from samples import PAGE, SIZE, Outcomes, closed, page, pages, refused, snapshot, states, unchanged
from workshop import BINARIES, Home, NotAllowed, Place, started, until

COMMANDS = (("get", "a"), ("set", "a", "3"), ("list",), ("log",), ("doctor",), ("export",), ("rotate",), ("collections",))


def put(home: Home, store: bytes, log: bytes = b"") -> None:
    for suffix in ("-wal", "-shm"):
        home.store.with_name(home.store.name + suffix).unlink(missing_ok=True)
    home.store.write_bytes(store)
    if log:
        path = home.store.with_name(home.store.name + "-wal")
        path.write_bytes(log)
        path.chmod(0o600)


def without_notice(store: bytes) -> bytes:
    """A notice which log is in use is cleared where there is none (FORMAT.md, Log notice)."""
    return store[:8_096] + store[8_160:]


def all_refuse(threat, home: Home, what: str, *codes: int) -> None:
    """Every command, and nothing is changed."""
    before, outcomes = snapshot(*home.records.iterdir()), Outcomes()
    store = without_notice(home.store.read_bytes())
    for words in COMMANDS:
        done = home.prefs(*words).check(*(codes or (17,)))
        if done.out and words[0] != "doctor":
            raise NotAllowed(f"{what}: {done} printed {done.out[:80]!r}")
        outcomes.add(f"exit code {done.code}")
    unchanged(before, what)
    if without_notice(home.store.read_bytes()) != store:
        raise NotAllowed(f"{what}: the store was changed")
    threat.tried(f"{what}, then {len(COMMANDS)} commands", f"{outcomes}; nothing was changed")


@attempt("An older store is put back")
def older(threat) -> None:
    home = Home("older")
    home.do("set", "a", "1")
    first = home.store.read_bytes()
    home.do("key", "add", "--new-key-file", home.folder / "stolen", "--label", "Mallory")
    with_slot = home.store.read_bytes()
    log = home.store.with_name("settings.coffer-wal")
    with home.running("watch"):
        until(log.with_name("settings.coffer-shm").exists)
        home.do("set", "a", "2")
        file, early = home.store.read_bytes(), log.read_bytes()
        home.do("set", "a", "4")
        late = log.read_bytes()
    put(home, file, late)
    home.do("key", "remove", "Mallory", "--force")
    home.do("set", "a", "5")
    home.do("rotate", "--new-root-key")
    now = home.store.read_bytes()
    for what, data, wal in (
        ("the first state", first, b""), ("a state in which a removed slot opens", with_slot, b""),
        ("file and log", file, late), ("file and an earlier log", file, early), ("the file without its log", file, b""),
        ("the end of the log missing", file, late[: len(early) - 4_000]),
    ):
        put(home, data, wal)
        all_refuse(threat, home, what)
    done = home.prefs("get", "a", "--key-file", home.folder / "stolen")
    put(home, with_slot)
    threat.tried("that state, by the removed key", refused(done, 5, 17))
    put(home, now)
    if home.do("get", "a") != b"5\n":
        raise NotAllowed("the present store does not open again")
    threat.tried("the present state again", "opens")
    home.do("set", "a", "6")
    put(home, now)
    for words in (("restore-store", home.folder / "none"), ("destroy", "--confirm", "other")):
        home.prefs(*words, "--no-input").check(1, 2, 4, 7, 17)
    home.do("doctor", "--accept-older")
    threat.tried("an older state, after the owner's consent", f"opens: {home.do('get', 'a').decode().strip()}")


@attempt("Replay of a whole older file")
def nothing_remembered(threat) -> None:
    place = Place(Home("unremembered"), "place")
    place.do("init")
    place.do("set", "web/host", "old")
    data = place.store.read_bytes()
    place.do("set", "web/host", "new")
    place.write(place.store, data)
    threat.limit("an older store put back where nothing is remembered", f"it opens: {place.values()}")


@attempt("Another store is put in its place")
def another(threat) -> None:
    home = Home("another")
    home.do("set", "a", "1")
    data = home.store.read_bytes()
    home.do("backup", home.folder / "backup.coffer")
    home.store.unlink()
    home.do("set", "a", "2")
    put(home, data)
    all_refuse(threat, home, "the store that was deleted, once another was created")
    put(home, (home.folder / "backup.coffer").read_bytes())
    all_refuse(threat, home, "a backup of it")
    mine = Place(home, "mine")
    shutil.copy(home.key, mine.key)
    mine.do("set", "a", "mine")
    put(home, mine.store.read_bytes())
    all_refuse(threat, home, "a store of his own, by someone with the store's key")


@attempt("A commit is removed from the change log")
def changed_log(threat) -> None:
    """with the store's key"""
    changes = {
        "a commit removed from the middle": "DELETE FROM changes WHERE sequence = 4",
        "two commits removed from the beginning": "DELETE FROM changes WHERE sequence < 3",
        "an author changed": "UPDATE changes SET author = CAST('prefs' || char(10) || 'eve' AS TEXT) WHERE sequence = 5",
        "a time changed": "UPDATE changes SET time = time + 1 WHERE sequence = 5",
        "a key renamed in a list": lambda plain: plain.execute(
            "UPDATE changes SET keys = CAST(replace(keys, CAST('row 1' AS BLOB), CAST('row 2' AS BLOB)) AS BLOB) WHERE sequence ="
            " (SELECT max(sequence) FROM changes)"
        ),
        "an action removed": "UPDATE changes SET action = NULL WHERE action IS NOT NULL AND sequence > 1",
        "a total raised": "UPDATE changes SET total = total + 1000 WHERE sequence = 5",
        "a link changed": "UPDATE changes SET link = zeroblob(16) WHERE sequence = 5",
    }
    for what, change in changes.items():
        place = closed().copy("log")
        forge(place, change)
        verify, doctor = place.prefs("log", "--verify"), place.prefs("doctor")
        doctor.check(7)
        threat.tried(what, refused(verify, 7))


@attempt("The end of the log is removed")
def end_of_log(threat) -> None:
    home = Home("end")
    for number in range(6):
        home.do("set", "a", str(number))
    data = home.store.read_bytes()
    last = "(SELECT max(sequence) FROM changes)"
    for what, *changes in (
        ("the last commit removed from the log", f"DELETE FROM changes WHERE sequence = {last}"),
        (
            "one removed from the middle, and the chain rebuilt", "DELETE FROM changes WHERE sequence = 3",
            "UPDATE changes SET sequence = sequence - 1 WHERE sequence > 3", rebuild_chain,
        ),
        (
            "the last author changed, and the chain rebuilt",
            f"UPDATE changes SET author = CAST('x' || char(10) || 'y' || char(10) || 'z' AS TEXT) WHERE sequence = {last}",
            rebuild_chain,
        ),
    ):
        place = Place(home, "end")
        shutil.copy(home.key, place.key)
        place.write(place.store, data)
        forge(place, *changes)
        put(home, place.store.read_bytes())
        all_refuse(threat, home, what)
    put(home, data)


@attempt("Everything of a collection is removed")
def everything(threat) -> None:
    place = closed().copy("all")
    name = next(name for name in place.values() if name not in ("rows", "tokens", "web", "gone") and "@" not in name)
    done = place.prefs("unset", "-c", name, "--all", "--purge")
    threat.tried("erased without a terminal and without --force", refused(done, 2))
    place.do("unset", "-c", name, "--all", "--force")
    kept = place.do("history", "-c", name, "--plain").decode()
    threat.tried("all its keys removed", f"history still has {len(kept.splitlines())} key", bool(kept.strip()))
    place.do("unset", "-c", name, "--all", "--purge", "--force", "--actor", "Mallory")
    log = place.do("log", "--plain", "--no-pager").decode()
    line = next((line for line in log.splitlines() if "erased" in line), "")
    threat.tried(
        "erased with --force", "the log says who did" if "Mallory" in line else f"the log says {line!r}", "Mallory" in line
    )


@attempt("The record of the newest state is made useless")
def useless_record(threat) -> None:
    def as_folder(record) -> None:
        record.unlink()
        record.mkdir()

    def as_pipe(record) -> None:
        record.unlink()
        os.mkfifo(record)

    def as_link(record) -> None:
        record.rename(record.with_name("elsewhere"))
        record.symlink_to("elsewhere")

    def longer(record) -> None:
        record.write_bytes(record.read_bytes() + b"x")

    def flipped(record) -> None:
        data = bytearray(record.read_bytes())
        data[70] ^= 1
        record.write_bytes(data)

    for what, change in (
        ("a folder in its place", as_folder), ("a pipe", as_pipe), ("a link", as_link), ("a byte too many", longer),
        ("a flipped bit", flipped), ("an empty file", lambda record: record.write_bytes(b"")),
    ):
        home = Home("record")
        home.do("set", "a", "1")
        (record,) = home.records.iterdir()
        change(record)
        done = home.prefs("get", "a", patience=30)
        if done.code != 0 or b"record" not in done.err:
            raise NotAllowed(f"{what}: nothing says so: {done}")
        home.prefs("doctor").check(0, 7)
        home.do("set", "a", "2")
        quiet = home.prefs("get", "a")
        warning = done.says.split("settings.coffer", 1)[-1][:110]
        threat.tried(
            what, f"reported: …{warning}; after doctor and the next commit {'silence' if not quiet.err else quiet.says}",
            quiet.code == 0 and not quiet.err,
        )
    home = Home("folder")
    home.do("set", "a", "1")
    shutil.rmtree(home.records)
    home.records.write_bytes(b"")
    done = home.prefs("set", "a", "2")
    threat.tried(
        "a file in place of the folder", "reported: …" + done.says.split("settings.coffer", 1)[-1][:110],
        done.code == 0 and bool(done.err),
    )


# MARK: Restoring


@attempt("A restore is cut off")
def cut_off(threat) -> None:
    """killed at random moments"""
    outcomes = Outcomes()
    backup = closed().folder / "for-restore.coffer"
    closed().do("backup", backup)
    for number in range(16):
        place = closed().copy("restore")
        place.do("set", "late/new", "new")
        words = [BINARIES / "prefs", "restore-store", *place.options(), "--accept-keys", backup]
        process = started(words, **place.home.options(), stdout=-3, stderr=-3, stdin=-3)
        time.sleep(number * 0.003)
        process.send_signal(signal.SIGKILL)
        process.wait()
        found = place.values()
        if found == states()[0]:
            outcomes.add("the backup")
        elif found == {**states()[0], "late": {"new": "new"}}:
            outcomes.add("the old store with all commits")
        else:
            raise NotAllowed(f"killed after {number * 3} ms: neither the old store nor the backup")
        # A copy of the envelope may be outdated until then.
        place.do("set", "late/after", "x")
        place.do("doctor", "--deep")
    threat.tried("killed after 0 to 45 ms, 16 times, and opened again", str(outcomes))


@attempt("A restored backup brings back")
def brought_back(threat) -> None:
    place = closed().copy("back")
    stolen = place.folder / "stolen"
    place.do("key", "add", "--new-key-file", stolen, "--label", "Mallory")
    older = place.folder / "older.coffer"
    shutil.copy(place.store, older)
    place.do("key", "remove", "Mallory", "--force")
    before = snapshot(place.store)
    for force in ([], ["--force"]):
        done = place.prefs("restore-store", older, *force)
        threat.tried(f"a copy with a removed slot restored {' '.join(force)}", refused(done, 2), "Mallory" in done.err.decode())
        unchanged(before, "a restore that was refused")
    place.do("rotate", "--new-root-key", "--drop", "pass")
    done = place.prefs("restore-store", older)
    threat.tried("the same after a new root key", refused(done, 2), "Mallory" in done.err.decode())
    place = Place(place.home, "unsealed")
    place.write(place.vault_key, b"coffer-key-1:" + os.urandom(32).hex().encode() + b"\n")
    place.do("set", "tokens/t", "--secret", "-", input=b"plaintext-then")
    shutil.copy(place.store, older)
    place.do("seal", "tokens")
    done = place.prefs("restore-store", older)
    threat.tried("a copy in which a collection was not sealed yet", refused(done, 2), "tokens" in done.err.decode())


@attempt("A damaged backup")
def damaged(threat) -> None:
    outcomes, place = Outcomes(), closed().copy("whole")
    backup = place.folder / "backup.coffer"
    place.do("backup", backup)
    data, before = backup.read_bytes(), snapshot(place.store)
    for number in range(1, pages(data) + 1):
        changed = bytearray(data)
        changed[page(number).start + number * 131 % PAGE] ^= 1
        place.write(backup, bytes(changed))
        force = ["--force"] * (number % 2)
        outcomes.add(f"exit code {place.prefs('restore-store', backup, '--accept-keys', *force).check(7).code}")
        unchanged(before, "a restore of a damaged backup")
    threat.tried(
        "a backup with one flipped bit, in each page, restored with and without --force", f"{outcomes}; the store stayed as it was"
    )
    place.write(backup, data[: SIZE + 3 * PAGE])
    threat.tried("a backup that ends too early", refused(place.prefs("restore-store", backup, "--accept-keys", "--force"), 7))
