"""git with `credential.helper = prefs`, and its protocol by hand."""

from __future__ import annotations

import base64
import functools
import http.server
import subprocess
import threading
import time

from case import KeyringTestCase


def lines(**attributes: str) -> str:
    return "".join(f"{name}={value}\n" for name, value in attributes.items())


class GitTestCase(KeyringTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.start("git", "config", "--global", "credential.helper", "prefs")

    def credential(self, operation: str, *, code: int = 0, **attributes: str) -> dict[str, str]:
        done = self.start("git", "credential", operation, text=lines(**attributes) + "\n", code=code)
        return dict(line.split("=", 1) for line in done.stdout.decode().splitlines())


class Git(GitTestCase):
    def test_a_credential_is_filled_until_it_is_rejected(self) -> None:
        place = {"protocol": "https", "host": "git.example.org"}
        self.credential("fill", code=128, **place)
        self.credential("approve", **place, username="ada", password="pass=word ä")
        found = self.credential("fill", **place)
        self.assertEqual((found["username"], found["password"]), ("ada", "pass=word ä"))
        self.assertEqual(self.credential("fill", **place, username="ada")["password"], "pass=word ä")
        self.credential("fill", code=128, **place, username="bob")
        self.credential("fill", code=128, protocol="http", host="git.example.org")
        # git approves after each use; that is no change.
        before = self.commits()
        self.credential("approve", **place, username="ada", password="pass=word ä")
        self.assertEqual(self.commits(), before)
        # One that was replaced meanwhile stays.
        self.credential("reject", **place, username="ada", password="older")
        self.assertEqual(self.credential("fill", **place)["username"], "ada")
        self.credential("reject", **place, username="ada", password="pass=word ä")
        self.credential("fill", code=128, **place)
        self.assertEqual(self.keys(), [])

    def test_ports_and_users_are_apart_and_the_newest_comes_first(self) -> None:
        for user in ("ada", "bob"):
            self.credential("approve", protocol="https", host="h:8443", username=user, password=f"of {user}")
        self.credential("fill", code=128, protocol="https", host="h")
        self.assertEqual(self.credential("fill", protocol="https", host="h:8443")["username"], "bob")
        self.credential("approve", protocol="https", host="h:8443", username="ada", password="newer")
        self.assertEqual(self.credential("fill", protocol="https", host="h:8443")["password"], "newer")
        self.credential("approve", protocol="https", host="[::1]", username="ada", password="six")
        self.assertEqual(self.credential("fill", protocol="https", host="[::1]")["password"], "six")
        self.assertTrue(any(key.startswith("port=8443&protocol=https&server=h&user=ada&xdg:schema=org.git.Password#") for key in self.keys()))

    def test_a_path_counts_if_git_sends_it(self) -> None:
        one = {"protocol": "https", "host": "h", "path": "one.git"}
        self.credential("approve", **one, username="ada", password="any path")
        self.assertEqual(self.credential("fill", protocol="https", host="h", path="two.git")["password"], "any path")
        self.start("git", "config", "--global", "credential.useHttpPath", "true")
        self.credential("approve", **one, username="ada", password="one")
        self.assertEqual(self.credential("fill", **one)["password"], "one")
        self.credential("fill", code=128, protocol="https", host="h", path="two.git")
        self.start("git", "config", "--global", "credential.useHttpPath", "false")
        self.assertEqual(self.credential("fill", **one)["password"], "any path")

    def test_a_sealed_keyring_asks_for_the_vault(self) -> None:
        key = self.make_vault()
        given = lines(protocol="https", host="h", username="ada", password="hidden")
        refused = self.start("git-credential-prefs", "store", text=given, code=None)
        self.assertEqual(refused.returncode, 6)
        self.assertRegex(refused.stderr.decode(), r"sealed, and the vault is locked: run `prefs unlock`")
        self.assertEqual(self.keys(), [])
        self.prefs("unlock", "--vault-key-file", str(key))
        self.start("git-credential-prefs", "store", text=given)
        self.assertIn("password=hidden\n", self.start("git-credential-prefs", "get", text=lines(protocol="https", host="h")).stdout.decode())
        self.assertIn("keyring", self.prefs("collections", "--json"))
        self.prefs("lock")
        answer = self.start("git-credential-prefs", "get", text=lines(protocol="https", host="h"), code=None)
        self.assertEqual((answer.returncode, answer.stdout), (6, b""))
        self.assertIn(b"prefs unlock", answer.stderr)
        # What is not there needs no vault.
        self.assertEqual(self.start("git-credential-prefs", "get", text=lines(protocol="https", host="other")).stderr, b"")
        # Nor does removing, unless the password has to be compared.
        self.start("git-credential-prefs", "erase", text=given, code=6)
        self.start("git-credential-prefs", "erase", text=lines(protocol="https", host="h"))
        self.assertEqual(self.keys(), [])

    def test_without_a_vault_it_says_once_how_to_seal(self) -> None:
        given = functools.partial(lines, protocol="https", username="ada", password="x")
        self.assertIn(b"prefs seal keyring", self.start("git-credential-prefs", "store", text=given(host="a")).stderr)
        self.assertEqual(self.start("git-credential-prefs", "store", text=given(host="b")).stderr, b"")

    def test_options_of_the_configuration_count(self) -> None:
        self.start("git", "config", "--global", "credential.helper", "prefs -c work --store other.coffer")
        self.credential("approve", protocol="https", host="h", username="ada", password="x")
        self.assertEqual(self.credential("fill", protocol="https", host="h")["password"], "x")
        self.assertEqual(len(self.prefs("list", "work", "--store", "other.coffer").splitlines()), 1)

    def test_many_at_once_lose_nothing(self) -> None:
        children = [
            subprocess.Popen(
                ["prefs", "keyring", "git", "store"], cwd=self.work, env=self.environment, stdin=subprocess.PIPE,
                stderr=subprocess.DEVNULL, start_new_session=True)
            for _ in range(6)
        ]
        for number, child in enumerate(children):
            child.stdin.write(lines(protocol="https", host=f"h{number}", username="ada", password=f"p{number}").encode())
            child.stdin.close()
        self.assertEqual([child.wait(60) for child in children], [0] * len(children))
        for number in range(len(children)):
            self.assertEqual(self.credential("fill", protocol="https", host=f"h{number}")["password"], f"p{number}")


class Protocol(KeyringTestCase):
    """Attributes of later versions of git than may be installed."""

    PLACE = "protocol=https\nhost=h\n"

    def call(self, operation: str, text: str | bytes, code: int = 0) -> str:
        return self.start("git-credential-prefs", operation, text=text, code=code).stdout.decode()

    def test_an_expiry_and_a_refresh_token_come_back(self) -> None:
        later = int(time.time()) + 3600
        more = f"password_expiry_utc={later}\noauth_refresh_token=again\n"
        self.call("store", f"{self.PLACE}username=ada\npassword=now\n{more}")
        self.assertEqual(self.call("get", self.PLACE), f"username=ada\npassword=now\n{more}")

    def test_other_authentication_needs_the_capability(self) -> None:
        token = "capability[]=authtype\ncapability[]=state\nauthtype=Bearer\ncredential=token\n"
        self.call("store", self.PLACE + token)
        self.assertEqual(self.call("get", self.PLACE), "")
        answer = "capability[]=authtype\nauthtype=Bearer\ncredential=token\n"
        self.assertEqual(self.call("get", f"{self.PLACE}capability[]=authtype\nwwwauth[]=Bearer realm=x\n"), answer)
        # An empty value clears the list.
        self.assertEqual(self.call("get", f"{self.PLACE}capability[]=authtype\ncapability[]=\ncapability[]=state\n"), "")
        self.call("store", f"{self.PLACE}username=ada\npassword=now\n")
        self.assertEqual(self.call("get", self.PLACE), "username=ada\npassword=now\n")
        self.call("erase", f"{self.PLACE}capability[]=authtype\nauthtype=Bearer\ncredential=token\n")
        self.assertEqual(self.call("get", f"{self.PLACE}capability[]=authtype\n"), "username=ada\npassword=now\n")

    def test_what_is_ephemeral_or_incomplete_is_not_stored(self) -> None:
        self.call("store", f"{self.PLACE}capability[]=authtype\nauthtype=Bearer\ncredential=token\nephemeral=1\n")
        self.call("store", f"{self.PLACE}username=ada\n")
        self.call("store", "username=ada\npassword=x\n")
        self.assertFalse((self.home / ".local").exists())

    def test_what_is_unknown_is_ignored(self) -> None:
        self.call("store", f"{self.PLACE}username=ada\npassword=x\nstate[]=other.secret\nnew=thing\nnew[]=thing\n")
        self.assertEqual(self.call("get", f"{self.PLACE}new=thing\n\nhost=after the end\n"), "username=ada\npassword=x\n")
        self.assertEqual(self.call("later", self.PLACE), "")
        self.assertEqual(self.call("erase", "password=x\n"), "")
        self.assertEqual(len(self.keys()), 1)

    def test_nonsense_is_refused_without_repeating_it(self) -> None:
        for text in (b"password\n", b"protocol=\xff\n", b"protocol=a\0b\n", b"=x\nhunter2\n"):
            done = self.start("git-credential-prefs", "store", text=text, code=8)
            self.assertNotIn(b"hunter2", done.stderr)
        self.start("git-credential-prefs", "store", text="password=" + "x" * (1 << 16), code=8)
        self.start("git-credential-prefs", "get", "extra", code=2)


class Served(http.server.SimpleHTTPRequestHandler):
    password = "open sesame"

    def do_GET(self) -> None:
        wanted = "Basic " + base64.b64encode(f"ada:{self.password}".encode()).decode()
        if self.headers["Authorization"] == wanted:
            return super().do_GET()
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="tests"')
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class Clone(GitTestCase):
    def setUp(self) -> None:
        super().setUp()
        source = self.folder / "source"
        git = ("git", "-C", str(source), "-c", "user.name=ada", "-c", "user.email=ada@example.org")
        self.start("git", "init", "-q", str(source))
        self.start(*git, "commit", "-q", "--allow-empty", "-m", "first")
        self.start(*git, "update-server-info")
        handler = type("Handler", (Served,), {})
        self.handler = handler
        self.server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(handler, directory=str(source / ".git")))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.host = f"127.0.0.1:{self.server.server_port}"

    def test_git_clones_with_it_and_removes_what_is_refused(self) -> None:
        self.credential("approve", protocol="http", host=self.host, username="ada", password="open sesame")
        self.start("git", "clone", "-q", f"http://{self.host}/", "one")
        self.assertTrue((self.work / "one/.git").exists())
        self.handler.password = "another"
        self.start("git", "clone", "-q", f"http://{self.host}/", "two", code=128)
        self.credential("fill", code=128, protocol="http", host=self.host)
