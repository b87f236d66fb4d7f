"""`prefs keyring` killed in the midst of its work, by SIGKILL."""

from __future__ import annotations

import os
import random
import signal
import threading
import unittest

from jeepney.io.blocking import open_dbus_connection
from jeepney.wrappers import DBusErrorResponse
from services import COLLECTION, ITEM, ROOT, SERVICE, Prefs, end

SEED = int(os.environ.get("COFFER_SEED", "7"))
KILLS = int(os.environ.get("COFFER_KILLS", "25"))
MAIN = f"{ROOT}/collection/keyring"
# What the bus answers in the place of a service that is gone.
GONE = {f"org.freedesktop.DBus.Error.{name}" for name in ("NoReply", "ServiceUnknown", "NameHasNoOwner")}


class Writer(threading.Thread):
    """A client that creates and changes items until the service is gone."""

    def __init__(self, peer: Prefs, name: str, secrets: dict[str, str], finished: threading.Semaphore) -> None:
        super().__init__()
        self.peer, self.prefix, self.finished = peer, name, finished
        # Those that were acknowledged, by their paths, and the one that was on its way, which may be there or not.
        self.secrets, self.pending = secrets, ("", "")
        self.error = ""
        self.unexpected: Exception | None = None

    def run(self) -> None:
        try:
            with open_dbus_connection(self.peer.environment["DBUS_SESSION_BUS_ADDRESS"]) as connection:
                _, session = self.peer.call(connection, ROOT, SERVICE, "OpenSession", "sv", "plain", ("s", ""))
                for number in range(100_000):
                    text = f"{self.prefix}.{number}"
                    secret = (session, b"", text.encode(), "text/plain")
                    if number % 3 == 2:
                        path = next(reversed(self.secrets))
                        self.pending = (path, text)
                        self.peer.call(connection, path, ITEM, "SetSecret", "(oayays)", secret)
                    else:
                        self.pending = ("", text)
                        properties = {f"{ITEM}.Label": ("s", "x"), f"{ITEM}.Attributes": ("a{ss}", {"text": text})}
                        path, _ = self.peer.call(
                            connection, MAIN, COLLECTION, "CreateItem", "a{sv}(oayays)b", properties, secret, False)
                    self.secrets[path] = text
                    self.pending = ("", "")
                    self.finished.release()
        except DBusErrorResponse as error:
            self.error = error.name
        except Exception as error:
            self.unexpected = error


class Kills(unittest.TestCase):
    def test_what_was_acknowledged_is_there_and_clients_get_an_error_that_they_know(self) -> None:
        choice = random.Random(SEED)
        peer = Prefs()
        self.addCleanup(peer.close)
        errors: set[str] = set()
        all_secrets: list[tuple[dict[str, str], tuple[str, str]]] = []
        for round in range(KILLS):
            service = peer.serve()
            finished = threading.Semaphore(0)
            writers = [Writer(peer, f"{round}.{number}", {}, finished) for number in range(3)]
            for writer in writers:
                writer.start()
            for _ in range(choice.randint(1, 40)):
                self.assertTrue(finished.acquire(timeout=60), [writer.unexpected for writer in writers])
            # Somewhere in the next one.
            threading.Event().wait(choice.random() / 200)
            end(service, signal.SIGKILL)
            for writer in writers:
                writer.join(60)
                self.assertIsNone(writer.unexpected)
                self.assertIn(writer.error, GONE)
                errors.add(writer.error)
                all_secrets.append((writer.secrets, writer.pending))
        self.assertIn("org.freedesktop.DBus.Error.NoReply", errors)
        peer.serve()
        connection = peer.connect()
        _, session = peer.call(connection, ROOT, SERVICE, "OpenSession", "sv", "plain", ("s", ""))
        count = 0
        for secrets, (path, pending) in all_secrets:
            for item, secret in secrets.items():
                found = peer.call(connection, item, ITEM, "GetSecret", "o", session)[0][2].decode()
                self.assertIn(found, {secret, pending} if item == path else {secret}, item)
                count += 1
        self.assertGreater(count, KILLS * 3)
        peer.prefs("doctor")


if __name__ == "__main__":
    unittest.main()
