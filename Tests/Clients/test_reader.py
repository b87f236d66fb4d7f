#!/usr/bin/env python3
"""What a person has who installs coffer-reader: its README as it stands, the command line, and JSON that prefs takes.

    test_reader.py --bin DIR        (DIR holds the built prefs; the python3 that runs this has coffer_reader installed)
"""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import time
import unittest
import unittest.mock

import coffer_reader

from case import ROOT, ClientsTestCase, main

KEY = ("--key-file", "key")


class ReaderTestCase(ClientsTestCase):
    def reader(self, *arguments: str, **more) -> str:
        return self.run_program("coffer-reader", "store", *arguments, **more).stdout.decode()

    def refused(self, code: int, *arguments: str, **more) -> str:
        done = self.run_program("coffer-reader", *arguments, code=code, **more)
        self.assertEqual(done.stdout, b"")
        message = done.stderr.decode()
        self.assertRegex(message, r"\Acoffer-reader: \w[^\n]*\.\n\Z")
        return message


class TheReadme(ReaderTestCase):
    def test_does_what_it_says(self) -> None:
        page = ROOT / "clients/reader/README.md"
        self.assertEqual(
            self.run_blocks(page, {"python": "python3 block{}.py"}), ["console", "sh", "python", "text", "sh", "text", "sh", "text"])
        self.assertLessEqual(len((self.work / "block2.py").read_text().splitlines()), 11)
        self.assertTrue((self.work / "plain.db").read_bytes().startswith(b"SQLite format 3\0"))
        self.assertEqual(json.loads((self.work / "settings.json").read_text())["web"]["token"], {"$secret": "s3cret"})

    def test_is_of_the_installed_package(self) -> None:
        place = pathlib.Path(importlib.util.find_spec("coffer_reader").origin)
        self.assertNotIn(ROOT, place.parents)
        self.assertTrue((place.parent / "py.typed").exists())
        licences = list(place.parent.parent.glob("coffer_reader-*.dist-info/licenses/LICENSE"))
        self.assertEqual([file.read_text() for file in licences], [(ROOT / "LICENSE").read_text()])


class TheCommandLine(ReaderTestCase):
    def test_prints_what_prefs_prints(self) -> None:
        self.prefs("init")
        values = [
            ("text", "dark"), ("empty", ""), ("lines", "a\nb"), ("--int", "-5"), ("--double", "0.1"), ("--bool", "true"),
            ("--date", "2026-01-31T08:30:00.123Z"), ("--url", "https://example.org/?q=%20"),
            ("--uuid", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"), ("--array", '[1, 2.5, "é", {"b": null, "a": []}]'),
        ]
        for number, (kind, value) in enumerate(values):
            option = (kind,) if kind.startswith("--") else ()
            self.prefs("set", f"c/{number}", *option, "--", value)
        self.prefs("set", "c/data", "--data", "-", text="\0bytes")
        self.prefs("set", "--secret", "c/secret", "-", text="a secret")
        self.prefs("set", "-c", "c", "with/slashes/in", "it")
        for key in self.prefs("list", "c").splitlines():
            got = self.run_program("coffer-reader", "store", *KEY, f"c/{key}").stdout
            self.assertEqual(got, self.run_program("prefs", "get", f"c/{key}").stdout, key)
        self.assertNotIn("a secret", self.reader(*KEY) + self.reader(*KEY, "--json"))

    def test_prints_json_that_prefs_imports_to_an_equal_store(self) -> None:
        self.prefs("init")
        text = json.dumps({
            "": {"of the default collection": 1},
            "c": {
                "double": 1.0, "zero": -0.0, "nan": {"$double": "nan"}, "inf": {"$double": "-inf"}, "big": 2**64 - 1, "least": -(2**63),
                "date": {"$date": "2026-01-31T08:30:00.123Z"}, "finer": {"$date": 812_345_678.901_234_5}, "far": {"$date": -1e11},
                "data": {"$data": "AAEC/w=="}, "url": {"$url": "https://example.org"}, "relative": {"$url": ["b", "https://example.org/a/"]},
                "uuid": {"$uuid": "6BA7B810-9DAD-11D1-80B4-00C04FD430C8"}, "json": {"$json": {"a": [1, 2.5]}},
                "list": [None, {"$date": "2026-01-31T08:30:00.123Z"}], "looks": {"$dict": {"$date": "no date"}}, "text": "a\0é🗝",
                "secret": {"$secret": "s3cret"}, "bytes": {"$secret": {"$data": "/w=="}},
            },
        })
        self.prefs("import", "--format", "json", "-", text=text)
        self.prefs("env", "create", "c@next")
        self.prefs("set", "c@next/text", "other")
        (self.work / "all.json").write_text(self.reader(*KEY, "--json", "--reveal"))
        self.prefs("import", "--store", "copy", "--key-file", "copy.key", "all.json")
        self.environment["PREFS_STORE"], self.environment["PREFS_KEY_FILE"] = "copy", "copy.key"
        self.prefs("diff", "--with", "store", "--other-key-file", "key")

    def test_says_in_one_sentence_what_is_wrong(self) -> None:
        self.prefs("init")
        self.prefs("set", "web/port", "--int", "8080")
        self.prefs("set", "web/x/y", "1")
        self.prefs("set", "-c", "web/x", "y", "2")
        (self.work / "other.key").write_text("coffer-key-1:" + "5" * 64 + "\n")
        (self.work / "text").write_text("text\n")
        (self.work / "folder").mkdir()
        os.mkfifo(self.work / "pipe")
        (self.work / "damaged").write_bytes((self.work / "store").read_bytes()[:-4_096])
        for code, sentence, arguments in (
            (2, "web/x/y names several settings; say which with --collection.", ("store", *KEY, "web/x/y")),
            (3, "There is no web/nothing.", ("store", *KEY, "web/nothing")),
            (4, "There is no store at nowhere.", ("nowhere", *KEY)),
            (5, "No slot opens with this key file.", ("store", "--key-file", "other.key")),
            (5, "The store has no vault.", ("store", *KEY, "--vault-key-file", "key")),
            (6, "This is not a key file.", ("store", "--key-file", "text")),
            (6, "The key file nowhere cannot be read: No such file or directory.", ("store", "--key-file", "nowhere")),
            (6, "No passphrase can be read from descriptor 17: Bad file descriptor.", ("store", "--passphrase-fd", "17")),
            (6, "This is not a recovery key.", ("store", "--recovery-key-fd", "0")),
            (8, "This file is not a Coffer store.", ("text", *KEY)),
            (8, "folder is a folder, not a store.", ("folder", *KEY)),
            (8, "pipe is a pipe or a device, not a store.", ("pipe", *KEY)),
            (9, "text already exists.", ("store", *KEY, "-o", "text")),
        ):
            with self.subTest(code=code, arguments=arguments):
                self.assertEqual(self.refused(code, *arguments), f"coffer-reader: {sentence}\n")
        self.assertIn("The store is damaged: page ", self.refused(7, "damaged", *KEY))
        self.assertEqual(self.reader(*KEY, "-c", "web/x", "y"), "2\n")

    def test_reads_a_passphrase_from_a_descriptor(self) -> None:
        self.run_program("prefs", "init", "--passphrase-fd", "0", text="correct horse")
        self.prefs("set", "a/b", "c", "--passphrase-fd", "0", text="correct horse")
        self.assertEqual(self.reader("--passphrase-fd", "0", "a/b", text="correct horse\n"), "c\n")
        self.assertIn("No slot opens", self.refused(5, "store", "--passphrase-fd", "0", text="wrong"))

    def test_opens_sealed_values_with_a_key_of_the_vault(self) -> None:
        self.prefs("init")
        self.prefs("set", "--secret", "tokens/github", "-", text="s3cret")
        self.prefs("seal", "tokens", "--vault-key-file", "vault.key")
        self.assertEqual(self.reader(*KEY), "tokens/github\t<sealed>\n")
        self.assertEqual(self.reader(*KEY, "--vault-key-file", "vault.key", "tokens/github"), "s3cret\n")
        self.assertIn("sealed", self.refused(6, "store", *KEY, "tokens/github"))

    def test_ends_quietly_if_its_reader_has_enough(self) -> None:
        self.prefs("init")
        self.prefs("import", "-c", "many", "--format", "json", "-", text=json.dumps({f"{n}": "x" * 100 for n in range(2_000)}))
        done = self.run_program("sh", "-c", "coffer-reader store --key-file key | head -n 1; echo done")
        self.assertEqual((done.stdout.splitlines()[1], done.stderr), (b"done", b""))


class TheModule(ReaderTestCase):
    def test_shows_no_secret_unless_it_is_asked_for(self) -> None:
        self.prefs("init")
        self.prefs("set", "--secret", "web/token", "-", text="s3cret")
        settings = coffer_reader.read(self.work / "store", coffer_reader.KeyFile.read(self.work / "key"))
        item = settings.item("web", "token")
        for shown in (repr(item), str(item), repr(item.value), f"{item.value}", repr(settings), repr(list(settings.items()))):
            self.assertNotIn("s3cret", shown)
        self.assertEqual(item.value.text, "s3cret")
        with self.assertRaisesRegex(coffer_reader.KeyMissing, "There is no web/other."):
            settings.item("web", "other")
        self.assertIsNone(settings.value("nowhere", "key"))

    def test_leaves_out_what_has_expired(self) -> None:
        self.prefs("init")
        self.prefs("set", "a/later", "x", "--expires-in", "2h")
        self.prefs("set", "a/soon", "x", "--expires-in", "1h")
        settings = coffer_reader.read(self.work / "store", coffer_reader.KeyFile.read(self.work / "key"))
        now = time.time()
        for hours, expected in ((0, ["later", "soon"]), (1, ["later"]), (2, [])):
            with unittest.mock.patch("coffer_reader.tables.time.time", return_value=now + hours * 3_600):
                self.assertEqual([item.key for item in settings.items("a")], expected)


if __name__ == "__main__":
    main()
