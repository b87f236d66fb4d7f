"""What can go wrong. Each error is one sentence, with the exit code that `prefs` has for it."""

from __future__ import annotations


class CofferError(Exception):
    """Any error of this package."""

    code = 1

    def __init__(self, sentence: str, code: int | None = None):
        super().__init__(sentence)
        if code is not None:
            self.code = code


class KeyMissing(CofferError):
    """The store has no such key or collection."""

    code = 3


class StoreMissing(CofferError):
    code = 4


class WrongKey(CofferError):
    code = 5


class KeyUnavailable(CofferError):
    """The key file, the passphrase or the recovery key cannot be read, or is none."""

    code = 6


class Damaged(CofferError):
    """The store, or the fleet, was damaged or modified."""

    code = 7


class NotAStore(CofferError):
    code = 8


class OutputExists(CofferError):
    code = 9


class Busy(CofferError):
    """Other programs changed the store each time that it was read."""

    code = 10


class NewerFormat(CofferError):
    """A later version of Coffer has written this."""

    code = 12


class Unreadable(CofferError):
    """The system does not permit to read or write a file."""

    code = 14
