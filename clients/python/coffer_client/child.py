"""A child, `prefs serve`: requests and their answers, and notices."""

from __future__ import annotations

import itertools
import json
import subprocess
import threading
from typing import Any, Callable, Sequence

from .errors import CofferError, InvalidValue, Unavailable

Line = dict[str, Any]
VERSION = 1


class Child:
    """It ends with the thread that starts it, so that has to be one that stays."""

    def __init__(self, command: Sequence[str], notice: Callable[[Line], None]) -> None:
        self._notice, self._numbers = notice, itertools.count()
        self._waiting: dict[int, Callable[[Line], object]] | None = {}
        self._lock, self._writing = threading.Lock(), threading.Lock()
        try:
            # A group of its own: an interrupt from the terminal is for the program, which may still have something to set.
            self._process = subprocess.Popen(command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0)
        except OSError as error:
            raise Unavailable(f"prefs serve cannot be started: {error}.") from None
        assert self._process.stdin and self._process.stdout
        self._input = self._process.stdin
        self._lines = open(self._process.stdout.fileno(), "rb", 1 << 16, closefd=False)
        try:
            self.hello = self._read_hello()
        except BaseException:
            self.end()
            raise

    def _read_hello(self) -> Line:
        line = self._lines.readline()
        if not line:
            raise CofferError.of_exit(self._process.wait())
        hello: Line = json.loads(line)
        if "error" in hello:
            raise CofferError.of(hello["error"] if isinstance(hello["error"], dict) else hello)
        if hello["serve"] != VERSION:
            raise Unavailable(f"{hello['program']} has version {hello['serve']} of the protocol; this package has {VERSION}.")
        return hello

    def send(self, do: str, members: Line, handler: Callable[[Line], object]) -> None:
        """Sends a request. The thread in `follow` hands its answer to `handler`, or an error if the child ends before."""
        number = next(self._numbers)
        text = json.dumps({"id": number, "do": do, **members}, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        line = text.encode() + b"\n"
        if len(line) > self.hello["maximum"]:
            raise InvalidValue(f"The server takes requests of at most {self.hello['maximum']} bytes; this one has {len(line)}.")
        with self._lock:
            if self._waiting is None:
                raise Unavailable("prefs serve has ended; nothing was changed.")
            self._waiting[number] = handler
        with self._writing:
            try:
                rest = memoryview(line)
                while rest:
                    rest = rest[self._input.write(rest):]
            except (OSError, ValueError):
                self._process.kill()  # Its end is the answer to all that wait.

    def follow(self) -> None:
        """Hands on answers and notices, until the child ends."""
        for text in self._lines:
            line = json.loads(text)
            if "id" not in line:
                if "watch" in line:
                    self._notice(line)
            elif self._waiting is not None and (handler := self._waiting.pop(line["id"], None)):
                handler(line)

    def close(self) -> None:
        """Lets the child finish what it has read, and end."""
        if self._writing.acquire(timeout=1):
            self._input.close()
            self._writing.release()
        else:
            self._process.terminate()

    def end(self) -> None:
        """Ends the child at once."""
        self._process.kill()
        self._process.wait()
        self._lines.close()
        if self._process.stdout:
            self._process.stdout.close()
        with self._writing:
            self._input.close()
        with self._lock:
            waiting, self._waiting = self._waiting or {}, None
        message = "prefs serve ended before it answered; a change may have been made."
        for handler in waiting.values():
            handler({"error": {"error": "unavailable", "code": 1, "message": message}})


def checked(answer: Line) -> Line:
    """What an answer has as `ok`; its error is raised."""
    if "error" in answer:
        raise CofferError.of(answer["error"])
    ok: Line = answer["ok"]
    return ok
