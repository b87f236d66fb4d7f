"""More of the fleets that fleet_writer.py writes: objects that are missing or malformed, under signatures as they must be."""

from __future__ import annotations

from coffer_reader.fleet_objects import digest
from coffer_reader.values import STRING
from fleet_writer import GENUINE, Change, Fleet, case, genuine, numbers

# MARK: Objects that are missing, of another version, or too long


@case("an empty carrier")
def empty(fleet: Fleet) -> list:
    fleet.objects.clear()
    return []


def without(name: str):
    def remove(fleet: Fleet) -> list:
        del fleet.objects[name]
        return []

    return remove


for missing in ("head", "members", "authority/0000000001", "authority/0000000002"):
    case(f"a carrier without its {missing}")(without(missing))


@case("all objects of another fleet")
def another_fleet(fleet: Fleet) -> list:
    fleet.shown = genuine("another team").objects
    return []


def of_format(name: str, version: int):
    def change(fleet: Fleet) -> list:
        fleet.objects[name] = bytes([version]) + fleet.objects[name][1:]
        return []

    return change


case("a head of format 2", refused="newer format")(of_format("head", 2))
case("a head of format 0")(of_format("head", 0))


@case("a head of one byte")
def short_head(fleet: Fleet) -> list:
    fleet.objects["head"] = b"\1"
    return []


@case("the head of the commit before")
def earlier_head(fleet: Fleet) -> list:
    fleet.objects["head"] = fleet.earlier["head"]
    return []


@case("a head with a byte after its content")
def long_head(fleet: Fleet) -> list:
    fleet.commit(fleet.named("w"), pieces=numbers("H", 0) + b"\0")
    return []


@case("a head that says that it has 65,535 pieces, and has none")
def endless_pieces(fleet: Fleet) -> list:
    fleet.commit(fleet.named("w"), pieces=b"\xff\xff")
    return []


@case("a head with a number above 2^60")
def high_head(fleet: Fleet) -> list:
    fleet.number = 1 << 60
    fleet.commit(fleet.named("w"))
    return []


@case("a head with more earlier heads than its number")
def long_log(fleet: Fleet) -> list:
    fleet.log += [fleet.head] * 20
    fleet.commit(fleet.named("w"))
    return []


@case("a piece that is not the one that the head names")
def other_piece(fleet: Fleet) -> list:
    fleet.objects[f"s/{fleet.folder}/{bytes(8).hex()}"] = b"\1"
    fleet.commit(fleet.named("w"), pieces=numbers("H", 1) + bytes(40))
    return []


@case("a piece that ends within a record")
def short_piece(fleet: Fleet) -> list:
    piece = b"\1" + fleet.collections["web"].folder + bytes(20) + numbers("I", 1 << 30)
    fleet.objects[f"s/{fleet.folder}/{bytes(8).hex()}"] = piece
    fleet.commit(fleet.named("w"), pieces=numbers("H", 1) + bytes(8) + digest(piece))
    return []


@case("two records swapped")
def swapped(fleet: Fleet) -> list:
    one, other = sorted(name for name in fleet.objects if name.startswith("r/"))[:2]
    fleet.objects[one], fleet.objects[other] = fleet.objects[other], fleet.objects[one]
    return []


@case("a record of one byte under the writer's head")
def short_record(fleet: Fleet) -> list:
    name = next(name for name in fleet.objects if name.startswith("r/"))
    fleet.objects[name] = b"\1"
    fleet.commit(fleet.named("w"))
    return []


# MARK: Lists of members


@case("a member twice in the list")
def member_twice(fleet: Fleet) -> list:
    fleet.members.append(fleet.named("r"))
    fleet.publish(fleet.members[0])
    return []


@case("a member of an unknown role")
def unknown_role(fleet: Fleet) -> list:
    fleet.named("r").role = "unknown"
    fleet.publish(fleet.members[0])
    return []


@case("a member of an unknown standing")
def unknown_standing(fleet: Fleet) -> list:
    fleet.named("r").standing = 3
    fleet.publish(fleet.members[0])
    return []


@case("a fleet without an admin")
def no_admin(fleet: Fleet) -> list:
    admin = fleet.members[0]
    admin.role = "writer"
    fleet.publish(admin)
    return []


@case("a former member that is a member, too")
def former_and_present(fleet: Fleet) -> list:
    fleet.former.append(fleet.named("w"))
    fleet.publish(fleet.members[0])
    return []


# MARK: Records that a writer has signed, and no reader can hold


def malformed(description: str, **fields) -> None:
    @case(f"a writer's record: {description}")
    def record(fleet: Fleet) -> list:
        values = {"key": "q", "value": "v", "author": fleet.named("w"), **fields}
        fleet.put(fleet.signed([Change(**values)])[0])
        fleet.commit(fleet.named("w"))
        return []


malformed("a counter of 0", counter=0)
malformed("a counter above 2^60", counter=(1 << 60) + 1)
malformed("an unknown form", form=9)
malformed("unknown fields", rest=bytes([8, STRING]) + b"v")
malformed("a null", rest=bytes([0, 0]))
malformed("a sealed value", rest=bytes([0, 14]) + bytes(60))
malformed("a value of an unknown kind", rest=bytes([0, 99]) + b"v")
malformed("a text that is not UTF-8", rest=bytes([0, STRING]) + b"\xff")
malformed("metadata that is longer than the record", rest=bytes([4, STRING]) + numbers("I", 1 << 31))
malformed("nothing after the texts", rest=b"")


@case("a writer's record: a signature of 255 neighbours")
def neighbours(fleet: Fleet) -> list:
    content = fleet.signed([Change("q", "v", fleet.named("w"))])[0]
    # Its length finds the setting.
    name, _ = fleet.object(content)
    shared = fleet.collections["web"]
    place = b"coffer fleet v1 records" + fleet.id + shared.folder + bytes.fromhex(name.split("/")[-1]) + b"\1"
    fleet.objects[name] = b"\1" + fleet.seal(shared.keys["records"], place, b"\xff" + bytes(255 * 32) + content[1:])
    fleet.commit(fleet.named("w"))
    return []


# MARK: Sealed collections


@case("a collection that is sealed in the fleet", GENUINE)
def sealed(fleet: Fleet) -> list:
    fleet.collections["web"].is_sealed = 1
    fleet.publish(fleet.members[0])
    return []


@case("a collection that is neither sealed in the fleet nor not")
def sealed_otherwise(fleet: Fleet) -> list:
    fleet.collections["web"].is_sealed = 2
    fleet.publish(fleet.members[0])
    return []
