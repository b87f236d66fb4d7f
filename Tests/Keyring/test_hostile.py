"""Clients that send `prefs keyring` what no client should, on a bus of its own."""

from __future__ import annotations

import os
import pathlib
import random
import unittest

from case import wait_until
from jeepney import DBusAddress, MessageType, HeaderFields, new_method_call
from jeepney.io.blocking import open_dbus_connection
from jeepney.wrappers import DBusErrorResponse, unwrap_msg
from services import BUS, COLLECTION, ITEM, PATIENCE, PROMPT, PROPERTIES, ROOT, SECRETS, SERVICE, SESSION, Prefs

SEED = int(os.environ.get("COFFER_SEED", "7"))
CALLS = int(os.environ.get("COFFER_CALLS", "6000"))
ROUNDS = 20
MAIN = f"{ROOT}/collection/keyring"
DH = "dh-ietf1024-sha256-aes128-cbc-pkcs7"
INTROSPECTABLE = "org.freedesktop.DBus.Introspectable"
TEXTS = (
    "", "plain", DH, "keyring", SERVICE, COLLECTION, ITEM, "Label", "Attributes", "Locked", "%", "#=&\x01", "ä" * 300, "x" * 20_000)
# What a client can expect; what the library of the bus answers by itself is among them.
ERRORS = {
    *(f"org.freedesktop.Secret.Error.{name}" for name in ("IsLocked", "NoSession", "NoSuchObject")),
    *(f"org.freedesktop.DBus.Error.{name}" for name in (
        "InvalidArgs", "NotSupported", "UnknownMethod", "UnknownProperty", "PropertyReadOnly", "LimitsExceeded")),
}


class HostileTestCase(unittest.TestCase):
    has_vault = False

    def setUp(self) -> None:
        self.peer = Prefs(has_vault=self.has_vault)
        self.addCleanup(self.peer.close)
        self.service = self.peer.serve()
        self.connection = self.peer.connect()

    def call(self, *arguments, connection=None):
        return self.peer.call(connection or self.connection, *arguments)

    def refused(self, names: str | set[str], *arguments, connection=None) -> None:
        with self.assertRaises(DBusErrorResponse) as caught:
            self.call(*arguments, connection=connection)
        self.assertIn(caught.exception.name, {names} if isinstance(names, str) else names, arguments)

    def client(self):
        """A connection that the test closes itself."""
        return open_dbus_connection(self.peer.environment["DBUS_SESSION_BUS_ADDRESS"])

    def open(self, connection=None) -> str:
        return self.call(ROOT, SERVICE, "OpenSession", "sv", "plain", ("s", ""), connection=connection)[1]

    def create(self, session: str, attributes: dict[str, str], secret: bytes, label: str = "x", connection=None) -> str:
        properties = {f"{ITEM}.Label": ("s", label), f"{ITEM}.Attributes": ("a{ss}", attributes)}
        return self.call(
            MAIN, COLLECTION, "CreateItem", "a{sv}(oayays)b", properties, (session, b"", secret, "text/plain"), False,
            connection=connection)[0]

    def memory(self) -> int:
        """What it has in memory of its own, in KiB."""
        status = pathlib.Path(f"/proc/{self.service.pid}/status").read_text()
        return int(status.split("RssAnon:")[1].split()[0])

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.service.pid}/fd"))

    def works(self) -> None:
        """Checks that it lives, and answers a client as usual."""
        self.assertIsNone(self.service.poll())
        with self.client() as client:
            session = self.open(client)
            path = self.create(session, {"still": "there"}, b"secret", connection=client)
            self.assertEqual(self.call(path, ITEM, "GetSecret", "o", session, connection=client)[0][2], b"secret")
            self.call(path, ITEM, "Delete", connection=client)


class Values:
    """Random values of random types, as D-Bus permits them."""

    BASIC = "ybnqiuxtdsog"

    def __init__(self, choice: random.Random, paths: list[str]) -> None:
        self.choice, self.paths = choice, paths

    def type(self, depth: int = 0) -> str:
        kind = self.choice.random()
        if depth > 4 or kind < 0.5:
            return self.choice.choice(self.BASIC)
        if kind < 0.65:
            return "v"
        if kind < 0.8:
            return "a" + self.type(depth + 1)
        if kind < 0.9:
            return f"a{{{self.choice.choice('sou')}{self.type(depth + 1)}}}"
        return "(" + "".join(self.type(depth + 1) for _ in range(self.choice.randint(1, 3))) + ")"

    def types(self) -> list[str]:
        return [self.type() for _ in range(self.choice.randint(0, 4))]

    def value(self, kind: str, depth: int = 0):
        choice = self.choice
        match kind[0]:
            case "a" if kind[1] == "{":
                return {self.value(kind[2], depth): self.value(kind[3:-1], depth + 1) for _ in range(choice.randint(0, 3))}
            case "a" if kind == "ay":
                return choice.randbytes(choice.choice((0, 1, 16, 128, 129, 4096)))
            case "a":
                return [self.value(kind[1:], depth + 1) for _ in range(choice.randint(0, 3))]
            case "(":
                return tuple(self.value(part, depth + 1) for part in split(kind[1:-1]))
            case "v":
                inner = self.type(2) if depth < 20 else "s"
                return (inner, self.value(inner, depth + 1))
            case "o":
                return choice.choice(self.paths)
            case "g":
                return choice.choice(("", "s", "a{sv}", "(oayays)", "a" * 30 + "y"))
            case "s":
                return choice.choice(TEXTS)
            case "b":
                return choice.random() < 0.5
            case "d":
                return choice.random()
            case kind:
                bits = {"y": 8, "n": 15, "q": 16, "i": 31, "u": 32, "x": 63, "t": 64}[kind]
                return choice.choice((0, 1, (1 << bits) - 1))


def split(types: str) -> list[str]:
    """The complete types in a signature."""
    found = []
    while types:
        stop = 0
        while types[stop] == "a":
            stop += 1
        depth = 0
        while True:
            depth += (types[stop] in "({") - (types[stop] in ")}")
            stop += 1
            if depth == 0:
                break
        found.append(types[:stop])
        types = types[stop:]
    return found


METHODS = [
    (SERVICE, "OpenSession", "sv"), (SERVICE, "CreateCollection", "a{sv}s"), (SERVICE, "SearchItems", "a{ss}"),
    (SERVICE, "Unlock", "ao"), (SERVICE, "Lock", "ao"), (SERVICE, "LockService", ""), (SERVICE, "GetSecrets", "aoo"),
    (SERVICE, "ReadAlias", "s"), (SERVICE, "SetAlias", "so"), (COLLECTION, "Delete", ""), (COLLECTION, "SearchItems", "a{ss}"),
    (COLLECTION, "CreateItem", "a{sv}(oayays)b"), (ITEM, "Delete", ""), (ITEM, "GetSecret", "o"), (ITEM, "SetSecret", "(oayays)"),
    (SESSION, "Close", ""), (PROMPT, "Prompt", "s"), (PROMPT, "Dismiss", ""), (PROPERTIES, "Get", "ss"), (PROPERTIES, "GetAll", "s"),
    (PROPERTIES, "Set", "ssv"), (INTROSPECTABLE, "Introspect", ""), ("org.freedesktop.DBus.Peer", "Ping", ""), ("org.example.None", "Nothing", ""),
]


class Fuzzing(HostileTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.others = self.open()
        properties = {f"{ITEM}.Attributes": ("a{ss}", {"guarded": "yes"})}
        self.guarded, _ = self.call(
            f"{ROOT}/collection/session", COLLECTION, "CreateItem", "a{sv}(oayays)b", properties,
            (self.others, b"", b"guarded", "text/plain"), False)

    def paths(self, session: str) -> dict[str, list[str]]:
        """Paths of each interface, and of none."""
        items = [self.create(self.others, {"number": str(number)}, b"secret") for number in range(20)]
        return {
            SERVICE: [ROOT], COLLECTION: [MAIN, f"{ROOT}/collection/session", f"{ROOT}/aliases/default"], ITEM: items,
            SESSION: [session, self.others], PROMPT: [f"{ROOT}/prompt/p1"],
            "": [
                "/", f"{ROOT}/aliases", f"{ROOT}/collection/none", f"{MAIN}/0123456789abcdef", f"{items[0]}/y", "/org/freedesktop/secretsx",
            ],
        }

    def round(self, choice: random.Random, calls: int, counted: dict[str, int]) -> None:
        """Sends random calls, and counts what is answered."""
        with self.client() as client:
            session = self.open(client)
            paths = self.paths(session)
            every = [path for some in paths.values() for path in some]
            values = Values(choice, every)
            for _ in range(calls):
                interface, member, types = choice.choice(METHODS)
                path = choice.choice(paths.get(interface, every) if choice.random() < 0.8 else every)
                # Most of them get what they take.
                kinds = split(types) if choice.random() < 0.7 else values.types()
                body = [values.value(kind) for kind in kinds]
                if interface == PROPERTIES and types[:1] == "s" and kinds[:1] == ["s"] and choice.random() < 0.7:
                    body[0] = next(name for name, some in paths.items() if path in some)
                    if kinds[1:2] == ["s"]:
                        body[1] = choice.choice(("Label", "Attributes", "Locked", "Created", "Items", "None"))
                if "oayays" in types and kinds == split(types) and choice.random() < 0.7:
                    body[kinds.index("(oayays)")] = (session, b"", choice.randbytes(20), "text/plain")
                address = DBusAddress(path, SECRETS, interface if choice.random() < 0.95 else None)
                message = new_method_call(address, member, "".join(kinds) or None, tuple(body))
                reply = client.send_and_get_reply(message, timeout=PATIENCE)
                name = reply.header.fields.get(HeaderFields.error_name, "answer")
                if name != "answer":
                    self.assertIn(name, ERRORS, f"{address} {member} {kinds} {body!r:.400}: {reply.body}")
                    self.assertEqual(reply.header.message_type, MessageType.error)
                counted[name] = counted.get(name, 0) + 1

    def clear(self) -> None:
        """Removes what the calls have stored, which is no growth."""
        for collection in self.call(ROOT, PROPERTIES, "Get", "ss", SERVICE, "Collections")[0][1]:
            for item in self.call(collection, PROPERTIES, "Get", "ss", COLLECTION, "Items")[0][1]:
                if item != self.guarded:
                    self.call(item, ITEM, "Delete")
            if collection not in (MAIN, f"{ROOT}/collection/session"):
                self.call(collection, COLLECTION, "Delete")

    def test_random_calls_get_typed_errors_and_nothing_grows(self) -> None:
        choice = random.Random(SEED)
        counted: dict[str, int] = {}
        sizes = []
        for _ in range(ROUNDS):
            self.round(choice, CALLS // ROUNDS, counted)
            self.clear()
            sizes.append(self.memory())
        for name in ERRORS - {"org.freedesktop.Secret.Error.IsLocked", "org.freedesktop.DBus.Error.LimitsExceeded"} | {"answer"}:
            self.assertGreater(counted.get(name, 0), 5, f"{name}: {counted}")
        self.assertLess(sizes[-1] - sizes[ROUNDS // 2], 4 << 10, sizes)
        self.assertEqual(self.call(self.guarded, ITEM, "GetSecret", "o", self.others)[0][2], b"guarded")
        self.works()

    def test_deeply_nested_arguments_are_refused(self) -> None:
        # As deep as the bus carries.
        nested = ("s", "x")
        for _ in range(20):
            nested = ("v", nested)
        self.refused("org.freedesktop.DBus.Error.InvalidArgs", ROOT, SERVICE, "OpenSession", "sv", DH, nested)
        self.refused("org.freedesktop.DBus.Error.InvalidArgs", ROOT, SERVICE, "SearchItems", "a" * 32 + "s", [])
        self.refused("org.freedesktop.DBus.Error.InvalidArgs", ROOT, SERVICE, "SearchItems", "(" * 32 + "s" + ")" * 32, self.tuple(32))
        session = self.open()
        properties = {f"{ITEM}.Label": nested, f"{ITEM}.Attributes": ("a{ss}", {"nested": "yes"}), "Other": nested}
        path, _ = self.call(
            MAIN, COLLECTION, "CreateItem", "a{sv}(oayays)b", properties, (session, b"", b"x", "text/plain"), False)
        self.assertEqual(self.call(path, PROPERTIES, "Get", "ss", ITEM, "Label")[0], ("s", ""))
        self.works()

    @staticmethod
    def tuple(depth: int):
        found = "x"
        for _ in range(depth):
            found = (found,)
        return found


class Sizes(HostileTestCase):
    def test_attributes_that_are_no_words_are_refused_and_others_stay(self) -> None:
        session = self.open()
        for attributes in ({"x": "y" * (1 << 20)}, {"x" * (1 << 20): "y"}, {str(number): "y" for number in range(100_000)}):
            with self.assertRaises(DBusErrorResponse) as caught:
                self.create(session, attributes, b"x")
            self.assertEqual(caught.exception.name, "org.freedesktop.DBus.Error.InvalidArgs")
            self.assertEqual(self.call(ROOT, SERVICE, "SearchItems", "a{ss}", attributes), ([], []))
        kept = self.create(session, {"a": "b"}, b"x")
        large = ("a{ss}", {"x": "y" * (1 << 20)})
        self.refused("org.freedesktop.DBus.Error.InvalidArgs", kept, PROPERTIES, "Set", "ssv", ITEM, "Attributes", large)
        self.assertEqual(self.call(kept, PROPERTIES, "Get", "ss", ITEM, "Attributes")[0], ("a{ss}", {"a": "b"}))
        self.assertEqual(len(self.peer.prefs("list", "keyring").splitlines()), 1)
        self.works()

    def test_large_secrets_and_labels_come_back_whole(self) -> None:
        session = self.open()
        secret, label = random.Random(SEED).randbytes(5_000_000), "ä" * 100_000
        path = self.create(session, {"a": "b"}, secret, label)
        self.assertEqual(self.call(path, ITEM, "GetSecret", "o", session)[0][2], secret)
        self.assertEqual(self.call(path, PROPERTIES, "Get", "ss", ITEM, "Label")[0], ("s", label))
        self.works()


class Others(HostileTestCase):
    has_vault = True

    def test_sessions_of_other_clients_are_refused_by_every_call(self) -> None:
        other = self.peer.connect()
        session, secret = self.open(other), (self.open(other), b"", b"x", "text/plain")
        path = self.create(self.open(), {"a": "b"}, b"secret")
        name = "org.freedesktop.Secret.Error.NoSession"
        self.refused(name, path, ITEM, "GetSecret", "o", session)
        self.refused(name, path, ITEM, "SetSecret", "(oayays)", secret)
        self.refused(name, ROOT, SERVICE, "GetSecrets", "aoo", [path], session)
        self.refused(name, MAIN, COLLECTION, "CreateItem", "a{sv}(oayays)b", {}, secret, False)
        self.refused(name, session, SESSION, "Close")
        for none in ("/", ROOT, path, f"{ROOT}/session/s0", f"{ROOT}/session/s99999999999999999999999"):
            self.refused(name, path, ITEM, "GetSecret", "o", none)
        self.assertEqual(self.call(path, ITEM, "GetSecret", "o", session, connection=other)[0][2], b"secret")

    def test_prompts_are_those_of_their_client_and_end_with_it(self) -> None:
        self.create(self.open(), {"a": "b"}, b"secret")
        self.call(ROOT, SERVICE, "LockService")
        with self.client() as other:
            _, prompt = self.call(ROOT, SERVICE, "Unlock", "ao", [MAIN], connection=other)
            self.assertNotEqual(prompt, "/")
            self.refused("org.freedesktop.Secret.Error.NoSuchObject", prompt, PROMPT, "Prompt", "s", "")
            self.refused("org.freedesktop.Secret.Error.NoSuchObject", prompt, PROMPT, "Dismiss")
            self.call(prompt, PROMPT, "Dismiss", connection=other)
            self.refused("org.freedesktop.Secret.Error.NoSuchObject", prompt, PROMPT, "Dismiss", connection=other)
            _, prompt = self.call(ROOT, SERVICE, "Unlock", "ao", [MAIN], connection=other)
        # Its interface is there for as long as it is.
        wait_until(lambda: PROMPT not in self.introspected(prompt), "the prompt is still there")

    def test_a_client_can_have_only_so_many_prompts(self) -> None:
        self.create(self.open(), {"a": "b"}, b"secret")
        self.call(ROOT, SERVICE, "LockService")
        for _ in range(64):
            self.assertNotEqual(self.call(ROOT, SERVICE, "Unlock", "ao", [MAIN])[1], "/")
        self.refused("org.freedesktop.DBus.Error.LimitsExceeded", ROOT, SERVICE, "Unlock", "ao", [MAIN])
        with self.client() as other:
            self.assertNotEqual(self.call(ROOT, SERVICE, "Unlock", "ao", [MAIN], connection=other)[1], "/")

    def introspected(self, path: str) -> str:
        try:
            return self.call(path, INTROSPECTABLE, "Introspect")[0]
        except DBusErrorResponse as error:
            self.assertEqual(error.name, "org.freedesktop.Secret.Error.NoSuchObject")
            return ""

    def test_a_client_can_have_only_so_many_sessions(self) -> None:
        with self.client() as client:
            for _ in range(64):
                self.open(client)
            self.refused("org.freedesktop.DBus.Error.LimitsExceeded", ROOT, SERVICE, "OpenSession", "sv", "plain", ("s", ""), connection=client)
        self.works()


class Deaths(HostileTestCase):
    def gone(self) -> None:
        """Waits until the bus has no clients but this one and the service."""

        def clients() -> list[str]:
            names = unwrap_msg(self.connection.send_and_get_reply(new_method_call(BUS, "ListNames")))[0]
            return [name for name in names if name.startswith(":")]

        wait_until(lambda: len(clients()) == 2, lambda: f"clients are left: {clients()}")

    def test_a_thousand_clients_that_come_and_die_leave_nothing(self) -> None:
        path = self.create(self.open(), {"a": "b"}, b"secret")
        sizes, sessions = [], []
        for _ in range(4):
            clients = [self.client() for _ in range(250)]
            sessions = [self.open(client) for client in clients]
            for client, session in zip(clients, sessions):
                client.send(new_method_call(DBusAddress(path, SECRETS, ITEM), "GetSecret", "o", (session,)))
            # Some are gone before they are answered.
            for client in clients:
                client.close()
            self.gone()
            sizes.append((self.memory(), self.descriptors()))
        for session in (sessions[0], sessions[-1]):
            self.refused("org.freedesktop.Secret.Error.NoSession", path, ITEM, "GetSecret", "o", session)
            self.refused("org.freedesktop.Secret.Error.NoSuchObject", session, SESSION, "Close")
        self.assertLess(sizes[-1][0] - sizes[1][0], 2 << 10, sizes)
        # A few are those of its work at that moment.
        self.assertLess(sizes[-1][1], sizes[1][1] + 10, sizes)
        self.works()

    def test_answers_for_the_dead_and_for_those_who_do_not_read_harm_no_other(self) -> None:
        path = self.create(self.open(), {"a": "b"}, b"x" * 100_000)
        for _ in range(3):
            client = self.client()
            session = self.open(client)
            for _ in range(200):
                client.send(new_method_call(DBusAddress(path, SECRETS, ITEM), "GetSecret", "o", (session,)))
            # It reads nothing, and others are served meanwhile.
            self.works()
            client.close()
        self.gone()
        self.works()

    def test_a_client_that_breaks_the_protocol_is_sent_away_by_the_bus_alone(self) -> None:
        header = b"l\x01\x00\x01\x04\x00\x00\x00\x01\x00\x00\x00\x10\x00\x00\x00"
        for garbage in (b"l\x01\x00\x01" + b"\xff" * 60, b"B" * 4096, header + b"\x01\x01o\x00" * 5):
            with self.client() as client:
                client.sock.sendall(garbage)
                client.sock.settimeout(PATIENCE)
                try:
                    while client.sock.recv(65536):
                        pass
                except ConnectionResetError:
                    pass
        self.works()


if __name__ == "__main__":
    unittest.main()
