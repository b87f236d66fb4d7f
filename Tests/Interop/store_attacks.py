"""The attacks that store_writer.py writes, in the order of FORMAT.md."""

from __future__ import annotations

import struct

import sealing
from coffer_reader.envelope import Envelope
from coffer_reader.pages import LABEL
from coffer_reader.values import ARRAY
from store_writer import COPY, FRAME, PAGE, SECRETS, SIZE, STORE, WITHOUT_LOG, Crafted, case

KEY = "the store's key"
VAULT_KEY = "the store's key, and not the vault's"
DAMAGED, NEWER, NOT_A_STORE = "damaged", "newer format", "not a store"
WRONG_KEY, NOT_TRIED = "wrong key", "cannot be tried"


# MARK: Envelope


@case("A vector", "the store with its log")
def genuine(_: Crafted) -> None:
    pass


@case("A vector", "the store without its log", without_log=True)
def closed(_: Crafted) -> None:
    pass


def store_cases(section: str, changes: dict, *refused: str, **fields: object) -> None:
    """One case for each description."""
    for description, change in changes.items():
        case(section, description, *refused, **fields)(change)


def written(data: bytes):
    def change(crafted: Crafted) -> None:
        crafted.store = bytearray(data)

    return change


store_cases("Envelope", {
    "a bit flipped in the first copy": lambda c: c.flip(200),
    "a bit flipped in the second copy": lambda c: c.flip(COPY + 30),
    "the magic of the first copy overwritten": lambda c: c.store.__setitem__(slice(0, 8), bytes(8)),
    "a checksum of the second copy overwritten": lambda c: c.store.__setitem__(slice(SIZE - 32, SIZE), bytes(32)),
    "a log notice of random bytes": lambda c: c.store.__setitem__(slice(8_096, 8_160), c.random.take(64)),
})
store_cases("Envelope", {
    "a bit flipped in both copies": lambda c: (c.flip(200), c.flip(COPY + 30)),
    "the file ends within the first copy": written(STORE[:8_000]),
    "the file ends within the second copy, and the first has a flipped bit": written(b"".join(
        [STORE[:100], bytes([STORE[100] ^ 1]), STORE[101:12_000]])),
    "the file ends after the envelope": written(STORE[:SIZE]),
    "the time of creation changed, with its checksum": lambda c: c.flip_both(47),
    "the label of a slot changed, with its checksum": lambda c: c.flip_both(117),
    "the MAC changed, with its checksum": lambda c: c.store.__setitem__(
        slice(0, SIZE), sealing.with_checksum(
            (lambda end: bytes(c.store[: end - 1]) + bytes([c.store[end - 1] ^ 8]) + bytes(c.store[end:COPY]))(
                len(bytes(c.store[:Envelope.CHECKED]).rstrip(b"\0")))) * 2),
}, DAMAGED)
store_cases("Envelope", {
    "an empty file": written(b""),
    "a text": written(b"theme = dark\n"),
    "a plain SQLite database": written(b"SQLite format 3\0" + bytes(4_080)),
    "the magic of both copies overwritten": lambda c: (
        c.store.__setitem__(slice(0, 8), bytes(8)), c.store.__setitem__(slice(COPY, COPY + 8), bytes(8))),
}, NOT_A_STORE)
store_cases("Envelope", {
    "the costs of the passphrase's slot lowered, with the checksum: tried with the passphrase":
        lambda c: cost_lowered(c),
}, WRONG_KEY, DAMAGED, secret="passphrase")
store_cases("Envelope", {
    "the costs of the passphrase's slot lowered, with the checksum: tried with the key": lambda c: cost_lowered(c),
}, DAMAGED)


def slot_start(crafted: Crafted, index: int) -> int:
    return 56 + sum(2 + len(record) for record in crafted.records()[:index]) + 2


def cost_lowered(crafted: Crafted) -> None:
    copy = bytearray(crafted.store[:COPY])
    start = slot_start(crafted, 1)
    copy[start + 4 : start + 16] = struct.pack(">III", 15, 8, 1)
    crafted.store[:SIZE] = sealing.with_checksum(bytes(copy)) * 2


def head(offset: int, data: bytes):
    """Replaces bytes of the first 56."""
    return lambda c: c.both(head=lambda before: before[:offset] + data + before[offset + len(data) :])


store_cases("Envelope", {
    "format version 2": head(8, b"\0\2"), "suite 2": head(10, b"\0\2"), "flag 2": head(12, b"\0\0\0\2"),
    "the highest flag": head(12, b"\x80\0\0\0"),
    "a slot of kind 6": lambda c: c.both(slots=[*c.records()[:-1], c.slot(kind=6)]),
    "a slot with stretching 4": lambda c: c.both(
        slots=[*c.records()[:-1], c.slot(kind=2, stretching=4, costs=(1, 2, 3), is_unstretched=True)]),
    "a higher version in the copy that is not used": lambda c: c.store.__setitem__(
        slice(COPY, SIZE), c.copy(head=lambda before: before[:8] + b"\0\2" + before[10:16] + bytes(8) + before[24:])),
}, NEWER, needs=KEY)
store_cases("Envelope", {
    "format version 0": head(8, b"\0\0"), "suite 0": head(10, b"\0\0"), "pages of 8,192 bytes": head(48, b"\0\0\x20\0"),
    "32 reserved bytes": head(52, b"\0\x20"), "no slots": head(54, b"\0"), "17 slots": head(54, b"\x11"),
    "no epochs": head(55, b"\0"), "5 epochs": head(55, b"\5"), "255 slots and 255 epochs": head(54, b"\xff\xff"),
    "two slots of one id": lambda c: c.both(slots=[*c.records()[:-1], c.slot(id=0)]),
    "two epochs of one number": lambda c: c.both(epochs=c.records()[-1:] * 2),
    "a reserved byte of a slot that is not zero": lambda c: c.both(slots=changed_slot(c, 3, b"\1")),
    "a slot of kind 0": lambda c: c.both(slots=changed_slot(c, 1, b"\0")),
    "a key file with costs": lambda c: c.both(slots=changed_slot(c, 4, b"\0\0\0\1")),
    "a key file that is stretched": lambda c: c.both(slots=changed_slot(c, 2, b"\1")),
    "a label of 65 bytes": lambda c: c.both(slots=[*c.records()[:-1], c.slot(label="x" * 65)]),
    "a label that is not UTF-8": lambda c: c.both(slots=changed_slot(c, 58, b"\xff")),
    "a label longer than its record": lambda c: c.both(slots=changed_slot(c, 56, b"\0\x40")),
    "a slot of one byte": lambda c: c.both(slots=[*c.records()[:-1], b"\1"]),
    "a slot with a byte after its end": lambda c: c.both(slots=[record + b"\0" for record in c.records()[:-1]]),
    "an epoch with a byte after its end": lambda c: c.both(epochs=[c.records()[-1] + b"\0"]),
    "a wrapped root key with a flipped bit": lambda c: c.both(slots=changed_slot(c, -1, None)),
    "a wrapped epoch key with a flipped bit": lambda c: c.both(epochs=[flipped(c.records()[-1], -1)]),
    "a succession without a witness key": lambda c: c.both(rest=b"\1" * 32 + bytes(72)),
    "a witness key without a succession": lambda c: c.both(rest=bytes(32) + b"\1" * 72),
    "a byte after the MAC": lambda c: c.both(padding=b"\0\1"),
    "an envelope that is older than the pages": head(16, struct.pack(">Q", 1)),
    "the copy that is not used has two slots of one id": lambda c: c.store.__setitem__(
        slice(COPY, SIZE), c.copy(
            head=lambda before: before[:16] + bytes(7) + b"\1" + before[24:], slots=c.records()[:1] * 2)),
}, DAMAGED, needs=KEY)
store_cases("Slot record", {
    f"a passphrase's slot whose costs are outside their bounds: stretching {stretching}, {costs}":
        lambda c, stretching=stretching, costs=costs: c.both(slots=[c.records()[0], c.slot(
            secret=SECRETS["passphrase"].encode(), kind=2, stretching=stretching, costs=costs, is_unstretched=True)])
    for stretching, costs in (
        (1, (13, 8, 1)), (1, (21, 8, 1)), (1, (20, 8, 2)), (1, (63, 8, 1)), (1, (2**32 - 1, 2**32 - 1, 2**32 - 1)),
        (2, (99_999, 0, 0)), (2, (2**22 + 1, 0, 0)), (2, (100_000, 1, 0)), (3, (2**21 + 1, 1, 1)), (3, (19_456, 0, 1)))
}, NOT_TRIED, needs=KEY, secret="passphrase")
store_cases("Slot record", {
    "a slot whose costs are outside their bounds, and the key's beside it": lambda c: c.both(slots=[
        c.slot(secret=b"x", kind=2, stretching=1, costs=(63, 8, 1), is_unstretched=True), *c.records()[:-1]]),
}, needs=KEY)


def flipped(data: bytes, offset: int) -> bytes:
    changed = bytearray(data)
    changed[offset] ^= 8
    return bytes(changed)


def changed_slot(crafted: Crafted, offset: int, data: bytes | None) -> list:
    """The slots, the first of them with bytes replaced or a bit flipped."""
    first, *others = crafted.records()[:-1]
    changed = flipped(first, offset) if data is None else first[:offset] + data + first[offset + len(data) :]
    return [changed, *others]


# MARK: Pages

ITEMS = 6  # the page that has them


def overwritten(number: int, offset: int, data: bytes):
    return lambda c: c.store.__setitem__(
        slice(c.page(number).start + offset, c.page(number).start + offset + len(data)), data)


def swapped(crafted: Crafted, one: int, other: int) -> None:
    a, b = crafted.page(one), crafted.page(other)
    crafted.store[a], crafted.store[b] = crafted.store[b], crafted.store[a]


store_cases("Pages", {
    **{f"a bit flipped in the {part} of a page": lambda c, offset=offset: c.flip(c.page(ITEMS).start + offset)
       for part, offset in {"ciphertext": 2_000, "nonce": 4_050, "tag": 4_080, "epoch": 4_091, "last byte": 4_095}.items()},
    "two pages swapped": lambda c: swapped(c, 6, 7),
    "a page copied over another": lambda c: c.store.__setitem__(c.page(7), c.store[c.page(ITEMS)]),
    "a page of zeros": overwritten(ITEMS, 0, bytes(PAGE)),
    "the first page of zeros": overwritten(1, 0, bytes(PAGE)),
    "a byte missing at the end": written(STORE[:-1]),
    "a page missing at the end": written(STORE[:-PAGE]),
    "a page missing in the middle": written(STORE[: SIZE + 9 * PAGE] + STORE[SIZE + 10 * PAGE :]),
}, DAMAGED, without_log=True)
store_cases("Pages", {
    "bytes after the last page": lambda c: c.store.extend(b"hidden" * 500),
}, without_log=True)


def sealed_as(additional: bytes, mark: int = 0):
    def change(crafted: Crafted) -> None:
        crafted.seal(ITEMS, crafted.plain_page(ITEMS), additional, mark)

    return change


place = LABEL + struct.pack(">II", 1, ITEMS)
store_cases("Pages", {
    "a page sealed as one of the log": sealed_as(LABEL + struct.pack(">II", 2, ITEMS)),
    "a page sealed for another place": sealed_as(LABEL + struct.pack(">II", 1, ITEMS + 1)),
    "a page with the mark of a frame": sealed_as(place, 1),
    "a first page without SQLite's magic": lambda c: c.change_page(1, 0, b"x"),
    "a first page that says 8,192 bytes a page": lambda c: c.change_page(1, 16, b"\x20\0"),
    "a first page without reserved bytes": lambda c: c.change_page(1, 20, b"\0"),
}, DAMAGED, needs=KEY)

# MARK: Log


def flip_log(offset: int):
    return lambda c: c.log.__setitem__(offset, c.log[offset] ^ 8)


def replayed(crafted: Crafted) -> None:
    """The first frame in the place of the second."""
    crafted.log[crafted.frame(2)] = crafted.log[crafted.frame(1)]


store_cases("Log", {
    "a bit flipped in the header": flip_log(20),
    **{f"a bit flipped in the {part} of the first frame": flip_log(32 + offset) for part, offset in {
        "page number": 3, "size of the database": 7, "salts": 10, "checksum": 20, "ciphertext": 2_000, "nonce": 4_075,
        "tag": 4_105, "sync mark": 4_119}.items()},
    "the first frame in the place of the second": replayed,
    "a first frame of page 0": lambda c: c.log.__setitem__(slice(32, 36), bytes(4)),
    "a header alone": lambda c: c.log.__delitem__(slice(32, None)),
    "an empty log": lambda c: c.log.clear(),
    "a log of random bytes": lambda c: c.log.__setitem__(slice(None), c.random.take(5_000)),
    "a header of zeros": lambda c: c.log.__setitem__(slice(0, 32), bytes(32)),
    "the first two frames swapped": lambda c: c.log.__setitem__(
        slice(32, 32 + 2 * FRAME), c.log[c.frame(2)] + c.log[c.frame(1)]),
}, contents=WITHOUT_LOG)
store_cases("Log", {
    "bytes after the last frame": lambda c: c.log.extend(b"\0" * 5_000),
    "the last frame again at the end": lambda c: c.log.extend(c.log[c.frame(7)]),
})
store_cases("Restoring", {
    "flag 1: the log is another store's": lambda c: c.both(head=lambda before: before[:12] + b"\0\0\0\1" + before[16:]),
}, needs=KEY, without_log=False, contents=WITHOUT_LOG)

# MARK: Tables


def sql(*statements):
    return lambda c: c.sql(*statements)


store_cases("Tables", {
    "tables of version 10": sql("PRAGMA user_version = 10"),
    "no store_id": sql("DELETE FROM meta WHERE name = 'store_id'"),
    "another store's id": sql("UPDATE meta SET value = zeroblob(16) WHERE name = 'store_id'"),
    "no envelope_sequence": sql("DELETE FROM meta WHERE name = 'envelope_sequence'"),
    "an envelope_sequence of the future": sql("UPDATE meta SET value = x'00000000000000ff' WHERE name = 'envelope_sequence'"),
    "an item of a collection that is missing": sql("UPDATE items SET collection = 77 WHERE key = 'theme'"),
}, DAMAGED, needs=KEY)
store_cases("Tables", {"tables of version 17": sql("PRAGMA user_version = 17")}, NEWER, needs=KEY)
store_cases("Tables", {
    "a view": sql("CREATE VIEW more AS SELECT * FROM items"),
    "a trigger": sql("CREATE TRIGGER more AFTER INSERT ON items BEGIN DELETE FROM history; END"),
    "an index over an expression": sql("CREATE INDEX more ON items(hex(data))"),
    "a table of another": sql("CREATE TABLE more(a)"),
    "a column with a default": sql("ALTER TABLE meta ADD COLUMN more TEXT DEFAULT 'x'"),
}, DAMAGED, needs=KEY, mayRead=True)

# MARK: Values


def nested(depth: int) -> bytes:
    data = b""
    for _ in range(depth):
        data = sealing.element(ARRAY, data)
    return data


# Kind and bytes of values that every reader refuses as damaged.
REFUSED_VALUES = {
    "null as a value": (0, b""), "a sealed value where nothing is sealed": (14, bytes(60)), "kind 15": (15, b""),
    "kind 99": (99, b"x"), "a bool of 2": (1, b"\2"), "a bool of no bytes": (1, b""), "a bool of two bytes": (1, b"\1\1"),
    "an int of 7 bytes": (2, bytes(7)), "a uint64 of 9 bytes": (3, b"\xff" * 9), "a double of 9 bytes": (4, bytes(9)),
    "a date of no bytes": (7, b""), "a string that is not UTF-8": (5, b"\xff"),
    "a string with an overlong form": (5, b"\xc0\x80"), "a string with a surrogate": (5, b"\xed\xa0\x80"),
    "a string beyond U+10FFFF": (5, b"\xf4\x90\x80\x80"), "a url with two bases": (8, b"a\0b\0c"),
    "a url that is not UTF-8": (8, b"a\xff"), "a uuid of 15 bytes": (9, bytes(15)),
    "JSON that is not UTF-8": (12, b"\xff"), "an array that ends within an element": (10, b"\1"),
    "an array whose element ends after it": (10, b"\5\4abc"),
    "an array with a length of 2^63 - 1": (10, b"\5" + b"\xff" * 8 + b"\x7f"),
    "an array with a length of more than 64 bits": (10, b"\5" + b"\xff" * 10 + b"\1"),
    "an array with a secret": (10, b"\x0d\0"), "an array with a sealed value": (10, b"\x0e\0"),
    "an array with an element of kind 99": (10, b"\x63\0"), "an array with a null of one byte": (10, b"\0\1\0"),
    "arrays in arrays, one level too deep": (10, nested(129)),
    "a dictionary that ends within an entry": (11, b"\1"), "a dictionary that ends within a key": (11, b"\5ab"),
    "a dictionary whose key is not UTF-8": (11, b"\1\xff\0\0"), "a dictionary whose key is too long": (11, b"\2a\0\0"),
}
# That a reader may accept (FORMAT.md, Values); it does not crash.
LENIENT_VALUES = {
    "a uint64 that an int could hold": (3, bytes(7) + b"\1"), "a dictionary out of order": (11, b"\1b\0\0\1a\0\0"),
    "a dictionary with a key twice": (11, b"\1a\0\0\1a\0\0"), "a longer varint than needed": (10, b"\5\x81\0a"),
    "a date of NaN": (7, b"\x7f\xf8" + bytes(6)), "a date of infinity": (7, b"\x7f\xf0" + bytes(6)),
    "the greatest date": (7, b"\x7f\xef" + b"\xff" * 6), "text that is not JSON": (12, b"{"),
    "JSON with a name twice": (12, b'{"a":1,"a":2}'), "arrays in arrays, as deep as allowed": (10, nested(128)),
    "a secret that is not UTF-8": (13, b"\xff"),
}
store_cases("Values", {
    "a value of an unknown kind": sql(("UPDATE items SET type = 99, data = x'00' WHERE key = 'theme'")),
    "an earlier value of an unknown kind": sql(("UPDATE history SET type = 99 WHERE key = 'present'")),
    "metadata of no bytes": sql("UPDATE items SET metadata = x'' WHERE key = 'theme'"),
    "metadata of an unknown kind": sql("UPDATE items SET metadata = x'6300' WHERE key = 'theme'"),
    "a sealed value in a collection that is not sealed": sql(
        "UPDATE items SET (type, data) = (SELECT type, data FROM items WHERE key = 'token') WHERE key = 'theme'"),
}, DAMAGED, needs=KEY)

# MARK: Vault

store_cases("Vault", {
    "the vault's generation replaced": sql("UPDATE vault SET generation = 4294967296"),
    "a first vault with a succession": sql("UPDATE vault SET succession = CAST(x'11' || zeroblob(31) AS BLOB)"),
    "the vault's slots removed": sql("UPDATE vault SET slots = x''"),
    "a vault's slot that is longer than the list": sql("UPDATE vault SET slots = x'ffff'"),
    "the vault's MAC replaced": sql("UPDATE vault SET mac = zeroblob(32)"),
    "the vault's list of sealed collections emptied": sql("UPDATE vault SET sealed = x''"),
    "a collection that is not sealed any more": sql("UPDATE collections SET flags = flags & ~1 WHERE name = 'sealed'"),
    "an environment of a sealed collection that is not sealed": sql(
        "INSERT INTO collections(name, flags) VALUES ('sealed@staging', 0)"),
    "plaintext in a sealed collection": sql("UPDATE items SET type = 5, data = x'61' WHERE key = 'token'"),
    "a secret in plaintext in a sealed collection": sql("UPDATE items SET type = 13, data = x'61' WHERE key = 'token'"),
}, DAMAGED, needs=VAULT_KEY, vault=True)
store_cases("Vault", {
    # The slots are bound to it.
    "the vault's id replaced": sql("UPDATE vault SET id = zeroblob(16)"),
}, DAMAGED, WRONG_KEY, needs=VAULT_KEY, vault=True)
store_cases("Sealed values", {
    "a bit of a sealed value flipped": sql(
        "UPDATE items SET data = CAST(substr(data, 1, 30) || x'ff' || substr(data, 32) AS BLOB) WHERE key = 'token'"),
    "a sealed value moved to another key": sql(
        "UPDATE items SET data = (SELECT data FROM items WHERE key = 'list') WHERE key = 'token'"),
    "a sealed value moved to the metadata": sql(
        "UPDATE items SET metadata = CAST(x'0e' || data AS BLOB) WHERE key = 'token'"),
    "a sealed value of another generation": sql(
        "UPDATE items SET data = CAST(x'00000007' || substr(data, 5) AS BLOB) WHERE key = 'token'"),
    "a sealed value of 20 bytes": sql("UPDATE items SET data = substr(data, 1, 20) WHERE key = 'token'"),
}, DAMAGED, needs=VAULT_KEY, vault=True)
store_cases("Tables", {
    "a collection with an unknown flag: it is refused, and the others are read": sql(
        "UPDATE collections SET flags = flags | 8 WHERE name = 'kinds'"),
}, NEWER, needs=KEY, collection="kinds")
