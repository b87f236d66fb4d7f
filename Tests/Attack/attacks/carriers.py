"""Carriers of fleets that read, forge, withhold, fork, or send without end."""

from __future__ import annotations

import os
import random
import shutil
import time

import fleet_writer
from etcd import Hostile, endless_records, raw
from registry import attempt
from samples import Outcomes, refused
from teams import NAMES, REFUSALS, Host, Team, by_vectors
from workshop import FOLDER, NotAllowed, found_in

RANDOM = random.Random(46)


@attempt("A curious carrier")
def curious(threat) -> None:
    admin = Host("curious")
    carrier = FOLDER / "curious-carrier"
    carrier.mkdir()
    admin.do("set", f"{NAMES['collection']}/{NAMES['key']}", NAMES["earlier"])
    admin.do("fleet", "create", NAMES["fleet"], "--at", f"file://{carrier}", "-c", NAMES["collection"], "--as", NAMES["member"])
    admin.do("set", f"{NAMES['collection']}/{NAMES['key']}", NAMES["value"])
    admin.sync().check(0)
    admin.do("fleet", "invite", "other", "--role", "reader")
    files = [file for file in carrier.rglob("*") if file.is_file()]
    found = found_in({name: text for name, text in NAMES.items() if name != "payroll"}, files)
    names = [file for file in files if any(text in str(file) for text in NAMES.values())]
    threat.tried(
        f"names of fleet, collection, key and member, and two values looked for in {len(files)} files and their names",
        "; ".join(found + [str(name) for name in names]) or "none is there", not found and not names,
    )


@attempt("A forging carrier")
def forging(threat) -> None:
    team = Team()
    host = team.join("web-1")
    for number in range(4):
        team.admin.do("set", f"web/k{number}", f"value {number}")
    team.admin.sync().check(0)
    before, wanted = host.values(), team.admin.values()
    home, whole = host.saved(), team.objects()
    joining = team.invitation("late", "reader", "--many")
    whole = team.objects()
    outcomes, joined = Outcomes(), Outcomes()

    def tried(objects: dict, what: str) -> None:
        team.write(objects)
        host.put_back(home)
        done = host.sync()
        found = host.values()
        if found not in (before, wanted) or done.code not in (0, *REFUSALS) or done.code == 0 and found != wanted:
            raise NotAllowed(f"{what}: {done}; the host has {found}")
        outcomes.add("refused, and the host keeps what it has" if done.code else "in step: it was not read, or is right")
        if RANDOM.random() < 0.15:
            late = Host("late")
            done = late.prefs("fleet", "join", "-", input=joining, patience=60)
            if done.code == 0 and late.values() != wanted or done.code not in (0, *REFUSALS):
                raise NotAllowed(f"{what}: {done}; a new host has {late.values()}")
            joined.add("refused" if done.code else "in step")

    for name, data in whole.items():
        for offset in {0, len(data) // 2, len(data) - 1}:
            changed = bytearray(data)
            changed[offset] ^= 0x20
            tried({**whole, name: bytes(changed)}, f"byte {offset} of {name}")
        tried({other: data for other, data in whole.items() if other != name}, f"{name} dropped")
        tried({**whole, name: data[: len(data) // 2]}, f"{name} cut")
        tried({**whole, name: data + b"\0"}, f"{name} with a byte more")
    records = sorted(name for name in whole if name.startswith("r/"))
    for one, other in zip(records, records[1:]):
        tried({**whole, one: whole[other], other: whole[one]}, f"{one} and {other} swapped")
    for name in (
        records[0][:-1] + "0", "r/" + "0" * 16 + "/" + "0" * 40, "s/" + "0" * 16 + "/" + "0" * 16, "authority/9999999999",
        "x" * 200,
    ):
        tried({**whole, name: whole[records[0]]}, f"{name} added")
    threat.tried(
        f"every object of {len(whole)} changed, dropped, cut and lengthened, records swapped and added, then a sync", str(outcomes)
    )
    threat.tried("new hosts that join such carriers", str(joined))
    team.write(whole)
    host.put_back(home)
    host.sync().check(0)
    names = [file for file in (team.carrier / "objects").rglob("*") if file.is_file()]
    outcomes = Outcomes()
    for file, change in zip(
        names,
        (
            lambda path: path.write_bytes(b""), lambda path: path.write_bytes(path.read_bytes()[:20]),
            lambda path: (path.unlink(), path.mkdir()), lambda path: (path.unlink(), path.symlink_to("/dev/zero")),
            lambda path: (path.unlink(), os.mkfifo(path)), lambda path: os.truncate(path, 1 << 33),
        ),
    ):
        team.write(whole)
        change(file)
        host.put_back(home)
        done = host.sync()
        if host.values() not in (before, wanted) or done.code not in (0, *REFUSALS):
            raise NotAllowed(f"a file of the carrier replaced: {done}")
        outcomes.add(f"exit code {done.code}")
        if file.is_dir() and not file.is_symlink():
            file.rmdir()
    threat.tried("files of the folder emptied, cut, made a folder, a link to /dev/zero, a pipe, or 8 GiB long", str(outcomes))


@attempt("A forging carrier")
def forged_objects(threat) -> None:
    """objects that are missing, of another version, too long, or malformed"""
    by_vectors(
        threat, "a fleet", "300 commits", "a removal", "an empty", "a carrier without", "all objects", "a head", "the head",
        "a piece", "two records", "a record of one", "a member ", "a fleet without", "a former member that", "8.",
        "a writer's record", "members who",
    )


@attempt("A carrier that withholds")
def withholding(threat) -> None:
    team = Team("--greatest-age", "2s")
    # A writer's host would give a sign of life itself.
    host = team.join("web-1", "reader")
    copy = team.saved()
    team.set("web/first", "2")
    later = team.saved()
    team.put_back(copy)
    time.sleep(2.5)
    threat.tried("commits withheld for longer than the fleet's greatest age", refused(host.sync(), 18))
    if host.values()["web"]["first"] != "1":
        raise NotAllowed("the host has something else")
    team.put_back(later)
    team.admin.sync()
    done = host.sync()
    threat.tried(
        "the commits shown again", f"in step: {done.code == 0}, {host.values()['web']}", host.values()["web"]["first"] == "2"
    )


@attempt("A carrier that is rolled back")
def rolled_back(threat) -> None:
    team = Team()
    host = team.join("web-1")
    copy = team.saved()
    team.set("web/first", "2")
    team.admin.do("set", "web/second", "x")
    team.admin.sync().check(0)
    host.sync().check(0)
    team.put_back(copy)
    for name, each in (("the admin's host", team.admin), ("a host", host)):
        values = each.values()
        done = each.sync()
        threat.tried(f"an earlier copy of the carrier, and a sync of {name}", refused(done, 7), each.values() == values)
    team.admin.do("fleet", "accept-rollback")
    team.admin.sync().check(0)
    threat.tried(
        "after the admin accepts it", f"the carrier has again what it lost: {team.admin.values()['web']}",
        team.admin.values()["web"]["first"] == "2",
    )
    whole = team.saved()
    team.invitation("web-2")
    team.put_back(whole)
    team.admin.sync().check(7)
    done = team.admin.prefs("fleet", "accept-rollback")
    threat.tried(
        "a copy of before a change of the members, which an admin wants to accept", refused(done, 7),
        # It never helps here.
        b"Run: prefs fleet accept-rollback" not in done.err,
    )
    shutil.rmtree(team.carrier / "objects")
    done = host.sync()
    threat.tried("a carrier that has lost everything", refused(done, 3, 7, 18), host.values()["web"]["first"] == "2")
    shutil.rmtree(team.carrier)
    threat.tried("a carrier that is not there", refused(host.sync(), 18), host.values()["web"]["first"] == "2")


@attempt("A host's store is put back")
def store_put_back(threat) -> None:
    team = Team()
    host = team.join("web-1")
    copy = host.saved()
    team.set("web/pushed", "1", host)
    host.do("set", "web/unpushed", "1")
    host.put_back(copy)
    done = host.sync()
    threat.tried(
        "a host put back to before what it pushed, with its record, then a sync",
        f"exit code {done.code}: {done.says[:160]}; it has {host.values()['web']}", host.values()["web"].get("pushed") == "1",
    )


@attempt("A cloned host")
def cloned(threat) -> None:
    team = Team()
    host = team.join("web-1")
    clone = Host("clone")
    clone.put_back(host.folder)
    team.set("web/a", "by the host", host)
    clone.do("set", "web/b", "by the clone")
    reports = []
    for number in range(3):
        for each, name in ((clone, "b"), (host, "a")):
            each.do("set", f"web/{name}", f"round {number}")
            reports.append(b"in use on two hosts" in each.sync().err)
    values = [each.values()["web"] for each in (host, clone)]
    threat.tried(
        "two copies of one host, whose hosts have one name, make changes in turn",
        f"{sum(reports)} of {len(reports)} syncs say that the store was put back or is in use on two hosts; no change is lost: {values[0]}",
        all(reports[1:]) and values[0].get("a") == "round 2" and values[0].get("b") == "round 2",
    )


@attempt("A forking carrier")
def forked(threat) -> None:
    team = Team()
    hosts = [team.join(f"web-{number}") for number in (1, 2)]
    copy = team.saved()
    team.set("web/first", "shown to one", hosts[0])
    one = team.saved()
    team.put_back(copy)
    team.set("web/first", "shown to the other", hosts[1])
    threat.tried("the state of one host shown to another that has seen a different one", refused(hosts[0].sync(), 7))
    team.put_back(one)
    threat.tried("and the reverse", refused(hosts[1].sync(), 7))


@attempt("A carrier that sends without end")
def endless(threat) -> None:
    fleet = fleet_writer.genuine("endless")
    folder = fleet.collections["web"].folder.hex()
    for what, listed in (
        ("records of the collection that were never signed", endless_records(folder)),
        (
            "copies of one record that a member signed",
            lambda: iter(lambda: next((name, data) for name, data in fleet.objects.items() if name.startswith("r/")), None),
        ),
    ):
        hostile = Hostile(fleet.objects, listed)
        host = Host("endless")
        with hostile.running() as address:
            done = host.prefs("fleet", "join", "-", "--at", address, input=fleet.invitation("victim").encode(), patience=60)
        threat.tried(
            f"an etcd that lists {what} without end",
            f"{refused(done, *REFUSALS)} after {hostile.served:,} objects, {done.kilobytes >> 10} MiB",
            hostile.served < 500_000 and done.kilobytes < 600 << 10,
        )

    def zeros():
        while True:
            yield b" " * 65_536

    for what, answer in (
        ("an answer of spaces without end", raw(b"200 OK", b"Content-Type: application/json", zeros)),
        ("a header without end", raw(b"200 OK", b"X: ", zeros)),
        ("an answer that is not JSON", raw(b"200 OK", b"Content-Length: 4", lambda: [b"\x1b[2J"])),
        ("lists in lists, a million deep", raw(b"200 OK", b"Content-Length: 1000000", lambda: [b"[" * 1_000_000])),
        ("a length of 2^62", raw(b"200 OK", b"Content-Length: 4611686018427387904", lambda: [b"{"])),
        ("a redirection to a file", raw(b"302 Found", b"Location: file:///etc/passwd\r\nContent-Length: 0", lambda: [])),
    ):
        host = Host("answers")
        with Hostile({}, answer=answer).running() as address:
            done = host.prefs("fleet", "join", "-", "--at", address, input=fleet.invitation("victim").encode(), patience=100)
        if b"\x1b" in done.err or b"root:" in done.err:
            raise NotAllowed(f"{what}: {done}")
        threat.tried(
            f"an etcd that gives {what}", f"{refused(done, *REFUSALS)[:120]}, {done.kilobytes >> 10} MiB",
            done.kilobytes < 600 << 10,
        )


@attempt("A folder that a tool copies")
def copied(threat) -> None:
    team = Team()
    host = team.join("web-1")
    team.set("web/first", "2")
    for sign in (".stfolder", ".dropbox", ".git", ".sync_journal.db"):
        (team.carrier / sign).mkdir()
        before = team.objects()
        host.do("set", "web/mine", sign)
        done = host.sync()
        if team.objects() != before:
            raise NotAllowed(f"{sign}: the host has written")
        threat.tried(f"{sign} in the folder", f"{refused(done, 11)[:120]}; it was read: {host.values()['web']['first'] == '2'}")
        (team.carrier / sign).rmdir()
