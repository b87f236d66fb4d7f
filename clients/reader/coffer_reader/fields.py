"""Reading bytes, field by field."""

from __future__ import annotations

from .errors import Damaged


class Fields:
    """Takes one field after the other, and never past the end."""

    def __init__(self, data: bytes, what: str):
        self.data = data
        self.what = what
        self.offset = 0

    def bytes(self, count: int) -> bytes:
        if count > len(self.data) - self.offset:
            raise Damaged(f"The store is damaged: {self.what} ends too early.")
        self.offset += count
        return self.data[self.offset - count : self.offset]

    def integer(self, count: int) -> int:
        return int.from_bytes(self.bytes(count), "big")

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.integer(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        if value >= 1 << 64:
            raise Damaged(f"The store is damaged: {self.what} has a number with more than 64 bits.")
        return value

    @property
    def at_end(self) -> bool:
        return self.offset == len(self.data)

    def expect_end(self) -> None:
        if not self.at_end:
            raise Damaged(f"The store is damaged: {self.what} has bytes after its end.")
