"""The Secret Service of `prefs keyring`, on a bus of its own, with its clients as they are."""

from __future__ import annotations

import pathlib
import signal
import subprocess
import time

from case import BIN, PATIENCE, KeyringTestCase, has_ended, wait_until
from services import BUS, COLLECTION, ITEM, PROPERTIES, ROOT, SECRETS, SERVICE, end, is_served

import secretstorage
from jeepney import DBusAddress, HeaderFields, MatchRule, new_method_call
from jeepney.io.blocking import open_dbus_connection
from jeepney.wrappers import DBusErrorResponse, unwrap_msg

ROOT_FOLDER = pathlib.Path(__file__).resolve().parents[2]


class ServiceTestCase(KeyringTestCase):
    def setUp(self) -> None:
        super().setUp()
        # The bus does not take the home from HOME.
        self.environment["XDG_DATA_HOME"] = str(self.home / ".local/share")
        self.bus = subprocess.Popen(
            ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address=1"], stdout=subprocess.PIPE, text=True,
            env=self.environment)
        self.addCleanup(end, self.bus)
        self.environment["DBUS_SESSION_BUS_ADDRESS"] = self.bus.stdout.readline().strip()
        self.addCleanup(self.bus.stdout.close)
        self.service = None

    def serve(self, *options: str) -> subprocess.Popen:
        """Starts the service, and returns once it has its name."""
        self.log = open(self.folder / "log", "ab+")
        self.addCleanup(self.log.close)
        child = subprocess.Popen(
            ["prefs", "keyring", *options], cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL, stderr=self.log,
            start_new_session=True)
        self.addCleanup(end, child)
        connection = self.connect()
        wait_until(lambda: child.poll() is not None or is_served(connection), lambda: f"the service has not started: {self.notes()}")
        self.assertIsNone(child.poll(), self.notes())
        self.service = child
        return child

    def connect(self):
        connection = open_dbus_connection(self.environment["DBUS_SESSION_BUS_ADDRESS"])
        self.addCleanup(connection.close)
        return connection

    def call(self, connection, path: str, interface: str, member: str, types: str | None = None, *values):
        message = new_method_call(DBusAddress(path, SECRETS, interface), member, types, values)
        return unwrap_msg(connection.send_and_get_reply(message, timeout=PATIENCE))

    def refused(self, name: str, *arguments) -> None:
        with self.assertRaises(DBusErrorResponse) as caught:
            self.call(*arguments)
        self.assertEqual(caught.exception.name, name)

    def notes(self) -> str:
        """What the service has printed."""
        return (self.folder / "log").read_text()

    def is_locked(self, connection) -> bool:
        return self.call(connection, f"{ROOT}/collection/keyring", PROPERTIES, "Get", "ss", COLLECTION, "Locked")[0][1]

    def tool(self, *arguments: str, text: str = "", code: int = 0) -> str:
        return self.start("secret-tool", *arguments, text=text, code=code).stdout.decode()


class SecretTool(ServiceTestCase):
    def lock(self) -> None:
        # Debian 12's version crashes when it has locked the collection, and frees what it has been given twice.
        self.start("secret-tool", "lock", "--collection=keyring", code=None)

    def test_it_stores_finds_and_clears(self) -> None:
        self.serve()
        self.tool("store", "--label=One", "server", "h", "user", "ada", text="pass ä")
        self.tool("store", "--label=Two", "server", "h", "user", "bob", text="other")
        self.assertEqual(self.tool("lookup", "server", "h", "user", "ada"), "pass ä")
        self.tool("lookup", "server", "none", code=1)
        found = self.start("secret-tool", "search", "--all", "server", "h")
        text = found.stdout.decode() + found.stderr.decode()
        for expected in ("label = One", "secret = pass ä", "attribute.user = bob"):
            self.assertIn(expected, text)
        # The same attributes are the same item.
        self.tool("store", "--label=One", "server", "h", "user", "ada", text="newer")
        self.assertEqual(self.tool("lookup", "server", "h", "user", "ada"), "newer")
        self.assertEqual(len(self.keys()), 2)
        self.tool("clear", "server", "h", "user", "ada")
        self.tool("lookup", "server", "h", "user", "ada", code=1)
        self.assertEqual(len(self.keys()), 1)

    def test_it_locks_and_unlocks_the_vault(self) -> None:
        key = self.make_vault()
        self.prefs("unlock", "--vault-key-file", str(key))
        self.serve()
        self.tool("store", "--label=One", "server", "h", text="hidden")
        self.assertIn('"type":"sealed"', self.prefs("list", "--json", "keyring").replace(" ", ""))
        self.lock()
        # There is no one to ask: it is not found, and the service says what to do.
        self.tool("lookup", "server", "h", code=1)
        self.assertIn("prefs unlock", self.notes())
        self.assertIn("prefs unlock", self.start("prefs", "get", "other/name", code=6).stderr.decode())
        self.prefs("unlock", "--vault-key-file", str(key))
        self.assertEqual(self.tool("lookup", "server", "h"), "hidden")
        self.prefs("lock")
        connection = self.connect()
        wait_until(lambda: self.is_locked(connection), "prefs lock has not locked it")

    def test_a_key_file_unlocks_when_a_program_asks(self) -> None:
        key = self.make_vault()
        self.serve("--vault-key-file", str(key))
        self.tool("store", "--label=One", "server", "h", text="hidden")
        self.lock()
        self.assertEqual(self.tool("lookup", "server", "h"), "hidden")
        # Python's keyring does it like this.
        main = secretstorage.get_default_collection(self.connect())
        main.lock()
        self.assertTrue(main.is_locked())
        self.assertFalse(main.unlock())
        self.assertEqual(next(main.search_items({"server": "h"})).get_secret(), b"hidden")


class SecretStorage(ServiceTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.serve()
        self.connection = self.connect()
        self.main = secretstorage.get_default_collection(self.connection)

    def test_items_have_their_properties(self) -> None:
        item = self.main.create_item("A label", {"application": "test", "ä": "= &#%"}, b"\x00\xffbytes", content_type="application/x")
        self.assertEqual(item.get_secret(), b"\x00\xffbytes")
        self.assertEqual(item.get_secret_content_type(), "application/x")
        self.assertEqual(item.get_label(), "A label")
        attributes = item.get_attributes()
        self.assertEqual((attributes["application"], attributes["ä"]), ("test", "= &#%"))
        self.assertLess(abs(item.get_created() - time.time()), PATIENCE)
        self.assertFalse(item.is_locked())
        item.set_label("Another")
        item.set_attributes({"application": "other"})
        item.set_secret(b"newer")
        self.assertEqual((item.get_label(), item.get_secret()), ("Another", b"newer"))
        self.assertEqual([found.item_path for found in self.main.search_items({"application": "other"})], [item.item_path])
        self.assertEqual(list(self.main.search_items({"application": "test"})), [])
        self.assertEqual([found.item_path for found in self.main.get_all_items()], [item.item_path])
        item.delete()
        self.assertEqual(list(self.main.get_all_items()), [])

    def test_collections_and_aliases(self) -> None:
        made = secretstorage.create_collection(self.connection, "My things", "things")
        self.assertEqual(made.get_label(), "My things")
        self.assertEqual(secretstorage.get_collection_by_alias(self.connection, "things").collection_path, made.collection_path)
        made.create_item("x", {"a": "b"}, b"there")
        made.set_label("Renamed")
        end(self.service)
        self.serve()
        again = secretstorage.Collection(self.connection, made.collection_path)
        self.assertEqual((again.get_label(), next(again.get_all_items()).get_secret()), ("Renamed", b"there"))
        self.assertEqual(len(list(secretstorage.get_all_collections(self.connection))), 3)
        again.delete()
        with self.assertRaises(secretstorage.exceptions.ItemNotFoundException):
            secretstorage.get_collection_by_alias(self.connection, "things")

    def test_the_collection_of_the_session_is_not_stored(self) -> None:
        held = secretstorage.get_collection_by_alias(self.connection, "session")
        held.create_item("x", {"a": "b"}, b"for a while")
        self.assertEqual(next(held.search_items({"a": "b"})).get_secret(), b"for a while")
        self.assertEqual(self.keys(), [])

    def test_git_finds_what_libsecret_stored(self) -> None:
        self.tool(
            "store", "--label=Git: https://h/", "protocol", "https", "server", "h", "user", "ada", "xdg:schema",
            "org.git.Password", text="pass\noauth_refresh_token=more")
        answer = self.start("git-credential-prefs", "get", text="protocol=https\nhost=h\n").stdout.decode()
        self.assertEqual(answer, "username=ada\npassword=pass\noauth_refresh_token=more\n")
        self.start("git-credential-prefs", "store", text="protocol=https\nhost=h\nusername=ada\npassword=newer\n")
        self.assertEqual(self.tool("lookup", "server", "h", "user", "ada"), "newer")

    def test_items_of_prefs_set_are_items(self) -> None:
        self.prefs("set", "--secret", "keyring/github", "-", text="token")
        self.assertEqual(self.tool("lookup", "key", "github"), "token")


class Signals(ServiceTestCase):
    def test_changes_of_all_programs_are_signals(self) -> None:
        self.serve()
        connection = self.connect()
        rule = MatchRule(type="signal", interface=COLLECTION)
        unwrap_msg(connection.send_and_get_reply(new_method_call(BUS, "AddMatch", "s", (rule.serialise(),))))
        with connection.filter(rule, bufsize=100) as queue:
            for value, wanted in (("one", "ItemCreated"), ("two", "ItemChanged"), (None, "ItemDeleted")):
                if value:
                    self.prefs("set", "--secret", "keyring/x", "-", text=value)
                else:
                    self.prefs("unset", "keyring/x")
                seen = connection.recv_until_filtered(queue, timeout=PATIENCE)
                self.assertEqual(seen.header.fields[HeaderFields.member], wanted)


    def test_items_that_a_client_has_read_are_reported_as_locked(self) -> None:
        key = self.make_vault()
        self.prefs("unlock", "--vault-key-file", str(key))
        self.serve()
        for number in range(3):
            self.tool("store", f"--label=Label {number}", "number", str(number), text="hidden")
        connection = self.connect()
        (read,), _ = self.call(connection, ROOT, SERVICE, "SearchItems", "a{ss}", {"number": "1"})
        self.assertEqual(self.call(connection, read, PROPERTIES, "GetAll", "s", ITEM)[0]["Label"][1], "Label 1")
        rule = MatchRule(type="signal", interface=PROPERTIES)
        unwrap_msg(connection.send_and_get_reply(new_method_call(BUS, "AddMatch", "s", (rule.serialise(),))))
        with connection.filter(rule, bufsize=100) as queue:
            for command, is_locked, label in ((("lock",), True, ""), (("unlock", "--vault-key-file", str(key)), False, "Label 1")):
                self.prefs(*command)
                while True:
                    seen = connection.recv_until_filtered(queue, timeout=PATIENCE)
                    if seen.body[0] == ITEM:
                        break
                # Of those that no client has read, there is no signal.
                self.assertEqual(seen.header.fields[HeaderFields.path], read)
                self.assertEqual((seen.body[1]["Locked"][1], seen.body[1]["Label"][1]), (is_locked, label))


class Refusals(ServiceTestCase):
    def test_sessions_and_objects_of_others_are_refused(self) -> None:
        self.serve()
        self.tool("store", "--label=One", "server", "h", text="x")
        one, other = self.connect(), self.connect()
        _, session = self.call(one, ROOT, SERVICE, "OpenSession", "sv", "plain", ("s", ""))
        (item,), _ = self.call(one, ROOT, SERVICE, "SearchItems", "a{ss}", {"server": "h"})
        self.assertEqual(self.call(one, item, ITEM, "GetSecret", "o", session)[0][2], b"x")
        self.refused("org.freedesktop.Secret.Error.NoSession", other, item, ITEM, "GetSecret", "o", session)
        self.refused("org.freedesktop.Secret.Error.NoSession", other, session, "org.freedesktop.Secret.Session", "Close")
        self.refused("org.freedesktop.Secret.Error.NoSuchObject", one, f"{item}0", ITEM, "GetSecret", "o", session)
        self.refused("org.freedesktop.DBus.Error.InvalidArgs", one, item, ITEM, "GetSecret", "s", session)
        self.refused("org.freedesktop.DBus.Error.NotSupported", one, ROOT, SERVICE, "OpenSession", "sv", "rot13", ("s", ""))
        algorithm = "dh-ietf1024-sha256-aes128-cbc-pkcs7"
        for key in (b"", b"\x01", b"\xff" * 128, b"\x02" * 200):
            self.refused("org.freedesktop.DBus.Error.InvalidArgs", one, ROOT, SERVICE, "OpenSession", "sv", algorithm, ("ay", key))
        self.refused("org.freedesktop.DBus.Error.PropertyReadOnly", one, item, PROPERTIES, "Set", "ssv", ITEM, "Locked", ("b", True))
        self.refused("org.freedesktop.DBus.Error.UnknownMethod", one, item, ITEM, "Nothing")
        self.call(one, session, "org.freedesktop.Secret.Session", "Close")
        self.refused("org.freedesktop.Secret.Error.NoSession", one, item, ITEM, "GetSecret", "o", session)
        for path in (ROOT, item, f"{ROOT}/collection/keyring", "/", f"{ROOT}/collection"):
            self.assertIn("<node", self.call(one, path, "org.freedesktop.DBus.Introspectable", "Introspect")[0])
        self.assertIsNone(self.service.poll())

    def test_a_killed_service_loses_nothing(self) -> None:
        self.serve()
        for number in range(5):
            self.tool("store", "--label=One", "number", str(number), text=f"secret {number}")
            end(self.service, signal.SIGKILL)
            self.serve()
        for number in range(5):
            self.assertEqual(self.tool("lookup", "number", str(number)), f"secret {number}")

    def test_a_name_that_is_taken_is_an_error(self) -> None:
        self.serve()
        refused = self.start("prefs", "keyring", code=9)
        self.assertIn(b"--replace", refused.stderr)
        first = self.service
        self.serve("--replace")
        self.assertEqual(first.wait(PATIENCE), 9)

    def test_without_a_bus_it_says_how_to_get_one(self) -> None:
        self.environment["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={self.folder}/none"
        self.assertIn(b"dbus-run-session", self.start("prefs", "keyring", code=18).stderr)

    def test_the_bus_starts_it_and_it_ends_with_the_bus(self) -> None:
        services = self.home / ".local/share/dbus-1/services"
        services.mkdir(parents=True)
        unit = (ROOT_FOLDER / "Scripts/org.freedesktop.secrets.service").read_text().replace("@PREFIX@/bin", str(BIN))
        # There is no systemd on this bus.
        lines = [line for line in unit.splitlines() if not line.startswith("SystemdService")]
        (services / "org.freedesktop.secrets.service").write_text("\n".join(lines) + "\n")
        connection = self.connect()
        unwrap_msg(connection.send_and_get_reply(new_method_call(BUS, "ReloadConfig")))
        self.tool("store", "--label=One", "server", "h", text="started")
        self.assertEqual(self.tool("lookup", "server", "h"), "started")
        (number,) = unwrap_msg(connection.send_and_get_reply(new_method_call(BUS, "GetConnectionUnixProcessID", "s", (SECRETS,))))
        end(self.bus)
        wait_until(lambda: has_ended(number), "it goes on without its bus")
