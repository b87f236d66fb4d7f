"""A backend for `keyring` that keeps each password as a secret of a Coffer store, in a collection of its own.

It asks a child, `prefs serve`, for each call. Passwords pass through its standard input and output, and nowhere else.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from typing import Any

from keyring.backend import KeyringBackend
from keyring.compat import properties
from keyring.credentials import SimpleCredential
from keyring.errors import InitError, KeyringError, KeyringLocked, PasswordDeleteError, PasswordSetError

__all__ = ["Keyring"]

Item = dict[str, Any]
HALF_OF_A_PAIR = "\ud800-\udfff"
LAST_TEXT = re.compile(r'"([^"\\\0-\x1f]|\\["\\bfnrt]|\\u00[01][0-9a-f])*"\]')
VERSION = 1
EXIT_STORE_NOT_FOUND = 4


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
        item = self._ask(KeyringError, {"do": "get", "key": key(KeyringError, service, username), "reveal": True})[0]
        if "sealed" in item:
            raise self._locked()
        if "type" not in item:
            return None
        match item.get("value"):
            case {"$secret": str(password)} | ("" as password):
                return password
        raise KeyringError(
            f"{item['key']} in the collection {self.prefs_collection} is not a secret that is text; set the password again.")

    def set_password(self, service: str, username: str, password: str) -> None:
        if re.search(f"[{HALF_OF_A_PAIR}]", password):
            raise PasswordSetError("The password has half of a surrogate pair, which is not Unicode text. Nothing was changed.")
        place = key(PasswordSetError, service, username)
        # A secret is never empty.
        value = {"value": {"$secret": password}} if password else {"value": "", "type": "string"}
        self._ask(PasswordSetError, {"do": "set", "key": place, **value})

    def delete_password(self, service: str, username: str) -> None:
        place = key(PasswordDeleteError, service, username)
        item = self._ask(PasswordDeleteError, {"do": "get", "key": place}, {"do": "unset", "key": place})[0]
        if "type" not in item:
            raise PasswordDeleteError(f"There is no password of {username!r} for {service!r}.")

    def get_credential(self, service: str, username: str | None) -> SimpleCredential | None:
        """Without a username, that of the first one by its UTF-8 bytes."""
        usernames = [username] if username is not None else self._usernames(service)
        for name in usernames:
            if (password := self.get_password(service, name)) is not None:
                return SimpleCredential(name, password)
        return None

    def _usernames(self, service: str) -> list[str]:
        start = key(KeyringError, service, "").removesuffix('""]')
        answer = self._ask(KeyringError, {"do": "list", "prefix": start})[0]
        rests = [item["key"].removeprefix(start) for item in answer["items"]]
        return [json.loads(rest.removesuffix("]")) for rest in rests if LAST_TEXT.fullmatch(rest)]

    def _ask(self, kind: type[KeyringError], *requests: Item) -> list[Item]:
        """What `prefs serve` answers to these requests, one after another; its errors are of this kind."""
        lines = [json.dumps({"id": number, "collection": self.prefs_collection, **it}) for number, it in enumerate(requests)]
        command = ["prefs", "serve", "--must-exist", "--no-input", *self._options()]
        try:
            done = subprocess.run(command, input="".join(f"{line}\n" for line in lines).encode(), capture_output=True)
        except OSError as error:
            raise InitError(f"Coffer's program prefs cannot be started: {error.strerror}. Put it on the PATH.") from None
        try:
            # What is after the last line feed is the beginning of a line of a child that was killed.
            hello, *answers = [json.loads(line) for line in done.stdout.split(b"\n")[:-1]] or [{"serve": VERSION}]
        except ValueError:
            hello, answers = {}, []
        if hello.get("serve") != VERSION:
            raise InitError(f"The program prefs on the PATH is not Coffer's, or has no version {VERSION} of the protocol of prefs serve.")
        for answer in answers:
            if "error" in answer:
                raise self._locked() if answer["error"]["error"] == "keyUnavailable" else kind(answer["error"]["message"])
        if len(answers) < len(requests):
            message = done.stderr.decode(errors="replace").removeprefix("prefs: ").strip()
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


def key(kind: type[KeyringError], service: str, username: str) -> str:
    """The key of a password: an array of two texts in canonical JSON (RFC 8785), which is one for any service and username."""
    if re.search(f"[\0{HALF_OF_A_PAIR}]", service + "\n" + username):
        raise kind("A service or username with U+0000, or with half of a surrogate pair, has no password here.")
    return json.dumps([service, username], ensure_ascii=False, separators=(",", ":"))
