"""Encrypted pages, and the log that replaces some of them."""

from __future__ import annotations

import struct
from typing import BinaryIO

from cryptography.exceptions import InvalidTag

from .envelope import PAGE, RESERVED, EpochKeys


USABLE = PAGE - RESERVED
LOCK_PAGE = 262_145
LABEL = b"coffer/1"
SQLITE_MAGIC = b"SQLite format 3\0"


class SealedPage:
    def __init__(self, data: bytes):
        self.ciphertext = data[:USABLE]
        self.nonce = data[USABLE : USABLE + 24]
        self.tag = data[USABLE + 24 : USABLE + 40]
        self.epoch, self.mark = struct.unpack(">II", data[USABLE + 40 :])

    def open(self, epochs: dict[int, EpochKeys], additional: bytes) -> bytes:
        """The plaintext page, its reserved bytes zero; InvalidTag if it does not open."""
        keys = epochs.get(self.epoch)
        if keys is None:
            raise InvalidTag()
        return keys.page.open(self.nonce, self.ciphertext + self.tag, additional) + bytes(RESERVED)


class Checksum:
    """The running checksum of SQLite's write-ahead log."""

    MASK = 0xFFFF_FFFF

    def __init__(self, little_endian: bool):
        self._order = "<" if little_endian else ">"
        self._first = self._second = 0

    def add(self, data: bytes) -> None:
        first, second, mask = self._first, self._second, self.MASK
        words = iter(struct.unpack(f"{self._order}{len(data) // 4}I", data))
        for even, odd in zip(words, words):
            first = (first + even + second) & mask
            second = (second + odd + first) & mask
        self._first, self._second = first, second

    @property
    def bytes(self) -> bytes:
        return struct.pack(">II", self._first, self._second)


class Log:
    """What a log says: the pages it replaces, and the size it leaves the database with (None: it says nothing)."""

    HEADER = 32
    FRAME_HEADER = 24
    FRAME = FRAME_HEADER + PAGE
    MAGIC_LITTLE_ENDIAN = 0x377F_0682
    MAGIC_BIG_ENDIAN = 0x377F_0683
    VERSION = 3_007_000

    def __init__(self) -> None:
        self.pages: dict[int, bytes] = {}
        self.size: int | None = None
        self.valid_frames = 0
        self.committed_frames = 0
        self.commits = 0

    @classmethod
    def read(cls, file: BinaryIO, epochs: dict[int, EpochKeys]) -> "Log":
        log = cls()
        header = file.read(cls.HEADER)
        if len(header) < cls.HEADER:
            return log
        magic, version, page = struct.unpack(">III", header[:12])
        known = magic in (cls.MAGIC_LITTLE_ENDIAN, cls.MAGIC_BIG_ENDIAN)
        if not known or version != cls.VERSION or page != PAGE:
            return log
        for keys in epochs.values():
            rest = keys.log_header.decipher(header[16:], 0)
            checksum = Checksum(magic == cls.MAGIC_LITTLE_ENDIAN)
            checksum.add(header[:16] + rest[:8])
            if checksum.bytes == rest[8:]:
                log._read_frames(file, epochs, rest[:8], checksum)
                break
        return log

    def _read_frames(self, file: BinaryIO, epochs: dict[int, EpochKeys], salts: bytes, checksum: Checksum) -> None:
        pending: dict[int, bytes] = {}
        number = 0
        while True:
            frame = file.read(self.FRAME)
            if len(frame) < self.FRAME:
                return
            number += 1
            head, sealed = frame[: self.FRAME_HEADER], SealedPage(frame[self.FRAME_HEADER :])
            page, size = struct.unpack(">II", head[:8])
            keys = epochs.get(sealed.epoch)
            if keys is None or page == 0:
                return
            rest = keys.log_header.decipher(head[8:], number)
            if rest[:8] != salts:
                return
            try:
                place = LABEL + struct.pack(">IIII", 2, number, page, size) + salts
                plain = sealed.open(epochs, place + struct.pack(">I", sealed.mark))
            except InvalidTag:
                return
            checksum.add(head[:8] + plain)
            if checksum.bytes != rest[8:]:
                return
            self.valid_frames = number
            pending[page] = plain
            if size != 0:
                self.pages.update(pending)
                pending.clear()
                self.size = size
                self.committed_frames = number
                self.commits += 1
