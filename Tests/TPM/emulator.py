"""A TPM 2.0 in software, swtpm, on this machine's loopback."""

from __future__ import annotations

import os
import pathlib
import socket
import subprocess
import time


def free_port() -> int:
    """A port that nothing listens on, and the next one, either."""
    for _ in range(100):
        with socket.socket() as one, socket.socket() as next_one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
            try:
                next_one.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port
    raise OSError("no two ports are free")


class Emulator:
    """A TPM with secrets of its own, until `end`."""

    def __init__(self, folder: pathlib.Path):
        folder.mkdir()
        port = free_port()
        # The variable by which its programs find it; they take the next port for control.
        self.environment = {"TPM2TOOLS_TCTI": f"swtpm:host=127.0.0.1,port={port}"}
        with open(folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                [
                    "swtpm", "socket", "--tpm2", "--tpmstate", f"dir={folder}", "--server", f"type=tcp,port={port}",
                    "--ctrl", f"type=tcp,port={port + 1}", "--flags", "not-need-init,startup-clear",
                ], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.end()
                raise OSError(f"swtpm did not start: {(folder / 'log').read_text()}")
            time.sleep(0.02)

    def answers(self) -> bool:
        done = subprocess.run(
            ["tpm2_getcap", "algorithms"], env={**os.environ, **self.environment}, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        return done.returncode == 0

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
