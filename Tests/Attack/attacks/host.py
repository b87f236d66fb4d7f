"""Other users of the host, and root in their folders."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess

from attacks.names import on_terminal
from registry import attempt
from samples import Outcomes, closed, home, refused, snapshot, unchanged
from workshop import BINARIES, FOLDER, NOBODY, Home, NotAllowed, as_root, needs, run, until


@attempt("Another user on the host")
def modes(threat) -> None:
    person = Home("modes")
    old = os.umask(0)
    try:
        person.do("set", "web/a", "1")
        person.do("backup", person.folder / "backup.coffer")
        person.do("export", "-o", person.folder / "export.json")
        person.do("key", "add", "--new-key-file", person.folder / "second")
        with person.running("watch"):
            person.do("set", "web/a", "2")
            found = {path: path.lstat() for path in person.folder.rglob("*")}
    finally:
        os.umask(old)
    made = [path for path in found if path not in (person.runtime,)]
    open_ = [
        f"{path.relative_to(person.folder)} {stat.filemode(status.st_mode)}"
        for path, status in found.items()
        if path in made
        and status.st_mode & 0o077
        and not stat.S_ISLNK(status.st_mode)
        and path.name not in (".config", ".local", "share", "state")
    ]
    threat.tried(
        f"with umask 000: the modes of {len(made)} files and folders: store, log, shared memory, record, keys, backup, export",
        "; ".join(open_) or "0600, and 0700 for folders", not open_,
    )


@attempt("Another user on the host")
def other_user(threat) -> None:
    """another user's rights"""
    as_root()
    place = closed().copy("others")
    place.folder.chmod(0o777)
    os.chmod(place.home.folder, 0o755)
    other = Home("stranger", user=NOBODY)
    words = ["--store", place.store, "--key-file", place.key, "--no-input"]
    threat.tried(
        "another user opens the store, whose folder is open to all", refused(other.prefs("collections", *words), 6, 14, 15)
    )
    place.store.chmod(0o644)
    place.key.chmod(0o644)
    done = other.prefs("set", "web/x", "1", *words)
    threat.tried("the same, once store and key can be read by all: set", refused(done, 6, 14, 15))
    place.store.chmod(0o600)
    place.key.chmod(0o600)
    for what, suffix, owner, mode in (
        ("a log", "-wal", NOBODY, 0o644), ("a log that others can write", "-wal", 0, 0o666),
        ("shared memory", "-shm", NOBODY, 0o644), ("shared memory that others can write", "-shm", 0, 0o666),
    ):
        victim = closed().copy("planted")
        victim.folder.chmod(0o777)
        path = victim.store.with_name(victim.store.name + suffix)
        path.write_bytes(b"x" * 40_000)
        os.chown(path, owner, owner)
        path.chmod(mode)
        before = snapshot(victim.store)
        done = victim.prefs("set", "web/x", "1", patience=30)
        unchanged(before, what)
        threat.tried(
            f"{what}, which {'another user' if owner else 'the owner'} made before the owner opens the store", refused(done, 14, 15)
        )
    for what, target in (("the store", "store"), ("the log", "log")):
        victim = closed().copy("linked")
        path = getattr(victim, target)
        elsewhere = victim.folder / "elsewhere"
        if target == "store":
            shutil.copy(path, elsewhere)
            path.unlink()
        else:
            elsewhere.write_text("victim")
        path.symlink_to(elsewhere)
        before = snapshot(elsewhere)
        done = victim.prefs("set", "web/x", "1", patience=30)
        if target == "log":
            unchanged(before, "a link in place of the log")
        threat.tried(
            f"a link in place of {what}", f"exit code {done.code}: {done.says[:100] or 'followed to a store of the owner'}",
            done.code != 0 or target == "store",
        )


def users_store() -> tuple:
    """A store of another user in their folder, and a file of root that only root may change."""
    as_root()
    user = Home("user", user=NOBODY)
    user.do("set", "web/a", "1")
    secret = FOLDER / f"root-{user.folder.name}"
    secret.mkdir(mode=0o700)
    victim = secret / "victim.json"
    victim.write_text('{"web": {"root-only": "root-secret-46"}}')
    victim.chmod(0o600)
    return user, victim


@attempt("Root is tricked by the owner of the store")
def root_at_store(threat) -> None:
    for suffix in ("-wal", "-shm"):
        for what, plant in (
            ("a hard link to a file of root", lambda path, victim: path.hardlink_to(victim)),
            ("a link to a file of root", lambda path, victim: path.symlink_to(victim)),
            ("a link to a file that is not there", lambda path, victim: path.symlink_to(victim.with_name("new"))),
            ("a pipe", lambda path, victim: os.mkfifo(path)),
        ):
            user, victim = users_store()
            path = user.store.with_name(user.store.name + suffix)
            plant(path, victim)
            before, outcomes = snapshot(victim), Outcomes()
            mode = victim.stat()
            for words in (("get", "web/a"), ("set", "web/a", "2"), ("rotate",), ("doctor",), ("compact",)):
                done = home().prefs(words[0], "--store", user.store, "--key-file", user.key, "--no-input", *words[1:], patience=30)
                outcomes.add(f"exit code {done.code}")
            unchanged(before, what)
            after = victim.stat()
            if (mode.st_mode, mode.st_uid, mode.st_size) != (after.st_mode, after.st_uid, after.st_size) or victim.with_name(
                "new"
            ).exists():
                raise NotAllowed(f"{what}: the file of root was changed, or one was made")
            threat.tried(
                f"{what} in place of settings.coffer{suffix}, and root's get, set, rotate, doctor, compact",
                f"{outcomes}; root's file stayed",
            )
    user, _ = users_store()
    for words in (("set", "web/a", "2"), ("rotate",), ("history", "--keep", "web")):
        home().do(words[0], "--store", user.store, "--key-file", user.key, *words[1:])
    foreign = [path for path in user.folder.rglob("*") if path.lstat().st_uid != NOBODY]
    threat.tried(
        "root sets, rotates and keeps history there",
        f"{foreign or 'every file still belongs to the user'}, who reads " f"{user.do('get', 'web/a').decode().strip()}",
        not foreign,
    )


@attempt("Root is tricked by the owner of a file")
def root_at_file(threat) -> None:
    user, victim = users_store()
    place = closed().copy("root")
    inside = user.folder / "inside"
    inside.symlink_to(victim.parent)
    os.chown(inside, NOBODY, NOBODY, follow_symlinks=False)
    alone = user.folder / "alone.json"
    alone.symlink_to(victim)
    os.chown(alone, NOBODY, NOBODY, follow_symlinks=False)
    outcomes, before = Outcomes(), snapshot(victim)
    for path in (inside / "victim.json", alone):
        for words in (
            ("import", path), ("import", path, "--dry-run"), ("inject", path), ("set", "web/v", "--value-file", path),
            ("schema", "load", path), ("diff", "web", path), ("restore-store", path, "--accept-keys"),
        ):
            done = place.prefs(*words, patience=30)
            if b"root-secret-46" in done.out + done.err or b"root-only" in done.out + done.err:
                raise NotAllowed(f"it read root's file: {done}")
            outcomes.add(f"exit code {done.code}")
        if "root-secret-46" in json.dumps(place.values()):
            raise NotAllowed(f"{path}: root's file was taken in")
    threat.tried(
        "root imports, injects, sets from, declares from and restores a file by a link of the user to a file of root",
        f"{outcomes}; nothing of it was read", "exit code 0" not in outcomes.found,
    )
    outcomes = Outcomes()
    for name in ("new.json", "victim.json"):
        for words in (("export", "-o"), ("backup",), ("salvage", "-o"), ("inject", "-", "-o"), ("key", "add", "--new-key-file")):
            done = place.prefs(*words, inside / name, patience=30)
            unchanged(before, f"{words} by a link of the user")
            if (victim.parent / "new.json").exists():
                raise NotAllowed(f"{done}: it made a file in a folder of root")
            outcomes.add(f"exit code {done.code}")
    made = home().prefs("init", "--store", inside / "settings.coffer", "--key-file", inside / "key", "--no-input")
    outcomes.add(f"exit code {made.code}")
    left = sorted(file.name for file in victim.parent.iterdir())
    threat.tried(
        "root exports, backs up, salvages, injects, makes a key file and a store through a link of the user into a folder of root",
        f"{outcomes}; the folder has {left}", left == ["victim.json"] and "exit code 0" not in outcomes.found,
    )


@attempt("A program that `prefs` starts is replaced")
def replaced_program(threat) -> None:
    folder = FOLDER / "programs"
    folder.mkdir()
    for program in ("prefs", "prefs-formats"):
        shutil.copy(BINARIES / program, folder / program)
        (folder / program).chmod(0o755)
    place, formats, evil = closed().copy("programs"), folder / "prefs-formats", folder / "prefs-evil"
    marker = place.folder / "ran"
    script = f"#!/bin/sh\ntouch '{marker}'\n"

    def export() -> object:
        return run([folder / "prefs", "export", *place.options(), "--format", "yaml"], **place.home.options())

    export().check(0)
    for what, change in (
        ("prefs-formats writable by all", lambda: formats.chmod(0o757)),
        ("prefs-formats writable by its group", lambda: formats.chmod(0o775)),
        ("its folder writable by all", lambda: folder.chmod(0o757)),
        ("prefs-formats of another user", lambda: os.chown(formats, NOBODY, NOBODY) if os.geteuid() == 0 else formats.chmod(0o757)),
    ):
        change()
        done = export()
        threat.tried(what, f"exit code {done.code}: {done.says[:110]}", done.code != 0)
        folder.chmod(0o755)
        os.chown(formats, os.geteuid(), os.getegid())
        formats.chmod(0o755)
    moved = folder / "moved"
    formats.rename(moved)
    formats.symlink_to(moved)
    done = export()
    threat.tried("a link in its place", f"exit code {done.code}: {done.says[:110]}", done.code != 0)
    formats.unlink()
    elsewhere = place.folder / "path"
    elsewhere.mkdir()
    for target in (elsewhere, place.folder):
        for name in ("prefs-formats", "prefs-evil", "prefs-fleet"):
            (target / name).write_text(script)
            (target / name).chmod(0o755)
    environment = {**place.home.environment, "PATH": f"{elsewhere}:.:{os.environ['PATH']}"}
    for words in (
        ("export", *place.options(), "--format", "yaml"), ("evil",), ("fleet", "status"), ("../path/prefs-evil",),
        ("path/prefs-evil",),
    ):
        done = run([folder / "prefs", *words], env=environment, cwd=place.folder)
        if done.code == 0 or marker.exists():
            raise NotAllowed(f"a program from PATH or the working folder was started: {done}")
    threat.tried("programs of these names in PATH and the working folder, and none beside prefs", "none was started")
    evil.write_text(script)
    evil.chmod(0o777)
    done = run([folder / "prefs", "evil"], env=environment, cwd=place.folder)
    threat.tried(
        "prefs-evil beside prefs, writable by all", f"exit code {done.code}: {done.says[:110]}",
        done.code != 0 and not marker.exists(),
    )
    shutil.rmtree(folder)


@attempt("Files of an editor stay")
def editor(threat) -> None:
    """what an editor sees, and leaves"""
    needs("setsid")
    outcomes = Outcomes()
    for what, script in (
        (
            "an editor that leaves a copy and a swap file beside it",
            'ls -ld "$(dirname "$1")" "$1" > "$NOTE"; cp "$1" "$1~"; cp "$1" "$(dirname "$1")/.swap"; echo "$1" >> "$NOTE"',
        ),
        ("one that fails", 'echo "$1" > "$NOTE"; exit 1'), ("one that removes the file", 'echo "$1" > "$NOTE"; rm "$1"'),
        ("one that puts a link in its place", 'echo "$1" > "$NOTE"; rm "$1"; ln -s /etc/passwd "$1"'),
    ):
        place = closed().copy("edit")
        place.do("set", "edited/token", "--secret", "-", input=b"editor-secret-46")
        place.do("set", "edited/open", "open-46")
        program, note = place.folder / "editor", place.folder / "note"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o700)
        code, shown = on_terminal(place, ("edit", "edited"), {"EDITOR": str(program), "NOTE": str(note)})
        lines = note.read_text().splitlines()
        folder = os.path.dirname(lines[-1])
        if os.path.exists(folder) or b"root:" in shown or "root:" in json.dumps(place.values()):
            raise NotAllowed(f"{what}: {folder} is still there, or another file was read")
        if len(lines) == 3 and not (lines[0].startswith("drwx------") and lines[1].startswith("-rw-------")):
            raise NotAllowed(f"others can read what is edited: {lines}")
        outcomes.add("nothing left")
    threat.tried(
        "an editor that leaves files, fails, removes the file, or puts a link in its place", f"{outcomes}; folder 0700, file 0600"
    )
    for name in ("SIGTERM", "SIGHUP", "SIGKILL"):
        place = closed().copy("edit-killed")
        place.do("set", "edited/open", "open-46")
        program, note = place.folder / "editor", place.folder / "note"
        program.write_text('#!/bin/sh\necho "$1" > "$NOTE.new"; mv "$NOTE.new" "$NOTE"; exec sleep 30\n')
        program.chmod(0o700)
        ours, theirs = os.openpty()
        process = subprocess.Popen(
            [
                "setsid", "--ctty", str(BINARIES / "prefs"), "edit", *[str(o) for o in place.options() if o != "--no-input"],
                "edited",
            ],
            stdin=theirs, stdout=theirs, stderr=theirs, cwd=place.folder,
            env={
                **place.home.environment, "XDG_RUNTIME_DIR": str(place.folder), "EDITOR": str(program), "NOTE": str(note),
                "TERM": "xterm",
            },
        )
        os.close(theirs)
        if not until(note.exists):
            raise NotAllowed("the editor was not started")
        file = note.read_text().strip()
        pid = process.pid
        os.kill(pid, getattr(signal, name))
        process.wait()
        os.close(ours)
        if name == "SIGKILL":
            there = os.path.exists(file)
            doctor = place.prefs("doctor", environment={"XDG_RUNTIME_DIR": str(place.folder)})
            program.write_text("#!/bin/sh\ntrue\n")
            on_terminal(place, ("edit", "edited"), {"EDITOR": str(program), "XDG_RUNTIME_DIR": str(place.folder)})
            gone = until(lambda: not os.path.exists(file), 2)
            threat.tried(
                "SIGKILL while the editor runs, then the next edit",
                f"the file {'stayed' if there else 'was gone'}; doctor "
                f"{'names it' if os.path.dirname(file).encode() in doctor.out + doctor.err else 'does not'}; then it is {'gone' if gone else 'still there'}",
                gone,
            )
        else:
            gone = until(lambda: not os.path.exists(os.path.dirname(file)), 5)
            threat.tried(f"{name} while the editor runs", "the file is gone" if gone else "the file stays", gone)
