"""Calls of the Secret Service, as a client without a library makes them, and what comes of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from jeepney import HeaderFields, MatchRule, new_method_call
from jeepney.wrappers import DBusErrorResponse, unwrap_msg
from services import BUS, COLLECTION, ITEM, PATIENCE, PROMPT, PROPERTIES, ROOT, SECRETS, SERVICE, SESSION, Peer

INTROSPECTABLE = "org.freedesktop.DBus.Introspectable"
# gnome-keyring gives this schema to items without one, but not at all times.
GENERIC = r"(, )?\('xdg:schema', 'org.freedesktop.Secret.Generic'\)|^org\.freedesktop\.Secret\.Generic$|schema = org.freedesktop.Secret.Generic\n"
QUIET = 0.5  # seconds without a signal, after which no more are expected
FOLLOWING = 10  # seconds in which `prefs unlock` is followed


class Calls:
    """The steps, in their order: a name in the comparison, and what is done."""

    def __init__(self, peer: Peer) -> None:
        self.peer, self.main = peer, f"{ROOT}/collection/{peer.main}"
        self.connection = peer.connect()
        self.session = self.open()

    def call(self, path: str, *arguments, connection=None):
        return self.peer.call(connection or self.connection, path, *arguments)

    def open(self, connection=None) -> str:
        return self.call(ROOT, SERVICE, "OpenSession", "sv", "plain", ("s", ""), connection=connection)[1]

    def secret(self, value: bytes = b"x", session: str | None = None):
        return (session or self.session, b"", value, "text/plain")

    def create(self, attributes: dict[str, str] | None, replaces: bool = False, label: str | None = "x", value: bytes = b"x", **more) -> str:
        properties = dict(more)
        if label is not None:
            properties[f"{ITEM}.Label"] = ("s", label)
        if attributes is not None:
            properties[f"{ITEM}.Attributes"] = ("a{ss}", attributes)
        return self.call(self.main, COLLECTION, "CreateItem", "a{sv}(oayays)b", properties, self.secret(value), replaces)[0]

    def get(self, path: str, interface: str, name: str):
        return self.call(path, PROPERTIES, "Get", "ss", interface, name)[0][1]

    def search(self, **attributes: str) -> list[str]:
        return self.call(ROOT, SERVICE, "SearchItems", "a{ss}", attributes)[0]

    def shown(self, value) -> str:
        """What is the same for both if they do the same."""
        text = str(value).replace(self.main, "MAIN").replace(ROOT, "ROOT")
        text = re.sub(GENERIC, "", re.sub(r"MAIN/\w+", "ITEM", text))
        text = re.sub(r"ROOT/collection/(?!session)\w+", "COLLECTION", text)
        return re.sub(r"(ROOT/(session|prompt))/\w+", lambda found: found[2].upper(), text)

    def outcome(self, step: Callable[[], object]) -> str:
        try:
            return self.shown(step())
        except DBusErrorResponse as error:
            return error.name.removeprefix("org.freedesktop.")

    def outcomes(self) -> Iterator[tuple[str, str]]:
        for name, step in self.steps():
            yield name, self.outcome(step)

    # MARK: - What is done

    def signals(self, action: Callable[[], object], within: float = QUIET) -> list[str]:
        """The signals that come of an action, the first within that time, in the order of their names."""
        # Signals come after the answer to what has caused them, and before that to the next call.
        self.call(ROOT, SERVICE, "ReadAlias", "s", "default")
        connection = self.peer.connect()
        unwrap_msg(connection.send_and_get_reply(new_method_call(BUS, "AddMatch", "s", (f"type='signal',sender='{SECRETS}'",))))
        seen = []
        with connection.filter(MatchRule(type="signal"), bufsize=1000) as queue:
            action()
            while True:
                try:
                    message = connection.recv_until_filtered(queue, timeout=QUIET if seen else within)
                except TimeoutError:
                    break
                fields = message.header.fields
                interface, member = fields[HeaderFields.interface].rsplit(".", 1)[-1], fields[HeaderFields.member]
                path = self.shown(fields[HeaderFields.path])
                if path.startswith(("ROOT", "MAIN", "ITEM", "COLLECTION")):
                    detail = ""
                    if member == "PropertiesChanged":
                        detail = " " + "/".join(sorted(message.body[1]) + [f"{name} dropped" for name in message.body[2]])
                    seen.append(f"{path} {interface}.{member}{detail}")
        return sorted(set(seen))

    def interfaces(self, path: str) -> list[str]:
        text = self.call(path, INTROSPECTABLE, "Introspect")[0]
        return sorted(re.findall(r'interface name="org.freedesktop.Secret.(\w+)"', text))

    def members(self, path: str, interface: str) -> list[str]:
        text = self.call(path, INTROSPECTABLE, "Introspect")[0]
        own = re.search(rf'<interface name="{interface}">(.*?)</interface>', text, re.DOTALL)
        return sorted(set(re.findall(r'<(?:method|signal|property)[^>]*? name="(\w+)"', own[1]))) if own else []

    def prompted(self, prompt: str) -> str:
        """What a prompt comes to where there is no desktop."""
        rule = MatchRule(type="signal", interface=PROMPT, path=prompt)
        unwrap_msg(self.connection.send_and_get_reply(new_method_call(BUS, "AddMatch", "s", (rule.serialise(),))))
        with self.connection.filter(rule, bufsize=10) as queue:
            self.call(prompt, PROMPT, "Prompt", "s", "")
            dismissed, (kind, _) = self.connection.recv_until_filtered(queue, timeout=PATIENCE).body
            return f"{'dismissed' if dismissed else 'done'}, {kind}"

    def steps(self) -> Iterator[tuple[str, Callable[[], object]]]:
        call, main = self.call, self.main
        yield "ReadAlias default", lambda: call(ROOT, SERVICE, "ReadAlias", "s", "default")
        yield "ReadAlias none", lambda: call(ROOT, SERVICE, "ReadAlias", "s", "none")
        yield "SetAlias", lambda: call(ROOT, SERVICE, "SetAlias", "so", "other", main)
        yield "ReadAlias other", lambda: call(ROOT, SERVICE, "ReadAlias", "s", "other")
        yield "SetAlias to /", lambda: call(ROOT, SERVICE, "SetAlias", "so", "other", "/")
        yield "ReadAlias that is gone", lambda: call(ROOT, SERVICE, "ReadAlias", "s", "other")
        yield "SetAlias to no collection", lambda: call(ROOT, SERVICE, "SetAlias", "so", "other", f"{ROOT}/collection/none")
        yield "SetAlias session", lambda: call(ROOT, SERVICE, "SetAlias", "so", "session", main)
        yield "the label of an alias", lambda: self.get(f"{ROOT}/aliases/default", COLLECTION, "Label") == self.get(main, COLLECTION, "Label")
        yield "the collections", lambda: sorted(self.get(ROOT, SERVICE, "Collections"))
        for name, path, interface in (("the service", ROOT, SERVICE), ("a collection", main, COLLECTION)):
            yield f"members of {name}", lambda path=path, interface=interface: self.members(path, interface)
            yield f"properties of {name}", lambda path=path, interface=interface: sorted(call(path, PROPERTIES, "GetAll", "s", interface)[0])
        yield from self.steps_of_sessions()
        yield from self.steps_of_items()
        yield from self.steps_of_changes()
        yield from self.steps_of_collections()
        yield from self.steps_while_locked()

    def steps_of_sessions(self) -> Iterator[tuple[str, Callable[[], object]]]:
        call, other = self.call, self.peer.connect()
        agreed = "dh-ietf1024-sha256-aes128-cbc-pkcs7"
        yield "OpenSession with no algorithm", lambda: call(ROOT, SERVICE, "OpenSession", "sv", "rot13", ("s", ""))
        yield "OpenSession with an empty key", lambda: call(ROOT, SERVICE, "OpenSession", "sv", agreed, ("ay", b""))
        yield "OpenSession with the key 1", lambda: bool(call(ROOT, SERVICE, "OpenSession", "sv", agreed, ("ay", b"\x01")))
        yield "OpenSession with a text as the key", lambda: call(ROOT, SERVICE, "OpenSession", "sv", agreed, ("s", ""))
        item = self.create({"sessions": "1"})
        yield "GetSecret in a session of another", lambda: call(item, ITEM, "GetSecret", "o", self.open(other))
        yield "GetSecret in no session", lambda: call(item, ITEM, "GetSecret", "o", f"{ROOT}/session/none")
        yield "GetSecrets in no session", lambda: call(ROOT, SERVICE, "GetSecrets", "aoo", [item], f"{ROOT}/session/none")
        yield "CreateItem in a session of another", lambda: call(
            self.main, COLLECTION, "CreateItem", "a{sv}(oayays)b", {}, self.secret(session=self.open(other)), False)
        closed = self.open()
        yield "Close", lambda: call(closed, SESSION, "Close")
        yield "Close again", lambda: call(closed, SESSION, "Close")
        yield "Close the session of another", lambda: call(self.open(other), SESSION, "Close")
        yield "Delete that item", lambda: call(item, ITEM, "Delete")

    def steps_of_items(self) -> Iterator[tuple[str, Callable[[], object]]]:
        call = self.call
        none, items = f"{self.main}/9999", {}

        def make(name: str, *arguments, **more) -> str:
            items[name] = self.create(*arguments, **more)
            return items[name]

        def named(paths: list[str]) -> list[str]:
            return sorted(next((name for name, item in items.items() if item == path), "?") for path in paths)

        yield "CreateItem", lambda: make("first", {"a": "b", "c": "d"})
        yield "CreateItem with the same attributes", lambda: make("second", {"a": "b", "c": "d"}) == items["first"]
        yield "SearchItems", lambda: named(self.search(a="b"))
        yield "SearchItems of the collection", lambda: named(call(self.main, COLLECTION, "SearchItems", "a{ss}", {"a": "b"})[0])
        yield "Delete", lambda: call(items.pop("second"), ITEM, "Delete")
        yield "CreateItem that replaces", lambda: named([self.create({"a": "b", "c": "d"}, True)])
        yield "CreateItem that replaces, with fewer attributes", lambda: make("fewer", {"a": "b"}, True) == items["first"]
        yield "attributes after that", lambda: sorted(self.get(items["first"], ITEM, "Attributes").items())
        yield "CreateItem of another", lambda: make("second", {"z": "z"})
        yield "CreateItem without properties", lambda: make("bare", None, label=None)
        yield "the label without properties", lambda: self.get(items["bare"], ITEM, "Label")
        yield "SearchItems without attributes, how many", lambda: len(self.search())
        yield "SearchItems of nothing", lambda: self.search(a="none")
        yield "members of an item", lambda: self.members(items["first"], ITEM)
        yield "properties of an item", lambda: sorted(call(items["first"], PROPERTIES, "GetAll", "s", ITEM)[0])
        yield "attributes of an item", lambda: sorted(self.get(items["second"], ITEM, "Attributes").items())
        yield "the type of an item", lambda: self.get(items["second"], ITEM, "Type")
        typed = {f"{ITEM}.Type": ("s", "org.example.Kind")}
        yield "the type of an item that was created with it", lambda: self.get(make("typed", {"t": "t"}, **typed), ITEM, "Type")
        yield "attributes of an item that was created with a type", lambda: sorted(self.get(items["typed"], ITEM, "Attributes").items())
        yield "attributes of an item with a schema", lambda: sorted(self.get(make("schema", {"xdg:schema": "org.example.Kind"}), ITEM, "Attributes").items())
        yield "the type of an item with a schema", lambda: self.get(items["schema"], ITEM, "Type")
        yield "GetSecret", lambda: call(items["first"], ITEM, "GetSecret", "o", self.session)[0][1:]
        yield "SetSecret with another content type", lambda: call(
            items["first"], ITEM, "SetSecret", "(oayays)", (self.session, b"", b"\x00\xff", "application/octet-stream"))
        yield "GetSecret after that", lambda: call(items["first"], ITEM, "GetSecret", "o", self.session)[0][1:]
        yield "GetSecrets with an item that is none", lambda: sorted(call(ROOT, SERVICE, "GetSecrets", "aoo", [items["second"], none], self.session)[0])
        yield "GetSecret of no item", lambda: call(none, ITEM, "GetSecret", "o", self.session)
        yield "Delete of no item", lambda: call(none, ITEM, "Delete")
        yield "a property of no item", lambda: self.get(none, ITEM, "Label")
        yield "a property that is none", lambda: self.get(items["first"], ITEM, "None")
        yield "a property of another interface", lambda: self.get(items["first"], COLLECTION, "Label")
        yield "Set Locked", lambda: call(items["first"], PROPERTIES, "Set", "ssv", ITEM, "Locked", ("b", True))
        yield "Set Label to a number", lambda: call(items["first"], PROPERTIES, "Set", "ssv", ITEM, "Label", ("u", 1))
        yield "Set Created", lambda: call(items["first"], PROPERTIES, "Set", "ssv", ITEM, "Created", ("t", 1))
        yield "a method that is none", lambda: call(items["first"], ITEM, "None")
        yield "GetSecret with a text", lambda: call(items["first"], ITEM, "GetSecret", "s", self.session)
        yield "GetSecret without arguments", lambda: call(items["first"], ITEM, "GetSecret")
        yield "SearchItems with a number", lambda: call(ROOT, SERVICE, "SearchItems", "u", 1)
        yield "Delete all of them", lambda: [call(item, ITEM, "Delete") for item in set(items.values())][0]

    def steps_of_changes(self) -> Iterator[tuple[str, Callable[[], object]]]:
        call, made = self.call, []
        yield "signals of CreateItem", lambda: self.signals(lambda: made.append(self.create({"signals": "1"})))
        yield "signals of SetSecret", lambda: self.signals(lambda: call(made[0], ITEM, "SetSecret", "(oayays)", self.secret(b"y")))
        yield "signals of a label", lambda: self.signals(lambda: call(made[0], PROPERTIES, "Set", "ssv", ITEM, "Label", ("s", "new")))
        attributes = ("a{ss}", {"signals": "2"})
        yield "signals of attributes", lambda: self.signals(lambda: call(made[0], PROPERTIES, "Set", "ssv", ITEM, "Attributes", attributes))
        yield "signals of Delete", lambda: self.signals(lambda: call(made[0], ITEM, "Delete"))
        label = self.get(self.main, COLLECTION, "Label")
        yield "signals of a collection's label", lambda: self.signals(
            lambda: call(self.main, PROPERTIES, "Set", "ssv", COLLECTION, "Label", ("s", "new")))
        yield "the label back", lambda: call(self.main, PROPERTIES, "Set", "ssv", COLLECTION, "Label", ("s", label))

    def steps_of_collections(self) -> Iterator[tuple[str, Callable[[], object]]]:
        call, made = self.call, []

        def make():
            made[:] = call(ROOT, SERVICE, "CreateCollection", "a{sv}s", {f"{COLLECTION}.Label": ("s", "Mine")}, "")
            return tuple(made)

        yield "CreateCollection", make
        yield "the prompt of CreateCollection", lambda: self.prompted(made[1]) if made[1] != "/" else "none"
        yield "Delete the new collection", lambda: call(made[0], COLLECTION, "Delete") if made[0] != "/" else "none"
        yield "Delete of no collection", lambda: call(f"{ROOT}/collection/none", COLLECTION, "Delete")
        yield "Delete the collection of the session", lambda: call(f"{ROOT}/collection/session", COLLECTION, "Delete")
        yield "CreateCollection with an alias that is there", lambda: call(
            ROOT, SERVICE, "CreateCollection", "a{sv}s", {f"{COLLECTION}.Label": ("s", "Default")}, "default")

    def steps_while_locked(self) -> Iterator[tuple[str, Callable[[], object]]]:
        call, main, prompts = self.call, self.main, []
        item = self.create({"locked": "1"}, label="Seen")
        yield "Unlock of what is unlocked", lambda: call(ROOT, SERVICE, "Unlock", "ao", [main])
        yield "Unlock of nothing", lambda: call(ROOT, SERVICE, "Unlock", "ao", [f"{ROOT}/collection/none"])
        yield "Lock of nothing", lambda: call(ROOT, SERVICE, "Lock", "ao", [f"{ROOT}/collection/none"])
        yield "Lock", lambda: call(ROOT, SERVICE, "Lock", "ao", [main])
        yield "the collection is locked", lambda: self.get(main, COLLECTION, "Locked")
        yield "the item is locked", lambda: self.get(item, ITEM, "Locked")
        yield "SearchItems while locked", lambda: [len(found) for found in call(ROOT, SERVICE, "SearchItems", "a{ss}", {"locked": "1"})]
        yield "GetSecret while locked", lambda: call(item, ITEM, "GetSecret", "o", self.session)
        yield "GetSecrets while locked", lambda: call(ROOT, SERVICE, "GetSecrets", "aoo", [item], self.session)
        yield "the label while locked", lambda: self.get(item, ITEM, "Label")
        yield "attributes while locked", lambda: self.get(item, ITEM, "Attributes")
        yield "Set Label while locked", lambda: call(item, PROPERTIES, "Set", "ssv", ITEM, "Label", ("s", "new"))
        yield "SetSecret while locked", lambda: call(item, ITEM, "SetSecret", "(oayays)", self.secret())
        yield "CreateItem while locked", lambda: self.create({"locked": "2"})
        yield "Delete of an item while locked", lambda: call(item, ITEM, "Delete")

        def unlock():
            found = call(ROOT, SERVICE, "Unlock", "ao", [main])
            prompts.append(found[1])
            return found

        yield "Unlock", unlock
        yield "Prompt by another client", lambda: call(prompts[0], PROMPT, "Prompt", "s", "", connection=self.peer.connect())
        yield "Prompt", lambda: self.prompted(prompts[0])
        yield "Prompt again", lambda: call(prompts[0], PROMPT, "Dismiss")
        yield "Dismiss", lambda: (unlock(), call(prompts[1], PROMPT, "Dismiss"))[1]
        yield "signals of unlocking from outside", lambda: self.signals(self.peer.unlock, within=FOLLOWING)
        yield "the collection is unlocked from outside", lambda: not self.get(main, COLLECTION, "Locked")
        yield "signals of Lock", lambda: self.signals(lambda: call(ROOT, SERVICE, "Lock", "ao", [main]))
        yield "unlocked again", lambda: (self.peer.unlock(), self.unlocked())[1]
        yield "LockService", lambda: call(ROOT, SERVICE, "LockService")
        yield "the collection is locked by that", lambda: self.get(main, COLLECTION, "Locked")
        yield "unlocked at the end", lambda: (self.peer.unlock(), self.unlocked())[1]
        yield "the secret then", lambda: call(item, ITEM, "GetSecret", "o", self.session)[0][2]

    def unlocked(self) -> bool:
        # `prefs unlock` is followed, or asked for.
        call = self.call(ROOT, SERVICE, "Unlock", "ao", [self.main])
        return call[0] == [self.main]
