"""The section "Moving in and out" of the article on the keyring, as it stands, with gnome-keyring and with Python's keyring."""

from __future__ import annotations

import pathlib
import re
import unittest

import secretstorage
from services import Gnome, Peer, Prefs

ARTICLE = pathlib.Path(__file__).resolve().parents[2] / "Sources/Coffer/Coffer.docc/Keyring.md"


def blocks(title: str) -> list[tuple[str, str]]:
    """The blocks of code below a heading: what each is, and its text."""
    section = re.search(rf"^### {re.escape(title)}\n(.*?)(?=^##|\Z)", ARTICLE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return re.findall(r"^```(\w+)\n(.*?)^```$", section[1], re.MULTILINE | re.DOTALL)


class Moving(unittest.TestCase):
    # What is kept, by its attributes: the label and the secret.
    ITEMS = {
        (("server", "h"), ("user", "ada ä")): ("A label ä", "moved secret ä\nline".encode()),
        (("application", "binary"),): ("Binary", b"moved secret\xff\xfe"),
        (("n", "= &#%"),): ("", b"moved secret 3"),
    }

    def prepare(self, peer: Peer, title: str) -> list[str]:
        """Writes the files of the section, and returns its commands."""
        self.addCleanup(peer.close)
        commands = []
        for kind, text in blocks(title):
            if kind == "sh":
                commands.append(text)
            else:
                (peer.work / text.split("\n", 1)[0].lstrip("# ")).write_text(text, encoding="utf-8")
        self.assertEqual(len(commands), 2)
        return commands

    def held(self, peer: Peer) -> dict:
        main = secretstorage.get_default_collection(peer.connect())
        return {
            tuple(sorted((name, value) for name, value in item.get_attributes().items() if name != "xdg:schema")):
                (item.get_label(), item.get_secret()) for item in main.get_all_items()
        }

    def nowhere(self, peer: Peer, secret: bytes) -> None:
        """Checks that no file has the secret as it is."""
        files = [path for path in peer.folder.rglob("*") if path.is_file()]
        self.assertGreater(len(files), 3)
        self.assertEqual([path for path in files if secret in path.read_bytes()], [])

    def test_the_items_of_gnome_keyring_are_moved_in_and_out_again(self) -> None:
        peer = Gnome()
        into, out = self.prepare(peer, "From and to another keyring")
        peer.serve()
        main = secretstorage.get_default_collection(peer.connect())
        for attributes, (label, secret) in self.ITEMS.items():
            main.create_item(label, dict(attributes), secret)
        peer.run("sh", "-eu", "-c", into)
        self.assertEqual(len(peer.run("prefs", "list", "keyring").stdout.splitlines()), len(self.ITEMS))
        key = next(line for line in peer.run("prefs", "list", "keyring").stdout.decode().splitlines() if "server=h" in line)
        self.assertEqual(peer.run("prefs", "get", "-n", "-c", "keyring", key).stdout, "moved secret ä\nline".encode())
        # Moving again is no second item.
        peer.run("sh", "-eu", "-c", into)
        self.assertEqual(len(peer.run("prefs", "list", "keyring").stdout.splitlines()), len(self.ITEMS))
        for item in main.get_all_items():
            item.delete()
        self.assertEqual(self.held(peer), {})
        peer.run("sh", "-eu", "-c", out)
        self.assertEqual(self.held(peer), self.ITEMS)
        self.nowhere(peer, b"moved secret")

    def test_the_plaintext_file_of_pythons_keyring_is_moved_in_and_out_again(self) -> None:
        peer = Prefs()
        into, out = self.prepare(peer, "From and to the plaintext file of Python's keyring")
        peer.serve()
        fill = "PlaintextKeyring().set_password('Service ä', 'ada', 'moved secret ada'); PlaintextKeyring().set_password('x', 'a=b@c', 'moved secret a=b@c')"
        peer.run("python3", "-c", f"from keyrings.alt.file import PlaintextKeyring; {fill}")
        plain = peer.home / ".local/share/python_keyring/keyring_pass.cfg"
        before = plain.read_text()
        peer.run("sh", "-eu", "-c", into)
        plain.unlink()
        self.assertEqual(sorted(secret for _, secret in self.held(peer).values()), [b"moved secret a=b@c", b"moved secret ada"])
        found = peer.run("python3", "-c", "from keyring.backends.SecretService import Keyring as K\nprint(K().get_password('Service ä', 'ada'))")
        self.assertEqual(found.stdout, b"moved secret ada\n")
        self.nowhere(peer, b"moved secret")
        peer.run("sh", "-eu", "-c", out)
        self.assertEqual(sorted(plain.read_text().split()), sorted(before.split()))

    def test_a_locked_keyring_stops_the_move_and_leaves_nothing_behind(self) -> None:
        peer = Gnome()
        into, _ = self.prepare(peer, "From and to another keyring")
        peer.serve()
        main = secretstorage.get_default_collection(peer.connect())
        main.create_item("x", {"a": "b"}, b"moved secret")
        main.lock()
        done = peer.run("sh", "-eu", "-c", into, code=1)
        self.assertIn(b"is locked", done.stderr)
        self.assertNotIn(b"Traceback", done.stderr)
        self.assertEqual(peer.run("prefs", "list", "keyring", code=None).stdout, b"")
        self.nowhere(peer, b"moved secret")


if __name__ == "__main__":
    unittest.main()
