"""The same clients, unmodified, with `prefs keyring` and with gnome-keyring-daemon.

What the two do differently is what Documentation/KeyringPeers.md says, and no more: the first table of each of its sections is what this
test expects. The clients' own tests come from their source packages, by their digests, into a folder that goes away.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

from peers_bus import GENERIC, Calls
from services import PATIENCE, Gnome, Peer, Prefs

HERE = pathlib.Path(__file__).resolve().parent
DOCUMENT = HERE.parents[1] / "Documentation/KeyringPeers.md"
PYTHON = "/usr/bin/python3"  # The one that has the system's gi.
SOURCES = {
    "SecretStorage==3.3.3": "2403533ef369eca6d2ba81718576c5e0f564d5cca1b58f73a8b23e7d4eeebd77",
    "keyring==23.9.3": "69b01dd83c42f590250fe7a1f503fc229b14de83857314b1933a3ddbf595c4a5",
}
# COFFER_GIT_CONTRIBUTED names the folder of another version's.
CONTRIBUTED = pathlib.Path(os.environ.get("COFFER_GIT_CONTRIBUTED", "/usr/share/doc/git/contrib/credential/libsecret"))


def differences(title: str) -> dict[str, tuple[str, str]]:
    """The rows of the table below a heading: what is done, by gnome-keyring and by prefs keyring."""
    section = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    if section is None:
        raise AssertionError(f"{DOCUMENT.name} has no section {title!r}")
    rows = {}
    for line in section[1].splitlines():
        cells = [cell.strip().strip("`").strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) == 4 and cells[0] not in ("what is done", "---"):
            rows[cells[0]] = (cells[1], cells[2])
    return rows


class PeersTestCase(unittest.TestCase):
    maxDiff = None

    def setUp(self) -> None:
        self.gnome, self.prefs = Gnome(), Prefs()
        for peer in (self.gnome, self.prefs):
            self.addCleanup(peer.close)
            peer.serve()

    def compare(self, title: str, outcomes) -> None:
        """Runs the same with both, and compares what differs with the document."""
        gnome, prefs = (dict(outcomes(peer)) for peer in (self.gnome, self.prefs))
        self.assertEqual(list(gnome), list(prefs))
        self.assertGreater(len(gnome), 5)
        found = {name: (gnome[name], prefs[name]) for name in gnome if gnome[name] != prefs[name]}
        if os.environ.get("COFFER_SHOW"):
            print(f"\n## {title}: {len(gnome)} steps, of which {len(found)} differ\n")
            for name, (one, other) in found.items():
                print(f"| {name} | `{one}` | `{other}` | … |")
        self.assertEqual(found, differences(title))
        # The documents' counts.
        self.assertIn(f"{len(gnome)} steps", DOCUMENT.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0])


class Clients(PeersTestCase):
    def test_calls_without_a_library_differ_as_documented(self) -> None:
        self.compare("The bus", lambda peer: Calls(peer).outcomes())

    def test_secret_tool_differs_as_documented(self) -> None:
        self.compare("secret-tool", self.tool)

    @staticmethod
    def tool(peer: Peer):
        def tool(*arguments: str, text: str = "") -> str:
            done = peer.run("secret-tool", *arguments, text=text, code=None)
            # The date of the item is that of the run.
            shown = re.sub(r"(created|modified) = .*", r"\1 = …", re.sub(GENERIC, "", (done.stdout + done.stderr).decode()))
            return json.dumps([done.returncode, re.sub(r"^\[/\w+\]", "[…]", shown, flags=re.MULTILINE)], ensure_ascii=False)

        yield "store", tool("store", "--label=One", "server", "h", "user", "ada", text="pass ä\nline")
        yield "lookup", tool("lookup", "server", "h", "user", "ada")
        yield "lookup by a part", tool("lookup", "server", "h")
        yield "lookup of nothing", tool("lookup", "server", "none")
        yield "store again", tool("store", "--label=Two", "server", "h", "user", "ada", text="newer")
        yield "search --all", tool("search", "--all", "server", "h")
        yield "store with fewer attributes", tool("store", "--label=Three", "server", "h", text="fewer")
        yield "lookup of one of two", tool("lookup", "server", "h")
        yield "search, one of two", tool("search", "server", "h")
        yield "store an empty secret", tool("store", "--label=Empty", "empty", "yes")
        yield "lookup of an empty secret", tool("lookup", "empty", "yes")
        yield "store into the session", tool("store", "--label=S", "--collection=session", "s", "s", text="held")
        yield "lookup in the session", tool("lookup", "s", "s")
        yield "store into no collection", tool("store", "--label=S", "--collection=none", "n", "n", text="x")
        yield "clear", tool("clear", "server", "h", "user", "ada")
        yield "clear of nothing", tool("clear", "server", "none")
        yield "lookup of the rest", tool("lookup", "server", "h")
        # Debian 12's version crashes with both when it has locked a collection, and frees what it has been given twice.
        yield "lock", tool("lock", f"--collection={peer.main}")
        yield "lookup while locked", tool("lookup", "server", "h")
        yield "search while locked", tool("search", "--all", "server", "h")
        yield "search --unlock while locked", tool("search", "--all", "--unlock", "server", "h")
        yield "store while locked", tool("store", "--label=L", "locked", "yes", text="x")
        yield "clear while locked", tool("clear", "server", "h")
        peer.unlock()
        yield "clear, once unlocked", tool("clear", "server", "h")

    def test_libsecret_differs_as_documented(self) -> None:
        self.compare("libsecret", self.libsecret)

    @staticmethod
    def libsecret(peer: Peer):
        for part in ((), ("after",)):
            done = peer.run(PYTHON, str(HERE / "peers_libsecret.py"), peer.main, *part)
            yield from json.loads(done.stdout).items()
            peer.unlock()


class Suites(PeersTestCase):
    """The tests that the clients' authors have written."""

    def source(self, requirement: str) -> pathlib.Path:
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="coffer-source-")))
        subprocess.run(
            [PYTHON, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary=:all:", "-d", folder, requirement],
            check=True, timeout=PATIENCE)
        (archive,) = folder.glob("*.tar.gz")
        self.assertEqual(hashlib.sha256(archive.read_bytes()).hexdigest(), SOURCES[requirement])
        with tarfile.open(archive) as files:
            files.extractall(folder)
        return next(path for path in folder.iterdir() if path.is_dir())

    def test_secretstorage_passes_its_own_tests_with_both(self) -> None:
        (requirement, _) = SOURCES
        tests = self.source(requirement) / "tests"
        for peer in (self.gnome, self.prefs):
            done = peer.run(PYTHON, "-m", "unittest", "discover", "-v", "-s", str(tests))
            results = dict(re.findall(r"^(test_\w+ .*?) \.\.\. (ok|skipped|FAIL|ERROR)", done.stderr.decode(), re.MULTILINE))
            # Those that are skipped need the mock of the service.
            self.assertEqual(sorted(results.values()), ["ok"] * 20 + ["skipped"] * 6, type(peer).__name__)

    def test_keyring_passes_its_own_tests_of_both_backends_with_both(self) -> None:
        (_, requirement) = SOURCES
        tests = self.source(requirement) / "tests/backends"
        for peer in (self.gnome, self.prefs):
            done = peer.run(
                PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests / "test_SecretService.py"), str(tests / "test_libsecret.py"))
            self.assertRegex(done.stdout.decode(), r"(?m)^26 passed in [0-9.]+s", type(peer).__name__)


class GitHelpers(PeersTestCase):
    def setUp(self) -> None:
        super().setUp()
        # Debian ships the helper of git for libsecret as source.
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="coffer-git-")))
        for file in CONTRIBUTED.iterdir():
            shutil.copy(file, folder)
        subprocess.run(["make", "-s", "-C", folder], check=True, timeout=PATIENCE)
        for peer in (self.gnome, self.prefs):
            shutil.copy(folder / "git-credential-libsecret", peer.folder / "bin")

    @staticmethod
    def git(peer: Peer, helper: str, operation: str, *lines: str) -> str:
        given = "".join(f"{line}\n" for line in lines) + "\n"
        done = peer.run("git", "-c", f"credential.helper={helper}", "credential", operation, text=given, code=None)
        return "\n".join(line for line in done.stdout.decode().splitlines() if line.startswith(("username", "password")))

    def test_gits_own_helper_does_the_same_with_both(self) -> None:
        place = ("protocol=https", "host=git.example.org:8443")
        for peer in (self.gnome, self.prefs):
            with self.subTest(type(peer).__name__):
                self.git(peer, "libsecret", "approve", *place, "username=ada", "password=pass ä")
                self.git(peer, "libsecret", "approve", *place, "username=bob", "password=other")
                self.assertEqual(self.git(peer, "libsecret", "fill", *place, "username=ada"), "username=ada\npassword=pass ä")
                self.git(peer, "libsecret", "approve", *place, "username=ada", "password=newer")
                self.assertEqual(self.git(peer, "libsecret", "fill", *place, "username=ada"), "username=ada\npassword=newer")
                self.git(peer, "libsecret", "reject", *place, "username=ada", "password=newer")
                self.assertEqual(self.git(peer, "libsecret", "fill", *place, "username=ada"), "")
                self.assertEqual(self.git(peer, "libsecret", "fill", *place), "username=bob\npassword=other")

    def test_gits_helper_and_ours_find_and_reject_what_the_other_stored(self) -> None:
        # Debian 12's looks only for items with the schema of GNOME's network passwords, and so finds only its own.
        finds_ours = "org.git.Password" in (CONTRIBUTED / "git-credential-libsecret.c").read_text()
        for one, other in (("libsecret", "prefs"), ("prefs", "libsecret")):
            for place in (("protocol=https", f"host={one}.example.org"), ("protocol=https", f"host={one}.example.org:8443", "path=a/b.git")):
                with self.subTest(f"{one} first, {place}"):
                    user, stored, newer = "username=ada", "username=ada\npassword=pass ä", "username=ada\npassword=newer"
                    finds = finds_ours or other == "prefs"
                    self.git(self.prefs, one, "approve", *place, *stored.splitlines())
                    self.assertEqual(self.git(self.prefs, other, "fill", *place), stored if finds else "")
                    # What was stored later is what both find, if it is theirs to find.
                    self.git(self.prefs, other, "approve", *place, *newer.splitlines())
                    self.assertEqual(self.git(self.prefs, other, "fill", *place, user), newer)
                    self.assertEqual(self.git(self.prefs, one, "fill", *place, user), newer if finds_ours or one == "prefs" else stored)
                    for helper in (one, other):
                        for password in (stored, newer):
                            self.git(self.prefs, helper, "reject", *place, *password.splitlines())
                    # Without an item there is no collection to list.
                    self.assertIn("no collection", self.prefs.run("prefs", "list", "keyring", code=3).stderr.decode())


class Chromium(PeersTestCase):
    def start(self, peer: Peer) -> list[str]:
        """Starts and ends a browser, and returns its items with their secrets."""
        done = peer.run(
            "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--password-store=gnome-libsecret",
            f"--user-data-dir={peer.home / 'profile'}", "--dump-dom", "data:text/html,<p>started</p>")
        self.assertIn(b"started", done.stdout)
        found = peer.run("secret-tool", "search", "--all", "application", "chromium", code=None)
        return re.findall(r"^(?:label|secret) = .*", found.stdout.decode(), re.MULTILINE)

    def test_the_browser_keeps_its_key_with_both_and_finds_it_again(self) -> None:
        kept = {}
        for peer in (self.gnome, self.prefs):
            with self.subTest(type(peer).__name__):
                first = self.start(peer)
                self.assertIn("label = Chromium Safe Storage", first)
                self.assertEqual(self.start(peer), first)
                kept[peer] = first
        self.assertEqual([line for line in kept[self.gnome] if "label" in line], [line for line in kept[self.prefs] if "label" in line])
        listed = self.prefs.prefs("list", "--json", "keyring")
        self.assertIn("application=chromium", listed)
        # The sealed item is the browser's key, as it has it.
        key = next(line for line in self.prefs.prefs("list", "keyring").splitlines() if "application=chromium" in line and "Safe" not in line)
        self.assertIn(f"secret = {self.prefs.prefs('get', '-c', 'keyring', key).strip()}", kept[self.prefs])


if __name__ == "__main__":
    unittest.main()
