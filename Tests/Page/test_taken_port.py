"""Another program that takes the port when the page's has ended: it learns nothing, and is not believed."""

import http.server
import os
import subprocess
import sys
import threading
import unittest

from cases import PageCase

PASSPHRASE = "correct horse"


class TakenPortTests(PageCase):
    def prepare(self):
        super().prepare()
        self.store.prefs("set", "vault/pin", "4711-sealed")
        self.store.seal("vault", PASSPHRASE)

    def test_who_takes_the_port_gets_no_key_no_passphrase_and_nothing_that_was_typed_and_is_not_believed(self):
        self.browser.choose("notes/first")
        self.browser.fill("#editor textarea", "typed but not saved")
        port = self.page.port
        self.page.process.kill()
        self.page.process.wait()
        other = Impostor(port)
        self.addCleanup(other.close)
        self.browser.wait(lambda: "This page has ended" in self.browser.text("body"), seconds=15)
        self.assertTrue(other.seen)
        for request in other.seen:
            for secret in [b"typed but not saved", PASSPHRASE.encode(), b"notes"]:
                self.assertNotIn(secret, request)
        # What was typed is still there for the person.
        self.assertEqual(self.browser.one("#unsaved textarea").get_attribute("value"), "typed but not saved")
        self.assertNotIn("milk", self.browser.driver.page_source)

    def test_a_passphrase_that_is_typed_after_the_end_is_sealed_for_the_program_that_is_gone(self):
        self.browser.choose("vault/pin")
        self.browser.click("#reveal")
        self.browser.fill("#passphrase", PASSPHRASE)
        # The page does not find out by its events.
        port = self.page.port
        self.browser.driver.execute_script("""
            const real = fetch; window.fetch = (address, options) => address.endsWith('events') ? new Promise(() => {}) : real(address, options)""")
        self.page.process.kill()
        self.page.process.wait()
        other = Impostor(port, answer=b'{"error":"wrongKey","message":"Try another passphrase."}', status=422)
        self.addCleanup(other.close)
        self.browser.driver.execute_script("document.querySelector('dialog form')?.requestSubmit()")
        self.browser.wait(lambda: "This page has ended" in self.browser.text("body"), seconds=15)
        self.assertFalse(any(PASSPHRASE.encode() in request for request in other.seen))
        self.assertNotIn("Try another", self.browser.driver.page_source)

    def test_an_end_that_was_planned_is_announced_and_nobody_is_asked_again(self):
        # It listens once it has heard of a change.
        self.store.prefs("set", "notes/count", "4")
        self.browser.wait(lambda: self.browser.row("notes/count")["value"] == "4")
        port = self.page.port
        self.assertEqual(self.page.interrupt(), 0)
        other = Impostor(port)
        self.addCleanup(other.close)
        self.browser.wait(lambda: "Its program was ended" in self.browser.text("body"))
        self.assertEqual([request for request in other.seen if b"POST" in request], [])


class FloodTests(PageCase):
    def test_a_flood_of_connections_with_few_descriptors_neither_ends_it_nor_shuts_out_its_page(self):
        pid = self.page.process.pid
        subprocess.run(["prlimit", f"--pid={pid}", "--nofile=64:64"], check=True)
        flood = subprocess.Popen([sys.executable, "-c", f"""
import socket
kept = []
while True:
    connection = socket.socket()
    connection.settimeout(2)
    try: connection.connect(("127.0.0.1", {self.page.port}))
    except OSError: continue
    kept.append(connection)
    if len(kept) > 300: kept.pop(0).close()
"""])
        self.addCleanup(flood.wait)
        self.addCleanup(flood.kill)
        self.browser.wait(lambda: len(os.listdir(f"/proc/{pid}/fd")) > 20)
        for text in ["5", "6", "7"]:
            self.store.prefs("set", "notes/count", text)
            self.browser.wait(lambda: self.browser.row("notes/count")["value"] == text)
        self.browser.search("milk")
        self.browser.wait(lambda: self.browser.names() == ["notes/first"])
        self.assertIsNone(self.page.process.poll())


class Impostor:
    """A program of somebody else at a port; it keeps what it gets."""

    def __init__(self, port, answer=b"{}", status=200):
        self.seen = []
        seen = self.seen

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                seen.append(self.requestline.encode() + b"\n" + bytes(str(self.headers), "utf-8") + b"\n" + body)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_POST = do_GET = answer

            def log_message(self, *_):
                pass

        http.server.ThreadingHTTPServer.allow_reuse_address = True
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


if __name__ == "__main__":
    unittest.main()
