"""Members of fleets, former ones, and those with an invitation."""

from __future__ import annotations

import json
import time

import fleet_writer
from coffer_reader.errors import Damaged
from coffer_reader.fleet import Fleet
from coffer_reader.fleet_objects import Invitation, open_sealed
from etcd import Hostile, certificate
from registry import attempt, untried
from samples import refused
from teams import NAMES, REFUSALS, Host, Team, by_vectors
from workshop import NotAllowed


@attempt("A reader's host is taken over")
def reader(threat) -> None:
    by_vectors(threat, "1.", "2.", "a reader's head", "3. a record in the name of a reader")
    team = Team()
    host = team.join("web-1", "reader")
    host.do("set", "web/first", "mine")
    done = host.sync()
    team.admin.sync().check(0)
    threat.tried(
        "a reader sets a value, and syncs", f"exit code {done.code}; the admin has {team.admin.values()['web']['first']}",
        team.admin.values()["web"]["first"] == "1",
    )


@attempt("A removed member")
def removed(threat) -> None:
    by_vectors(threat, "a former member's head", "a writer's authority", "10.")
    team = Team()
    host = team.join("web-1")
    copy = host.saved()
    team.admin.do("fleet", "remove", "web-1")
    team.set("web/later", "after the removal")
    for what, change in (
        ("its store of then", lambda: host.put_back(copy)), ("its store, which has seen the removal", lambda: None),
    ):
        change()
        host.do("set", "web/first", "by the removed member")
        done = host.sync()
        if "later" in host.values()["web"]:
            raise NotAllowed("a removed member reads what is written later")
        team.admin.sync().check(0)
        threat.tried(
            f"{what}: it sets a value, and syncs",
            f"{refused(done, *REFUSALS)[:120]}; the admin has {team.admin.values()['web']['first']}",
            team.admin.values()["web"]["first"] == "1",
        )


@attempt("An invitation, a password")
def seen(threat) -> None:
    team = Team()
    invitation = team.invitation("web-1").decode().strip()
    host = Host("seen")
    done = host.prefs("fleet", "join", invitation)
    threat.tried(
        "an invitation as an argument",
        f"{refused(done, 2)[:100]}; it is {'' if invitation in done.err.decode() else 'not '}repeated",
        invitation not in done.err.decode(),
    )
    done = host.prefs("fleet", "create", "team", "--at", "etcd://ada:password-46@127.0.0.1:1/team", "-c", "web", patience=30)
    threat.tried(
        "a password in the carrier's address",
        f"exit code {done.code}; it is {'' if b'password-46' in done.err else 'not '}repeated",
        done.code != 0 and b"password-46" not in done.err,
    )
    keylog, fleet = host.folder / "keylog", fleet_writer.genuine("keylog")
    hostile = Hostile(fleet.objects)
    with hostile.running(certificate(host.folder / "certificate.pem")) as address:
        done = host.prefs(
            "fleet", "join", "-", "--at", address, input=fleet.invitation("victim").encode(),
            environment={"SSLKEYLOGFILE": str(keylog)}, patience=60,
        )
    threat.tried(
        "SSLKEYLOGFILE, and a carrier with TLS",
        f"exit code {done.code}, {hostile.served} objects read; {'keys are written' if keylog.exists() else 'no file is written'}",
        not keylog.exists() and hostile.served > 0,
    )
    with hostile.running(certificate(host.folder / "another.pem")) as address:
        done = Host("tls").prefs(
            "fleet", "join", "-", "--at", address.split("?")[0], input=fleet.invitation("victim").encode(), patience=60
        )
    threat.tried("a carrier whose certificate no authority of the system has signed", refused(done, 11))


@attempt("An invitation is used late")
def late(threat) -> None:
    team = Team()
    expired = team.invitation("late", "reader", "--expires", "1s")
    earlier = team.saved()
    other = team.invitation("elsewhere", "reader")
    time.sleep(1.2)
    threat.tried("an invitation after its time", refused(Host("late").prefs("fleet", "join", "-", input=expired), *REFUSALS))
    another = Team()
    done = Host("elsewhere").prefs("fleet", "join", "-", "--at", f"file://{another.carrier}", input=other)
    threat.tried("an invitation at another fleet", refused(done, *REFUSALS))
    team.put_back(earlier)
    threat.tried(
        "an invitation at a copy of the carrier from before it",
        refused(Host("old").prefs("fleet", "join", "-", input=other), *REFUSALS),
    )
    digits = bytearray(other.strip())
    for position in (20, len(digits) // 2, len(digits) - 1):
        changed = (
            bytes(digits[:position]) + (b"0" if digits[position : position + 1] != b"0" else b"1") + bytes(digits[position + 1 :])
        )
        refused(Host("typed").prefs("fleet", "join", "-", input=changed), 1, 2, 5, 6, *REFUSALS, 8)
    threat.tried("an invitation with a digit changed, three times", "refused")


@attempt("An invitation is copied")
def copied_invitation(threat) -> None:
    by_vectors(threat, "9.", "members who have not")
    team = Team()
    invitation = team.invitation("web-1")
    thief, owner = Host("thief"), Host("owner")
    thief.do("fleet", "join", "-", input=invitation)
    done = owner.prefs("fleet", "join", "-", input=invitation)
    threat.tried("an invitation that another host has just used", refused(done, *REFUSALS), owner.values() == {})
    team.admin.sync().check(0)
    done = Host("third").prefs("fleet", "join", "-", input=invitation)
    threat.tried("the same after an admin's sync", refused(done, *REFUSALS))
    read = Invitation.parse(invitation.decode())
    team.set("web/later", "later")
    try:
        Fleet(team.objects(), read)
        raise NotAllowed("the invitation's keys open the list of members after an admin's sync")
    except Damaged as reason:
        threat.tried("its keys tried on the carrier, by another program, after an admin's sync", str(reason))


@attempt("A writer's declarations")
def declarations(threat) -> None:
    team = Team()
    host, hostile = team.join("web-1"), team.join("hostile")
    host.do(
        "schema", "load", "-", "--application", "shop", "--application-version", "1",
        input=b'[{"name": "port", "collection": "web", "type": "int", "default": 80}, {"name": "token", "collection": "web", "type": "secret"}]',
    )
    host.sync()
    values = [
        {"name": "port", "collection": "web", "type": "string", "default": "evil"},
        {"name": "token", "collection": "web", "type": "string"},
        {"name": "first", "collection": "web", "type": "string", "limits": [{"pattern": "(a+)+$"}]},
        {"name": "x", "collection": "private", "type": "int", "summary": "\x1b[2J"},
    ]
    loaded = hostile.prefs(
        "schema", "load", "-", "--application", "shop", "--application-version", "99", input=json.dumps(values).encode()
    )
    if loaded.code != 0:
        loaded = hostile.prefs(
            "schema", "load", "-", "--application", "shop", "--application-version", "99", input=json.dumps(values[2:]).encode()
        )
    hostile.sync()
    done = host.sync()
    host.do("set", "web/port", "8080", "--int", "--force")
    host.do("set", "web/token", "--secret", "-", "--force", input=b"secret-46")
    listed = host.do("list", "web", "--values").decode()
    log = host.do("log", "--no-pager").decode()
    threat.tried(
        "declarations by a writer, of another type, with a higher version, and of a collection that is not shared",
        f"load {loaded.code}, sync {done.code}; on another host the secret is {'shown' if 'secret-46' in listed else 'hidden'}, and "
        f"the log {'says so' if 'declarations of' in log else 'says nothing'}",
        "secret-46" not in listed and "declarations of" in log and host.prefs("describe", "private/x").code == 3,
    )


@attempt("A writer signs a record")
def forged_author(threat) -> None:
    by_vectors(threat, "3.", "6.", "a second content")


@attempt("An admin shares a collection")
def shared_later(threat) -> None:
    team = Team()
    host = team.join("web-1", "reader")
    host.do("set", "private/diary", "own")
    team.admin.do("set", "private/diary", "from the admin")
    team.admin.do("fleet", "share", "-c", "web", "-c", "private")
    team.admin.sync().check(0)
    done = host.sync()
    objects = len(team.objects())
    threat.tried(
        "the admin shares a collection whose name a host uses",
        f"sync {done.code}; the host keeps {host.values()['private']}; the admin has "
        f"{team.admin.values()['private']}, {objects} objects",
        host.values()["private"] == {"diary": "own"} and team.admin.values()["private"] == {"diary": "from the admin"},
    )


@attempt("A member who is invited later")
def invited_later(threat) -> None:
    team = Team(collections=("web", NAMES["payroll"]))
    team.set(f"{NAMES['payroll']}/salary", "secret-salary")
    team.admin.do("fleet", "share", "-c", "web")
    team.admin.sync().check(0)
    invitation = team.invitation("later", "reader", "--many")
    fleet = Fleet(team.objects(), Invitation.parse(invitation.decode()))
    host = Host("later")
    host.do("fleet", "join", "-", input=invitation)
    threat.tried(
        "a member that is invited after a collection was no longer shared",
        f"its host has {sorted(host.values())}, its keys open {fleet.collections}",
        fleet.collections == ["web"] and NAMES["payroll"] not in host.values(),
    )


@attempt("A contractor")
def contractor(threat) -> None:
    by_vectors(threat, "13. a member of")
    team = Team(collections=("web", NAMES["payroll"]))
    team.set(f"{NAMES['payroll']}/salary", "secret-salary")
    invitations = [team.invitation(f"contractor-{number}", "writer", "-c", "web") for number in (1, 2)]
    objects = team.objects()
    fleets = [Fleet(objects, Invitation.parse(invitation.decode())) for invitation in invitations]
    opened = []
    for name, data in objects.items():
        for fleet in fleets:
            for collection in fleet.by_folder.values():
                place = bytes.fromhex(name.split("/")[-1]) if name.startswith("r/") else b""
                label = b"coffer fleet v1 records" + fleet.invitation.fleet + collection.folder + place + data[:1]
                try:
                    opened.append(open_sealed(collection.keys["records"], label, data[1:]))
                except Damaged:
                    pass
    bodies = b"".join(
        open_sealed(
            fleet.keys["members"], fleet._additional_data("members", fleet.sealed_members[0]), fleet.sealed_members[1]
        )
        for fleet in fleets
    )
    host = Host("contractor")
    host.do("fleet", "join", "-", input=invitations[0])
    told = (
        host.prefs("fleet", "members", "--json").out + host.prefs("fleet", "status", "--json").out + host.prefs("fleet", "log").out
    )
    shown = [part for part in (b"".join(opened), bodies, told) if NAMES["payroll"].encode() in part or b"secret-salary" in part]
    threat.tried(
        "all keys of two contractors tried on everything that the carrier has, and what their tool says",
        f"{len(opened)} records opened, of the collection web; {len(shown)} with a name or value of the other",
        not shown and bool(opened),
    )
    if NAMES["payroll"] in host.values():
        raise NotAllowed("the contractor's host has the other collection")


@attempt("A collection is taken")
def taken(threat) -> None:
    team = Team(collections=("web", "flags"))
    host = team.join("web-1")
    copy = host.saved()
    invitation = team.invitation("many", "reader", "--many")
    team.admin.do("fleet", "collections", "web-1", "-c", "web")
    team.admin.do("fleet", "collections", "many", "-c", "web")
    team.set("flags/later", "after it was taken")
    for what, change in (("its store of then", lambda: host.put_back(copy)), ("its store", lambda: None)):
        change()
        host.sync()
        threat.tried(f"{what}, after a sync", f"it has {host.values()}", "later" not in host.values().get("flags", {}))
    fleet = Fleet(team.objects(), Invitation.parse(invitation.decode()))
    threat.tried("a reader's keys on the carrier", f"open {fleet.collections}", fleet.collections == ["web"])


@attempt("A writer commits a change of a collection")
def foreign_collection(threat) -> None:
    by_vectors(threat, "13.")


untried("A wrong clock", "it needs hosts with clocks of their own, which only an emulated clock gives")
