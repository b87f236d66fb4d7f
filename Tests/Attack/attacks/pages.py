"""Pages, and frames of the log, changed by someone without the key."""

from __future__ import annotations

import random
import shutil

from registry import attempt
from samples import COPY, FRAME, PAGE, SIZE, Outcomes, closed, detected, frames, home, judged, logged, page, pages, states
from workshop import Place

# The same choices in each run.
RANDOM = random.Random(46)


@attempt("Bits are flipped")
def bits(threat) -> None:
    place, wanted, outcomes = closed().copy("bits"), states()[0], Outcomes()
    data = place.store.read_bytes()
    used = len(data[: COPY - 96].rstrip(b"\0"))
    offsets = [*range(0, used, 11), *range(used, COPY, 1_009)]
    for offset in offsets:
        for copies in ((0,), (COPY,), (0, COPY)):
            changed = bytearray(data)
            for copy in copies:
                changed[copy + offset] ^= 1 << offset % 8
            place.write(place.store, bytes(changed))
            outcomes.of(judged, place, wanted, (), f"bit {offset % 8} of byte {offset} of copies {copies}")
    threat.tried(f"a bit of {len(offsets)} bytes of the envelope: of the first copy, the second, and both", outcomes)

    outcomes = Outcomes()
    # The ciphertext of each page, and in turn its nonce, tag, epoch and mark.
    rest = (4_050, 4_075, 4_091, 4_095)
    offsets = [
        SIZE + number * PAGE + where for number in range(pages(data)) for where in (number * 97 % 4_048, rest[number % len(rest)])
    ]
    for offset in offsets:
        changed = bytearray(data)
        changed[offset] ^= 1 << offset % 8
        place.write(place.store, bytes(changed))
        outcomes.of(judged, place, wanted, (), f"bit {offset % 8} of byte {offset}")
    threat.tried(f"a bit in {len(offsets)} places of the pages: ciphertext, nonce, tag, epoch, mark", outcomes)

    outcomes, log = Outcomes(), logged().log.read_bytes()
    place.write(place.store, logged().store.read_bytes())
    last = max(part.start for part, size in frames(log)[:-1] if size)
    fields = (3, 7, 8, 20, 24, 2_000, 4_075, 4_100, 4_119)
    offsets = [
        *range(0, 32, 2),
        *(part.start + where for number, (part, _) in enumerate(frames(log)) for where in fields[number % 3 :: 3]),
    ]
    for offset in offsets:
        changed = bytearray(log)
        changed[offset] ^= 1 << offset % 8
        place.write(place.store, logged().store.read_bytes())
        place.write(place.log, bytes(changed))
        outcomes.of(judged, place, states()[-1], states(), f"bit {offset % 8} of byte {offset} of the log", offset > last + FRAME)
    threat.tried(f"a bit in {len(offsets)} places of the log", outcomes)


@attempt("Pages are swapped")
def swapped(threat) -> None:
    place, wanted, outcomes = closed().copy("swapped"), states()[0], Outcomes()
    data = place.store.read_bytes()
    count = pages(data)
    pairs = [(number, number + 1) for number in range(1, count)] + [RANDOM.sample(range(1, count + 1), 2) for _ in range(12)]
    for a, b in pairs:
        changed = bytearray(data)
        changed[page(a)], changed[page(b)] = data[page(b)], data[page(a)]
        place.write(place.store, bytes(changed))
        outcomes.of(detected, place, wanted, f"pages {a} and {b} swapped")
    threat.tried(f"{len(pairs)} pairs of pages", outcomes)


@attempt("A page is moved")
def moved(threat) -> None:
    place, wanted, outcomes = closed().copy("moved"), states()[0], Outcomes()
    data = place.store.read_bytes()
    pairs = [RANDOM.sample(range(1, pages(data) + 1), 2) for _ in range(12)]
    for a, b in pairs:
        changed = bytearray(data)
        changed[page(a)] = data[page(b)]
        place.write(place.store, bytes(changed))
        outcomes.of(detected, place, wanted, f"page {b} in the place of {a}")
    threat.tried(f"{len(pairs)} pages copied over others", outcomes)


@attempt("The store is truncated")
def truncated(threat) -> None:
    place, wanted, outcomes = closed().copy("cut"), states()[0], Outcomes()
    data = place.store.read_bytes()
    sizes = [
        *range(0, SIZE, 1_021), SIZE, *(len(data) - missing for missing in (1, 40, PAGE, PAGE + 1)),
        *range(SIZE + 1, len(data), 7_919),
    ]
    for size in sizes:
        place.write(place.store, data[:size])
        outcomes.of(detected, place, wanted, f"cut at {size}")
    threat.tried(f"cut at {len(sizes)} lengths", outcomes)


@attempt("A page of another store")
def spliced(threat) -> None:
    place, wanted = closed().copy("spliced"), states()[0]
    other = Place(home(), "other")
    shutil.copy(place.key, other.key)
    other.do("init")
    other.do("import", "-", "--format", "json", input=b'{"rows": {"a": "' + b"x" * 60_000 + b'"}}')
    outcomes, foreign, data = Outcomes(), other.store.read_bytes(), place.store.read_bytes()
    for number in range(1, min(pages(foreign), pages(data)) + 1):
        changed = bytearray(data)
        changed[page(number)] = foreign[page(number)]
        place.write(place.store, bytes(changed))
        outcomes.of(detected, place, wanted, f"page {number} of another store")
    threat.tried("each page of another store with the same key", outcomes)
    place = closed().copy("rotated")
    before = place.store.read_bytes()
    place.do("rotate")
    outcomes, data = Outcomes(), place.store.read_bytes()
    for number in range(1, min(pages(before), pages(data)) + 1):
        changed = bytearray(data)
        changed[page(number)] = before[page(number)]
        place.write(place.store, bytes(changed))
        outcomes.of(detected, place, wanted, f"page {number} of the epoch before")
    threat.tried("each page from before a rotation", outcomes)


@attempt("A frame of the log is replayed")
def replayed(threat) -> None:
    place = logged().copy("frames")
    file, log = place.store.read_bytes(), place.log.read_bytes()
    parts = [part for part, _ in frames(log)]
    outcomes = Outcomes()

    def tried(changed: bytes, what: str, tail: bool = False) -> None:
        place.write(place.store, file)
        place.write(place.log, bytes(changed))
        outcomes.of(judged, place, states()[-1], states(), what, tail)

    for index, part in enumerate(parts):
        for source in {0, max(0, index - 1), min(index + 1, len(parts) - 1)} - {index}:
            changed = bytearray(log)
            changed[part] = log[parts[source]]
            tried(changed, f"frame {source + 1} in the place of {index + 1}", index >= len(parts) - 2)
    threat.tried(f"frames of its own in the place of others, {len(parts)} frames", outcomes)
    outcomes = Outcomes()
    older = closed().copy("other-log")
    older.killed_with_log(("set", "late/0", "another"), ("set", "late/0", "yet another"))
    other = older.log.read_bytes()
    for index, part in enumerate(parts[: len(frames(other))]):
        changed = bytearray(log)
        changed[part] = other[part]
        tried(changed, f"frame {index + 1} of another log", index >= len(parts) - 2)
    tried(bytes(32) + log[32:], "a header of zeros")
    threat.tried("frames of another log of the same store, and a header of zeros", outcomes)


@attempt("Data is hidden after the last page")
def hidden(threat) -> None:
    place, wanted = closed().copy("hidden"), states()[0]
    for size in (1, 4_096, 100_000):
        place.write(place.store, closed().store.read_bytes() + b"h" * size)
        threat.tried(f"{size:,} bytes", detected(place, wanted, f"{size} bytes at the end"))


@attempt("Replay of one page")
def one_page(threat) -> None:
    place = Place(home(), "replay")
    place.do("init")
    place.do("set", "web/host", "old")
    data = place.store.read_bytes()
    place.do("set", "web/host", "new")
    now, outcomes = place.store.read_bytes(), Outcomes()
    for number in range(1, pages(now) + 1):
        changed = bytearray(now)
        changed[page(number)] = data[page(number)]
        place.write(place.store, bytes(changed))
        done = place.prefs("get", "web/host")
        outcomes.add(f"`{done.text.strip()}`" if done.code == 0 else f"exit code {done.code}")
    threat.limit("each page of an earlier state among the present ones", outcomes)


@attempt("The tail of the log")
def tail(threat) -> None:
    place, outcomes = logged().copy("tail"), Outcomes()
    file, log = place.store.read_bytes(), place.log.read_bytes()
    older = closed().copy("other-log")
    older.killed_with_log(("set", "late/0", "another"))
    logs = [log[: part.start] for part, _ in frames(log)] + [log[: part.start + 1_000] for part, _ in frames(log)] + [b""]
    for changed in [*logs, older.log.read_bytes()[:32] + log[32:]]:
        place.write(place.store, file)
        place.write(place.log, changed)
        outcomes.of(judged, place, states()[-1], states(), f"a log of {len(changed)} bytes", True)
    threat.limit(
        f"a log cut at {len(logs)} places, and one with the header of another, in a store that nothing is remembered of", outcomes
    )
