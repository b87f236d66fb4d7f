#!/usr/bin/env python3
"""Whether FLEET.md says everything: a reader that knows nothing else reads a fleet, and refuses it with anything changed.

    test_fleet.py [FLEET.json ...]      (the vector, and fleets that were written just now)
    test_fleet.py --write               (makes vectors/fleet-attacks.json again)
"""

from __future__ import annotations

import json
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "clients/reader")]

from coffer_reader import fleet as reader  # noqa: E402
from coffer_reader.errors import Damaged, NewerFormat  # noqa: E402
from coffer_reader.fleet_objects import Reader, open_sealed  # noqa: E402
import fleet_writer as writer  # noqa: E402
from fleet_attacks import cases, divided  # noqa: E402

FLEETS = [str(HERE / "vectors/fleet-1.json")]
ATTACKS = HERE / "vectors/fleet-attacks.json"
REFUSED = (Damaged, NewerFormat)


class FleetTests(unittest.TestCase):
    def each(self):
        for path in FLEETS:
            objects, content = reader.load(path)
            yield objects, content, reader.Invitation.parse(content["invitation"])

    def test_reads_everything(self):
        for objects, content, invitation in self.each():
            fleet = reader.Fleet(objects, invitation)
            self.assertEqual(fleet.name, content["name"])
            self.assertEqual(fleet.number, content["number"])
            self.assertEqual(fleet.collections, content["collections"])
            self.assertEqual({m.name: m.role for m in fleet.members.values()}, content["members"])
            found = {}
            for record in fleet.records:
                purpose = "declaration " if record.is_of_declaration else ""
                found[f"{purpose}{record.collection}/{record.key}"] = {
                    name: value
                    for name, value in {
                        "counter": record.counter,
                        "kind": record.kind,
                        "data": None if record.data is None else record.data.hex(),
                        "metadata": record.metadata and (bytes([record.metadata[0]]) + record.metadata[1]).hex(),
                        "expires": record.expires,
                        "due": record.due,
                        "application": record.application,
                        "version": record.version,
                        "declaration": record.declaration,
                    }.items()
                    if value is not None
                }
            self.assertEqual(found, content["records"])

    def test_reads_how_settings_are_declared(self):
        for objects, _, invitation in self.each():
            for record in reader.Fleet(objects, invitation).records:
                if record.declaration is not None:
                    declaration = json.loads(record.declaration)
                    self.assertEqual((declaration["collection"], declaration["name"]), (record.collection, record.key))

    @staticmethod
    def overlaid(fleet):
        """The objects that pieces replace, and that are not read."""
        names = set()
        for piece, _ in fleet.pieces:
            parts = Reader.of(fleet.objects[f"s/{fleet.authority.folder}/{piece}"])
            while parts.position < len(parts.data):
                names.add(f"r/{parts.take(8).hex()}/{parts.take(20).hex()}")
                parts.take(parts.number(4))
        return names

    def test_refuses_any_byte_changed(self):
        for objects, _, invitation in self.each():
            fleet = reader.Fleet(objects, invitation)
            overlaid = self.overlaid(fleet)
            fleet.check_log()
            for name, data in objects.items():
                # Nor is the log read by a new reader.
                if name in overlaid or name.startswith("l/"):
                    continue
                for index in range(0, len(data), max(1, len(data) // 40)):
                    changed = bytearray(data)
                    changed[index] ^= 0x20
                    with self.assertRaises(REFUSED, msg=f"{name}, byte {index}"):
                        reader.Fleet({**objects, name: bytes(changed)}, invitation)
                with self.assertRaises(REFUSED, msg=f"{name}, dropped"):
                    reader.Fleet({other: data for other, data in objects.items() if other != name}, invitation)

    def test_refuses_records_swapped_and_added(self):
        for objects, _, invitation in self.each():
            fleet = reader.Fleet(objects, invitation)
            records = {name for name in objects if name.startswith("r/") and bytes.fromhex(name[2:18]) in fleet.by_folder}
            names = sorted(records - self.overlaid(fleet))
            with self.assertRaises(REFUSED):
                reader.Fleet({**objects, names[0]: objects[names[1]], names[1]: objects[names[0]]}, invitation)
            added = names[0][:-1] + ("1" if names[0].endswith("0") else "0")
            with self.assertRaises(REFUSED):
                reader.Fleet({**objects, added: objects[names[0]]}, invitation)

    def test_tells_a_newer_format(self):
        for objects, _, invitation in self.each():
            for name in ("head", "members", "authority/0000000001"):
                with self.assertRaises(REFUSED):
                    reader.Fleet({**objects, name: b"\x02" + objects[name][1:]}, invitation)


class AttackTests(unittest.TestCase):
    """Fleets of another writer, which has FLEET.md alone, and attacks on them."""

    def test_accepts_what_is_genuine_and_nothing_else(self):
        for case in cases():
            with self.subTest(case["case"]):
                pairs = [(name, bytes.fromhex(data)) for name, data in case["objects"].items()]
                pairs += [(entry["name"], bytes.fromhex(entry["bytes"])) for entry in case["listed"] for _ in range(entry["times"])]
                invitation = reader.Invitation.parse(case["invitation"])
                if "contents" not in case:
                    with self.assertRaises(NewerFormat if case["refused"] == "newer format" else Damaged):
                        reader.Fleet(reader.listed(pairs), invitation)
                    continue
                fleet = reader.Fleet(reader.listed(pairs), invitation)
                found = {
                    record.key: record.value
                    for record in fleet.records
                    if record.kind is not None and record.collection == "web"
                }
                self.assertEqual(found, case["contents"])
                self.assertEqual([one.is_sealed for one in fleet.by_folder.values()].count(True), case.get("sealed", False))
                fleet.check_log()

    def test_proves_descent_at_any_distance(self):
        fleet = writer.genuine("descent")
        heads = [fleet.head]
        for _ in range(300):
            fleet.commit(fleet.named("w"))
            heads.append(fleet.head)
        read = reader.Fleet(fleet.objects, reader.Invitation.parse(fleet.invitation("victim")))
        start = read.log_count + 1 - len(heads)
        for index, head in enumerate(heads[:-1]):
            self.assertTrue(read.has_earlier(head, start + index))
            self.assertFalse(read.has_earlier(head, start + index + 1))
            self.assertFalse(read.has_earlier(head + b"x", start + index))

    def test_a_member_of_some_collections_reads_nothing_of_others(self):
        """Neither with its own keys, nor with those that it had, whatever it tries on everything that a carrier has."""
        fleet = writer.genuine("collections")
        divided(fleet)
        fleets = [(fleet.objects, reader.Fleet(fleet.objects, reader.Invitation.parse(fleet.invitation("victim"))))]
        before = writer.genuine("collections")
        before.share("payroll")
        before.set("a", "salary", "1", collection="payroll")
        # The same member, with the keys from before the collection was taken from it.
        fleets.append((fleet.objects, reader.Fleet(before.objects, reader.Invitation.parse(before.invitation("victim")))))
        for objects, read in fleets:
            found = set()
            for name, data in objects.items():
                self.assertNotIn(b"payroll", data)
                for collection in read.by_folder.values():
                    place = bytes.fromhex(name.split("/")[-1]) if name.startswith("r/") else b""
                    label = b"coffer fleet v1 records" + read.invitation.fleet + collection.folder + place + data[:1]
                    try:
                        open_sealed(collection.keys["records"], label, data[1:])
                        found.add(collection.name)
                    except Damaged:
                        pass
            self.assertNotIn("payroll", found)
        _, now = fleets[0]
        self.assertEqual((now.collections, len(now.shared)), (["web"], 2))
        self.assertEqual({record.collection for record in now.records}, {"web"})
        prefix, sealed = now.sealed_members
        body = open_sealed(now.keys["members"], now._additional_data("members", prefix), sealed)
        self.assertIn(b"victim", body)
        self.assertNotIn(b"payroll", body)

    def test_the_file_for_other_readers_is_up_to_date(self):
        self.assertEqual(json.loads(ATTACKS.read_text("utf-8")), cases())


if __name__ == "__main__":
    if "--write" in sys.argv:
        ATTACKS.write_text(json.dumps(cases(), indent=1, sort_keys=True) + "\n", "utf-8")
        sys.exit()
    FLEETS += [argument for argument in sys.argv[1:] if argument.endswith(".json")]
    unittest.main(argv=sys.argv[:1])
