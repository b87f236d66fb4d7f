"""`prefs keyring` and gnome-keyring-daemon, each with a home and a bus of its own, as the tests that compare them use both."""

from __future__ import annotations

import contextlib
import pathlib
import signal
import subprocess
import tempfile

from case import BIN, PATIENCE, wait_until

from jeepney import DBusAddress, new_method_call
from jeepney.io.blocking import open_dbus_connection
from jeepney.wrappers import unwrap_msg

SECRETS = "org.freedesktop.secrets"
ROOT = "/org/freedesktop/secrets"
SERVICE, COLLECTION, ITEM, SESSION, PROMPT = (
    f"org.freedesktop.Secret.{name}" for name in ("Service", "Collection", "Item", "Session", "Prompt"))
PROPERTIES = "org.freedesktop.DBus.Properties"
BUS = DBusAddress("/org/freedesktop/DBus", "org.freedesktop.DBus", "org.freedesktop.DBus")

# Without the services of the machine: what a program asks for is served here, or is missing. The limits are those of a session.
CONFIGURATION = """<busconfig>
  <type>session</type>
  <listen>unix:path={socket}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
  <limit name="max_incoming_bytes">1000000000</limit>
  <limit name="max_outgoing_bytes">1000000000</limit>
  <limit name="max_message_size">1000000000</limit>
  <limit name="max_completed_connections">100000</limit>
  <limit name="max_incomplete_connections">10000</limit>
  <limit name="max_connections_per_user">100000</limit>
  <limit name="max_match_rules_per_connection">50000</limit>
  <limit name="max_replies_per_connection">50000</limit>
</busconfig>
"""


def end(child: subprocess.Popen, number: int = signal.SIGTERM) -> int:
    if child.poll() is None:
        child.send_signal(number)
    return child.wait(PATIENCE)


def is_served(connection) -> bool:
    """Whether a service has the name on the bus."""
    return unwrap_msg(connection.send_and_get_reply(new_method_call(BUS, "NameHasOwner", "s", (SECRETS,))))[0]


class Peer(contextlib.ExitStack):
    """A bus, and what serves the secrets of it."""

    # The last part of the path of the collection that is the default.
    main: str

    def __init__(self) -> None:
        super().__init__()
        self.folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory(prefix="coffer-peer-", ignore_cleanup_errors=True)))
        for name in ("home", "runtime", "work", "bin"):
            (self.folder / name).mkdir(mode=0o700)
        self.home, self.work = self.folder / "home", self.folder / "work"
        self.environment = {
            "PATH": f"{self.folder / 'bin'}:{BIN}:/usr/bin:/bin", "HOME": str(self.home), "LC_ALL": "C.UTF-8", "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": str(self.folder / "runtime"), "XDG_DATA_HOME": str(self.home / ".local/share"),
            "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0", "PYTHONDONTWRITEBYTECODE": "1",
        }
        configuration = self.folder / "bus.conf"
        configuration.write_text(CONFIGURATION.format(socket=self.folder / "bus"))
        self.log = self.enter_context(open(self.folder / "log", "ab+"))
        self.bus = subprocess.Popen(
            ["dbus-daemon", f"--config-file={configuration}", "--nofork", "--nopidfile", "--print-address=1"],
            stdout=subprocess.PIPE, stderr=self.log, text=True, env=self.environment)
        self.callback(end, self.bus)
        self.environment["DBUS_SESSION_BUS_ADDRESS"] = self.bus.stdout.readline().strip()
        self.callback(self.bus.stdout.close)
        self.service: subprocess.Popen | None = None

    def run(self, *arguments: str, text: str | bytes = b"", code: int | None = 0, **more: str) -> subprocess.CompletedProcess:
        """Runs a program on this bus, to its end."""
        given = text.encode() if isinstance(text, str) else text
        done = subprocess.run(
            arguments, cwd=self.work, env={**self.environment, **more}, input=given, capture_output=True, timeout=PATIENCE,
            start_new_session=True)
        if code is not None and done.returncode != code:
            raise AssertionError(f"{arguments}: {done.returncode}\n{done.stdout.decode()}{done.stderr.decode()}")
        return done

    def connect(self):
        connection = open_dbus_connection(self.environment["DBUS_SESSION_BUS_ADDRESS"])
        self.callback(connection.close)
        return connection

    def call(self, connection, path: str, interface: str, member: str, types: str | None = None, *values):
        message = new_method_call(DBusAddress(path, SECRETS, interface), member, types, values)
        return unwrap_msg(connection.send_and_get_reply(message, timeout=PATIENCE))

    def start(self, *arguments: str, text: bytes = b"") -> subprocess.Popen:
        """Starts the service, and returns once it has its name."""
        child = subprocess.Popen(
            arguments, cwd=self.work, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self.log,
            start_new_session=True)
        self.callback(end, child)
        child.stdin.write(text)
        child.stdin.close()
        with open_dbus_connection(self.environment["DBUS_SESSION_BUS_ADDRESS"]) as connection:
            wait_until(
                lambda: child.poll() is not None or is_served(connection),
                lambda: f"the service has not started: {(self.folder / 'log').read_text()}")
        if child.poll() is not None:
            raise AssertionError(f"the service has ended: {(self.folder / 'log').read_text()}")
        self.service = child
        return child

    def serve(self, *options: str) -> subprocess.Popen:
        raise NotImplementedError

    def unlock(self) -> None:
        raise NotImplementedError


class Prefs(Peer):
    """`prefs keyring` over a store with a vault, which `prefs unlock` unlocks."""

    main = "keyring"

    def __init__(self, *, has_vault: bool = True) -> None:
        super().__init__()
        for name in ("git-credential-prefs", "docker-credential-prefs"):
            (self.folder / "bin" / name).symlink_to(BIN / "prefs-keyring")
        self.key = self.work / "vault-key"
        if has_vault:
            self.prefs("set", "other/name", "value")
            self.prefs("seal", "other", "--vault-key-file", str(self.key))
            self.unlock()
            self.callback(self.prefs, "lock")

    def prefs(self, *arguments: str, **more) -> str:
        return self.run("prefs", *arguments, **more).stdout.decode()

    def unlock(self) -> None:
        self.prefs("unlock", "--vault-key-file", str(self.key))
        if self.service is None:
            return
        # The service follows a mark in a folder.
        with open_dbus_connection(self.environment["DBUS_SESSION_BUS_ADDRESS"]) as connection:
            main = f"{ROOT}/collection/keyring"
            wait_until(
                lambda: not self.call(connection, main, PROPERTIES, "Get", "ss", COLLECTION, "Locked")[0][1],
                "prefs unlock has not unlocked the service")

    def serve(self, *options: str) -> subprocess.Popen:
        return self.start("prefs", "keyring", *options)


class Gnome(Peer):
    """gnome-keyring-daemon with a keyring named login, unlocked by its password."""

    main = "login"
    password = b"the password of the keyring"

    def serve(self, *options: str) -> subprocess.Popen:
        return self.start("gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets", *options, text=self.password)

    def unlock(self) -> None:
        # What PAM's module of it does, over the bus.
        with open_dbus_connection(self.environment["DBUS_SESSION_BUS_ADDRESS"]) as connection:
            _, session = self.call(connection, ROOT, SERVICE, "OpenSession", "sv", "plain", ("s", ""))
            self.call(
                connection, ROOT, "org.gnome.keyring.InternalUnsupportedGuiltRiddenInterface", "UnlockWithMasterPassword", "o(oayays)",
                f"{ROOT}/collection/login", (session, b"", self.password, "text/plain"))
