"""Files that were made to do harm when they are opened: stores, key files, declarations, imports."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import struct

import store_writer
from coffer_reader.envelope import Envelope
from coffer_reader.errors import CofferError
from forging import forge
from registry import attempt
from samples import Outcomes, closed, home
from workshop import HERE, NotAllowed, Place

VECTORS = HERE.parent / "Interop/vectors"
RANDOM = random.Random(46)
# What the verdicts of the vectors are in exit codes.
CODES = {"damaged": 7, "newer format": 12, "not a store": 8, "wrong key": 5, "cannot be tried": 1}
COMMANDS = (
    ("export", "--reveal"), ("list", "-l", "--values", "web"), ("get", "theme"), ("log", "--no-pager"), ("log", "--verify"),
    ("validate",), ("schema",), ("status", "--json"), ("collections", "--json"), ("find", "a"), ("history", "past/present"),
    ("set", "web/new", "x"), ("rotate",), ("compact",), ("doctor", "--deep", "--json"), ("key", "list"),
)
# Of a store whose contents a command cannot use; never a crash, which `run` refuses.
ENDS = (0, 1, 2, 3, 5, 6, 7, 8, 9, 11, 12, 13, 16)


def placed(found: dict) -> Place:
    place = Place(home(), "vector")
    store_writer.put(found, place.folder)
    if not found.get("vault"):
        place.vault_key.unlink()
    return place


def opened(place: Place, found: dict, command: str, *words: str):
    if found.get("secret") != "passphrase":
        return place.prefs(command, *words)
    return home().prefs(
        command, "--store", place.store, "--passphrase-fd", "0", "--no-input", *words,
        input=store_writer.SECRETS["passphrase"].encode(),
    )


def listed(place: Place) -> dict:
    """Keys by collection, as the tool lists them."""
    names = json.loads(place.do("collections", "--json"))
    return {name: sorted(item["key"] for item in json.loads(place.do("list", "--json", "-c", name))) for name in names}


@attempt("A store is handed over with its key")
def handed_over(threat) -> None:
    document = json.loads((VECTORS / "store-attacks.json").read_text())
    cases = [found for found in document["cases"] if found["needs"] != "no key"]
    verdicts(threat, cases, document, "stores made with the key")
    values = [found for found in document["values"]]
    place, outcomes = placed({"store": {"bytes": []}, "log": None}), Outcomes()
    insert = (
        "INSERT INTO items(collection, key, version, modified, type, data, metadata) SELECT id, ?, 1, 0, ?, ?, ? FROM collections"
        " WHERE name = 'kinds'"
    )

    def add(plain) -> None:
        for number, found in enumerate(values):
            data = bytes.fromhex(found["bytes"])
            plain.execute(insert, (f"bad {number}", found["kind"], data, bytes([found["kind"] & 255]) + data))

    forge(place, add)
    place.prefs("doctor", "--deep").check(7)
    for number, found in enumerate(values):
        done = place.prefs("get", "-c", "kinds", f"bad {number}")
        if done.code == 0 and not found.get("mayRead"):
            raise NotAllowed(f"{found['case']}: {done.text[:80]!r}")
        outcomes.add(f"exit code {done.code}")
    threat.tried(f"{len(values)} values of {VECTORS.name}/store-attacks.json, each as an item and as metadata", str(outcomes))
    extremes(threat)


def verdicts(threat, cases: list, document: dict, what: str) -> None:
    outcomes, wrong = Outcomes(), []
    for found in cases:
        place = placed(found)
        words = ("list", "-c", found["collection"]) if "collection" in found else ("doctor", "--deep")
        done = opened(place, found, *words)
        if "refused" in found:
            codes = [CODES[verdict] for verdict in found["refused"]]
            if done.code not in codes:
                wrong.append(f"{found['section']}, {found['case']}: {done.code} instead of {codes}: {done.says[:150]}")
            outcomes.add(f"refused with {done.code}")
        else:
            plain = {name: sorted(items) for name, items in document["states"][found["contents"]].items()}
            have = {name: keys for name, keys in listed(place).items() if keys}
            if have != plain:
                wrong.append(f"{found['section']}, {found['case']}: it holds something else")
            outcomes.add("read as it must be")
        place.remove()
    threat.tried(f"{len(cases)} {what} (Tests/Interop/vectors/store-attacks.json)", "\n".join([str(outcomes), *wrong]), not wrong)


def extremes(threat) -> None:
    """Numbers and names at the ends of what a column holds, and every command."""
    highest, lowest = 2**63 - 1, -(2**63)
    changes = [
        f"UPDATE {table} SET {column} = {value}"
        for table, columns in (
            ("items", ("version", "modified", "expires", "due", "type", "collection")),
            ("changes", ("time", "writer", "total")), ("history", ("version", "ended", "time", "modified")),
            ("collections", ("flags", "history_count", "history_age")),
        )
        for column in columns
        for value in (highest, lowest, -1)
    ] + [
        "UPDATE items SET key = CAST(x'6bff' || key AS TEXT)", "UPDATE items SET key = CAST(x'00' || key AS TEXT)",
        "DELETE FROM changes", "UPDATE collections SET name = CAST(name || x'0a' AS TEXT)",
        "UPDATE items SET author = CAST(zeroblob(100000) AS TEXT)", "UPDATE changes SET keys = x'00ffffffffffffffffff010001'",
        "DELETE FROM collections", "DELETE FROM meta", "DELETE FROM sqlite_sequence",
        "UPDATE sqlite_sequence SET seq = 9223372036854775807",
        "UPDATE changes SET sequence = 9223372036854775807 WHERE sequence = 5",
        "UPDATE items SET data = zeroblob(20000000) WHERE key = 'theme'",
        "UPDATE collections SET name = CAST(zeroblob(1000000) AS TEXT) WHERE id = 1",
    ]
    outcomes, slow = Outcomes(), 0.0
    for number, change in enumerate(changes):
        place = placed({"store": {"bytes": []}, "log": None})
        try:
            forge(place, change)
        except (CofferError, sqlite3.Error):
            continue
        for command in (COMMANDS[number % len(COMMANDS)], ("doctor", "--deep")):
            done = place.prefs(*command, patience=60)
            if done.code not in ENDS:
                raise NotAllowed(f"{change}: {done}")
            outcomes.add(f"exit code {done.code}")
            slow = max(slow, done.seconds)
        place.remove()
    threat.tried(
        f"{len(changes)} extreme numbers and names, each with doctor and one of {len(COMMANDS)} commands",
        f"{outcomes}; the slowest took {slow:.1f} s of processor time",
    )


@attempt("A crafted file is opened")
def crafted_file(threat) -> None:
    document = json.loads((VECTORS / "store-attacks.json").read_text())
    cases = [found for found in document["cases"] if found["needs"] == "no key"]
    verdicts(threat, cases, document, "files made without the key")
    place, outcomes, data = closed().copy("random"), Outcomes(), closed().store.read_bytes()
    for number in range(36):
        changed = bytearray(data)
        if number % 3 == 0:
            changed = bytearray(RANDOM.randbytes(RANDOM.randrange(1, 60_000)))
            if number % 2:
                changed[:8] = Envelope.MAGIC
        else:
            for _ in range(RANDOM.randrange(1, 40)):
                start = RANDOM.randrange(len(changed))
                changed[start : start + RANDOM.randrange(1, 64)] = RANDOM.randbytes(RANDOM.randrange(1, 64))
        place.write(place.store, bytes(changed))
        for words in (("export",), ("doctor",), ("salvage", "-o", place.folder / f"saved-{number}")):
            done = place.prefs(*words)
            if done.code == 0 and words[0] == "export" and done.out != closed().do("export"):
                raise NotAllowed(f"random changes number {number}: other data")
            outcomes.add(f"{words[0]} {done.code}")
    threat.tried("random files, and stores with random bytes in random places: export, doctor, salvage", str(outcomes))
    outcomes = Outcomes()
    key = place.key.read_bytes()
    place.write(place.store, data)
    for content in (
        b"", b"\0" * 32, b"coffer-key-1:", key[:-9], key + key, key.upper(), b"coffer-key-2:" + key[13:], b"x" * 1_000_000,
        b"\xff" * 78, key[:13] + b"g" * 64 + b"\n", data[:78], RANDOM.randbytes(32),
    ):
        place.write(place.key, content)
        outcomes.add(f"exit code {place.prefs('collections').check(5, 6).code}")
    threat.tried("12 malformed key files", str(outcomes))
    place.write(place.key, key)
    for what, make in (
        ("a folder", lambda path: path.mkdir()), ("a pipe", os.mkfifo),
        ("a device", lambda path: path.symlink_to("/dev/zero")), ("a link to itself", lambda path: path.symlink_to(path)),
    ):
        # A key file may be a pipe: a shell's <(command).
        for target in (place.store,) if what == "a pipe" else (place.store, place.key):
            saved = target.read_bytes()
            target.unlink()
            make(target)
            done = place.prefs("collections", patience=20).check(1, 4, 5, 6, 7, 8, 14)
            threat.tried(
                f"{what} in the place of the {'store' if target == place.store else 'key file'}", f"{done.code}, {done.says[:110]}"
            )
            target.rmdir() if target.is_dir() and not target.is_symlink() else target.unlink()
            place.write(target, saved)


PATTERNS = (
    "(a+)+$", "(a|a)*b", "(a|aa)+c", "(.*)*x", "((((((((((a*)*)*)*)*)*)*)*)*)*)*", "(x+x+)+y", "[a-z]{1,2000}{1,2000}",
    "a{100000}", "(" * 5_000 + "a" + ")" * 5_000, "a" * 3_000, "(?=a)", "(?<n>a)\\k<n>", "[", "a{2,1}", "\\p{Nope}", "(?i)a",
    "\\u{110000}", "*", "a**", "",
)


@attempt("A declaration is crafted")
def declaration(threat) -> None:
    outcomes, slow, most = Outcomes(), 0.0, 0
    for pattern in PATTERNS:
        place = Place(home(), "pattern")
        place.do("init")
        declared = [{"name": "t", "collection": "web", "type": "string", "limits": [{"pattern": pattern}]}]
        loaded = place.prefs("schema", "load", "-", "--application", "shop", input=json.dumps(declared).encode(), patience=30)
        loaded.check(0, 8)
        runs = [loaded]
        if loaded.code == 0:
            runs.append(place.prefs("set", "web/t", "a" * 20_000 + "!", patience=60).check(0, 8))
        outcomes.add(
            "refused" if loaded.code else f"loaded, and a text of 20,000 letters is {'set' if runs[-1].code == 0 else 'refused'}"
        )
        slow, most = max([slow, *(run.seconds for run in runs)]), max([most, *(run.kilobytes for run in runs)])
    threat.tried(
        f"{len(PATTERNS)} patterns: repeated repetitions, 5,000 deep, too long, malformed",
        f"{outcomes}; at most {slow:.1f} s and {most >> 10} MiB", slow < 20 and most < 300 << 10,
    )
    outcomes = Outcomes()
    deep = "array<" * 5_000 + "int" + ">" * 5_000
    for text in (
        json.dumps([{"name": "t", "collection": "web", "type": deep}]), "[" * 100_000, json.dumps([{"name": "t"}] * 3), "null",
        "{}", '[{"name": 1}]', json.dumps([{"name": "t", "collection": "web", "type": "string", "summary": "x" * 2_000_000}]),
        json.dumps([{"name": "t", "collection": "web", "type": "int", "limits": [{"minimum": 1}] * 5_000}]),
        json.dumps([{"name": "t", "collection": "web", "type": "int", "formerly": [{"name": "t"}]}]),
        '[{"name": "t", "collection": "web", "type": "int", "default": 1e400}]', '[{"name": "\\ud800", "type": "int"}]',
    ):
        place = Place(home(), "declared")
        place.do("init")
        done = place.prefs("schema", "load", "-", "--application", "shop", input=text.encode(), patience=30).check(
            0, 1, 2, 8, 9, 11
        )
        outcomes.add(f"exit code {done.code}")
    threat.tried("11 files of declarations: deep, long, malformed", str(outcomes))
    place = Place(home(), "damaged")
    place.do("init")
    place.do("schema", "load", "-", "--application", "shop", input=b'[{"name": "t", "collection": "web", "type": "int"}]')
    outcomes = Outcomes()
    for text in (
        "'{'", "''", "'[]'", "CAST(zeroblob(300000) AS TEXT)", "replace(hex(zeroblob(150000)), '00', '[')",
        """'{"name":"t","collection":"web","type":"strange"}'""", """'{"name":"u","collection":"web","type":"int"}'""",
    ):
        other = place.copy("row")
        forge(other, f"UPDATE declarations SET declaration = {text}")
        done = other.prefs("set", "web/t", "5")
        found = other.prefs("doctor")
        other.do("set", "--undeclared", "elsewhere/x", "1")
        if found.code != 7:
            raise NotAllowed(f"doctor does not name a damaged declaration: {found}")
        outcomes.add(f"exit code {done.check(7, 8, 12).code}")
    threat.tried(
        "7 damaged rows of declarations, put there with the store's key: set of that setting; others are set", str(outcomes)
    )


def binary_bomb() -> bytes:
    """A binary property list: lists of lists of the same list, ten times ten times …"""
    offsets, body = [], bytearray(b"bplist00")
    levels = 12
    for level in range(levels):
        offsets.append(len(body))
        body += b"\xaf\x10\x20" + bytes([level + 1] * 32)
    offsets.append(len(body))
    body += b"\x10\x01"
    table = len(body)
    body += b"".join(struct.pack(">H", offset) for offset in offsets)
    return bytes(body + bytes(6) + bytes([2, 1]) + struct.pack(">QQQ", len(offsets), 0, table))


@attempt("A file to import is crafted")
def imported(threat) -> None:
    laughs = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{name}: &{name} [{', '.join(['*' + before] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi")
    )
    files = {
        "bomb.plist": binary_bomb(), "deep.json": b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        "open.json": b"[" * 1_000_000, "many.json": b'{"c":{"a":[' + b"[],[]," * 2_500_000 + b"1]}}",
        "laughs.yaml": laughs.encode(), "deep.yaml": b"a: " + b"[" * 50_000, "anchors.yaml": b"a: &a\n  b: *a\n",
        "deep.toml": b"a = " + b"[" * 100_000, "dotted.toml": b".".join([b"a"] * 50_000) + b" = 1",
        "long.env": b"A='" + b"x" * 5_000_000, "numbers.json": b'{"c":{"a":' + b"9" * 1_000_000 + b"}}",
        "deep.plist": b'<?xml version="1.0"?><plist>' + b"<array>" * 100_000,
        "entity.plist": b'<!DOCTYPE p [<!ENTITY a SYSTEM "file:///etc/passwd"><!ENTITY b "&a;&a;">]><plist><dict><key>c</key><string>&b;</string></dict></plist>',
        "nul.json": b'{"c":{"a\\u0000b":"x"}}', "text.json": b'{"c":{"a":"\xff\xfe"}}', "empty.plist": b"bplist00",
        "short.plist": binary_bomb()[:-10],
    }
    place, outcomes, slow, most = closed().copy("import"), Outcomes(), 0.0, 0
    before, folder = place.values(), place.folder / "files"
    folder.mkdir()
    for name, data in files.items():
        path = folder / name
        path.write_bytes(data)
        done = place.prefs("import", path, "-c", "imported", patience=60)
        if done.code not in (0, 1, 2, 8):
            raise NotAllowed(f"{name}: {done}")
        if b"root:" in done.out + done.err or "root:" in json.dumps(place.values()):
            raise NotAllowed(f"{name}: a file of the system was read")
        if done.code != 0 and place.values() != before:
            raise NotAllowed(f"{name}: refused, and something was set")
        if done.code == 0:
            place.do("unset", "-c", "imported", "--all", "--force")
            before = place.values()
        outcomes.add(f"exit code {done.code}")
        slow, most = max(slow, done.seconds), max(most, done.kilobytes)
    threat.tried(
        f"{len(files)} files: {', '.join(files)}", f"{outcomes}; at most {slow:.1f} s and {most >> 10} MiB",
        slow < 30 and most < 1 << 20,
    )
