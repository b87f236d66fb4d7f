"""The server of `prefs serve`, its socket and its clients."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess

from registry import attempt
from samples import refused
from workshop import BINARIES, NOBODY, Home, NotAllowed, Place, as_root, ask, started, until

SECRET = "sesame-of-serve"


def with_secrets() -> Place:
    place = Place(Home("served"), "served")
    place.do("set", "web/port", "80")
    place.do("set", "--secret", "web/token", "-", input=SECRET.encode())
    return place


@contextlib.contextmanager
def at_socket(place: Place):
    path = place.folder / "socket"
    with place.running("serve", "--socket", path):
        if not until(path.exists):
            raise NotAllowed("the server makes no socket")
        yield path


def connect(path: pathlib.Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(60)
    connection.connect(str(path))
    return connection


def as_another(path: pathlib.Path) -> str:
    """What another user reads there."""
    code = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect(sys.argv[1]); print(s.recv(99) or 'nothing')"
    done = subprocess.run(
        ["/usr/bin/python3", "-c", code, path], capture_output=True, text=True, user=NOBODY, group=NOBODY, extra_groups=[])
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


@attempt("Another user of the host connects to its socket")
def another_user(threat) -> None:
    """another user's rights"""
    as_root()
    place = with_secrets()
    for folder in (place.folder, place.home.folder):
        folder.chmod(0o755)
    with at_socket(place) as path:
        says = as_another(path)
        threat.tried("another user connects", says, "Permission" in says)
        path.chmod(0o666)
        says = as_another(path)
        threat.tried("the same, once all may write to the socket", says, says in ("nothing", "") or "reset" in says)
    open_folder = place.folder / "open"
    open_folder.mkdir()
    open_folder.chmod(0o777)
    threat.tried("a socket in a folder where others could put their own", refused(place.prefs("serve", "--socket", open_folder / "s"), 11))


@attempt("A secret is sent to a client that logs what it gets")
def not_asked(threat) -> None:
    place = with_secrets()
    requests = [
        '{"id":1,"do":"get","collection":"web","key":"token"}', '{"id":2,"do":"list","collection":"web","values":true}',
        '{"id":3,"do":"snapshot","collections":["web"]}', '{"id":4,"do":"watch","collections":["web"],"values":true}',
        '{"id":5,"do":"describe","collection":"web","key":"token"}', '{"id":6,"do":"get","collection":"web","key":"token","reveal":1}',
    ]
    with place.running("serve", stdin=subprocess.PIPE) as child:
        child.stdout.readline()
        answers = ask(child, *requests)
        place.do("set", "--secret", "web/token", "-", input=f"{SECRET}-new".encode())
        answers.append(child.stdout.readline().decode())
        answers += ask(child, '{"id":8,"do":"watch","collections":["web"],"snapshots":true}')
        answers.append(child.stdout.readline().decode())
        revealed = ask(child, '{"id":7,"do":"get","collection":"web","key":"token","reveal":true}')[0]
    if f"{SECRET}-new" not in revealed:
        raise NotAllowed(f"it is not sent on request: {revealed}")
    leaks = [answer for answer in answers if SECRET in answer]
    threat.tried("get, list, snapshot, watch, describe and a notice without a request for secrets", leaks or "its length at most", not leaks)

    place.do("seal", "web", "--vault-key-file", place.vault_key)
    hidden = place.vault_key.rename(place.folder / "elsewhere")
    with place.running("serve", stdin=subprocess.PIPE) as child:
        child.stdout.readline()
        answer = ask(child, '{"id":1,"do":"snapshot","collections":["web"],"reveal":true}')[0]
    hidden.rename(place.vault_key)
    threat.tried("a snapshot with secrets while the vault is locked", "sealed, without values" if SECRET not in answer else answer, SECRET not in answer)


@attempt("A client sends lines that are no requests")
def no_requests(threat) -> None:
    place = with_secrets()
    lines = [
        "", "{", "[]", "null", "{}", '{"id":1}', '{"id":1,"do":"nothing"}', '{"id":{},"do":"get"}', "[" * 100_000, '{"id":1,"id":2,"do":"get"}',
        '{"id":1,"do":"set","key":"a","value":1e999}', '{"id":99999999999999999999,"do":"get"}', '{"id":1,"do":"get","key":"\\ud800"}', "\x00", "é" * 1000,
    ]
    with place.running("serve", stdin=subprocess.PIPE) as child:
        child.stdout.readline()
        answers = ask(child, *lines)
        wrong = [line[:40] for line, answer in zip(lines, answers) if '"error"' not in answer]
        threat.tried(f"{len(lines)} lines that are no requests", wrong or "an error for each", not wrong)
        last = json.loads(ask(child, '{"id":"x","do":"get","collection":"web","key":"port"}')[0])
        threat.tried("a request after them", "answered" if last.get("id") == "x" and "ok" in last else str(last), "ok" in last)
        sent, sizes = 0, []
        with contextlib.suppress(BrokenPipeError):
            for sent in range(128):
                child.stdin.write(b"x" * 1_048_576)
                sizes += resident(child.pid)
        ended = until(lambda: child.poll() is not None)
        threat.tried("a line without an end", f"ended after {sent} MiB, with {max(sizes)} KiB", ended and sent < 100 and max(sizes) < 300_000)


def resident(process: int) -> list:
    """The size of its memory in KiB, while it runs."""
    return [int(size) for size in re.findall(r"^VmRSS:\s+(\d+) kB", state(process), re.MULTILINE)]


@attempt("A client reads nothing")
def reads_nothing(threat) -> None:
    place = with_secrets()
    with at_socket(place) as path, connect(path) as deaf, connect(path) as other:
        deaf.sendall(b'{"id":1,"do":"watch","collections":["web"],"values":true}\n')
        lines = other.makefile("rb")
        lines.readline()
        value = "v" * 10_000
        for number in range(2_000):
            other.sendall(json.dumps({"id": number, "do": "set", "collection": "web", "key": "x", "value": f"{value}{number}"}).encode() + b"\n")
            if b'"ok"' not in lines.readline():
                raise NotAllowed("a set was refused")
        lines.close()
        size = max(max(resident(int(pid.name)), default=0) for pid in pathlib.Path("/proc").glob("[0-9]*") if str(path).encode() in cmdline(pid))
        threat.tried("a watch that is not read, beside 2,000 changes of 10 kB by another client", f"all answered, {size} KiB", size < 100_000)


def cmdline(process: pathlib.Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


@attempt("The server outlives its program")
def outlives(threat) -> None:
    place = with_secrets()
    options = " ".join(f"'{word}'" for word in place.options())
    # Another process holds the server's input open.
    script = f"mkfifo input; sleep 1000 >input & echo $!; '{BINARIES / 'prefs'}' serve {options} <input >out 2>/dev/null & echo $!; wait"
    parent = started(["sh", "-c", script], stdout=subprocess.PIPE, **place.home.options())
    holder, child = (int(parent.stdout.readline()) for _ in range(2))
    try:
        if not until(lambda: (place.home.folder / "out").exists() and (place.home.folder / "out").stat().st_size > 0):
            raise NotAllowed("the server has not begun")
        parent.kill()
        parent.wait()
        ended = until(lambda: not pathlib.Path(f"/proc/{child}").exists() or "zombie" in state(child))
        threat.tried("the program is killed, while another process holds the server's input open", "it ends" if ended else "it runs on", ended)
    finally:
        parent.stdout.close()
        for process in (holder, child):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


def state(process: int) -> str:
    try:
        return pathlib.Path(f"/proc/{process}/status").read_text()
    except OSError:
        return "zombie"
