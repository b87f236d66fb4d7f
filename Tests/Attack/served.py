"""`prefs ui` with a store, and requests by hand."""

from __future__ import annotations

import contextlib
import secrets
import socket

import program
from workshop import BINARIES, NotAllowed

SECRET = "page-secret-" + secrets.token_hex(10)
PASSPHRASE = "correct horse"


class Store(program.Store):
    """A store with a secret, a sealed collection and an environment."""

    def __init__(self):
        super().__init__(str(BINARIES))
        self.prefs("set", "editor/theme", "dark")
        self.prefs("set", "other/name", "not for this page")
        self.prefs("set", "api/token", "--secret", "-", input=SECRET)
        self.prefs("set", "vault/pin", "--secret", "-", input=SECRET + "-sealed")
        self.prefs("env", "create", "api@staging")
        self.seal("vault", PASSPHRASE)
        self.prefs("history", "--keep", "api")
        self.prefs("set", "api/token", "--secret", "-", input=SECRET)


@contextlib.contextmanager
def served(*arguments: str):
    store = Store()
    page = None
    try:
        page = program.Page(store, *arguments)
        yield page
    finally:
        if page is not None:
            page.close()
        store.close()


def refuses(answer: tuple, what: str) -> None:
    status, _, body = answer
    if status != 403 or body:
        raise NotAllowed(f"{what}: status {status}, {body[:80]!r}")


def raw(page, data: bytes, seconds: float = 5) -> bytes:
    """What comes back for these bytes, until the end or for a while."""
    with socket.create_connection(("127.0.0.1", page.port), timeout=seconds) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(data)
        received = b""
        with contextlib.suppress(OSError):
            while part := connection.recv(65_536):
                received += part
        return received
