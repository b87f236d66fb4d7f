#!/usr/bin/env python3
"""Whether a reader that knows only FORMAT.md gives the verdicts of vectors/store-attacks.json.

    test_attacks.py [--write]      (--write makes the file again)

`make attack` tries the same stores with `prefs`.
"""

from __future__ import annotations

import json
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "clients/reader")]

from coffer_reader.contents import Contents  # noqa: E402
from coffer_reader.envelope import CannotBeTried  # noqa: E402
from coffer_reader.errors import CofferError, Damaged, NewerFormat, NotAStore, WrongKey  # noqa: E402
from coffer_reader.keys import Key, KeyFile, Passphrase  # noqa: E402
from coffer_reader.store import Store  # noqa: E402
from coffer_reader.values import SEALED, decode_value  # noqa: E402
import store_writer as writer  # noqa: E402

FILE = HERE / "vectors/store-attacks.json"
VERDICTS = {
    NotAStore: "not a store", WrongKey: "wrong key", CannotBeTried: "cannot be tried",
    NewerFormat: "newer format", Damaged: "damaged",
}


def secret(name: str) -> Key:
    text = writer.SECRETS[name]
    return Passphrase(text.encode()) if name == "passphrase" else KeyFile(bytes.fromhex(text))


class StoreAttackTests(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls) -> None:
        cls.document = json.loads(FILE.read_text("utf-8"))

    def read(self, found: dict) -> dict:
        """Everything in the store of a case."""
        with tempfile.TemporaryDirectory() as folder:
            store = writer.put(found, pathlib.Path(folder))
            vault = secret("vaultKey") if found.get("vault") else None
            plain = Store(store, secret(found.get("secret", "key"))).plain(vault)
            contents = Contents(plain)
            list(contents.items(found.get("collection")))
            list(contents.history())
            return writer.contents(plain)

    def test_each_is_read_or_refused(self) -> None:
        for found in self.document["cases"]:
            with self.subTest(found["case"]):
                try:
                    contents = self.read(found)
                except CofferError as error:
                    self.assertIn(VERDICTS[type(error)], found.get("refused", []), error)
                    continue
                if "contents" in found:
                    self.assertEqual(contents, self.document["states"][found["contents"]])
                else:
                    self.assertTrue(found.get("mayRead"), "it was read")

    def test_each_value_is_refused_unless_it_may_be_read(self) -> None:
        for found in self.document["values"]:
            with self.subTest(found["case"]):
                try:
                    if found["kind"] == SEALED:
                        raise Damaged("no collection is sealed")
                    decode_value(found["kind"], bytes.fromhex(found["bytes"]))
                except Damaged:
                    continue
                self.assertTrue(found.get("mayRead"), "it was read")

    def test_the_cases_have_names_and_there_is_one_of_every_verdict(self) -> None:
        cases = self.document["cases"]
        names = [(found["section"], found["case"]) for found in cases]
        self.assertEqual(len(set(names)), len(names))
        verdicts = {verdict for found in cases for verdict in found.get("refused", ["read"])}
        self.assertEqual(verdicts, {"read", *VERDICTS.values()})

    def test_the_file_is_up_to_date(self) -> None:
        self.assertEqual(self.document, writer.document())


if __name__ == "__main__":
    if "--write" in sys.argv:
        with open(FILE, "w", encoding="utf-8") as file:
            json.dump(writer.document(), file, indent=1, sort_keys=True)
            file.write("\n")
        sys.exit()
    unittest.main()
