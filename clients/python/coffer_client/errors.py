"""What can go wrong: the errors of the server, which are those of `prefs`, and a few of this package."""

from __future__ import annotations

from typing import Any


class CofferError(Exception):
    """Any error. `name`, `code` and `message` are those of the server: the exit code of `prefs`, its name, and a sentence."""

    name = "other"
    code = 1

    def __init__(self, message: str, name: str | None = None, code: int | None = None, store: str | None = None) -> None:
        super().__init__(message)
        self.message, self.store = message, store
        self.name, self.code = name or self.name, code or self.code

    @staticmethod
    def of(error: dict[str, Any]) -> CofferError:
        """The error of an answer."""
        kind = KINDS.get(error["error"], CofferError)
        return kind(error["message"], error["error"], error["code"], error.get("store"))

    @staticmethod
    def of_exit(code: int) -> CofferError:
        """The error of a child that has ended at once."""
        kind = {kind.code: kind for kind in KINDS.values() if kind is not Unavailable}.get(code, CofferError)
        return kind(f"prefs serve ended with exit code {code}; standard error has its message.", code=code)


class NotFound(CofferError):
    """There is no such setting, and no default."""

    name, code = "notFound", 3


class WrongKey(CofferError):
    """The key does not open the store."""

    name, code = "wrongKey", 5


class KeyUnavailable(CofferError):
    """The key file cannot be read, or is none, or the vault is locked."""

    name, code = "keyUnavailable", 6


class InvalidValue(CofferError):
    """The value does not fit the declaration of the setting, or its type."""

    name, code = "format", 8


class Conflict(CofferError):
    """The setting has another version than the one that was expected."""

    name, code = "conflict", 9


class Busy(CofferError):
    """Another program has locked the store for too long."""

    name, code = "busy", 10


class Refused(CofferError):
    """The store does not permit this."""

    name, code = "refused", 11


class Locked(CofferError):
    """An administrator has locked the setting."""

    name, code = "managed", 13


class Hidden(CofferError):
    """The setting has a value, which this program has not asked for, or which is sealed."""

    name = "hidden"


class WrongType(CofferError):
    """The setting has a value of another type than the program asks for."""

    name = "wrongType"


class Unavailable(CofferError):
    """The server does not run, or has not answered; whether a change that was sent was made is then unknown."""

    name = "unavailable"


KINDS: dict[str, type[CofferError]] = {
    kind.name: kind for kind in (NotFound, WrongKey, KeyUnavailable, InvalidValue, Conflict, Busy, Refused, Locked, Unavailable)
}
