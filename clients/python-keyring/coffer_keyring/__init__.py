"""A backend for `keyring` that keeps each password as a secret of a Coffer store, in the form of the Secret Service of `prefs keyring`.

It asks a child, `prefs serve`, for each step. Passwords pass through its standard input and output, and nowhere else.
"""

from __future__ import annotations

import json
import re
import secrets
import shlex
import shutil
import subprocess
from typing import Any, NamedTuple
from urllib.parse import unquote

from keyring.backend import KeyringBackend
from keyring.compat import properties
from keyring.credentials import SimpleCredential
from keyring.errors import InitError, KeyringError, KeyringLocked, PasswordDeleteError, PasswordSetError

__all__ = ["Keyring"]

Object = dict[str, Any]
HALF_OF_A_PAIR = "\ud800-\udfff"
SPECIAL = r"\0-\x20=&#%\x7f"
TEXT = rf"((?:[^{SPECIAL}]|%(?:[01][0-9a-f]|2[0356]|3d|7f))*)"
APPLICATION = "application=Python%20keyring%20library&"  # as keyring's own backend has it
KEY = re.compile(rf"(?:{APPLICATION})?service={TEXT}&username={TEXT}(?:&xdg:schema={TEXT})?#([0-9a-f]{{16}})")
VERSION = 1
EXIT_STORE_NOT_FOUND = 4
EXIT_KEY_UNAVAILABLE = 6


class Item(NamedTuple):
    """Where a password is; that of another program may have no application, or a schema."""

    version: int
    id: str
    key: str
    service: str
    username: str


class Conflict(KeyringError):
    """Another process has changed the item meanwhile."""


class Keyring(KeyringBackend):
    """Passwords in a Coffer store: that of `prefs`, unless `KEYRING_PROPERTY_PREFS_STORE` names another one."""

    prefs_collection = "keyring"
    prefs_store: str | None = None
    prefs_key_file: str | None = None

    @properties.classproperty
    def priority(cls) -> float:
        """Just above the keyrings of desktops: this package is installed on purpose."""
        if not shutil.which("prefs"):
            raise RuntimeError("Coffer's program prefs is not on the PATH.")
        return 5.5

    def get_password(self, service: str, username: str) -> str | None:
        credential = self.get_credential(service, username)
        return credential.password if credential else None

    def set_password(self, service: str, username: str, password: str) -> None:
        require_text(PasswordSetError, service, username)
        if re.search(f"[{HALF_OF_A_PAIR}]", password):
            raise PasswordSetError("The password has half of a surrogate pair, which is not Unicode text. Nothing was changed.")
        # `prefs serve` takes no empty secret; the Secret Service shows text as one.
        value = {"value": {"$secret": password}} if password else {"value": "", "type": "string"}
        while True:  # After a conflict, which means that another process has got on.
            try:
                return self._set(service, username, value)
            except Conflict:
                pass

    def _set(self, service: str, username: str, value: Object) -> None:
        """Sets the item that has been there, or a new one, so that it is the only one."""
        items = self._items(PasswordSetError)
        found = matching(items, service, username)
        changes = [{"set": self._place(found[0]) | value}] if found else []
        if not found:
            if not items:
                self._seal()
            key = f"{APPLICATION}service={escaped(service)}&username={escaped(username)}#{secrets.token_hex(8)}"
            self._ask(PasswordSetError, {"do": "set", "key": key, **value})
            # Another process may have set one at the same moment: the newest stays.
            found = matching(self._items(PasswordSetError), service, username)
        changes += [{"unset": self._place(item)} for item in found[1:]]
        if changes:
            self._ask(PasswordSetError, {"do": "transaction", "changes": changes})

    def delete_password(self, service: str, username: str) -> None:
        require_text(PasswordDeleteError, service, username)
        found = matching(self._items(PasswordDeleteError), service, username)
        if not found:
            raise PasswordDeleteError(f"There is no password of {username!r} for {service!r}.")
        self._ask(PasswordDeleteError, *({"do": "unset", "key": item.key} for item in found))

    def get_credential(self, service: str, username: str | None) -> SimpleCredential | None:
        """Without a username, that of the one whose password was set last."""
        require_text(KeyringError, service, username or "")
        while found := matching(self._items(KeyringError), service, username):
            item = self._ask(KeyringError, {"do": "get", "key": found[0].key, "reveal": True})[0]
            if "sealed" in item:
                raise self._locked()
            match item.get("value"):
                case {"$secret": str(password)} | {"$string": str(password)} | str(password):
                    return SimpleCredential(found[0].username, password)
            if item["version"]:
                raise KeyringError(
                    f"{item['key']} in the collection {self.prefs_collection} is not text; set the password again.")
            # It was removed in between, and there may be another one.
        return None

    def _items(self, kind: type[KeyringError]) -> list[Object]:
        """All that is stored in the collection, without values."""
        return [item for item in self._ask(kind, {"do": "list"})[0]["items"] if item["version"]]

    def _place(self, item: Item) -> Object:
        return {"collection": self.prefs_collection, "key": item.key, "ifVersion": item.version}

    def _seal(self) -> None:
        """Seals the collection before its first item, if the store has a vault, as `prefs keyring` does."""
        status = self._run("status", "--json", "--no-input", *self._options())
        if status.returncode == 0 and json.loads(status.stdout)["vault"] == "none":
            return
        done = self._run("seal", "--no-input", *self._options(), "--", self.prefs_collection)
        if done.returncode == EXIT_KEY_UNAVAILABLE:
            raise self._locked()
        if done.returncode != 0:
            raise PasswordSetError(problem(done))

    def _run(self, *arguments: str, text: str = "") -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(["prefs", *arguments], input=text.encode(), capture_output=True)
        except OSError as error:
            raise InitError(f"Coffer's program prefs cannot be started: {error.strerror}. Put it on the PATH.") from None

    def _ask(self, kind: type[KeyringError], *requests: Object) -> list[Object]:
        """What `prefs serve` answers to these requests, one after another; its errors are of this kind."""
        lines = [json.dumps({"id": number, "collection": self.prefs_collection, **it}) for number, it in enumerate(requests)]
        done = self._run("serve", "--must-exist", "--no-input", *self._options(), text="".join(f"{line}\n" for line in lines))
        try:
            # What is after the last line feed is the beginning of a line of a child that was killed.
            hello, *answers = [json.loads(line) for line in done.stdout.split(b"\n")[:-1]] or [{"serve": VERSION}]
        except ValueError:
            hello, answers = {}, []
        if hello.get("serve") != VERSION:
            raise InitError(f"The program prefs on the PATH is not Coffer's, or has no version {VERSION} of the protocol of prefs serve.")
        for answer in answers:
            if "error" in answer:
                name, message = answer["error"]["error"], answer["error"]["message"]
                raise self._locked() if name == "keyUnavailable" else Conflict(message) if name == "conflict" else kind(message)
        if len(answers) < len(requests):
            message = problem(done)
            if done.returncode == EXIT_STORE_NOT_FOUND:
                message += f" Run: {self._command('init')}"
            raise InitError(message or f"prefs serve ended with code {done.returncode}; a change may have been made.")
        return [answer["ok"] for answer in answers]

    def _locked(self) -> KeyringLocked:
        return KeyringLocked(
            f"The collection {self.prefs_collection} is sealed, and the vault is locked. Run: {self._command('unlock')}")

    def _options(self) -> list[str]:
        options = {"--store": self.prefs_store, "--key-file": self.prefs_key_file}
        return [text for option, value in options.items() if value is not None for text in (option, value)]

    def _command(self, name: str) -> str:
        return shlex.join(["prefs", name, *self._options()])


def problem(done: subprocess.CompletedProcess[bytes]) -> str:
    return done.stderr.decode(errors="replace").removeprefix("prefs: ").strip()


def require_text(kind: type[KeyringError], *texts: str) -> None:
    """What a bus has no strings for is refused here, too."""
    if re.search(f"[\0{HALF_OF_A_PAIR}]", "\n".join(texts)):
        raise kind("A service or username with U+0000, or with half of a surrogate pair, has no password here.")


def escaped(text: str) -> str:
    return re.sub(f"[{SPECIAL}]", lambda found: f"%{ord(found[0]):02x}", text)


def matching(items: list[Object], service: str, username: str | None) -> list[Item]:
    """The items with these attributes, the newest first, as over the bus."""
    found = []
    for item in items:
        if match := KEY.fullmatch(item["key"]):
            found.append(Item(item["version"], match[4], item["key"], unquote(match[1]), unquote(match[2])))
    return sorted((item for item in found if item.service == service and username in (None, item.username)), reverse=True)
