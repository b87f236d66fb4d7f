"""Keys, from files and descriptors, never from arguments."""

from __future__ import annotations

import os
import string

from .errors import KeyUnavailable


class Key:
    """What opens a store or its vault."""

    kinds: tuple[int, ...] = ()
    name = "key"

    def __init__(self, material: bytes):
        self.material = material


class KeyFile(Key):
    """The key in a key file: 32 bytes, or the line that `prefs` writes."""

    # Slots for key files, and for keys that a program keeps elsewhere.
    kinds = (1, 4, 5)
    name = "key file"
    PREFIX = b"coffer-key-1:"

    @classmethod
    def parse(cls, data: bytes) -> "KeyFile":
        if len(data) == 32:
            return cls(data)
        line = data.rstrip(b" \r\n")
        digits = line[len(cls.PREFIX) :]
        if not line.startswith(cls.PREFIX) or len(digits) != 64 or not set(digits) <= set(string.hexdigits.encode()):
            raise KeyUnavailable("This is not a key file.")
        return cls(bytes.fromhex(digits.decode("ascii")))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "KeyFile":
        try:
            with open(path, "rb") as file:
                data = file.read(4096)
        except OSError as error:
            raise KeyUnavailable(f"The key file {path} cannot be read: {error.strerror}.")
        return cls.parse(data)


def read_descriptor(descriptor: int, what: str) -> bytes:
    try:
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    except OSError as error:
        raise KeyUnavailable(f"No {what} can be read from descriptor {descriptor}: {error.strerror}.")


class Passphrase(Key):
    """A passphrase: `Passphrase(b"…")`."""

    kinds = (2,)
    name = "passphrase"

    @classmethod
    def read(cls, descriptor: int) -> "Passphrase":
        """From a file descriptor: everything up to the end, without a line feed there."""
        text = read_descriptor(descriptor, cls.name)
        text = text[:-1] if text.endswith(b"\n") else text
        if not text:
            raise KeyUnavailable(f"There is no passphrase in descriptor {descriptor}.")
        return cls(text)


class RecoveryKey(Key):
    """A recovery key: eight groups of letters and digits."""

    kinds = (3,)
    name = "recovery key"
    ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

    @classmethod
    def parse(cls, text: str) -> "RecoveryKey":
        letters = "".join(text.upper().replace("-", "").split()).translate(str.maketrans("OIL", "011"))
        if len(letters) != 40 or not set(letters) <= set(cls.ALPHABET):
            raise KeyUnavailable("This is not a recovery key.")
        digits = [cls.ALPHABET.index(letter) for letter in letters]
        bits = 0
        for group in range(8):
            *values, check = digits[group * 5 : group * 5 + 5]
            expected = group
            for value in values:
                bits = bits << 5 | value
                expected = (expected ^ value) << 1
                expected ^= 0b100101 if expected & 32 else 0
            if check != expected:
                raise KeyUnavailable(f"Group {group + 1} of the recovery key was mistyped.")
        return cls(bits.to_bytes(20, "big"))

    @classmethod
    def read(cls, descriptor: int) -> "RecoveryKey":
        return cls.parse(read_descriptor(descriptor, cls.name).decode("ascii", "replace"))
