"""The threats of SECURITY.md, what was tried for each, and what happened."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import threading
import traceback
from typing import Callable, Iterator, Optional

SECURITY = pathlib.Path(__file__).resolve().parents[2] / "SECURITY.md"
# The first columns of the tables whose rows are threats.
HEADS = ("threat", "who has")


class Skip(Exception):
    """What this machine lacks for an attempt."""


class NotAllowed(Exception):
    """What happened, and SECURITY.md does not allow."""


@dataclasses.dataclass(frozen=True)
class Try:
    what: str
    happened: str
    # "held", "limit": what SECURITY.md says it does not cover, "skipped", or "failed".
    verdict: str = "held"


@dataclasses.dataclass
class Threat:
    """A row of a table, or a limit."""

    chapter: str
    name: str
    tests: int = 0
    tries: list = dataclasses.field(default_factory=list)
    # Why nothing is tried here.
    untried: Optional[str] = None
    # Other threats whose attempts are this one's, too.
    see: tuple = ()

    def tried(self, what: str, happened: object, held: bool = True) -> None:
        held = held and not getattr(happened, "wrong", ())
        self.tries.append(Try(what, str(happened), "held" if held else "failed"))

    def limit(self, what: str, happened: str) -> None:
        """SECURITY.md says that this is not covered."""
        self.tries.append(Try(what, happened, "limit"))


def threats(text: str) -> list:
    """All rows, in their order, each with the number of tests that it names."""
    found, chapter, in_table = [], "", False
    for line in text.splitlines():
        if line.startswith("#"):
            chapter = line.lstrip("# ")
        cells = re.split(r"(?<!\\) \| ", line.strip().strip("|").strip()) if line.startswith("|") else []
        if not cells:
            in_table = False
        elif cells[0] in HEADS:
            in_table = True
        elif in_table and not set(cells[0]) <= set("-"):
            tests = len(re.findall(r'"[^"]+"|`Tests/[^`]+`', " | ".join(cells[1:])))
            found.append(Threat(chapter, cells[0].replace("**", ""), tests))
    return found


def limits(text: str) -> list:
    """What is not covered: each entry of the list by its beginning."""
    part = text.split("\n## What is not covered\n")[1].split("\n## ")[0]
    entries = re.split(r"^- ", part, flags=re.MULTILINE)[1:]
    return [Threat("What is not covered", " ".join(entry.replace("**", "").split())) for entry in entries]


class Report:
    """Attempts by threat: they are registered by the beginning of its row, and may run at the same time."""

    def __init__(self, text: Optional[str] = None):
        text = SECURITY.read_text("utf-8") if text is None else text
        self.threats, self.limits = threats(text), limits(text)
        self.attempts: list = []
        self._lock = threading.Lock()

    def threat(self, beginning: str) -> Threat:
        """The only one that begins like this."""
        found = [threat for threat in self.threats + self.limits if threat.name.startswith(beginning)]
        if len(found) != 1:
            raise ValueError(f"{len(found)} threats of SECURITY.md begin with: {beginning}")
        return found[0]

    def attempt(self, beginning: str) -> Callable:
        """A function that tries something for a threat."""

        def add(function: Callable) -> Callable:
            self.attempts.append((self.threat(beginning), function))
            return function

        return add

    def untried(self, beginning: str, why: str) -> None:
        """A threat that only the named tests try."""
        self.threat(beginning).untried = why

    def same(self, beginning: str, *others: str) -> None:
        """A threat that the attempts for others try."""
        self.threat(beginning).see = tuple(self.threat(other) for other in others)

    def missing(self) -> list:
        """The rows with neither attempts nor a reason, or with both."""
        attempted = {id(threat) for threat, _ in self.attempts}
        return [
            threat.name
            for threat in self.threats
            if (id(threat) in attempted) + (threat.untried is not None) + bool(threat.see) != 1
        ]

    def run(self, threat: Threat, function: Callable) -> None:
        own = Threat(threat.chapter, threat.name)
        try:
            function(own)
            if not own.tries:
                own.tried(function.__name__, "nothing was tried", False)
        except Skip as reason:
            own.tries.append(Try(_title(function), str(reason), "skipped"))
        except NotAllowed as reason:
            own.tried(_title(function), str(reason), False)
        except Exception:
            own.tried(_title(function), "the attempt itself failed:\n" + traceback.format_exc(), False)
        with self._lock:
            threat.tries += own.tries

    @property
    def failed(self) -> list:
        return [(threat, tried) for threat in self.threats + self.limits for tried in threat.tries if tried.verdict == "failed"]

    # MARK: Printing

    def lines(self, is_whole: bool = True) -> Iterator[str]:
        """Every threat, or only those for which something was tried."""
        chapter = ""
        tried = [threat for threat in self.threats if is_whole or threat.tries]
        for threat in tried + [limit for limit in self.limits if limit.tries]:
            if threat.chapter != chapter:
                chapter = threat.chapter
                yield from ("", chapter, "=" * len(chapter))
            yield ""
            yield _shortened(threat.name, 150)
            for tried in threat.tries:
                mark = {"held": "ok     ", "limit": "limit  ", "skipped": "skipped", "failed": "FAILED "}[tried.verdict]
                first, *rest = f"{tried.what}: {tried.happened}".rstrip().split("\n")
                yield f"  {mark} {first}"
                yield from (f"          {line}" for line in rest)
            if threat.untried is not None:
                shown = f"; shown by {threat.tests} test{'s' * (threat.tests > 1)} named in SECURITY.md" if threat.tests else ""
                yield f"  -       not tried here, because {threat.untried}{shown}"
            for other in threat.see:
                yield f"  -       tried at: {_shortened(other.name, 100)}"
        tries = [tried.verdict for threat in self.threats + self.limits for tried in threat.tries]
        untried = sum(threat.untried is not None for threat in self.threats)
        yield ""
        yield (
            f"{len(self.threats)} threats, {untried} of them not tried here; {len(tries)} attempts: {tries.count('held')} held,"
            f" {tries.count('limit')} are limits that SECURITY.md names, {tries.count('skipped')} skipped, {tries.count('failed')} failed."
        )


def _title(function: Callable) -> str:
    return " ".join((function.__doc__ or function.__name__).split()).rstrip(".")


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rsplit(" ", 1)[0] + " …"
