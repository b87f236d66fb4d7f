"""Carriers of fleets in a storage with the interface of Amazon S3: roots and packs put back, changed, dropped, overwritten."""

from __future__ import annotations

import json
import random

import fleet_writer
import storage as bucket
from etcd import endless_records, raw
from registry import attempt
from samples import Outcomes, refused
from storage import SECRET, Storage
from teams import NAMES, REFUSALS, Host, Team, join_at, reason, vectors
from workshop import NotAllowed, found_in

RANDOM = random.Random(47)
PARTS = "team/parts/"


def load(team: Team, collection: str, values: dict) -> None:
    team.admin.do("import", "-", "--format", "json", input=json.dumps({collection: values}).encode())
    team.admin.sync().check(0)


def filled(storage: Storage, collection: str = "web") -> Team:
    """A fleet with packs, a large object, and changes that are in no pack yet."""
    team = Team(collections=(collection,), storage=storage)
    for part in range(2):
        load(team, collection, {f"k{part} {number}": "x" * 900 for number in range(40)})
    load(team, collection, {"large": "y" * 300_000})
    if len([name for name in storage.objects if name.startswith(PARTS)]) < 3:
        raise NotAllowed(f"it has no packs: {sorted(storage.objects)}")
    return team


@attempt("S3-compatible storage ignores")
def careless(threat) -> None:
    for ignored in (["If-None-Match"], ["If-Match"], ["If-Match", "If-None-Match"]):
        with Storage(ignores=set(ignored)).running() as storage:
            admin = Host("careless")
            admin.do("set", "web/first", "1")
            done = admin.prefs("fleet", "create", "team", "--at", storage.address, "-c", "web", patience=60)
            threat.tried(
                f"a fleet created in a storage that ignores {' and '.join(ignored)}",
                f"{reason(done)}; it has {len(storage.objects)} objects",
                not storage.objects,
            )
    with Storage().running() as storage:
        team = Team(storage=storage)
        hosts = [team.join(f"web-{number}") for number in (1, 2)]
        storage.ignores = {"If-Match"}
        hosts[0].do("set", "web/a", "by the first")
        hosts[1].do("set", "web/b", "by the second")
        # The second one commits between the first one's reading of the root and its replacement.
        storage.meanwhile = lambda: hosts[1].sync().check(0)
        hosts[0].sync().check(0)
        done = hosts[1].sync()
        threat.tried(
            "it begins to ignore If-Match later, and one host overwrites the other's commit: the other one's next sync",
            refused(done, 7),
            hosts[1].values()["web"].get("b") == "by the second",
        )
        storage.ignores = set()
        hosts[1].do("fleet", "accept-rollback")
        for host in (*hosts, team.admin):
            host.sync().check(0)
        found = [host.values()["web"] for host in (*hosts, team.admin)]
        threat.tried(
            "once that is accepted, and the storage heeds conditions again",
            f"all hosts have {found[0]}",
            all(web == {"first": "1", "a": "by the first", "b": "by the second"} for web in found),
        )


@attempt("A curious carrier")
def curious(threat) -> None:
    with Storage().running() as storage:
        admin = Host("curious")
        for name in ("earlier", "value"):
            admin.do("set", f"{NAMES['collection']}/{NAMES['key']}", NAMES[name])
        rows = {NAMES["collection"]: {"large": NAMES["value"] * 10_000}}
        admin.do("import", "-", "--format", "json", input=json.dumps(rows).encode())
        admin.do("fleet", "create", NAMES["fleet"], "--at", storage.address, "-c", NAMES["collection"], "--as", NAMES["member"])
        admin.do("fleet", "invite", "other", "--role", "reader")
        sent = admin.folder / "sent"
        sent.write_bytes(b"\n".join(storage.sent))
        found = found_in({**{name: text for name, text in NAMES.items() if name != "payroll"}, "the access key": SECRET}, [sent])
        threat.tried(
            f"names, two values and the secret of the access key looked for in the {len(storage.sent)} requests to a storage",
            "; ".join(found) or "none is there",
            not found,
        )
        done = admin.prefs("fleet", "status", "--json").out + admin.prefs("fleet", "sync").err
        plain = admin.folder / "said"
        plain.write_bytes(done)
        found = found_in({"the access key": SECRET}, [plain, admin.store])
        threat.tried(
            "the secret of the access key in what the tool says, and in the store", "; ".join(found) or "not there", not found
        )


@attempt("A forging carrier")
def forging(threat) -> None:
    """roots and parts of a storage changed, dropped, cut, lengthened and swapped"""
    with Storage().running() as storage:
        team = filled(storage)
        host = team.join("web-1")
        joining = team.invitation("late", "reader", "--many")
        host.sync().check(0)
        home, before, behind = host.saved(), host.values(), storage.saved()
        load(team, "web", {"large": "z" * 300_000})
        team.set("web/first", "2")
        whole, wanted = storage.saved(), team.admin.values()
        outcomes, joined = Outcomes(), Outcomes()

        def tried(objects: dict, what: str, joins: bool) -> None:
            storage.put_back(objects)
            host.put_back(home)
            done = host.sync()
            found = host.values()
            if found not in (before, wanted) or done.code not in (0, *REFUSALS):
                raise NotAllowed(f"{what}: {done}; the host has {len(found['web'])} values")
            outcomes.add("refused, and the host keeps what it has" if done.code else "in step: it was not read, or is right")
            if joins:
                late = Host("late")
                done = late.prefs("fleet", "join", "-", input=joining, patience=60)
                if done.code == 0 and late.values() != wanted or done.code not in (0, *REFUSALS):
                    raise NotAllowed(f"{what}: {done}; a new host has {len(late.values().get('web', {}))} values")
                joined.add("refused" if done.code else "in step")

        for name, data in whole.items():
            # The root has the other names, numbers and entries at its beginning.
            offsets = (
                [*range(0, 72, 5), *RANDOM.sample(range(len(data)), 20)]
                if name.endswith("root")
                else [0, 40, len(data) // 2, len(data) - 1]
            )
            for offset in offsets:
                changed = bytearray(data)
                changed[offset] ^= 1 << RANDOM.randrange(8)
                tried({**whole, name: bytes(changed)}, f"byte {offset} of {name}", RANDOM.random() < 0.2)
            tried({other: data for other, data in whole.items() if other != name}, f"{name} dropped", True)
            for what, replaced in (
                ("cut", data[: len(data) // 2]),
                ("longer", data + b"\0"),
                ("empty", b""),
                ("one byte", b"\2"),
            ):
                tried({**whole, name: replaced}, f"{name} {what}", RANDOM.random() < 0.2)
        parts = sorted(name for name in whole if name.startswith(PARTS))
        for one, other in zip(parts, parts[1:]):
            tried({**whole, one: whole[other], other: whole[one]}, f"{one} and {other} swapped", True)
        for part in parts:
            tried(
                {**whole, "team/root": behind["team/root"], part: b"x" * len(whole[part])},
                f"{part} replaced, an earlier root",
                False,
            )
        threat.tried(f"the root and {len(parts)} parts of a storage, then a sync", str(outcomes))
        threat.tried("new hosts that join such storages", str(joined))


@attempt("A forging carrier")
def forged_fleets(threat) -> None:
    """fleets of another writer in a storage, with the root alone and in packs"""
    outcomes = Outcomes()
    found = [
        attack
        for attack in vectors("a fleet", "300", "a removal", "an empty", "a head", "two records", "1.", "3.", "13. a")
        if not attack["listed"]
    ]
    for number, attack in enumerate(found):
        objects = {name: bytes.fromhex(data) for name, data in attack["objects"].items()}
        run, parts = bucket.packed(objects, size=8_192)
        root = bucket.root(objects) if number % 2 else bucket.root({}, (run,))
        with Storage({"team/root": root, **parts} if objects else {}).running() as storage:
            host, done = join_at(storage.address, attack["invitation"])
        values = host.values().get("web", {})
        if (done.code == 0) != ("contents" in attack) or values != attack.get("contents", {}) or done.code not in (0, *REFUSALS):
            raise NotAllowed(f"{attack['case']}: {done}, and it has {values}")
        outcomes.add("accepted, as it must be" if done.code == 0 else f"refused with {done.code}")
    threat.tried(f"{len(found)} fleets of Tests/Interop/vectors/fleet-attacks.json in a storage", str(outcomes))


@attempt("A forging carrier")
def numbers(threat) -> None:
    """numbers of a root at the ends of their ranges, which a host counts on from, with changes until it merges them"""
    with Storage().running() as storage:
        team = Team(storage=storage)
        host = team.join("web-1")
        home, whole, outcomes = host.saved(), storage.saved(), Outcomes()

        def tried(fields: dict) -> str:
            storage.put_back({"team/root": bucket.with_numbers(whole["team/root"], **fields)})
            host.put_back(home)
            for number in range(5):
                rows = {f"{number} {key}": "x" * 900 for key in range(9)}
                host.do("import", "-", "--format", "json", input=json.dumps({"web": rows}).encode())
                if host.sync().check(0, *REFUSALS).code != 0:
                    return "refused"
            return f"in step, {len(storage.objects) - 1} parts"

        for fields in (
            {"merges": 0},
            {"merges": (1 << 64) - 1},
            {"merges": (1 << 64) - 2},
            {"merges": 1 << 63},
            {"retired": (-(1 << 63),)},
            {"retired": ((1 << 63) - 1,)},
            {"retired": (-1, 0, 1)},
            {"retired": (0,) * 5_000},
        ):
            outcomes.of(tried, fields)
        threat.tried("the number of merges, and times of retired parts, at the ends of their ranges, then changes", outcomes)


@attempt("A forging carrier")
def entries(threat) -> None:
    """packs whose entries are not as they must be"""
    fleet, outcomes = fleet_writer.genuine("entries"), Outcomes()
    names = sorted(fleet.objects)
    run, parts = bucket.packed(fleet.objects, size=1 << 20)
    ((name, part),) = parts.items()
    one, other = (bucket.entry(found, fleet.objects[found], 0) for found in names[:2])
    rest = part[len(one) + len(other) :]
    for what, changed in (
        ("two swapped", other + one + rest),
        ("one twice", one + one[: len(other)] + rest),
        ("the last byte changed", part[:-1] + b"\0"),
        ("half of them", part[: len(part) // 2]),
        ("a longer name", b"\xff" + part[1:]),
        ("no name", b"\0" + part[1:]),
        ("a name of slashes", part.replace(names[1].encode(), b"/" * len(names[1]))),
        ("a name that is not UTF-8", part.replace(names[1].encode(), b"\xff" * len(names[1]))),
        ("the number 2^64 - 1", part[: 1 + len(names[0])] + b"\xff" * 8 + part[9 + len(names[0]) :]),
    ):
        padded = changed.ljust(len(part), b"\0")[: len(part)]
        with Storage({"team/root": bucket.root({}, (run,)), name: padded}).running() as storage:
            host, done = join_at(storage.address, fleet.invitation("victim"))
        # A number decides which of several entries counts; the fleet's own signatures decide whether its object does.
        if (done.code == 0) != (host.values().get("web") == fleet_writer.GENUINE) or done.code not in (0, *REFUSALS):
            raise NotAllowed(f"a pack with {what}: {done}; it has {host.values()}")
        outcomes.add(f"in step, with {what}" if done.code == 0 else f"refused with {done.code}")
    threat.tried("entries swapped, repeated and cut, with other names and numbers, in a pack, and a new host", str(outcomes))


@attempt("A carrier that is rolled back")
def rolled_back(threat) -> None:
    with Storage().running() as storage:
        team = filled(storage)
        host, invitation = team.join("web-1"), team.invitation("late", "reader", "--many")
        earlier = storage.saved()
        team.admin.do("unset", "web/k0 0")
        team.set("web/first", "2")
        host.sync().check(0)
        later = storage.saved()
        for what, objects in (
            ("everything put back", earlier),
            ("the root put back, with all parts", {**later, "team/root": earlier["team/root"]}),
        ):
            storage.put_back(objects)
            for name, each in (("the admin's host", team.admin), ("a host", host)):
                values = each.values()
                threat.tried(f"{what}: a sync of {name}", refused(each.sync(), 7)[:120], each.values() == values)
        storage.put_back({name: data for name, data in later.items() if not name.startswith(PARTS)})
        late, done = join_at(storage.address, invitation.decode())
        threat.tried("all parts dropped, and a new host", reason(done), late.values() == {})
        storage.put_back({})
        threat.tried(
            "a storage that has lost everything", refused(host.sync(), 3, 7, 18)[:150], host.values()["web"]["first"] == "2"
        )
        storage.put_back(earlier)
        team.admin.do("fleet", "accept-rollback")
        team.admin.sync().check(0)
        host.sync()
        values = [each.values()["web"] for each in (team.admin, host)]
        threat.tried(
            "the earlier state, once an admin accepts it",
            f"the storage has again what it lost: first is {values[0]['first']}",
            all(web["first"] == "2" and "k0 0" not in web for web in values),
        )


@attempt("A forking carrier")
def forked(threat) -> None:
    with Storage().running() as storage:
        team = filled(storage)
        hosts = [team.join(f"web-{number}") for number in (1, 2)]
        hosts[0].sync().check(0)
        common = storage.saved()
        team.set("web/first", "shown to one", hosts[0])
        one = storage.saved()
        storage.put_back(common)
        team.set("web/first", "shown to the other", hosts[1])
        threat.tried("a root of one host shown to another that has seen a different one", refused(hosts[0].sync(), 7)[:120])
        storage.put_back(one)
        threat.tried("and the reverse", refused(hosts[1].sync(), 7)[:120])


@attempt("A carrier that sends without end")
def endless(threat) -> None:
    """a storage with roots that name more than there is, and answers that do not end"""
    fleet = fleet_writer.genuine("packs")
    folder = fleet.collections["web"].folder.hex()
    records = endless_records(folder)()
    more = dict(next(records) for _ in range(12_000))
    run, parts = bucket.packed(more)
    # A run that says that it has 4 GiB, of a part that is not there.
    absent = run[:8] + b"\xff" * 4 + run[12:]
    zeros = raw(b"200 OK", b'ETag: "x"\r\nContent-Type: application/octet-stream', lambda: iter(lambda: b"\1" * 65_536, None))
    for what, objects, answer in (
        (
            f"{len(more):,} records that were never signed, in packs",
            {"team/root": bucket.root(fleet.objects, (run,)), **parts},
            None,
        ),
        ("32 runs of them", {"team/root": bucket.root(fleet.objects, (run,) * 32), **parts}, None),
        ("a run with another number of entries", {"team/root": bucket.root(fleet.objects, (absent,)), **parts}, None),
        ("packs that are not there", {"team/root": bucket.root(fleet.objects, (run,))}, None),
        ("33 runs", {"team/root": bucket.root(fleet.objects, (run,) * 33), **parts}, None),
        ("4 billion large objects", {"team/root": bucket.root({})[:-8] + b"\xff" * 8}, None),
        ("a root without end", {}, zeros),
        ("a root that is HTML", {"team/root": b"<html>" * 100}, None),
        ("a redirection to a file", {}, raw(b"302 Found", b"Location: file:///etc/passwd\r\nContent-Length: 0", lambda: [])),
        (
            "a message with control characters",
            {},
            raw(
                b"403 Forbidden",
                b"Content-Length: 62",
                lambda: [b"<Error><Code>\x1b[2J</Code><Message>\x1b]0;x\x07</Message></Error>      "],
            ),
        ),
        ("XML in XML, a million deep", {}, raw(b"403 Forbidden", b"Content-Length: 3000000", lambda: [b"<a>" * 1_000_000])),
        ("a weak ETag", {}, raw(b"200 OK", b'ETag: W/"x"\r\nContent-Length: 1', lambda: [b"\1"])),
    ):
        with Storage(objects, answer=answer).running() as storage:
            host, done = join_at(storage.address, fleet.invitation("victim"))
        if b"\x1b" in done.err or b"root:" in done.err or host.values():
            raise NotAllowed(f"{what}: {done}")
        threat.tried(
            f"a storage with {what}",
            f"{reason(done)}; {storage.served >> 20} MiB sent, {done.kilobytes >> 10} MiB of memory",
            done.kilobytes < 600 << 10 and storage.served < 1 << 30,
        )
