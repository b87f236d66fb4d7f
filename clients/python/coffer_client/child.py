"""A child, `prefs serve`: requests and their answers, and notices."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import subprocess
import threading
from typing import Any, Callable, Sequence

from .errors import CofferError, InvalidValue, Unavailable

Line = dict[str, Any]
VERSION = 1


class Child:
    """It ends with the thread that starts it, so that has to be one that stays."""

    hello: Line

    def __init__(self, command: Sequence[str], patience: float, notice: Callable[[Line], None]) -> None:
        self._patience, self._notice, self._numbers, self._writing = patience, notice, itertools.count(), threading.Lock()
        self._waiting: dict[int, Callable[[Line], object]] | None = {}  # In the order of the requests, and so of the answers.
        try:
            # A session of its own: an interrupt from the terminal is for the program, which may still have something to set,
            # and no question for a passphrase waits at a terminal.
            self._process = subprocess.Popen(command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        except OSError as error:
            raise Unavailable(f"prefs serve cannot be started: {error}.") from None
        assert self._process.stdin and self._process.stdout
        self._input = self._process.stdin
        os.set_blocking(self._input.fileno(), False)
        self._lines = open(self._process.stdout.fileno(), "rb", 1 << 16, closefd=False)

    def read_hello(self) -> None:
        line = self._lines.readline()
        if not line:
            raise CofferError.of_exit(self._process.wait())
        hello: Line = json.loads(line)
        if hello["serve"] != VERSION:
            raise Unavailable(f"{hello['program']} has version {hello['serve']} of the protocol; this package has {VERSION}.")
        self.hello = hello

    def send(self, do: str, members: Line, handler: Callable[[Line], object]) -> None:
        """Sends a request. The thread in `follow` hands its answer to `handler`, or an error if the child ends before."""
        number = next(self._numbers)
        text = json.dumps({"id": number, "do": do, **members}, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        line = text.encode() + b"\n"
        if len(line) > self.hello["maximum"]:
            raise InvalidValue(f"The server takes requests of at most {self.hello['maximum']} bytes; this one has {len(line)}.")
        with self._writing:
            if self._waiting is None:
                raise Unavailable("prefs serve has ended; nothing was changed.")
            self._waiting[number] = handler
            try:
                self._write(memoryview(line))
            except BaseException as error:
                self._process.kill()  # Its end is the answer to all that wait. What follows half a line would be lost.
                if not isinstance(error, (OSError, ValueError)):
                    raise

    def _write(self, rest: memoryview) -> None:
        while rest:
            if written := self._input.write(rest):
                rest = rest[written:]
                continue
            room = select.poll()
            room.register(self._input, select.POLLOUT)
            if not room.poll(self._patience * 1000):
                raise TimeoutError

    def follow(self) -> None:
        """Hands on answers and notices, until the child ends."""
        for text in self._lines:
            line = json.loads(text)
            if "id" not in line:
                if "watch" in line:
                    self._notice(line)
            elif waiting := self._waiting:
                # Without an ID it answers a line that is no request to the server, such as one with too large a number.
                number = list(waiting)[0] if line["id"] is None else line["id"]
                if handler := waiting.pop(number, None):
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
            waiting, self._waiting = self._waiting or {}, None
        message = "prefs serve ended before it answered; a change may have been made."
        for handler in waiting.values():
            with contextlib.suppress(CofferError):  # Those of requests only note it; why the child ended is known.
                handler({"error": {"error": "unavailable", "code": 1, "message": message}})

    def leave(self) -> None:
        """In a forked process: the child is that of the other one, and must not have its input from two."""
        self._input.close()


def checked(answer: Line) -> Line:
    """What an answer has as `ok`; its error is raised."""
    if "error" in answer:
        raise CofferError.of(answer["error"])
    ok: Line = answer["ok"]
    return ok
