"""What the tests of the keyring share: a home with a store, and the programs on the path."""

from __future__ import annotations

import os
import pathlib
import subprocess
import tempfile
import time
import unittest
from collections.abc import Callable

BIN = pathlib.Path(os.environ["COFFER_BIN"])
PATIENCE = 120  # seconds, for any one program


def wait_until(condition: Callable[[], bool], problem: str | Callable[[], str]) -> None:
    """Looks again and again whether a condition holds."""
    for _ in range(PATIENCE * 50):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError(problem if isinstance(problem, str) else problem())


def has_ended(process: int | str) -> bool:
    try:
        # It may be a zombie where nothing reaps orphans.
        return (pathlib.Path("/proc") / str(process) / "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


class KeyringTestCase(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="coffer-keyring-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("home", "runtime", "work", "bin"):
            (self.folder / name).mkdir(mode=0o700)
        self.home, self.work = self.folder / "home", self.folder / "work"
        for name in ("git-credential-prefs", "docker-credential-prefs"):
            (self.folder / "bin" / name).symlink_to(BIN / "prefs-keyring")
        self.environment = {
            "PATH": f"{self.folder / 'bin'}:{BIN}:/usr/bin:/bin", "HOME": str(self.home), "LC_ALL": "C.UTF-8",
            "XDG_RUNTIME_DIR": str(self.folder / "runtime"), "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0",
        }

    def start(self, *arguments: str, text: str | bytes = b"", code: int | None = 0) -> subprocess.CompletedProcess:
        """Runs a program without a terminal, to its end."""
        given = text.encode() if isinstance(text, str) else text
        done = subprocess.run(
            arguments, cwd=self.work, env=self.environment, input=given, capture_output=True, timeout=PATIENCE,
            start_new_session=True)
        if code is not None:
            self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout.decode()}{done.stderr.decode()}")
        return done

    def prefs(self, *arguments: str, **more) -> str:
        return self.start("prefs", *arguments, **more).stdout.decode()

    def commits(self) -> int:
        return len(self.prefs("log", "--plain").splitlines())

    def keys(self) -> list[str]:
        done = self.start("prefs", "list", "keyring", code=None)
        # Without an item there is no collection.
        self.assertIn(done.returncode, (0, 3))
        return done.stdout.decode().splitlines()

    def make_vault(self) -> pathlib.Path:
        """Makes a vault, locked, and returns its key file."""
        key = self.work / "vault-key"
        self.prefs("set", "other/name", "value")
        self.prefs("seal", "other", "--vault-key-file", str(key))
        return key
