"""What can go wrong: the errors of `prefs`, and a few of this package."""

from __future__ import annotations


class CofferError(Exception):
    """Any error, with the `name`, the `code` and the `message` of `prefs`, or the name "hidden", "wrongType" or "unavailable"."""

    name, code = "other", 1

    def __init__(self, message: str, name: str | None = None, code: int | None = None, store: str | None = None) -> None:
        super().__init__(message)
        self.message, self.store = message, store
        self.name, self.code = name or self.name, code or self.code


class NotFound(CofferError):
    """There is no such setting, and no default."""

    name, code = "notFound", 3


class InvalidValue(CofferError):
    """The value does not fit the declaration of the setting, or its type."""

    name, code = "format", 8


class Conflict(CofferError):
    """The setting has another version than the one that was expected."""

    name, code = "conflict", 9


class Unavailable(CofferError):
    """The server does not run, or has not answered; whether a change that was sent was made is then unknown."""

    name = "unavailable"
