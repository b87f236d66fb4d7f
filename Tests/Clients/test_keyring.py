#!/usr/bin/env python3
"""The backend for Python's keyring, with keyring's own tests and with programs that use keyring.

    test_keyring.py --bin DIR

DIR holds the built prefs and prefs-keyring. The python3 that runs this has coffer_keyring and the packages of requirements.txt; COFFER_PACKAGES is
a folder with the wheels of the packages, and with an environment, venv, that has no keyring.
"""

from __future__ import annotations

import base64
import concurrent.futures
import http.server
import importlib.metadata
import os
import pathlib
import re
import shlex
import subprocess
import sys
import threading
import traceback
from unittest import mock

import coffer_keyring
from coffer_keyring import Keyring
from keyring.errors import InitError, KeyringError, KeyringLocked, PasswordDeleteError, PasswordSetError

from case import PATIENCE, ROOT, ClientsTestCase, main

PACKAGES = pathlib.Path(os.environ.get("COFFER_PACKAGES", ""))
BIN = pathlib.Path(sys.executable).parent
SECRET = "s3cret/päß"
ITEM = "application=Python%20keyring%20library&service=service&username=ada#"
TEXTS = ["", "a", "a/b", "/", "&", "=", "#", "%", "%41", "%26", "a&b", "&username=", "#0123456789abcdef"]
TEXTS += ["\\", "\n", "\x01\x1f\x7f", "pä", "pa\u0308", "\u2028", "\U0001f511", "ab" * 5000, " ", "-v"]


class KeyringTestCase(ClientsTestCase):
    def setUp(self) -> None:
        super().setUp()
        (self.folder / "tmp").mkdir()
        self.environment |= {
            "PREFS_STORE": str(self.work / "store"), "PREFS_KEY_FILE": str(self.work / "key"), "TMPDIR": str(self.folder / "tmp"),
            "PYTHON_KEYRING_BACKEND": "coffer_keyring.Keyring", "PIP_CONFIG_FILE": os.devnull,
        }
        self.use(self.environment)
        self.prefs("init")
        self.keyring = Keyring()

    def use(self, variables: dict[str, str]) -> None:
        """For what this process starts."""
        patch = mock.patch.dict(os.environ, variables, clear=True)
        patch.start()
        self.addCleanup(patch.stop)

    def keys(self, collection: str = "keyring") -> list[str]:
        return self.prefs("list", "-0", collection).split("\0")[:-1]

    def key(self) -> str:
        """That of the only item."""
        (key,) = self.keys()
        return key

    def seal(self) -> None:
        """With a vault that is locked at the end of the test, too."""
        self.prefs("seal", "keyring", "--vault-key-file", "vault")
        self.addCleanup(self.prefs, "lock")

    def stand_in(self, script: str) -> None:
        """A program prefs that runs this before, or in place of, the real one."""
        (self.folder / "bin").mkdir(exist_ok=True)
        program = self.folder / "bin/prefs"
        program.write_text(f'#!/bin/sh\n{script}\nexec {shlex.quote(str(self.bin))}/prefs "$@"\n')
        program.chmod(0o700)
        self.environment["PATH"] = f"{program.parent}:{self.environment['PATH']}"
        self.use(self.environment)


class TheBackend(KeyringTestCase):
    def run_tests_of_keyring(self) -> None:
        (self.work / "test_it.py").write_text("""
from coffer_keyring import Keyring
from keyring.testing.backend import BackendBasicTests

class TestIt(BackendBasicTests):
    def init_keyring(self):
        return Keyring()
""")
        printed = self.run_program(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py").stdout.decode()
        self.assertRegex(printed, r"(?m)^1[4-9] passed in [0-9.]+s")

    def test_passes_the_tests_of_keyring(self) -> None:
        self.run_tests_of_keyring()

    def test_passes_them_in_a_sealed_collection(self) -> None:
        self.prefs("set", "-c", "keyring", "other", "text")
        self.seal()
        self.environment["PREFS_VAULT_KEY_FILE"] = str(self.work / "vault")
        self.run_tests_of_keyring()

    def test_is_found_by_the_program_keyring_which_sets_gets_and_deletes(self) -> None:
        del self.environment["PYTHON_KEYRING_BACKEND"]
        self.assertIn("coffer_keyring.Keyring (priority: 5.5)", self.run_program("keyring", "--list-backends").stdout.decode())
        self.run_program("keyring", "set", "https://example.org/", "ada", text=SECRET)
        self.assertEqual(self.run_program("keyring", "get", "https://example.org/", "ada").stdout.decode(), f"{SECRET}\n")
        self.assertEqual(
            self.run_program("keyring", "--mode", "creds", "get", "https://example.org/").stdout.decode(), f"ada\n{SECRET}\n")
        self.assertRegex(self.key(), "^application=Python%20keyring%20library&service=https://example.org/&username=ada#[0-9a-f]{16}$")
        self.assertEqual(self.prefs("get", "-n", "-c", "keyring", self.key()), SECRET)
        self.assertEqual(self.prefs("type", "-c", "keyring", self.key()), "secret\n")
        self.run_program("keyring", "del", "https://example.org/", "ada")
        self.run_program("keyring", "get", "https://example.org/", "ada", code=1)
        self.assertEqual(self.prefs("list", "keyring", code=3), "")

    def test_has_one_password_for_each_service_and_username(self) -> None:
        """The pairs of texts that look alike most, each through a process of its own."""
        pairs = [(service, name) for service in TEXTS for name in TEXTS if "" in (service, name) or service == name]
        pairs += [("a", "b&c"), ("a&username=b", "c"), ("a", "b#c"), ("a#b", "c"), ("a%", "26b"), ("a", "%26b"), ("ab", "c"), ("a", "bc")]
        with concurrent.futures.ThreadPoolExecutor(4) as pool, self.assertWarns(DeprecationWarning):
            list(pool.map(lambda pair: self.keyring.set_password(*pair, repr(pair)), pairs))
            self.assertEqual(list(pool.map(lambda pair: self.keyring.get_password(*pair), pairs)), [repr(pair) for pair in pairs])
        self.assertEqual(len(self.keys()), len(pairs))
        for service in {service for service, _ in pairs}:
            self.assertIn((service, self.keyring.get_credential(service, None).username), pairs)

    def test_has_the_user_of_a_service_whose_password_was_set_last(self) -> None:
        for number, username in enumerate(("ada", "bob", "ada")):
            self.keyring.set_password("service", username, username * number)
        self.assertEqual(self.keyring.get_credential("service", None).username, "ada")
        self.assertEqual(self.keyring.get_credential("service", "bob").password, "bob")
        self.assertIsNone(self.keyring.get_credential("service", "eve"))

    def test_replaces_an_item_in_place_and_removes_others_of_its_name(self) -> None:
        """Two programs that have set one at the same moment leave two."""
        former = ["service=service&username=ada#0000000000000001", f"{ITEM}0000000000000003"]
        former.append("service=service&username=ada&xdg:schema=x#0000000000000002")
        apart = ["service=service&username=ada&x=y#0000000000000004", "service=service&username=adam#0000000000000005"]
        for number, key in enumerate(former + apart):
            self.prefs("set", "-c", "keyring", "--secret", key, "-", text=str(number))
        self.assertEqual(self.keyring.get_password("service", "ada"), "2")
        self.keyring.set_password("service", "ada", SECRET)
        self.assertEqual(set(self.keys()), {former[2], *apart})
        self.assertEqual(self.keyring.get_password("service", "ada"), SECRET)
        for key in former[:2]:
            self.prefs("set", "-c", "keyring", "--secret", key, "-", text="another")
        self.assertEqual(self.keyring.get_password("service", "ada"), "another")
        self.keyring.delete_password("service", "ada")
        self.assertEqual(set(self.keys()), set(apart))

    def test_of_two_that_are_set_at_once_the_later_one_stays(self) -> None:
        """Another program sets the same password before a certain step of this one: list, status, set, list; or list, set, with an item."""
        calls, other, newer = self.folder / "calls", f"{ITEM}0000000000000001", f"{ITEM}0000000000000002"
        for present, step, key, wanted, kept in (
            ([], 3, other, SECRET, None), ([], 4, other, "other", other), ([other], 2, other, SECRET, other),
            ([other, newer], 2, other, SECRET, other),
        ):
            with self.subTest(present=present, step=step):
                for former in present:
                    self.prefs("set", "-c", "keyring", "--secret", former, "-", text="former")
                calls.write_text("")
                command = f"{shlex.quote(str(self.bin))}/prefs set -c keyring --secret {shlex.quote(key)} -"
                self.stand_in(f"echo >>{calls}; [ $(wc -l <{calls}) != {step} ] || printf other | {command}")
                self.keyring.set_password("service", "ada", SECRET)
                self.assertGreaterEqual(len(calls.read_text()), step)
                if kept:
                    self.assertEqual(self.key(), kept)
                else:
                    self.assertNotEqual(self.key(), key)
                self.assertEqual(self.keyring.get_password("service", "ada"), wanted)
                self.keyring.delete_password("service", "ada")

    def test_keeps_any_password(self) -> None:
        for password in ("", "\0", "line\nline\r\n", "a\u0308", "\U0001f511", "\ufffe", "x" * 20_000_000, '{"$secret":"x"}', "<secret: 6 bytes>"):
            self.keyring.set_password("service", "ada", password)
            self.assertEqual(self.keyring.get_password("service", "ada"), password)
            self.assertEqual(self.prefs("type", "-c", "keyring", self.key()), "secret\n" if password else "string\n")

    def test_refuses_what_cannot_be_kept_and_changes_nothing(self) -> None:
        self.keyring.set_password("service", "ada", SECRET)
        for password in ("\ud800", "x" * 34_000_000):
            with self.assertRaisesRegex(PasswordSetError, "surrogate|33554432 bytes"):
                self.keyring.set_password("service", "ada", password)
        self.assertEqual(self.keyring.get_password("service", "ada"), SECRET)
        for service, username in (("a\0b", "ada"), ("a", "\0"), ("\udc00", "ada"), ("a\ud83d", "\udd11b")):
            with self.assertRaisesRegex(PasswordSetError, r"U\+0000"):
                self.keyring.set_password(service, username, "x")
            with self.assertRaisesRegex(PasswordDeleteError, r"U\+0000"):
                self.keyring.delete_password(service, username)
            with self.assertRaisesRegex(KeyringError, r"U\+0000"):
                self.keyring.get_credential(service, username)
        self.assertTrue(self.key().startswith(ITEM))

    def test_ignores_other_settings_and_says_what_is_no_password(self) -> None:
        digits = "0123456789abcdef"
        for name in (
            "other", "service=service&username=a", f"service=service&username=a b#{digits}", f"service=service&username=%61#{digits}",
            f"service=service&username=a%3D#{digits}", f"service=service&username=a%2#{digits}", f"service=service&username=a#{digits.upper()}",
            f"service=service&username=a#{digits}0", f"username=a&service=service#{digits}", f"service=service#{digits}",
            f"application=other&service=service&username=a#{digits}", f"service=service&username=a&z=#{digits}",
        ):
            self.prefs("set", "-c", "keyring", name, "text")
        self.assertIsNone(self.keyring.get_credential("service", None))
        for text in (SECRET, "<secret: 6 bytes>"):
            self.prefs("set", "-c", "keyring", ITEM + digits, text)
            self.assertEqual(self.keyring.get_password("service", "ada"), text)
        for command in (["--secret", "--hex", ITEM + digits, "-"], ["--int", ITEM + digits, "-"]):
            self.prefs("set", "-c", "keyring", *command, text="7700ff" if "--hex" in command else "7700")
            with self.assertRaisesRegex(KeyringError, f"{ITEM}{digits} in the collection keyring is not text") as caught:
                self.keyring.get_password("service", "ada")
            self.assertNotIn("7700", str(caught.exception))

    def test_goes_by_the_properties_of_keyring(self) -> None:
        self.prefs("init", "--store", "other store", "--key-file", "other key")
        self.use(self.environment | {
            "KEYRING_PROPERTY_PREFS_STORE": str(self.work / "other store"), "KEYRING_PROPERTY_PREFS_KEY_FILE": str(self.work / "other key"),
            "KEYRING_PROPERTY_PREFS_COLLECTION": "tokens",
        })
        Keyring().set_password("service", "ada", SECRET)
        self.assertIsNone(self.keyring.get_password("service", "ada"))
        other = ["--store", "other store", "--key-file", "other key"]
        (key,) = self.prefs("list", *other, "tokens").splitlines()
        self.assertEqual(self.prefs("get", "-n", *other, "-c", "tokens", key), SECRET)

    def test_lets_programs_use_it_at_once(self) -> None:
        """Each of six processes sets, reads and deletes ten of its own, and sets one that all share."""
        program = """
import sys
from coffer_keyring import Keyring
ring, name = Keyring(), sys.argv[1]
for number in range(10):
    ring.set_password(name, str(number), name * number)
    ring.set_password("shared", "ada", name)
    assert ring.get_password(name, str(number)) == name * number
    assert ring.get_password("shared", "ada") is not None
    if number % 2:
        ring.delete_password(name, str(number))
"""
        processes = [subprocess.Popen([sys.executable, "-c", program, name], stderr=subprocess.PIPE) for name in "abcdef"]
        for process in processes:
            _, errors = process.communicate(timeout=PATIENCE)
            self.assertEqual((process.returncode, errors.decode()), (0, ""))
        self.assertEqual(len(self.keys()), 6 * 5 + 1)
        self.assertIn(self.keyring.get_password("shared", "ada"), "abcdef")


class BesideTheSecretService(KeyringTestCase):
    """With keyring's own backend for the Secret Service, on a bus of its own, and `prefs keyring` as the service."""

    PROGRAM = """
import subprocess
from coffer_keyring import Keyring
from keyring.backends.SecretService import Keyring as BusKeyring
from keyring.errors import KeyringLocked, PasswordDeleteError

ours, bus = Keyring(), BusKeyring()
both = ((ours, bus), (bus, ours))

def keys():
    return subprocess.run(["prefs", "list", "keyring"], capture_output=True, text=True).stdout.splitlines()

def label(attributes):
    words = [word for pair in attributes.items() for word in pair]
    done = subprocess.run(["secret-tool", "search", *words], capture_output=True, text=True)
    return [line for line in done.stdout.splitlines() if line.startswith("label")][0]
"""

    def exchange(self, code: str) -> None:
        (self.work / "exchange.py").write_text(self.PROGRAM + code)
        # It ends with the bus, too.
        self.run_program("dbus-run-session", "--", "sh", "-euc", f"""
            prefs keyring &
            trap 'kill $!; wait $! || true' EXIT
            gdbus wait --session --timeout {PATIENCE} org.freedesktop.secrets
            {shlex.quote(sys.executable)} exchange.py""")

    def test_both_find_replace_and_delete_the_same_items(self) -> None:
        self.exchange(f"""
pairs = [("https://example.org/", "ada"), ("&username=", "a&b=c#% d"), ("%41\\n\\x01\\x7f", "pä\\u2028\U0001f511"), ("ab" * 500, "-v")]
for one, other in both:
    for service, username in pairs:
        one.set_password(service, username, "one")
        (key,) = keys()
        assert other.get_password(service, username) == "one", service
        for password in ("{SECRET}", "", "two\\n"):
            other.set_password(service, username, password)
            assert keys() == [key], service
            found = one.get_credential(service, None), other.get_credential(service, None)
            assert [(it.username, it.password) for it in found] == [(username, password)] * 2, found
        other.delete_password(service, username)
        assert [it.get_password(service, username) for it in both[0]] == [None, None]
        for keyring in both[0]:
            try:
                keyring.delete_password(service, username)
            except PasswordDeleteError:
                continue
            raise AssertionError("it has deleted what is not there")
for one, other in both:
    for number, username in enumerate(("bob", "ada", "eve", "ada")):
        one.set_password("service", username, username * number)
    assert [it.get_credential("service", None).username for it in both[0]] == ["ada", "ada"]
    for username in ("bob", "ada", "eve"):
        other.delete_password("service", username)
""")

    def test_shows_labels_as_its_readme_says(self) -> None:
        self.exchange("""
bus.set_password("service", "ada", "one")
assert label({"service": "service"}) == "label = Password for 'ada' on 'service'"
ours.set_password("service", "ada", "two")
assert label({"service": "service"}) == "label = "
subprocess.run(["secret-tool", "store", "--label=One", "service", "other", "username", "ada"], input=b"of secret-tool", check=True)
assert [it.get_password("other", "ada") for it in both[0]] == ["of secret-tool"] * 2
ours.set_password("other", "ada", "three")
assert [it.get_password("other", "ada") for it in both[0]] == ["three"] * 2
assert len(keys()) == 2
""")

    def test_both_seal_the_collection_before_its_first_password(self) -> None:
        self.prefs("set", "other/name", "text")
        self.prefs("seal", "other", "--vault-key-file", "vault")
        self.addCleanup(self.prefs, "lock")
        self.environment["PREFS_VAULT_KEY_FILE"] = str(self.work / "vault")
        self.exchange("""
for one, other in both:
    one.set_password("service", "ada", "one")
    status = subprocess.run(["prefs", "list", "--json", "keyring"], capture_output=True, text=True).stdout
    assert '"sealed"' in status, status
    assert other.get_password("service", "ada") == "one"
    other.delete_password("service", "ada")
""")


class WhatGoesWrong(KeyringTestCase):
    def test_says_how_to_unlock_the_vault(self) -> None:
        self.keyring.set_password("service", "ada", SECRET)
        self.seal()
        for call in (
            lambda: self.keyring.get_password("service", "ada"), lambda: self.keyring.get_credential("service", None),
            lambda: self.keyring.set_password("service", "ada", "another"), lambda: self.keyring.set_password("service", "bob", "another"),
        ):
            with self.assertRaises(KeyringLocked) as caught:
                call()
            self.assertNotRegex(str(caught.exception), "s3cret|another")
            command = shlex.split(str(caught.exception).partition("Run: ")[2])
        self.assertIsNone(self.keyring.get_password("service", "bob"))
        self.assertIn(b"KeyringLocked: The collection", self.run_program("keyring", "get", "service", "ada", code=1).stderr)
        self.run_program(*command, "--vault-key-file", "vault")
        self.assertEqual(self.keyring.get_password("service", "ada"), SECRET)
        self.keyring.set_password("service", "ada", "another")
        self.prefs("lock")
        self.assertRaises(KeyringLocked, self.keyring.get_password, "service", "ada")
        self.use(self.environment | {"PREFS_VAULT_KEY_FILE": str(self.work / "vault")})
        self.assertEqual(self.keyring.get_password("service", "ada"), "another")

    def test_a_first_password_waits_for_the_vault(self) -> None:
        self.prefs("set", "other/name", "text")
        self.prefs("seal", "other", "--vault-key-file", "vault")
        self.addCleanup(self.prefs, "lock")
        with self.assertRaises(KeyringLocked) as caught:
            self.keyring.set_password("service", "ada", SECRET)
        self.prefs("list", "keyring", code=3)
        self.run_program(*shlex.split(str(caught.exception).partition("Run: ")[2]), "--vault-key-file", "vault")
        self.keyring.set_password("service", "ada", SECRET)
        self.prefs("lock")
        self.assertRaises(KeyringLocked, self.keyring.get_password, "service", "ada")

    def test_says_how_to_create_a_store_that_is_missing(self) -> None:
        missing = self.keyring.with_properties(prefs_store=str(self.work / "no store"), prefs_key_file=str(self.work / "its key"))
        for call in (missing.get_password, missing.delete_password, lambda *pair: missing.set_password(*pair, SECRET), missing.get_credential):
            with self.assertRaisesRegex(InitError, "There is no store") as caught:
                call("service", "ada")
        self.assertFalse((self.work / "no store").exists())
        self.run_program(*shlex.split(str(caught.exception).partition("Run: ")[2]))
        missing.set_password("service", "ada", SECRET)
        self.assertEqual(missing.get_password("service", "ada"), SECRET)

    def test_says_which_key_is_wrong(self) -> None:
        self.keyring.set_password("service", "ada", SECRET)
        self.prefs("init", "--store", "other", "--key-file", "other key")
        for name, words in (("other key", "wrong key: the key file .*other key opens no slot"), ("no key", "no key cannot be read")):
            with self.assertRaisesRegex(InitError, words):
                self.keyring.with_properties(prefs_key_file=str(self.work / name)).get_password("service", "ada")
        with self.assertRaises(InitError) as caught:
            self.keyring.with_properties(prefs_key_file=str(self.work / "other key")).set_password("service", "ada", "another")
        self.assertNotIn("another", str(caught.exception))
        self.assertEqual(self.keyring.get_password("service", "ada"), SECRET)

    def test_does_not_ask_for_a_passphrase(self) -> None:
        del self.environment["PREFS_KEY_FILE"]
        self.environment["PREFS_STORE"] = str(self.work / "other")
        self.use(self.environment)
        self.prefs("init", "--passphrase-fd", "0", text="passphrase")
        with self.assertRaisesRegex(InitError, "needs a passphrase"):
            self.keyring.get_password("service", "ada")

    def test_without_prefs_keyring_uses_another_backend(self) -> None:
        del self.environment["PYTHON_KEYRING_BACKEND"]
        self.environment["PATH"] = f"{BIN}:/usr/bin:/bin"
        self.use(self.environment)
        with self.assertRaisesRegex(RuntimeError, "prefs is not on the PATH"):
            Keyring.priority
        self.assertNotIn(b"coffer", self.run_program("keyring", "--list-backends").stdout)
        with self.assertRaisesRegex(InitError, "prefs cannot be started"):
            self.keyring.set_password("service", "ada", SECRET)

    def test_a_child_that_is_killed_is_an_error(self) -> None:
        """In the midst of its answer, too."""
        self.keyring.set_password("service", "ada", SECRET)
        self.stand_in(f"""printf '%s\\n' '{{"serve":1}}'; printf %s '{{"id":0,"ok":{{"value":"{SECRET}'; kill -9 $$""")
        for call in (self.keyring.get_password, lambda *pair: self.keyring.set_password(*pair, SECRET)):
            with self.assertRaisesRegex(InitError, "code -9; a change may have been made") as caught:
                call("service", "ada")
            self.assertNotIn(SECRET, "".join(traceback.format_exception(caught.exception)))

    def test_another_program_named_prefs_is_an_error(self) -> None:
        for line in ("Usage: prefs FILE", '{"serve":2,"program":"prefs 9"}'):
            with self.subTest(line):
                self.stand_in(f"echo {shlex.quote(line)}; exit 0")
                with self.assertRaisesRegex(InitError, "is not Coffer's, or has no version 1"):
                    self.keyring.get_password("service", "ada")

    def test_passwords_are_in_no_argument_variable_or_file(self) -> None:
        record = self.folder / "record"
        self.stand_in(f'{{ printf "%s\\n" "$@"; env; }} >>{shlex.quote(str(record))}')
        self.keyring.set_password("service", "ada", SECRET)
        self.assertEqual(self.keyring.get_credential("service", None).password, SECRET)
        self.run_program("keyring", "get", "service", "ada")
        self.keyring.delete_password("service", "ada")
        self.keyring.set_password("service", "ada", SECRET)
        self.assertEqual(record.read_text().count("\nPREFS_STORE="), 14)
        for file in self.folder.rglob("*"):
            if file.is_file():
                self.assertNotIn(SECRET.encode(), file.read_bytes(), file)
        self.assertEqual(list((self.folder / "tmp").iterdir()), [])


class Index(http.server.BaseHTTPRequestHandler):
    """An index of packages for one user: takes uploads, and serves them."""

    # requests, of pip and twine, encodes them as Latin-1.
    allowed = f"Basic {base64.b64encode(f'ada:{SECRET}'.encode('latin-1')).decode()}"
    files: dict[str, bytes] = {}

    def allows(self) -> bool:
        if self.headers["Authorization"] == self.allowed:
            return True
        self.answer(401, b"", ("WWW-Authenticate", 'Basic realm="packages"'))
        return False

    def answer(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in (*headers, ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.allows():
            boundary = re.search("boundary=(.*)", self.headers["Content-Type"])[1].encode()
            for part in body.split(b"--" + boundary):
                head, _, content = part.partition(b"\r\n\r\n")
                if name := re.search(rb'filename="(.*?)"', head):
                    self.files[name[1].decode()] = content.removesuffix(b"\r\n")
            self.answer(200, b"")

    def do_GET(self) -> None:
        if self.allows():
            name = self.path.rpartition("/")[2]
            links = "".join(f'<a href="/files/{name}">{name}</a>' for name in self.files)
            kind = "application/octet-stream" if name else "text/html"
            self.answer(200, self.files[name] if name else links.encode(), ("Content-Type", kind))

    def log_message(self, *_: object) -> None:
        pass


class ProgramsThatUseKeyring(KeyringTestCase):
    def setUp(self) -> None:
        super().setUp()
        del self.environment["PYTHON_KEYRING_BACKEND"]
        Index.files = {}
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.place = f"127.0.0.1:{server.server_port}"
        (self.wheel,) = PACKAGES.glob("coffer_keyring-*.whl")
        self.download = ["-m", "pip", "download", "--no-input", "--no-deps", "--no-cache-dir", "--disable-pip-version-check"]
        self.download += ["--index-url", f"http://ada@{self.place}/simple/", "coffer-keyring"]

    def test_twine_uploads_a_package_and_pip_gets_it(self) -> None:
        """pip imports keyring; and, from an environment without it, starts the program keyring."""
        upload = ["twine", "upload", "--non-interactive", "--disable-progress-bar", "--repository-url", f"http://{self.place}/upload/"]
        self.run_program(*upload, "--username", "ada", str(self.wheel), code=1)
        self.keyring.set_password(f"http://{self.place}/upload/", "ada", SECRET)
        for username in (["--username", "ada"], []):
            Index.files = {}
            self.run_program(*upload, *username, str(self.wheel))
            self.assertEqual(Index.files, {self.wheel.name: self.wheel.read_bytes()})
        for python, provider in ((sys.executable, "import"), (str(PACKAGES / "venv/bin/python3"), "subprocess")):
            self.environment["PIP_KEYRING_PROVIDER"] = provider
            self.run_program(python, *self.download, "--dest", provider, code=1)
            self.keyring.set_password(f"http://{self.place}/simple/", "ada", SECRET)
            self.run_program(python, *self.download, "--dest", provider)
            self.assertEqual((self.work / provider / self.wheel.name).read_bytes(), self.wheel.read_bytes())
            self.keyring.delete_password(f"http://{self.place}/simple/", "ada")

    def test_pip_says_why_it_has_no_password(self) -> None:
        self.keyring.set_password(f"http://{self.place}/simple/", "ada", SECRET)
        self.seal()
        self.environment["PIP_KEYRING_PROVIDER"] = "import"
        done = self.run_program(sys.executable, *self.download, code=1)
        self.assertIn(b"the vault is locked. Run: prefs unlock", done.stderr)


class ThePackage(KeyringTestCase):
    def test_does_what_the_readme_says(self) -> None:
        del self.environment["PYTHON_KEYRING_BACKEND"]
        code = """
from keyrings.alt.file import PlaintextKeyring
PlaintextKeyring().set_password("old.example.org", "ada", "s3cret")
PlaintextKeyring().set_password("päckages/simple", "o'neill", "correct\\nhorse")
"""
        self.run_program(sys.executable, "-c", code)
        file = self.folder / "home/.local/share/python_keyring/keyring_pass.cfg"
        before = file.read_text()
        tags = self.run_blocks(ROOT / "clients/python-keyring/README.md", {"py": f"{sys.executable} block{{}}.py"})
        self.assertEqual(tags, ["console", "sh", "text", "py", "text", "console", "py", "text", "py"])
        after = file.read_text()
        for section in before.strip().split("\n\n\n"):
            self.assertIn(section, after)
        code = """
from keyrings.alt.file import PlaintextKeyring
print(PlaintextKeyring().get_password("https://packages.example.org", "ada"))
"""
        self.assertEqual(self.run_program(sys.executable, "-c", code).stdout, b"s3cret\n")

    def test_is_the_installed_one(self) -> None:
        place = pathlib.Path(coffer_keyring.__file__)
        self.assertNotIn(ROOT / "clients", place.parents)
        self.assertTrue((place.parent / "py.typed").exists())
        (licence,) = place.parent.parent.glob("coffer_keyring-*.dist-info/licenses/LICENSE")
        self.assertEqual(licence.read_text(), (ROOT / "LICENSE").read_text())
        (entry,) = [entry for entry in importlib.metadata.entry_points(group="keyring.backends") if entry.name == "coffer"]
        self.assertIs(entry.load(), coffer_keyring)


if __name__ == "__main__":
    main()
