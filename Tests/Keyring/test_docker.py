"""The protocol of docker's credential helpers, as docker speaks it."""

from __future__ import annotations

import json

from case import KeyringTestCase

HUB = "https://index.docker.io/v1/"


class Docker(KeyringTestCase):
    def call(self, operation: str, text: str | bytes = b"", code: int = 0) -> str:
        return self.start("docker-credential-prefs", operation, text=text, code=code).stdout.decode()

    def store(self, server: str, username: str, secret: str, **more) -> str:
        return self.call("store", json.dumps({"ServerURL": server, "Username": username, "Secret": secret}), **more)

    def test_credentials_are_stored_found_listed_and_erased(self) -> None:
        self.assertEqual(self.call("list"), "{}\n")
        self.assertEqual(self.call("get", HUB, code=1), "credentials not found in native keychain\n")
        secret = 'quotes " and \\, tab\t, line\n, ä, \U0001f511, \x01'
        self.assertEqual(self.store(HUB, "ada", secret), "")
        self.assertEqual(json.loads(self.call("get", HUB + "\n")), {"ServerURL": HUB, "Username": "ada", "Secret": secret})
        self.store("registry.example.org:5000", "bob", "token")
        self.assertEqual(json.loads(self.call("list")), {HUB: "ada", "registry.example.org:5000": "bob"})
        # A server has one user.
        self.store(HUB, "eve", "newer")
        found = json.loads(self.call("get", HUB))
        self.assertEqual((found["Username"], found["Secret"]), ("eve", "newer"))
        self.assertEqual(len(self.keys()), 2)
        self.assertEqual(self.call("erase", HUB), "")
        self.assertEqual(self.call("get", HUB, code=1), "credentials not found in native keychain\n")
        self.assertEqual(self.call("erase", HUB), "")
        self.assertEqual(len(self.keys()), 1)

    def test_the_input_may_be_any_json(self) -> None:
        self.call("store", b' {"Secret" : "\\ud83d\\udd11\\/\\u00e4" ,\n"serverurl":"h", "Username":"ada", "More":"x"} ')
        self.assertEqual(json.loads(self.call("get", " h "))["Secret"], "\U0001f511/ä")

    def test_mistakes_are_answered_on_standard_output(self) -> None:
        self.assertEqual(self.call("get", " \n", code=1), "no credentials server URL\n")
        self.assertEqual(self.store("", "ada", "x", code=1), "no credentials server URL\n")
        self.assertEqual(self.store("h", "", "x", code=1), "no credentials username\n")
        for text in ("", "{", "[]", '{"a":1}', '{"a":"b",}', '{"a":"b"} x', '{"Secret":"hunter2', '{"Secret":"\\ud83d"}', '{"Secret":"\\q"}'):
            answer = self.call("store", text, code=8)
            self.assertTrue(answer.startswith("the input is not a JSON object of strings"), text)
            self.assertNotIn("hunter2", answer)
        self.assertIn("no operation", self.call("put", code=2))
        self.assertIn("docker-credential-prefs", self.call("version"))
        self.assertFalse((self.home / ".local").exists())

    def test_a_locked_vault_is_named(self) -> None:
        key = self.make_vault()
        self.assertIn("prefs unlock", self.store("h", "ada", "x", code=6))
        self.environment["PREFS_VAULT_KEY_FILE"] = str(key)
        self.store("h", "ada", "x")
        self.assertEqual(json.loads(self.call("get", "h"))["Secret"], "x")
        del self.environment["PREFS_VAULT_KEY_FILE"]
        self.assertIn("prefs unlock", self.call("get", "h", code=6))
        # Names are readable without the vault.
        self.assertEqual(json.loads(self.call("list")), {"h": "ada"})
        self.call("erase", "h")
        self.assertEqual(self.call("list"), "{}\n")
