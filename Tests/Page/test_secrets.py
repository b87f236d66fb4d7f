"""Secrets, sealed collections, and those who attack the page."""

import http.client
import http.server
import json
import os
import signal
import socket
import threading
import time
import unittest

from cases import BINARIES, PageCase
from harness import Browser
from program import Channel, Descriptor, Page

PASSPHRASE = "correct horse"


class SecretTests(PageCase):
    def prepare(self):
        super().prepare()
        self.store.prefs("set", "vault/pin", "4711-sealed")
        self.store.seal("vault", PASSPHRASE)

    def test_a_secret_shows_its_length_and_reveals_itself_for_ten_seconds(self):
        self.browser.choose("mail/token")
        self.assertEqual(self.browser.text("#secret"), "<secret: 14 bytes>")
        self.assertNotIn("hunter2", self.browser.driver.page_source)
        self.browser.click("#reveal")
        self.browser.wait(lambda: self.browser.text("#secret") == "hunter2-secret")
        start = time.monotonic()
        self.browser.wait(lambda: self.browser.text("#secret") == "<secret: 14 bytes>")
        self.assertAlmostEqual(time.monotonic() - start, 10, delta=1.5)
        self.assertNotIn("hunter2", self.browser.driver.page_source)

    def test_a_secret_is_set_without_being_shown(self):
        self.browser.choose("mail/token")
        self.assertEqual(self.browser.one("#editor input").value_of_css_property("-webkit-text-security"), "disc")
        self.browser.fill("#editor input", "another-secret")
        self.browser.click("#review")
        text = self.browser.wait(lambda: self.browser.text("dialog"))
        self.assertIn("a new secret", text)
        self.assertNotIn("another-secret", text)
        self.browser.press("Save", "dialog")
        self.wait_value("mail/token", "another-secret")
        self.assertEqual(self.store.prefs("type", "mail/token").strip(), "secret")
        self.browser.click("#undo")
        self.wait_value("mail/token", "hunter2-secret")

    def test_a_sealed_collection_asks_for_its_passphrase_and_reveals_one_value(self):
        self.browser.choose("vault/pin")
        self.assertIn("<sealed:", self.browser.text("#secret"))
        self.browser.click("#reveal")
        self.browser.fill("#passphrase", "wrong")
        self.browser.press("Unlock", "dialog")
        self.browser.wait(lambda: "not the passphrase" in self.browser.text("dialog"))
        self.browser.fill("#passphrase", PASSPHRASE)
        self.browser.press("Unlock", "dialog")
        self.browser.wait(lambda: self.browser.text("#secret") == "4711-sealed")
        # The list still shows nothing of it.
        self.assertIn("<sealed:", self.browser.row("vault/pin")["value"])
        self.browser.click("#vault")
        self.browser.wait(lambda: not self.browser.one("#vault").is_displayed())
        # Unlocked was this process alone.
        self.store.prefs("get", "vault/pin", "--no-input", code=6)

    def test_a_revealed_secret_is_copied_as_it_is_and_hidden_when_the_window_is_left(self):
        self.store.prefs("set", "mail/token", "--secret", "-", input="a\\u0007b\u0007\u202ec")
        self.browser.driver.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
        self.browser.choose("mail/token")
        self.browser.click("#reveal")
        self.browser.wait(lambda: self.browser.all("#copy-secret"))
        # Escapes are marked, and not letters that look like one.
        marks = self.browser.driver.execute_script("return [...document.querySelectorAll('#secret .escape')].map((node) => node.textContent)")
        self.assertEqual(marks, ["\\u0007", "\\u202e"])
        self.browser.click("#copy-secret")
        self.browser.wait(lambda: "Copied" in self.browser.text("#messages"))
        copied = self.browser.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0], (e) => arguments[0](String(e)))")
        self.assertEqual(copied, "a\\u0007b\u0007\u202ec")
        # It leaves the clipboard after half a minute, which is shorter here.
        self.browser.driver.execute_script("""
            const real = setTimeout; window.setTimeout = (action, time) => real(action, time === 30000 ? 100 : time)""")
        self.browser.click("#copy-secret")
        self.browser.wait(lambda: self.browser.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0], (e) => arguments[0](String(e)))") == "")
        self.browser.driver.execute_script("dispatchEvent(new Event('blur'))")
        self.browser.wait(lambda: self.browser.text("#secret").startswith("<secret:"))
        self.assertEqual(self.browser.all("#copy-secret"), [])

    def test_prefs_lock_locks_the_page_within_a_second(self):
        self.browser.choose("vault/pin")
        self.browser.click("#reveal")
        self.browser.fill("#passphrase", PASSPHRASE)
        self.browser.press("Unlock", "dialog")
        self.browser.wait(lambda: self.browser.text("#secret") == "4711-sealed")
        self.store.prefs("lock")
        start = time.monotonic()
        self.browser.wait(lambda: not self.browser.one("#vault").is_displayed(), seconds=3)
        self.assertLess(time.monotonic() - start, 1.5)
        self.browser.wait(lambda: "4711" not in self.browser.driver.page_source)

    def test_lock_means_locked_though_prefs_unlock_keeps_the_key(self):
        with Descriptor(PASSPHRASE) as descriptor:
            self.store.prefs("unlock", "--vault-passphrase-fd", str(descriptor), pass_fds=(descriptor,))
        self.addCleanup(self.store.prefs, "lock")
        self.browser.choose("vault/pin")
        self.browser.click("#reveal")
        self.browser.wait(lambda: self.browser.text("#secret") == "4711-sealed")
        self.browser.wait(lambda: self.browser.one("#vault").is_displayed())
        self.browser.click("#vault")
        self.browser.wait(lambda: self.browser.text("#secret") != "4711-sealed")
        self.browser.wait(lambda: self.browser.one("#reveal").is_enabled())
        self.browser.click("#reveal")
        self.browser.wait(lambda: self.browser.all("#passphrase"))
        # Other commands are not concerned.
        self.assertEqual(self.store.get("vault/pin"), "4711-sealed")

    def test_a_sealed_value_is_changed_once_the_vault_is_open(self):
        self.browser.choose("vault/pin")
        self.browser.fill("#editor textarea", "0815")
        self.browser.click("#save")
        self.browser.fill("#passphrase", PASSPHRASE)
        self.browser.press("Unlock", "dialog")
        self.browser.wait(lambda: "Saved vault/pin" in self.browser.text("#messages"))
        self.browser.click("#reveal")
        self.browser.wait(lambda: self.browser.text("#secret") == "0815")

    def test_nothing_of_a_secret_is_in_the_program_s_arguments_or_its_messages(self):
        with open(f"/proc/{self.page.process.pid}/cmdline") as file:
            words = file.read()
        self.assertNotIn(self.page.token, words)
        self.assertNotIn("hunter2", words)


class ShortTimeTests(PageCase):
    arguments = ("--ttl", "6s")

    def prepare(self):
        super().prepare()
        self.store.prefs("set", "vault/pin", "4711-sealed")
        self.store.seal("vault", PASSPHRASE)

    def test_the_vault_is_locked_and_the_page_ends_when_the_time_is_over(self):
        self.browser.choose("vault/pin")
        self.browser.click("#reveal")
        self.browser.fill("#passphrase", PASSPHRASE)
        self.browser.press("Unlock", "dialog")
        self.browser.wait(lambda: self.browser.one("#vault").is_displayed())
        self.browser.wait(lambda: not self.browser.one("#vault").is_displayed() if self.browser.all("#vault") else True)
        self.assertEqual(self.page.process.wait(timeout=20), 0)

    def test_typing_keeps_it_alive_and_an_end_keeps_what_was_typed(self):
        self.browser.choose("notes/first")
        typed = ""
        start = time.monotonic()
        while time.monotonic() - start < 9:
            self.browser.one("#editor textarea").send_keys("x")
            typed += "x"
            time.sleep(0.5)
        self.assertIsNone(self.page.process.poll())
        self.assertEqual(self.page.process.wait(timeout=20), 0)
        text = self.browser.wait(lambda: self.browser.text("#unsaved"))
        self.assertIn("notes/first", text)
        self.assertIn(typed, self.browser.one("#unsaved textarea").get_attribute("value"))
        self.assertIn("It was not used for the time", self.browser.text("body"))
        self.assertNotIn("hunter2", self.browser.driver.page_source)


class AttackTests(PageCase):
    HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"

    def prepare(self):
        super().prepare()
        self.store.prefs("history", "--keep", "hostile")
        for name in ["<b>bold</b>", self.HOSTILE.replace("/", "|"), "x\u202etxt.exe"]:
            self.store.prefs("set", "-c", "hostile", name, "--string", self.HOSTILE)
        self.store.prefs("set", "-c", "<i>collection</i>", "javascript:alert(1)", "javascript:alert(1)")
        self.store.prefs("set", "-c", "hostile", "label", "--string", "1")
        self.store.declare([
            {"name": "label", "collection": "hostile", "type": "string", "summary": self.HOSTILE,
             "limits": [{"choices": ["1", self.HOSTILE]}], "deprecated": self.HOSTILE, "since": self.HOSTILE}],
            application="org.example.hostile")

    def test_html_and_script_in_names_values_and_labels_are_text(self):
        title = self.browser.driver.title
        names = self.browser.wait(lambda: [name for name in self.browser.names() if name.startswith(("hostile/", "<i>"))])
        self.assertIn("hostile/<b>bold</b>", names)
        self.assertIn("hostile/x\\u202etxt.exe", names)
        for name in names:
            self.browser.choose(name)
            self.browser.click("#history summary")
            self.browser.wait(lambda: self.browser.text(".history"))
        self.browser.choose("hostile/label")
        self.browser.one("#editor select").send_keys("<")
        self.browser.click("#review")
        self.browser.wait(lambda: self.browser.text("dialog"))
        self.assertEqual(self.browser.driver.title, title)
        self.assertEqual(self.browser.all("img, i, b, #details script, #list script"), [])
        self.assertEqual([line for line in self.browser.console() if "404" not in line], [])

    def test_a_page_of_another_origin_can_neither_post_nor_read_nor_frame(self):
        address = f"http://127.0.0.1:{self.page.port}/{self.page.folder}/"
        session = self.browser_session()
        other = Server(f"""<!doctype html><title>evil</title><iframe src="{address}"></iframe><script>
            const attempts = [];
            const post = (type) => fetch("{address}api/list", {{ method: "POST", body: "{{}}", mode: type ? "cors" : "no-cors",
              headers: type ? {{ "Content-Type": type, "X-Coffer-Session": "{session}" }} : {{}} }})
              .then(async (answer) => attempts.push(answer.type + answer.status + await answer.text()), () => attempts.push("refused"));
            Promise.all([post(), post("application/octet-stream"), fetch("{address}", {{ mode: "no-cors" }}).then((a) => a.text()).then((t) => attempts.push("text" + t), () => attempts.push("refused"))])
              .then(() => {{ window.attempts = attempts; }});
            </script>""")
        self.addCleanup(other.close)
        evil = Browser()
        self.addCleanup(evil.close)
        evil.driver.get(other.address)
        attempts = evil.wait(lambda: evil.driver.execute_script("return window.attempts"))
        for attempt in attempts:
            self.assertIn(attempt, ["refused", "opaque0", "text"])
        evil.driver.switch_to.frame(0)
        self.assertNotIn("Settings", evil.driver.page_source)

    def browser_session(self):
        """A real session, that even with it another origin gets nothing."""
        page = Page(self.store)
        self.addCleanup(page.close)
        self.page = page
        return page.session().name

    def test_a_host_name_that_was_bound_to_loopback_gets_nothing(self):
        evil = Browser(arguments=["--host-resolver-rules=MAP evil.example.org 127.0.0.1"])
        self.addCleanup(evil.close)
        evil.driver.get(f"http://evil.example.org:{self.page.port}/{self.page.folder}/#{self.page.token}")
        # The browser's own words for an empty answer.
        self.assertIn("403", evil.text("body"))
        self.assertEqual(evil.rows(), [])

    def test_a_token_that_was_stolen_after_its_use_opens_nothing(self):
        thief = Browser()
        self.addCleanup(thief.close)
        thief.open(self.page.address)
        thief.wait(lambda: "This page has ended" in thief.text("body"))
        self.assertEqual(self.page.call("session", channel=Channel.of_token(self.page.token))[0], 403)
        # The page that used it continues.
        self.browser.search("milk")
        self.browser.wait(lambda: self.browser.names() == ["notes/first"])

    def test_the_token_leaves_the_address_and_the_history_of_the_browser(self):
        self.assertNotIn(self.page.token, self.browser.driver.current_url)
        self.assertEqual(self.browser.driver.execute_script("return location.hash"), "")
        self.assertEqual(self.browser.driver.get_cookies(), [])
        stored = self.browser.driver.execute_script("return localStorage.length + sessionStorage.length")
        self.assertEqual(stored, 0)

    def test_another_user_who_finds_the_port_gets_403_and_learns_nothing(self):
        for path in ["/", "/index.html", "/api/list", f"/{self.page.folder[:-1]}/"]:
            status, headers, body = self.page.request("GET", path)
            self.assertEqual((status, body), (403, b""))
            self.assertNotIn("Server", headers)


class OpeningTests(PageCase):
    def test_the_browser_is_opened_by_a_private_file_that_goes_away(self):
        words = os.path.join(self.store.home, "words")
        opener = os.path.join(self.store.home, "bin")
        os.mkdir(opener)
        with open(os.path.join(opener, "xdg-open"), "w") as file:
            file.write(f'#!/bin/sh\nstat -c "%a %U" "$1" "$(dirname "$1")" >{words}.modes\n'
                       f'grep SigIgn "/proc/$$/status" >{words}.ignored\ncat "$1" >{words}.page\necho "$1" >{words}\n')
        os.chmod(file.name, 0o755)
        environment = {"PATH": f"{opener}:{os.environ['PATH']}", "DISPLAY": ":99"}
        page = Page(self.store, environment=environment, opens=True)
        self.addCleanup(page.close)
        self.browser.wait(lambda: os.path.exists(words))
        with open(words) as file:
            path = file.read().strip()
        with open(f"{words}.modes") as file:
            self.assertEqual([line.split()[0] for line in file], ["600", "700"])
        with open(f"{words}.ignored") as file:
            self.assertEqual(int(file.read().split()[1], 16) >> signal.SIGPIPE - 1 & 1, 0)  # The page itself ignores it.
        with open(f"{words}.page") as file:
            self.assertIn(page.address, file.read())
        self.assertNotIn(page.token, path)
        self.browser.driver.get(f"file://{path}")
        self.browser.wait(lambda: self.browser.rows())
        self.browser.wait(lambda: not os.path.exists(path))

    def test_without_a_browser_it_says_what_to_do_also_at_the_wrong_end_of_a_forwarded_port(self):
        page = Page(self.store)
        self.addCleanup(page.close)
        # As a browser does at the other end of `ssh -L 9000:127.0.0.1:PORT`.
        headers = {"Host": "127.0.0.1:9000", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
        for path in ["/", f"/{page.folder}/"]:
            self.assertEqual(page.request("GET", path, headers=headers)[0], 403)
        self.assertEqual(page.interrupt(), 0)
        words = page.process.stderr.read()
        forward = f"ssh -L {page.port}:127.0.0.1:{page.port} HOST"
        self.assertIn("open the address within a minute. Press Enter for another one.", words)
        self.assertEqual(words.count(forward), 2)
        self.assertEqual(words.count("asked for at 127.0.0.1:9000"), 1)

    def test_a_browser_that_does_not_open_is_said(self):
        opener = os.path.join(self.store.home, "bin")
        os.mkdir(opener)
        with open(os.path.join(opener, "xdg-open"), "w") as file:
            file.write("#!/bin/sh\nexit 3\n")
        os.chmod(file.name, 0o755)
        page = Page(self.store, environment={"PATH": f"{opener}:{os.environ['PATH']}", "DISPLAY": ":99"}, opens=True)
        self.addCleanup(page.close)
        words = ""
        while "ssh -L" not in words:
            words += page.process.stderr.readline()
        self.assertIn("no browser has opened", words)

    def test_each_signal_ends_it_as_soon_as_its_address_is_there(self):
        for number in [signal.SIGINT, signal.SIGTERM, signal.SIGHUP] * 5:
            page = Page(self.store)
            self.addCleanup(page.close)
            page.process.send_signal(number)
            self.assertEqual(page.process.wait(timeout=20), 0)

    def test_it_listens_at_a_socket_of_this_user_for_a_proxy(self):
        path = os.path.join(self.store.runtime, "page.sock")
        page = Page(self.store, "--listen", f"unix:{path}")
        self.addCleanup(page.close)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        folder, token = page.address.strip("/").split("/#")
        connection = UnixConnection(path)
        connection.request("POST", f"/{folder}/api/session", Channel.of_token(token).seal(b"{}", "request session"), {
            "Host": "settings.example.org", "Origin": "https://settings.example.org",
            "Content-Type": "application/octet-stream"})
        self.assertEqual(connection.getresponse().status, 200)
        self.assertEqual(page.interrupt(), 0)
        self.assertFalse(os.path.exists(path))

    def test_a_port_that_is_taken_is_an_error_that_says_so(self):
        run = os.path.join(BINARIES, "prefs")
        import subprocess
        failed = subprocess.run(
            [run, "ui", "--no-open", "--port", str(self.page.port)], env=self.store.environment, capture_output=True, text=True,
            timeout=30, stdin=subprocess.DEVNULL)
        self.assertEqual(failed.returncode, 14)
        self.assertIn(f"cannot listen at 127.0.0.1:{self.page.port}", failed.stderr)

    def test_it_ends_a_minute_after_its_last_tab(self):
        self.browser.driver.get("about:blank")
        start = time.monotonic()
        self.assertEqual(self.page.process.wait(timeout=90), 0)
        self.assertGreater(time.monotonic() - start, 55)
        self.assertIn("last tab", self.page.process.stderr.read())


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self.path)


class Server:
    """A page of another origin, on loopback."""

    def __init__(self, text):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass
        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


if __name__ == "__main__":
    unittest.main()
