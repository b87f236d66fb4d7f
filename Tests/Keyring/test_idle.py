"""The Secret Service of `prefs keyring` while nothing happens, and what wakes it."""

from __future__ import annotations

import pathlib
import time

from case import wait_until
from services import COLLECTION, ROOT, SERVICE
from test_service import ServiceTestCase

from jeepney.wrappers import DBusErrorResponse


class Idle(ServiceTestCase):
    def switches(self) -> int:
        """How often a thread of the service has waited for something."""
        count = 0
        for task in (pathlib.Path("/proc") / str(self.service.pid) / "task").iterdir():
            lines = (task / "status").read_text().splitlines()
            count += sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)
        return count

    def wait_until_locked(self, connection, expected: bool) -> None:
        wait_until(lambda: self.is_locked(connection) == expected, f"it is not {'locked' if expected else 'unlocked'}")

    def assert_idle(self) -> None:
        # What it has begun ends at some time, and other programs change the folders above its store.
        counts = []
        for _ in range(20):
            before = self.switches()
            time.sleep(3)
            counts.append(abs(self.switches() - before))
            # Once a second libdispatch looks after its threads; a timer of the service would double that at least.
            if counts[-1] <= 4:
                return
        self.fail(f"it does not sleep: {counts}")

    def test_it_sleeps_until_something_happens(self) -> None:
        key = self.make_vault()
        self.serve()
        connection = self.connect()
        self.assert_idle()
        self.prefs("unlock", "--vault-key-file", str(key))
        self.wait_until_locked(connection, False)
        self.assert_idle()
        self.prefs("lock")
        self.wait_until_locked(connection, True)
        self.assert_idle()

    def test_it_locks_when_the_time_of_prefs_unlock_is_over(self) -> None:
        key = self.make_vault()
        self.serve()
        connection = self.connect()
        self.prefs("unlock", "--ttl", "2s", "--vault-key-file", str(key))
        self.wait_until_locked(connection, False)
        self.wait_until_locked(connection, True)

    def test_it_locks_when_no_secret_was_asked_for(self) -> None:
        key = self.make_vault()
        self.prefs("unlock", "--vault-key-file", str(key))
        self.serve("--lock-after", "3s")
        self.tool("store", "--label=One", "server", "h", text="hidden")
        connection = self.connect()
        # Each reading begins the time again, and other calls do not.
        for _ in range(4):
            time.sleep(1)
            self.assertEqual(self.tool("lookup", "server", "h"), "hidden")
        begin = time.monotonic()
        self.wait_until_locked(connection, True)
        self.assertGreater(time.monotonic() - begin, 2)
        # The key of prefs unlock is gone, too.
        self.prefs("get", "other/name", code=6)

    def test_calls_that_read_no_secret_of_the_vault_do_not_keep_it_unlocked(self) -> None:
        key = self.make_vault()
        self.prefs("unlock", "--vault-key-file", str(key))
        self.serve("--lock-after", "2s")
        self.tool("store", "--label=One", "server", "h", text="hidden")
        connection = self.connect()
        _, session = self.call(connection, ROOT, SERVICE, "OpenSession", "sv", "plain", ("s", ""))
        memory, keyring = f"{ROOT}/collection/session", f"{ROOT}/collection/keyring"
        secret = (session, b"", b"of the session", "text/plain")
        own, _ = self.call(connection, memory, COLLECTION, "CreateItem", "a{sv}(oayays)b", {}, secret, False)

        def is_locked_beside_calls() -> bool:
            self.call(connection, ROOT, SERVICE, "GetSecrets", "aoo", [own, f"{keyring}/none"], session)
            with self.assertRaises(DBusErrorResponse):
                self.call(connection, keyring, COLLECTION, "CreateItem", "a{sv}(oayays)b", {}, ("/none", b"", b"", ""), False)
            return self.is_locked(connection)

        wait_until(is_locked_beside_calls, "it stays unlocked")

    def test_a_vault_that_is_made_later_is_known(self) -> None:
        self.serve("--lock-after", "15m")
        self.assertIn("no vault yet", self.notes())
        key = self.make_vault()
        self.prefs("lock")
        self.tool("store", "--label=Early", "server", "h", text="hidden", code=None)
        self.prefs("unlock", "--vault-key-file", str(key))
        self.tool("store", "--label=Late", "server", "i", text="hidden")
        listed = self.prefs("list", "--json", "keyring").replace(" ", "")
        self.assertIn('"type":"sealed"', listed)
        self.assertNotIn('"type":"secret"', listed)

    def test_it_follows_in_a_folder_that_was_removed(self) -> None:
        key = self.make_vault()
        self.serve()
        connection = self.connect()
        folder = self.folder / "runtime" / "prefs"
        self.prefs("unlock", "--vault-key-file", str(key))
        self.wait_until_locked(connection, False)
        for file in folder.iterdir():
            file.unlink()
        self.prefs("lock")
        self.wait_until_locked(connection, True)
        self.prefs("unlock", "--vault-key-file", str(key))
        self.wait_until_locked(connection, False)
