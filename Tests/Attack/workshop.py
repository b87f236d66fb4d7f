"""A person with a home of their own, and the real tool."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, Iterator, Optional

HERE = pathlib.Path(__file__).resolve().parent
for folder in ("../Interop", "../Page", "../TPM", "../Memory", "../../clients/reader"):
    sys.path.insert(0, str((HERE / folder).resolve()))

from coffer_reader.keys import Key, KeyFile  # noqa: E402
from coffer_reader.store import Store  # noqa: E402

from report import NotAllowed, Skip  # noqa: E402

BINARIES = pathlib.Path(os.environ.get("COFFER_BIN", "."))
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="coffer-attack-"))
# Other users get as far as the homes.
FOLDER.chmod(0o711)
PATIENCE = 120  # seconds, for any one program
NOBODY = 65_534
# What a person may see. 1 is any other failure: it has no type.
TYPED = (0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 125, 126, 127)
REFUSED = (5, 7, 8, 12, 17)
# What only a programmer understands.
UNTYPED = (b"Fatal error", b"Error(", b"(reason:", b"Error Domain", b"Swift/", b"invalidParameter(", b"Segmentation")


@dataclasses.dataclass
class Run:
    """How a program ended."""

    words: list
    code: int
    out: bytes
    err: bytes
    seconds: float  # of processor time
    kilobytes: int

    @property
    def says(self) -> str:
        """What it says, without the paths of homes."""
        text = (self.err or self.out).decode("utf-8", "replace")
        return " ".join(re.sub(rf"{FOLDER}/[^/ ]+/", "", text).split())[:400]

    @property
    def text(self) -> str:
        return self.out.decode("utf-8", "replace")

    def __str__(self) -> str:
        words = " ".join(map(shlex.quote, self.words[1:]))
        return re.sub(rf"{FOLDER}/[^/ ]+/", "", f"`prefs {words}` ended with {self.code}: {self.says}")

    def check(self, *codes: int) -> "Run":
        """Demands one of these exit codes."""
        if self.code not in codes:
            raise NotAllowed(f"{self}, and not with {' or '.join(map(str, codes))}")
        return self


def started(words: list, **options: Any) -> subprocess.Popen:
    return subprocess.Popen([str(word) for word in words], **options)


def run(words: list, input: bytes = b"", patience: float = PATIENCE, **options: Any) -> Run:
    """Runs a program to its end; a crash, or not ending, is never allowed."""
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        source.write(input)
        source.seek(0)
        process = started(words, stdin=source, stdout=out, stderr=err, **options)
        late = []
        timer = threading.Timer(patience, lambda: (late.append(True), process.kill()))
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        done = Run(
            [str(word) for word in words], process.returncode, out.read(), err.read(), usage.ru_utime + usage.ru_stime,
            usage.ru_maxrss,
        )
    if late:
        raise NotAllowed(f"{done.words} did not end within {patience} seconds: {done.says}")
    if done.code < 0 or done.code in (132, 134, 139) or any(word in done.out + done.err for word in UNTYPED):
        raise NotAllowed(f"it crashed, or spoke to programmers: {done}")
    return done


class Home:
    """A home, and the store in its data folder."""

    def __init__(self, name: str = "home", user: Optional[int] = None):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{name}-", dir=FOLDER))
        self.runtime = self.folder / "run"
        self.runtime.mkdir(mode=0o700)
        self.user = user
        self.environment = {
            "HOME": str(self.folder), "PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": str(self.runtime), "LANG": "C.UTF-8",
            "TMPDIR": str(self.folder), "USER": "person",
        }
        self.store = self.folder / ".local/share/prefs/settings.coffer"
        self.key = self.folder / ".config/prefs/key"
        self.records = self.folder / ".local/state/coffer"
        if user is not None:
            os.chown(self.folder, user, user)
            os.chown(self.runtime, user, user)

    def options(self, environment: Optional[dict] = None, user: Optional[int] = None) -> dict:
        user = self.user if user is None else user
        options: dict = {"env": {**self.environment, **(environment or {})}, "cwd": self.folder}
        if user is not None:
            options.update(user=user, group=user, extra_groups=[])
        return options

    def prefs(
        self, *words: Any, input: bytes = b"", environment: Optional[dict] = None, user: Optional[int] = None,
        patience: float = PATIENCE, fds: tuple = (),
    ) -> Run:
        options = self.options(environment, user)
        return run([BINARIES / "prefs", *words], input, patience, pass_fds=fds, **options)

    def do(self, *words: Any, **options: Any) -> bytes:
        """Something that must work: the owner's."""
        done = self.prefs(*words, **options)
        if done.code != 0:
            raise NotAllowed(f"what must work did not: {done}")
        return done.out

    def values(self, *words: Any) -> dict:
        return json.loads(self.do("export", "--reveal", "--format", "json", *words))

    @contextlib.contextmanager
    def running(self, *words: Any, **options: Any) -> Iterator[subprocess.Popen]:
        """A program that runs meanwhile; it is killed in the end."""
        process = started(
            [BINARIES / "prefs", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            **{"stdin": subprocess.DEVNULL, **self.options(), **options},
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()


def ask(child: subprocess.Popen, *requests: str) -> list:
    """The answers to requests, each of which has one."""
    child.stdin.write("".join(f"{request}\n" for request in requests).encode())
    child.stdin.flush()
    return [child.stdout.readline().decode() for _ in requests]


def until(condition: Any, seconds: float = 20) -> bool:
    """Waits until something is so."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return bool(condition())


class Place:
    """A store with its key in a folder of its own, where nothing is remembered of it."""

    def __init__(self, home: Home, name: str = "place"):
        self.home = home
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{name}-", dir=home.folder))
        self.store = self.folder / "settings.coffer"
        self.log = self.folder / "settings.coffer-wal"
        self.shared = self.folder / "settings.coffer-shm"
        self.key = self.folder / "key"
        self.vault_key = self.folder / "vault-key"

    @property
    def secret(self) -> Key:
        return KeyFile.read(self.key)

    def options(self) -> list:
        vault = ["--vault-key-file", self.vault_key] if self.vault_key.exists() else []
        return ["--store", self.store, "--key-file", self.key, *vault, "--no-input"]

    def prefs(self, command: str, *words: Any, **options: Any) -> Run:
        return self.home.prefs(command, *self.options(), *words, **options)

    def do(self, command: str, *words: Any, **options: Any) -> bytes:
        return self.home.do(command, *self.options(), *words, **options)

    def values(self) -> dict:
        return json.loads(self.do("export", "--reveal", "--format", "json"))

    def running(self, command: str, *words: Any, **options: Any) -> Any:
        return self.home.running(command, *self.options(), *words, **options)

    def copy(self, name: str = "copy", log: bool = True) -> "Place":
        other = Place(self.home, name)
        for file in ("store", "key", "vault_key", *(["log"] if log else [])):
            if getattr(self, file).exists():
                shutil.copy(getattr(self, file), getattr(other, file))
        return other

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, path: pathlib.Path, data: bytes) -> None:
        path.unlink(missing_ok=True)
        path.write_bytes(data)
        path.chmod(0o600)

    def plain(self) -> pathlib.Path:
        """The plain database, for someone who has the key."""
        path = self.folder / f"plain-{secrets.token_hex(4)}.db"
        Store(self.store, self.secret).write_plain(path)
        return path

    @contextlib.contextmanager
    def with_log(self) -> Iterator[None]:
        """Keeps the log from being checkpointed, as another program that has the store open does."""
        with self.running("watch"):
            if not until(self.shared.exists):
                raise Skip("prefs watch did not open the store")
            yield

    def killed_with_log(self, *changes: tuple) -> None:
        """Commits changes that stay in the log, as after a crash."""
        with self.with_log():
            for words in changes:
                self.do(*words)


def as_root() -> None:
    if os.geteuid() != 0:
        raise Skip("it needs root, to be another user")


def needs(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            raise Skip(f"{program} is not installed")


def found_in(needles: dict, files: list) -> list:
    """Which canaries are in which files: as UTF-8, UTF-16, hexadecimal or base64."""
    found = []
    for file in files:
        data = file.read_bytes()
        for name, text in needles.items():
            raw = text if isinstance(text, bytes) else text.encode()
            forms = {
                "itself": raw, "UTF-16": raw.decode("latin-1").encode("utf-16-le"), "hexadecimal": raw.hex().encode(),
                "base64": base64.b64encode(raw)[: len(raw) // 3 * 4],
            }
            found += [f"{name} as {form} in {file.name}" for form, bytes_ in forms.items() if bytes_ in data]
    return found


def processes(home: Home) -> list:
    """The processes of a home that still run: agents."""
    found = []
    marker = f"HOME={home.folder}\0".encode()
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if marker in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


def clean_up() -> None:
    for entry in FOLDER.iterdir():
        home = Home.__new__(Home)
        home.folder = entry
        for pid in processes(home):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
    if "KEEP" not in os.environ:
        shutil.rmtree(FOLDER, ignore_errors=True)
