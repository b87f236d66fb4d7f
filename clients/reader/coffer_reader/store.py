"""Opening a store, for reading."""

from __future__ import annotations

import io
import os
import sqlite3
import stat
import struct
import tempfile
import time
from typing import Iterator

from cryptography.exceptions import InvalidTag

from .contents import Contents
from .envelope import PAGE, RESERVED, Envelope
from .errors import Busy, Damaged, NewerFormat, NotAStore, OutputExists, StoreMissing, Unreadable
from .keys import Key
from .pages import LABEL, LOCK_PAGE, SQLITE_MAGIC, Log, SealedPage
from .tables import reading
from .values import as_bytes, as_text
from .vault import unseal

Path = str | os.PathLike[str]


def read(path: Path, key: Key, vault: Key | None = None) -> Contents:
    """Everything in the store at `path`, which `key` opens; sealed values, too, with a key of its vault.

    The store is not changed, and other programs may use it meanwhile.
    """
    return Store(path, key).contents(vault)


class Store:
    """The encrypted pages of a store, as they were when it was opened."""

    def __init__(self, path: Path, key: Key):
        self._data, log = read_files(os.fspath(path))
        self.envelope = Envelope.parse(self._data[: Envelope.SIZE])
        root_key = self.envelope.root_key(key)
        self.envelope.check(root_key)
        self._epochs = {epoch.number: epoch.keys(root_key, self.envelope.store_id) for epoch in self.envelope.epochs}
        self.log = Log() if self.envelope.is_placed else Log.read(io.BytesIO(log), self._epochs)
        self.page_count = self._count_pages()

    def _count_pages(self) -> int:
        """The log says it, else the header of the database does, if its counters agree, else the length of the file."""
        if self.log.size is not None:
            return self.log.size
        header = self.page(1)
        size, = struct.unpack(">I", header[28:32])
        if size != 0 and header[24:28] == header[92:96]:
            return int(size)
        return (len(self._data) - Envelope.SIZE) // PAGE

    def page(self, number: int) -> bytes:
        """The plaintext of page `number`, with the log applied."""
        if number in self.log.pages:
            return self.log.pages[number]
        if number == LOCK_PAGE:
            return bytes(PAGE)
        start = Envelope.SIZE + (number - 1) * PAGE
        data = self._data[start : start + PAGE]
        if len(data) < PAGE:
            raise Damaged(f"The store is damaged: page {number} is missing.")
        try:
            sealed = SealedPage(data)
            # Only a frame of the log has a mark, which its tag covers.
            if sealed.mark != 0:
                raise InvalidTag()
            return sealed.open(self._epochs, LABEL + struct.pack(">II", 1, number))
        except InvalidTag:
            raise Damaged(f"The store is damaged: page {number} does not authenticate.")

    def pages(self) -> Iterator[bytes]:
        """Every page of the plain database, which says of itself that it has no log."""
        first = bytearray(self.page(1))
        if not first.startswith(SQLITE_MAGIC) or first[16:18] != b"\x10\x00" or first[20] != RESERVED:
            raise Damaged("The store is damaged: its first page is not that of a database.")
        first[18:20] = b"\x01\x01"
        yield bytes(first)
        for number in range(2, self.page_count + 1):
            yield self.page(number)

    def contents(self, vault: Key | None = None) -> Contents:
        """Everything in the store; sealed values, too, with a key of its vault."""
        return Contents(self.plain(vault))

    def plain(self, vault: Key | None = None) -> sqlite3.Connection:
        """The plain database, in memory, every text and blob as bytes."""
        plain = sqlite3.connect(":memory:")
        plain.text_factory = bytes
        with reading():
            plain.deserialize(b"".join(self.pages()))
            # SQLite must not sort in a file.
            plain.execute("PRAGMA temp_store = MEMORY")
        self._check(plain)
        if vault is not None:
            unseal(plain, vault)
        return plain

    def write_plain(self, path: Path, vault: Key | None = None) -> None:
        """Writes the plain database to a new file, readable by its owner only; on an error there is no file at all."""
        path = os.fspath(path)
        for suffix in ("", "-wal", "-shm", "-journal"):
            if os.path.lexists(path + suffix):
                raise OutputExists(f"{path}{suffix} already exists.")
        data = self.plain(vault).serialize()
        folder, name = os.path.split(os.path.abspath(path))
        temporary = None
        try:
            descriptor, temporary = tempfile.mkstemp(prefix=f".{name}.", suffix=".tmp", dir=folder)
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.rename(temporary, path)
            temporary = None
        except OSError as error:
            raise Unreadable(f"{path} cannot be written: {error.strerror}.")
        finally:
            if temporary is not None:
                os.unlink(temporary)

    def _check(self, plain: sqlite3.Connection) -> None:
        """Whether envelope and pages belong together."""
        with reading():
            version, = plain.execute("PRAGMA user_version").fetchone()
            if version > 16:
                raise NewerFormat(f"The tables have version {version}; this reader knows version 16.")
            if version < 11:
                raise Damaged("The store is damaged: the version of its tables was never released.")
            meta = {as_text(name): as_bytes(value) for name, value in plain.execute("SELECT name, value FROM meta")}
        if meta.get("store_id") != self.envelope.store_id:
            raise Damaged("The store is damaged: its envelope is another store's.")
        sequence = meta.get("envelope_sequence", b"")
        if len(sequence) != 8 or self.envelope.sequence < int.from_bytes(sequence, "big"):
            raise Damaged("The store is damaged: its envelope is older than its pages.")


# MARK: - Files

ATTEMPTS = 200
PAUSE = 0.02  # seconds; longer than a step of the clock that files get their times from


def read_files(path: str) -> tuple[bytes, bytes]:
    """A store and its log as they were at one moment, though programs may write to them: this takes no locks.

    Commits append to the log, of which any part is good. What must not have happened meanwhile is a checkpoint, which
    changes the store, or a new generation of the log, which has another header.
    """
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE)
        before = stamp(path)
        # Another change within the same step of the clock would not show.
        if 0 <= time.time_ns() - before[-1] < PAUSE * 1e9:
            continue
        data = contents_of(path)
        log = contents_of(path + "-wal", is_optional=True)
        header = contents_of(path + "-wal", is_optional=True, count=Log.HEADER)
        if stamp(path) == before and header == log[: Log.HEADER]:
            return data, log
    raise Busy(f"Other programs write to {path} all the time; read a copy that prefs backup has made.")


def stamp(path: str) -> tuple[int, int, int]:
    """What changes when the file at `path` is replaced or written to."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        raise StoreMissing(f"There is no store at {path}.")
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror}.")
    if not stat.S_ISREG(status.st_mode):  # A pipe or a device may have no end.
        raise NotAStore(f"{path} is {'a folder' if stat.S_ISDIR(status.st_mode) else 'a pipe or a device'}, not a store.")
    return status.st_ino, status.st_size, max(status.st_mtime_ns, status.st_ctime_ns)


def contents_of(path: str, is_optional: bool = False, count: int = -1) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(count)
    except FileNotFoundError:
        if is_optional:
            return b""
        raise StoreMissing(f"There is no store at {path}.")
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror}.")
