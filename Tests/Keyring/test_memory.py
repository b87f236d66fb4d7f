"""What the memory of a locked `prefs keyring` holds, read from outside as root reads it."""

from __future__ import annotations

import os
import pathlib
import sys
import unittest

from case import wait_until
from services import COLLECTION, ITEM, PROPERTIES, ROOT, SERVICE, Prefs

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Memory"))

import secretstorage
from memory import find, keys_of_vault, mappings

from coffer_reader.keys import KeyFile

MAIN = f"{ROOT}/collection/keyring"


def keys_of_the_vault(peer: Prefs) -> dict[str, bytes]:
    """What opens the vault, and is in the memory of a program that has it open."""
    copy = peer.work / "copy.coffer"
    peer.prefs("backup", str(copy))
    found = keys_of_vault(copy, KeyFile.read(peer.home / ".config/prefs/key"), KeyFile.read(peer.key))
    text = peer.key.read_bytes().strip()
    return {**found, "key file": text, "bytes of the key file": KeyFile.parse(text).material}


@unittest.skipIf(os.geteuid() != 0, "the service forbids all but root to read its memory")
class Memory(unittest.TestCase):
    def setUp(self) -> None:
        self.peer = Prefs()
        self.addCleanup(self.peer.close)
        self.connection = self.peer.connect()
        self.secrets: dict[str, bytes] = {}

    def secret(self, name: str, repetitions: int = 1) -> bytes:
        self.secrets[name] = f"{name}, {os.urandom(16).hex()}".encode()
        return self.secrets[name] * repetitions

    def call(self, path: str, *arguments):
        return self.peer.call(self.connection, path, *arguments)

    def use(self) -> None:
        """Stores secrets and reads them, in both kinds of session, and by other programs."""
        agreed = secretstorage.get_default_collection(self.connection)
        # One byte, a page, and more than a socket takes at once.
        for repetitions in (1, 100, 10_000):
            secret = self.secret(f"agreed {repetitions}", repetitions)
            item = agreed.create_item("agreed", {"k": f"agreed {repetitions}"}, secret)
            self.assertEqual(item.get_secret(), secret)
            item.set_secret(secret)
            self.assertEqual(item.get_secret(), secret)
        _, session = self.call(ROOT, SERVICE, "OpenSession", "sv", "plain", ("s", ""))
        for repetitions in (1, 100, 10_000):
            secret = (session, b"", self.secret(f"plain {repetitions}", repetitions), "text/plain")
            properties = {f"{ITEM}.Label": ("s", "plain"), f"{ITEM}.Attributes": ("a{ss}", {"k": f"plain {repetitions}"})}
            path, _ = self.call(MAIN, COLLECTION, "CreateItem", "a{sv}(oayays)b", properties, secret, False)
            self.assertEqual(self.call(path, ITEM, "GetSecret", "o", session)[0][2], secret[2])
            self.call(path, ITEM, "SetSecret", "(oayays)", secret)
            self.assertEqual(self.call(ROOT, SERVICE, "GetSecrets", "aoo", [path], session)[0][path][2], secret[2])
        self.peer.run("secret-tool", "store", "--label=tool", "k", "tool", text=self.secret("tool"))
        self.assertEqual(self.peer.run("secret-tool", "lookup", "k", "tool").stdout, self.secrets["tool"])
        key = str(self.peer.key)
        self.peer.prefs("set", "--secret", "keyring/by-hand", "-", text=self.secret("prefs"), PREFS_VAULT_KEY_FILE=key)
        self.assertEqual(self.peer.run("secret-tool", "lookup", "key", "by-hand").stdout, self.secrets["prefs"])

    def wait_until_locked(self) -> None:
        wait_until(lambda: self.call(MAIN, PROPERTIES, "Get", "ss", COLLECTION, "Locked")[0][1], "it is not locked")

    def check(self, lock, *options: str) -> None:
        service = self.peer.serve(*options)
        self.use()
        keys = keys_of_the_vault(self.peer)
        # What follows could not fail if the search could not find.
        self.assertTrue(find(service.pid, {"key": keys["coffer v1 sealed value"]}), "the unlocked vault's key is not in memory")
        lock()
        self.wait_until_locked()
        self.assertGreater(sum(len(mapping.contents) for mapping in mappings(service.pid)), 1 << 20)
        self.assertEqual(list(map(str, find(service.pid, {**self.secrets, **keys}))), [])
        self.peer.unlock()
        self.assertEqual(self.peer.run("secret-tool", "lookup", "k", "tool").stdout, self.secrets["tool"])

    def test_a_client_that_locks_the_service_leaves_no_secret_and_no_key_in_memory(self) -> None:
        self.check(lambda: self.call(ROOT, SERVICE, "LockService"))

    def test_prefs_lock_leaves_no_secret_and_no_key_in_memory(self) -> None:
        self.check(lambda: self.peer.prefs("lock"))

    def test_many_secrets_in_one_answer_leave_none_in_memory(self) -> None:
        service = self.peer.serve()
        _, session = self.call(ROOT, SERVICE, "OpenSession", "sv", "plain", ("s", ""))
        paths = []
        for number in range(30):
            properties = {f"{ITEM}.Label": ("s", "plain"), f"{ITEM}.Attributes": ("a{ss}", {"number": str(number)})}
            secret = (session, b"", self.secret(f"number {number}"), "text/plain")
            paths.append(self.call(MAIN, COLLECTION, "CreateItem", "a{sv}(oayays)b", properties, secret, False)[0])
        self.assertEqual(len(self.call(ROOT, SERVICE, "GetSecrets", "aoo", paths, session)[0]), 30)
        self.call(ROOT, SERVICE, "LockService")
        self.wait_until_locked()
        self.assertEqual(list(map(str, find(service.pid, self.secrets))), [])

    def test_a_key_file_that_the_service_has_read_is_not_in_memory(self) -> None:
        self.peer.prefs("lock")
        self.check(lambda: self.call(ROOT, SERVICE, "Lock", "ao", [MAIN]), "--vault-key-file", str(self.peer.key))


if __name__ == "__main__":
    unittest.main()
