"""The fleets that fleet_writer.py writes: genuine ones, and attacks by carriers and members, with the keys of their roles."""

from __future__ import annotations

from coffer_reader.fleet_objects import digest, raw
from fleet_writer import CASES, GENUINE, Change, Fleet, Member, case, genuine, numbers


@case("a fleet", GENUINE)
def plain(fleet: Fleet) -> list:
    return []


@case("300 commits, some of several records", {**GENUINE, **{f"k{number}": "v" for number in range(300)}})
def long(fleet: Fleet) -> list:
    for number in range(0, 300, 3):
        for content in fleet.signed([Change(f"k{number + more}", "v", fleet.named("w")) for more in range(3)]):
            fleet.put(content)
        fleet.commit(fleet.named("w"))
    for _ in range(200):
        fleet.commit(fleet.named("a"))
    return []


@case("a removal, and a horizon", {"x": "new", "z": "by a former member"})
def removal(fleet: Fleet) -> list:
    fleet.set("w", "y", None, 2)
    fleet.commit(fleet.named("a"), horizon=fleet.number)
    return []


@case("a second content of a change that others have seen", {**GENUINE, "y": "again"})
def second(fleet: Fleet) -> list:
    fleet.set("w", "y", "once", 2)
    fleet.set("w", "y", "again", 2)
    return []


@case("1. a record of a reader that the carrier lists")
def planted(fleet: Fleet) -> list:
    reader = fleet.named("r")
    return [(*fleet.object(fleet.signed([Change("planted", "p", reader)])[0]), 1)]


@case("1. a record of a reader that the carrier lists 65,536 times")
def copies(fleet: Fleet) -> list:
    reader = fleet.named("r")
    return [(*fleet.object(fleet.signed([Change("planted", "p", reader)])[0]), 65_536)]


@case("1. an earlier record that the carrier lists 65,536 times")
def earlier_copies(fleet: Fleet) -> list:
    name = next(name for name in fleet.earlier if fleet.earlier[name] != fleet.objects[name] and name.startswith("r/"))
    return [(name, fleet.earlier[name], 65_536)]


@case("1. an earlier record in place of the last")
def earlier(fleet: Fleet) -> list:
    name = next(name for name in fleet.earlier if fleet.earlier[name] != fleet.objects[name] and name.startswith("r/"))
    fleet.objects[name] = fleet.earlier[name]
    return []


@case("2. a planted record that a new key has sealed, and the admin's head covers")
def resealed(fleet: Fleet) -> list:
    fleet.put(fleet.signed([Change("planted", "p", fleet.named("a"), signer=fleet.named("r"))])[0])
    fleet.renew()
    return []


@case("3. a record in the admin's name under a writer's head")
def forged(fleet: Fleet) -> list:
    fleet.put(fleet.signed([Change("x", "forged", fleet.named("a"), 3, signer=fleet.named("w"))])[0])
    fleet.commit(fleet.named("w"))
    return []


@case("3. a record that the admin signed in another fleet")
def moved(fleet: Fleet) -> list:
    fleet.put(fleet.signed([Change("x", "moved", fleet.named("a"), 3, fleet=bytes(16))])[0])
    fleet.commit(fleet.named("w"))
    return []


@case("3. a record in the name of a reader")
def by_reader(fleet: Fleet) -> list:
    fleet.put(fleet.signed([Change("x", "by a reader", fleet.named("r"), 3)])[0])
    fleet.commit(fleet.named("w"))
    return []


@case("3. a record whose value was changed under its signature")
def changed(fleet: Fleet) -> list:
    content = fleet.signed([Change("x", "right", fleet.named("a"), 3)])[0]
    fleet.put(content[:-5] + b"wrong")
    fleet.commit(fleet.named("w"))
    return []


@case("6. a record of a collection that is not shared")
def unshared(fleet: Fleet) -> list:
    fleet.put(fleet.signed([Change("allow", "yes", fleet.named("a"), collection="sudo")])[0], fleet.collections["web"])
    fleet.commit(fleet.named("a"))
    return []


@case("a reader's head")
def reader_head(fleet: Fleet) -> list:
    fleet.commit(fleet.named("r"))
    return []


@case("a former member's head")
def former_head(fleet: Fleet) -> list:
    fleet.commit(fleet.former[0])
    return []


@case("a writer's authority")
def writer_authority(fleet: Fleet) -> list:
    fleet.named("w").role = "admin"
    fleet.publish(fleet.named("w"))
    return []


@case("8. a horizon that is not before its head")
def bad_horizon(fleet: Fleet) -> list:
    fleet.commit(fleet.named("w"), horizon=fleet.number + 1)
    return []


def invited(fleet: Fleet, role: str) -> Member:
    """A member that no host is yet."""
    member = fleet.member("invited", role)
    member.standing = 0
    fleet.members.append(member)
    fleet.publish(fleet.members[0])
    return member


@case("members who have not joined, and one whom many hosts are", GENUINE)
def waiting(fleet: Fleet) -> list:
    invited(fleet, "admin")
    invited(fleet, "reader").standing = 2
    fleet.publish(fleet.members[0])
    return []


@case("9. the head of a writer who has not been admitted")
def invited_head(fleet: Fleet) -> list:
    fleet.commit(invited(fleet, "writer"))
    return []


@case("9. the record of a writer who has not been admitted")
def invited_record(fleet: Fleet) -> list:
    fleet.put(fleet.signed([Change("x", "by an invitation", invited(fleet, "writer"), 3)])[0])
    fleet.commit(fleet.named("w"))
    return []


@case("9. the authority of an admin who has not been admitted")
def invited_authority(fleet: Fleet) -> list:
    fleet.publish(invited(fleet, "admin"))
    return []


@case("9. a writer that many hosts are")
def many_writers(fleet: Fleet) -> list:
    invited(fleet, "writer").standing = 2
    fleet.publish(fleet.members[0])
    return []


@case("9. an invitation that another host has used")
def used(fleet: Fleet) -> list:
    victim, own = fleet.named("victim"), fleet.member("own", "reader")
    request = b"\1" + victim.id + raw(own.signing) + raw(own.agreement)
    fleet.objects[f"j/{victim.id.hex()}"] = request + victim.sign("join", fleet.id + request) + own.sign("join", fleet.id + request)
    return []


@case("9. an invitation whose keys another host's have replaced")
def replaced(fleet: Fleet) -> list:
    own = fleet.member("own", "reader")
    victim = fleet.named("victim")
    fleet.line = fleet.invitation("victim")
    victim.signing, victim.agreement, victim.standing = own.signing, own.agreement, 1
    fleet.publish(fleet.members[0])
    return []


@case("10. a copy of the carrier from before the invitation, where a former member still was one")
def old_members(fleet: Fleet) -> list:
    before = dict(fleet.objects)
    fleet.remove("w")
    fleet.shown = before
    return []


# MARK: Collections of their own


def divided(fleet: Fleet) -> None:
    """A second collection; the writer, and the reader that is invited, do not have it."""
    fleet.share("payroll")
    fleet.set("a", "salary", "1", collection="payroll")
    fleet.set("a", "salary", "2", 2, collection="payroll")
    for name in ("w", "victim"):
        fleet.give(fleet.named(name), "web")
    fleet.set("a", "salary", "3", 3, collection="payroll")
    fleet.set("w", "y", "again", 2)


@case("13. a member of some collections", {**GENUINE, "y": "again"})
def member_of_some(fleet: Fleet) -> list:
    divided(fleet)
    return []


@case("13. a member of none", {})
def member_of_none(fleet: Fleet) -> list:
    divided(fleet)
    fleet.give(fleet.named("victim"))
    return []


@case("13. a member of all, where a writer has some", {**GENUINE, "y": "again"})
def member_of_all(fleet: Fleet) -> list:
    divided(fleet)
    fleet.named("victim").collections = None
    fleet.publish(fleet.members[0])
    return []


def replacing(fleet: Fleet, head: bytes) -> list:
    """A head of the writer, with its own idea of the other collection."""
    fleet.commit(fleet.named("w"), replaced={"payroll": head})
    return []


@case("13. a collection that a writer does not have, emptied under its own signature")
def emptied(fleet: Fleet) -> list:
    divided(fleet)
    prefix = f"r/{fleet.collections['payroll'].folder.hex()}/"
    fleet.objects = {name: data for name, data in fleet.objects.items() if not name.startswith(prefix)}
    return replacing(fleet, fleet.collection_head(fleet.collections["payroll"], fleet.named("w")))


@case("13. a collection that a writer does not have, changed under the admin's signature")
def resigned(fleet: Fleet) -> list:
    divided(fleet)
    head = bytearray(fleet.collections["payroll"].head)
    head[47] ^= 1
    return replacing(fleet, bytes(head))


@case("13. a collection of a writer in the place of one that it does not have")
def exchanged(fleet: Fleet) -> list:
    divided(fleet)
    return replacing(fleet, fleet.collections["web"].head)


@case("13. a collection signed by a reader of it")
def by_its_reader(fleet: Fleet) -> list:
    divided(fleet)
    return replacing(fleet, fleet.collection_head(fleet.collections["payroll"], fleet.named("r")))


@case("13. a piece with a record of a collection that its commit leaves as it is")
def foreign_piece(fleet: Fleet) -> list:
    divided(fleet)
    identifier = bytes(8)
    piece = b"\1" + fleet.collections["payroll"].folder + bytes(20) + numbers("I", 1) + b"x"
    fleet.objects[f"s/{fleet.folder}/{identifier.hex()}"] = piece
    fleet.commit(fleet.named("w"), pieces=numbers("H", 1) + identifier + digest(piece))
    return []


@case("13. two collections of one name")
def twice(fleet: Fleet) -> list:
    fleet.share("payroll")
    fleet.renew_collection("other")
    fleet.collections["other"].name = "payroll"
    fleet.publish(fleet.members[0])
    return []


@case("13. an admin who does not have all collections")
def divided_admin(fleet: Fleet) -> list:
    divided(fleet)
    fleet.members[0].collections = frozenset(["web", "payroll"])
    fleet.publish(fleet.members[0])
    return []


def cases() -> list:
    import fleet_malformed  # noqa: F401 — it adds more.

    found = []
    for number, (description, verdict, function) in enumerate(CASES):
        fleet = genuine(f"team {number}")
        listed = function(fleet)
        found.append(
            {
                "case": description,
                "invitation": fleet.line or fleet.invitation("victim"),
                "objects": {name: data.hex() for name, data in sorted((fleet.shown or fleet.objects).items())},
                "listed": [{"name": name, "bytes": data.hex(), "times": times} for name, data, times in listed],
                **verdict,
                **({"sealed": True} if fleet.collections["web"].is_sealed == 1 else {}),
            }
        )
    return found
