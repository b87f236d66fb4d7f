"""What the tests of the clients share: a folder with a store's programs on the path, and what a README says."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE = 120  # seconds, for any one program
NODE_MODULES = pathlib.Path(os.environ.get("COFFER_NODE_MODULES", ""))  # with coffer-client
GO_WORKER = os.environ.get("COFFER_GO_WORKER", "")  # the built program of `go`
TOOLS = os.environ.get("COFFER_TOOLS", "")  # a python3 with coffer_client and the packages of requirements.txt


class ClientsTestCase(unittest.TestCase):
    bin = pathlib.Path(os.environ.get("COFFER_BIN", ROOT / ".build/debug"))

    def setUp(self) -> None:
        # A child of a client that was killed may still be ending, and leave its marks in there once more.
        folder = tempfile.TemporaryDirectory(prefix="coffer-clients-", ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("home", "runtime", "work"):
            (self.folder / name).mkdir(mode=0o700)
        self.work = self.folder / "work"
        self.environment = {
            "PATH": f"{pathlib.Path(sys.executable).parent}:{self.bin}:/usr/bin:/bin", "HOME": str(self.folder / "home"),
            "XDG_RUNTIME_DIR": str(self.folder / "runtime"), "PREFS_STORE": "store", "PREFS_KEY_FILE": "key", "LC_ALL": "C.UTF-8",
        }

    def run_program(self, *arguments: str, text: str = "", code: int = 0, **more) -> subprocess.CompletedProcess:
        done = subprocess.run(
            arguments, cwd=self.work, env=self.environment, input=text.encode(), capture_output=True, timeout=PATIENCE, **more)
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout.decode()}{done.stderr.decode()}")
        return done

    def prefs(self, *arguments: str, **more) -> str:
        return self.run_program("prefs", *arguments, **more).stdout.decode()

    def eventually(self, condition) -> None:
        """Returns once it holds."""
        for _ in range(PATIENCE * 100):
            if condition():
                return
            time.sleep(0.01)
        self.fail("it has not happened")

    def run_blocks(self, page: pathlib.Path, runners: dict[str, str]) -> list[str]:
        """Runs the blocks of a page one after another, and returns their tags.

        One of `sh` is run as it stands, one whose tag `runners` has by that command; a block of text is what the block before it
        prints, … standing for anything. The variables that name the store are the page's own affair.
        """
        blocks = re.findall(r"^```([\w-]+)\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
        script, expected = "set -eu\n", {}
        for number, (tag, block) in enumerate(blocks):
            if tag == "sh":
                script += f"exec >out{number}\n{block}"
            elif tag in runners:
                command = runners[tag].format(number)
                (self.work / command.split()[-1]).write_text(block)
                script += f"{command} >out{number}\n"
            elif tag == "text":
                expected[number - 1] = block
        del self.environment["PREFS_STORE"], self.environment["PREFS_KEY_FILE"]
        self.run_program("sh", "-c", script)
        for number, wanted in expected.items():
            pattern = ".*".join(re.escape(part) for part in wanted.split("…"))
            self.assertRegex((self.work / f"out{number}").read_text(), rf"(?s)\A{pattern}\Z")
        return [tag for tag, _ in blocks]


def main() -> None:
    """With --bin DIR, which holds the built prefs."""
    if sys.argv[1:2] == ["--bin"]:
        ClientsTestCase.bin = pathlib.Path(sys.argv[2]).resolve()
        del sys.argv[1:3]
    unittest.main()
