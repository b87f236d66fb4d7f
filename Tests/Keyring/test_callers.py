"""What `prefs keyring --verbose` prints of the programs that ask it."""

from __future__ import annotations

import shutil

from services import ITEM, ROOT, SERVICE
from test_service import ServiceTestCase


class Callers(ServiceTestCase):
    def printed(self) -> str:
        return (self.folder / "log").read_text()

    def test_readings_are_noted_with_the_process_and_without_the_secret(self) -> None:
        self.serve("--verbose")
        self.tool("store", "--label=A label", "server", "git.example.org", "user", "ada", text="hidden")
        self.assertEqual(self.tool("lookup", "server", "git.example.org"), "hidden")
        printed = self.printed()
        self.assertRegex(printed, r"secret-tool \(process \d+\) reads the secret of keyring/[0-9a-f]{16} \(server, user[^)]*\)")
        for hidden in ("hidden", "ada", "git.example.org", "A label"):
            self.assertNotIn(hidden, printed)

    def test_without_verbose_nothing_is_printed(self) -> None:
        self.serve()
        self.tool("store", "--label=A label", "server", "h", text="hidden")
        self.tool("lookup", "server", "h")
        self.assertNotIn("reads", self.printed())

    def test_a_refused_reading_is_noted(self) -> None:
        key = self.make_vault()
        self.prefs("unlock", "--vault-key-file", str(key))
        self.serve("--verbose")
        self.tool("store", "--label=One", "server", "h", text="hidden")
        self.prefs("lock")
        connection = self.connect()
        _, session = self.call(connection, ROOT, SERVICE, "OpenSession", "sv", "plain", ("s", ""))
        found = sum(self.call(connection, ROOT, SERVICE, "SearchItems", "a{ss}", {"server": "h"}), [])
        self.refused("org.freedesktop.Secret.Error.IsLocked", connection, found[0], ITEM, "GetSecret", "o", session)
        self.assertIn("was refused GetSecret: the keyring is locked", self.printed())
        self.assertEqual(self.call(connection, ROOT, SERVICE, "GetSecrets", "aoo", found, session)[0], {})
        self.assertIn("was refused the secret of keyring/", self.printed())

    def test_a_name_with_controls_is_printed_escaped(self) -> None:
        self.serve("--verbose")
        self.tool("store", "--label=One", "server", "h", text="hidden")
        # A process has the name of its program's file.
        program = self.folder / "bin" / "x\x1b[2J\ny"
        shutil.copy(shutil.which("secret-tool", path="/usr/bin:/bin"), program)
        self.assertEqual(self.start(str(program), "lookup", "server", "h").stdout, b"hidden")
        printed = self.printed()
        self.assertIn("x\\u{1b}[2J\\ny (process ", printed)
        self.assertNotIn("\x1b", printed)
