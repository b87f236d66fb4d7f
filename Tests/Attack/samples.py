"""Stores that chapters attack: made once, and copied for each attempt."""

from __future__ import annotations

import functools
import secrets
import struct
import threading
from typing import Callable, Optional

from coffer_reader.envelope import PAGE, Envelope
from coffer_reader.pages import Log
import workshop
from workshop import REFUSED, Home, NotAllowed, Place, Run

SIZE, COPY, FRAME = Envelope.SIZE, Envelope.COPY, Log.FRAME
PASSPHRASE = b"correct horse battery staple"


def once(function: Callable) -> Callable:
    """Made by the first that asks, while others wait."""
    lock, cached = threading.Lock(), functools.lru_cache(None)(function)

    @functools.wraps(function)
    def get():
        with lock:
            return cached()

    return get


@once
def home() -> Home:
    return Home("samples")


@once
def canaries() -> dict:
    """Names and values that no one without the key may read."""
    return {
        f"the {name}": f"{name.split()[-1]}{secrets.token_hex(12)}"
        for name in (
            "collection", "key", "value", "secret", "removed key", "removed value", "earlier value", "actor", "summary",
            "environment",
        )
    }


@once
def closed() -> Place:
    """A store of 27 pages or so, with a passphrase, too, and no log."""
    place, found = Place(home(), "closed"), canaries()
    name = lambda what: found[f"the {what}"]  # noqa: E731
    place.do("init")
    place.do("key", "add", "--new-passphrase-fd", "0", "--cost", "14", "--label", "pass", input=PASSPHRASE)
    place.do("history", "--keep", name("collection"))
    for value in ("earlier value", "value"):
        place.do("set", "--actor", name("actor"), f"{name('collection')}/{name('key')}", name(value))
    place.do("set", "tokens/secret", "--secret", "-", input=name("secret").encode())
    place.do("set", f"gone/{name('removed key')}", name("removed value"))
    place.do("unset", f"gone/{name('removed key')}")
    place.do("env", "create", f"{name('collection')}@{name('environment')}")
    declared = f'[{{"name": "size", "collection": "web", "type": "int", "summary": "{name("summary")}"}}]'
    place.do("schema", "load", "-", "--application", "shop", input=declared.encode())
    rows = "".join(f'"row {number}": "{"x" * 300} {number}", ' for number in range(200))
    place.do("import", "-", "--format", "json", input=f'{{"rows": {{{rows[:-2]}}}}}'.encode())
    return place


@once
def logged() -> Place:
    """The same, with four commits in its log."""
    place = closed().copy("logged")
    place.killed_with_log(*(("set", f"late/{number}", f"late {number}") for number in range(4)))
    return place


@once
def states() -> list:
    """What the store held after each commit of its log, the first one before all of them."""
    found = [closed().values()]
    for number in range(4):
        late = {**found[-1].get("late", {}), str(number): f"late {number}"}
        found.append({**found[-1], "late": late})
    return found


def pages(data: bytes) -> int:
    return (len(data) - SIZE) // PAGE


def page(number: int) -> slice:
    return slice(SIZE + (number - 1) * PAGE, SIZE + number * PAGE)


def frames(log: bytes) -> list:
    """Where each frame is, and the size of the database that it says, if it ends a commit; not the room behind them."""
    starts = [start for start in range(32, len(log) - FRAME + 1, FRAME) if any(log[start : start + 4])]
    return [(slice(start, start + FRAME), struct.unpack_from(">I", log, start + 4)[0]) for start in starts]


class Outcomes:
    """What happened, and how often; and what is not allowed."""

    def __init__(self) -> None:
        self.found: dict = {}
        self.wrong: list = []

    def of(self, function: Callable, *arguments: object) -> None:
        """What a judgement says, which must not keep the others from being heard."""
        try:
            self.add(function(*arguments))
        except NotAllowed as reason:
            self.wrong.append(str(reason))

    def add(self, what: str) -> str:
        self.found[what] = self.found.get(what, 0) + 1
        return what

    def __str__(self) -> str:
        counts = ", ".join(f"{count} times {what}" for what, count in sorted(self.found.items(), key=lambda pair: -pair[1]))
        more = [f"and {len(self.wrong) - 3} more"] if len(self.wrong) > 3 else []
        return "\n".join([counts, *self.wrong[:3], *more])


def judged(place: Place, wanted: dict, earlier: list = (), change: str = "", tail: bool = False) -> str:
    """The same data, a typed error, or an earlier commit that is reported; anything else is not allowed."""
    done = place.prefs("export", "--reveal", "--format", "json")
    if done.code in REFUSED:
        return "refused"
    if done.code == 0:
        found = workshop.json.loads(done.out)
        if found == wanted:
            return "the same data"
        if found in earlier:
            if b"log" in done.err:
                return "an earlier commit, and it says so"
            if tail:
                return "an earlier commit, as after a power cut"
            raise NotAllowed(f"{change}: an earlier commit, and nothing says so")
        raise NotAllowed(f"{change}: other data than was ever written")
    raise NotAllowed(f"{change}: {done}")


def detected(place: Place, wanted: dict, change: str) -> str:
    """No other data, and doctor finds something."""
    outcome = judged(place, wanted, change=change)
    done = place.prefs("doctor", "--deep")
    if done.code not in REFUSED:
        raise NotAllowed(f"{change}: doctor found nothing: {done}")
    return f"{outcome}, and found by doctor" if outcome != "refused" else outcome


def refused(done: Run, *codes: int) -> str:
    """The sentence of a refusal with one of these codes."""
    done.check(*(codes or REFUSED))
    return f"{done.code}, {done.says[:160]}"


def unchanged(before: dict, change: str) -> None:
    for path, data in before.items():
        if (path.read_bytes() if path.exists() else None) != data:
            raise NotAllowed(f"{change}: {path.name} was changed")


def snapshot(*paths: object) -> dict:
    return {path: path.read_bytes() if path.exists() else None for path in paths}


def with_envelope(place: Place, first: bytes, second: Optional[bytes] = None) -> None:
    data = place.store.read_bytes()
    place.write(place.store, first + (second or first) + data[SIZE:])
