"""A child, `prefs serve`: requests and their answers, and notices."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import threading
from collections import deque
from typing import Any, Callable, Sequence

from .errors import CofferError, Conflict, InvalidValue, NotFound, Unavailable

Line = dict[str, Any]
VERSION = 1
KINDS = {kind.name: kind for kind in (NotFound, InvalidValue, Conflict, Unavailable)}
EXIT_CODES = {5: "wrongKey", 6: "keyUnavailable", 8: "format", 10: "busy", 11: "refused"}


class Child:
    """It ends with the thread that starts it, so that has to be one that stays."""

    def __init__(self, command: Sequence[str], patience: float, notice: Callable[[Line], None]) -> None:
        self._patience, self._notice, self._writing = patience, notice, threading.Lock()
        self._waiting: deque[Callable[[Line], object]] | None = deque()  # In the order of the answers: all may have one ID.
        try:
            # A session of its own: an interrupt from the terminal is for the program, which may still have something to set,
            # and no question for a passphrase waits at a terminal.
            self._process = subprocess.Popen(
                command, bufsize=1 << 16, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        except OSError as error:
            raise Unavailable(f"prefs serve cannot be started: {error}.") from None
        assert self._process.stdin and self._process.stdout
        self.input, self._output = self._process.stdin, self._process.stdout
        os.set_blocking(self.input.fileno(), False)
        self._room = select.poll()
        self._room.register(self.input, select.POLLOUT)

    def follow(self, begin: Callable[[Child], None]) -> None:
        """Calls `begin` once the child runs, and hands on answers and notices until it ends."""
        first = self._output.readline()
        if not first:
            code = self._process.wait()
            message = f"prefs serve ended with exit code {code}; standard error has its message."
            raise CofferError(message, EXIT_CODES.get(code), code)
        hello = json.loads(first)
        if hello["serve"] != VERSION:
            raise Unavailable(f"{hello['program']} has version {hello['serve']} of the protocol; this package has {VERSION}.")
        self._maximum = hello["maximum"]
        begin(self)
        for text in self._output:
            line = json.loads(text)
            if "watch" in line and "id" not in line:
                self._notice(line)
            elif "id" in line and (waiting := self._waiting):
                waiting.popleft()(line)

    def send(self, do: str, members: Line, handler: Callable[[Line], object]) -> None:
        """Sends a request. The thread in `follow` hands its answer to `handler`, or an error if the child ends before."""
        text = json.dumps({"id": 0, "do": do, **members}, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        try:
            rest = memoryview(text.encode() + b"\n")
        except UnicodeEncodeError:
            raise InvalidValue("A string with half of a surrogate pair cannot be stored.") from None
        if len(rest) > self._maximum:
            raise InvalidValue(f"The server takes requests of at most {self._maximum} bytes; this one has {len(rest)}.")
        with self._writing:
            if self._waiting is None:
                raise Unavailable("prefs serve has ended; nothing was changed.")
            try:
                self._waiting.append(handler)
                while rest:
                    if not self._room.poll(self._patience * 1000):
                        raise TimeoutError
                    rest = rest[os.write(self.input.fileno(), rest):]
            except BaseException as error:
                self._process.kill()  # Its end is the answer to all that wait. What follows half a line would be lost.
                if not isinstance(error, (OSError, ValueError)):
                    raise

    def close(self) -> None:
        """Lets the child finish what it has read, and end."""
        if self._writing.acquire(timeout=1):
            self.input.close()
            self._writing.release()
        else:
            self._process.terminate()

    def end(self) -> None:
        """Ends the child at once."""
        self._process.kill()
        self._process.wait()
        self._output.close()
        with self._writing:
            self.input.close()
            waiting, self._waiting = self._waiting or (), None
        message = "prefs serve ended before it answered; a change may have been made."
        for handler in waiting:
            with contextlib.suppress(CofferError):  # Those of requests only note it; why the child ended is known.
                handler({"error": {"error": "unavailable", "code": 1, "message": message}})


def error_of(error: Line) -> CofferError:
    return KINDS.get(error["error"], CofferError)(error["message"], error["error"], error["code"], error.get("store"))


def checked(answer: Line) -> Line:
    """What an answer has as `ok`; its error is raised."""
    if "error" in answer:
        raise error_of(answer["error"])
    ok: Line = answer["ok"]
    return ok
