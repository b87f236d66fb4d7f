#!/usr/bin/env python3
"""Whether the JSON Schema that prefs writes takes what prefs exports, and nothing else: checked with PyPI's jsonschema.

    test_schema.py --bin DIR         (DIR holds the built prefs)
"""

import argparse
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import jsonschema

BIN = pathlib.Path(os.environ.get("COFFER_BIN", pathlib.Path(__file__).resolve().parent / "../../.build/debug"))
PATIENCE = 120  # seconds, for any one program

DECLARATIONS = [
    {"name": "port", "type": "int", "default": 8080, "limits": [{"minimum": 1, "maximum": 65535}]},
    {"name": "big", "type": "int"},
    {"name": "on", "type": "bool"},
    {"name": "ratio", "type": "double", "limits": [{"minimum": 0, "maximum": 1}]},
    {"name": "any-ratio", "type": "double"},
    {"name": "theme", "type": "string", "default": "light", "limits": [{"choices": ["light", "dark"]}]},
    {"name": "code", "type": "string", "limits": [{"pattern": "[A-Z]{3}|x"}, {"minimumCount": 1, "maximumCount": 3}]},
    {"name": "text", "type": "string"},
    {"name": "blob", "type": "data", "limits": [{"minimumCount": 2, "maximumCount": 4}]},
    {"name": "day", "type": "date", "limits": [{"minimum": "2026-01-01T00:00:00.000Z"}]},
    {"name": "home", "type": "url"},
    {"name": "id", "type": "uuid"},
    {"name": "sizes", "type": "array<int>", "limits": [{"minimumCount": 1, "maximumCount": 2}]},
    {"name": "weights", "type": "dict<double>"},
    {"name": "days", "type": "array<date>"},
    {"name": "layout", "type": "json"},
    {"name": "token", "type": "secret"},
    {"name": "old", "type": "any", "deprecated": "use port", "summary": "what it was"},
]

GOOD = {
    "port": "65535", "big": "18446744073709551615", "on": "yes", "ratio": "0.5", "any-ratio": "nan", "theme": "dark",
    "code": "x", "text": "<secret: 3 bytes>", "blob": "AAEC", "day": "2026-01-31", "home": "https://example.org/a",
    "id": "6F9619FF-8B86-D011-B42D-00C04FC964FF", "sizes": "[1]", "weights": '{"a": 1, "b": 2.5}',
    "days": '["2026-01-31"]', "layout": '{"a": [null]}', "old": "anything",
}

# The value as an export has it, which is not as declared.
BAD = {
    "port": [0, 65536, "80", 1.5, None, True], "big": ["1", 0.5], "on": ["true", 1], "ratio": [1.5, -1, {"$double": "nan"}],
    "any-ratio": ["nan", {"$double": "many"}], "theme": ["blue", 1], "code": ["AB", "xx", "ABCD", "", "yx"],
    "text": [1, {"$string": 1}], "blob": ["AAEC", {"$data": ""}, {"$data": "AAECAwQFBgcI"}], "day": ["2026-01-31", {"$data": "AAEC"}], "home": ["https://x"],
    "id": [{"$uuid": 1}], "sizes": [[], [1, 2, 3], ["1"], 1], "weights": [{"a": "1"}, []],
    "days": [["2026-01-31"]], "token": ["hunter2", {"$string": "x"}, 1],
}


class SchemaTests(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="coffer-schema-")
        self.addCleanup(self.folder.cleanup)
        file = pathlib.Path(self.folder.name) / "declarations.json"
        file.write_text(json.dumps([{"collection": "shop", **each} for each in DECLARATIONS]))
        self.prefs("schema", "load", str(file), "--application", "org.example.shop")

    def prefs(self, *arguments, input=""):
        environment = {"HOME": self.folder.name, "PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": self.folder.name}
        done = subprocess.run(
            [str(BIN / "prefs"), *arguments], env=environment, input=input, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def validator(self, *options):
        schema = json.loads(self.prefs("schema", "--format", "json-schema", *options))
        jsonschema.Draft202012Validator.check_schema(schema)
        return jsonschema.Draft202012Validator(schema)

    def fill(self):
        for key, text in GOOD.items():
            self.prefs("set", "shop/" + key, text)
        self.prefs("set", "shop/token", "--secret", "-", input="hunter2")

    def test_what_is_exported_is_valid(self):
        self.fill()
        for options in [], ["--reveal"]:
            self.validator("-c", "shop").validate(json.loads(self.prefs("export", "shop", *options)))
            self.validator().validate(json.loads(self.prefs("export", *options)))
        self.assertIn("hunter2", self.prefs("export", "--reveal"))

    def test_every_bad_value_is_refused(self):
        self.fill()
        good = json.loads(self.prefs("export"))
        validator = self.validator()
        own = self.validator("-c", "shop")
        for key, values in BAD.items():
            for value in values:
                with self.subTest(key=key, value=value):
                    bad = copy.deepcopy(good)
                    bad["shop"][key] = value
                    self.assertFalse(validator.is_valid(bad))
                    self.assertFalse(own.is_valid(bad["shop"]))

    def test_what_was_forced_into_the_store_is_refused(self):
        self.prefs("set", "shop/port", "--int", "0", "--force")
        self.assertFalse(self.validator().is_valid(json.loads(self.prefs("export"))))

    def test_a_key_that_nobody_declares_is_valid(self):
        self.prefs("set", "shop/unknown", "x", "--undeclared")
        self.validator().validate(json.loads(self.prefs("export")))

    def test_defaults_and_words_are_in_it(self):
        properties = json.loads(self.prefs("schema", "--format", "json-schema", "-c", "shop"))["properties"]
        self.assertEqual(properties["port"]["default"], 8080)
        self.assertTrue(properties["old"]["deprecated"])
        self.assertEqual(properties["old"]["description"], "what it was")
        self.assertEqual(properties["code"]["anyOf"][0]["allOf"][0]["pattern"], "^(?:[A-Z]{3}|x)$")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, default=BIN)
    known, rest = parser.parse_known_args()
    BIN = known.bin.resolve()
    unittest.main(argv=[sys.argv[0], *rest])
