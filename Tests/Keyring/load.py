"""Many items, and many calls: how long `prefs keyring` and gnome-keyring-daemon take, and what that costs them."""

from __future__ import annotations

import json
import os
import pathlib
import socket
import statistics
import struct
import time

from jeepney import DBusAddress, new_method_call
from services import ITEM, PROPERTIES, ROOT, SECRETS, SERVICE, Peer, Prefs

BATCH = 200  # calls under way at once
TICKS = os.sysconf("SC_CLK_TCK")


def secret(number: int) -> str:
    return f"secret {number}"


def fill(peer: Peer, count: int) -> None:
    """Gives the peer its items, before it starts: as a program would have stored them one by one."""
    if isinstance(peer, Prefs):
        items = {
            f"application=load&number={number}&server=h{number % 100}&xdg:schema=org.example.Load#{number:016x}":
                {"$secret": secret(number)} for number in range(count)
        }
        peer.prefs("import", "-c", "keyring", "--format", "json", "-", text=json.dumps(items))
        peer.prefs("seal", "keyring", PREFS_VAULT_KEY_FILE=str(peer.key))
        return
    # gnome-keyring writes its whole file for each item; this is the form without a password.
    keyrings = peer.home / ".local/share/keyrings"
    keyrings.mkdir(parents=True, mode=0o700)
    parts = ["[keyring]\ndisplay-name=load\nctime=1700000000\nmtime=1700000000\nlock-on-idle=false\nlock-after=false\n"]
    for number in range(count):
        parts.append(f"[{number}]\nitem-type=0\ndisplay-name=Load\nsecret={secret(number)}\nmtime=1700000000\nctime=1700000000\n")
        attributes = {"application": "load", "number": str(number), "server": f"h{number % 100}", "xdg:schema": "org.example.Load"}
        for index, (name, value) in enumerate(attributes.items()):
            parts.append(f"[{number}:attribute{index}]\nname={name}\ntype=string\nvalue={value}\n")
    (keyrings / "load.keyring").write_text("\n".join(parts))
    (keyrings / "default").write_text("load")


def memory(process: int) -> dict[str, int]:
    """In KiB: all, and what is not of files."""
    status = pathlib.Path(f"/proc/{process}/status").read_text()
    return {name: int(status.split(f"{name}:")[1].split()[0]) for name in ("VmRSS", "RssAnon")}


def ticks(process: int) -> int:
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def idle(process: int, seconds: float) -> float:
    """The part of a processor that it uses while no one calls it."""
    before, start = ticks(process), time.monotonic()
    time.sleep(seconds)
    return (ticks(process) - before) / TICKS / (time.monotonic() - start)


class Load:
    def __init__(self, peer: Peer, count: int) -> None:
        self.peer, self.count = peer, count
        self.connection = peer.connect()
        _, self.session = peer.call(self.connection, ROOT, SERVICE, "OpenSession", "sv", "plain", ("s", ""))
        main, = peer.call(self.connection, ROOT, SERVICE, "ReadAlias", "s", "default")
        peer.call(self.connection, ROOT, SERVICE, "Unlock", "ao", [main])
        self.items = self.search({"application": "load"})
        if len(self.items) != count:
            raise AssertionError(f"{len(self.items)} items of {count} are there")

    def search(self, attributes: dict[str, str]) -> list[str]:
        return self.peer.call(self.connection, ROOT, SERVICE, "SearchItems", "a{ss}", attributes)[0]

    def get(self, item: str) -> bytes:
        return self.peer.call(self.connection, item, ITEM, "GetSecret", "o", self.session)[0][2]

    def median(self, call, calls: int) -> float:
        """In milliseconds, of calls with a number."""
        times = []
        for number in range(calls):
            start = time.perf_counter()
            call(number * 7919 % self.count)
            times.append((time.perf_counter() - start) * 1000)
        return statistics.median(times)

    def medians(self, calls: int) -> dict[str, float]:
        def one(number: int) -> None:
            if len(self.search({"xdg:schema": "org.example.Load", "number": str(number)})) != 1:
                raise AssertionError("the item is not found")

        def value(number: int) -> None:
            if not self.get(self.items[number]).startswith(b"secret "):
                raise AssertionError("the secret is another one")

        def ping(_: int) -> None:
            self.peer.call(self.connection, ROOT, "org.freedesktop.DBus.Peer", "Ping")

        return {
            "a search for one item": self.median(one, calls),
            "a search for a hundredth": self.median(lambda number: self.search({"server": f"h{number % 100}"}), calls),
            "a search for nothing": self.median(lambda number: self.search({"number": "none"}), calls),
            "a secret": self.median(value, calls),
            "a ping": self.median(ping, calls),
        }

    def calls(self, count: int) -> None:
        """Makes calls of several kinds, many of them at once, and checks that each is answered, and not by an error."""
        messages = []
        for number in range(BATCH):
            item = self.items[number * 7919 % self.count]
            messages += [
                new_method_call(DBusAddress(item, SECRETS, ITEM), "GetSecret", "o", (self.session,)),
                new_method_call(DBusAddress(item, SECRETS, PROPERTIES), "Get", "ss", (ITEM, "Attributes")),
                new_method_call(DBusAddress(ROOT, SECRETS, "org.freedesktop.DBus.Peer"), "Ping"),
                new_method_call(DBusAddress(ROOT, SECRETS, SERVICE), "ReadAlias", "s", ("default",)),
            ]
        encoded = [bytearray(message.serialise(1)) for message in messages]
        serial, rest, done = 1 << 20, b"", 0
        # The session is this connection's.
        wire: socket.socket = self.connection.sock
        wire.settimeout(60)
        while done < count:
            part = min(BATCH, count - done)
            batch = bytearray()
            for number in range(part):
                message = encoded[(done + number) % len(encoded)]
                serial += 1
                struct.pack_into("<I", message, 8, serial)
                batch += message
            wire.sendall(batch)
            answered = 0
            while answered < part:
                rest += wire.recv(1 << 20)
                at = 0
                while len(rest) - at >= 16:
                    kind = rest[at + 1]
                    body, _, fields = struct.unpack_from("<III", rest, at + 4)
                    length = 16 + (fields + 7) // 8 * 8 + body
                    if len(rest) - at < length:
                        break
                    # Signals pass, too.
                    if kind in (2, 3):
                        if kind == 3:
                            raise AssertionError(f"a call is answered by an error: {rest[at : at + length]!r}")
                        answered += 1
                    at += length
                rest = rest[at:]
            done += part
