"""A store, the program that serves its page, and a browser in front of it."""

import base64
import http.client
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import tempfile
import time

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

PATIENCE = 20

# What the value of a row says: its text, or the state of its switch, its menu or its field.
SHOWN = """(cell) => {
  const control = cell.querySelector('input, select');
  return !control ? cell.textContent : control.type === 'checkbox' ? String(control.checked) : control.value;
}"""


class Store:
    """A store in a home of its own, and the tool that works with it."""

    def __init__(self, binaries):
        self.binaries = binaries
        self.home = tempfile.mkdtemp(prefix="prefs-page-")
        self.runtime = os.path.join(self.home, "run")
        os.mkdir(self.runtime, 0o700)
        self.environment = {
            "HOME": self.home, "PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": self.runtime, "LANG": "C.UTF-8",
        }

    def prefs(self, *arguments, input=None, code=0, pass_fds=()):
        run = subprocess.run(
            [os.path.join(self.binaries, "prefs"), *arguments], env=self.environment, input=input, capture_output=True,
            text=True, timeout=120, pass_fds=pass_fds)
        assert run.returncode == code, f"prefs {arguments}: {run.returncode}, {run.stderr}"
        return run.stdout

    def get(self, key):
        return self.prefs("get", key).rstrip("\n")

    def declare(self, settings, application="org.example.editor"):
        """Declares settings, as a program does when it starts."""
        path = os.path.join(self.home, "declarations.json")
        with open(path, "w") as file:
            json.dump(settings, file)
        self.prefs("schema", "load", path, "--application", application)

    def seal(self, collection, passphrase):
        """Seals a collection in a vault that a passphrase opens."""
        with Descriptor(passphrase) as descriptor:
            self.prefs(
                "seal", collection, "--vault-passphrase-fd", str(descriptor), pass_fds=(descriptor,))

    def close(self):
        shutil.rmtree(self.home, ignore_errors=True)


class Descriptor:
    """A descriptor that another program reads a text from."""

    def __init__(self, text):
        self.text = text

    def __enter__(self):
        self.reader, writer = os.pipe()
        os.write(writer, self.text.encode())
        os.close(writer)
        return self.reader

    def __exit__(self, *_):
        os.close(self.reader)


class Channel:
    """What a page and its program seal for each other: XAES-256-GCM."""

    def __init__(self, key, name=None):
        self.key = key
        self.name = name

    @staticmethod
    def of_token(token):
        return Channel(HKDF(hashes.SHA256(), 32, b"", b"prefs-ui token").derive(token.encode()))

    def cipher(self, nonce):
        encrypt = Cipher(algorithms.AES(self.key), modes.ECB()).encryptor().update
        zero = int.from_bytes(encrypt(bytes(16)), "big")
        mask = (zero << 1) % (1 << 128) ^ (0x87 if zero >> 127 else 0)
        halves = [int.from_bytes(bytes([0, number, 0x58, 0]) + nonce[:12], "big") ^ mask for number in (1, 2)]
        return AESGCM(b"".join(encrypt(half.to_bytes(16, "big")) for half in halves))

    def seal(self, data, purpose):
        nonce = os.urandom(24)
        return nonce + self.cipher(nonce).encrypt(nonce[12:], data, purpose.encode())

    def open(self, sealed, purpose, request):
        return self.cipher(sealed[:24]).decrypt(sealed[12:24], sealed[24:], purpose.encode() + request[:24])


class Page:
    """`prefs ui` on a terminal."""

    def __init__(self, store, *arguments, environment=None, opens=False):
        self.store = store
        self.terminal, end = pty.openpty()
        self.process = subprocess.Popen(
            [os.path.join(store.binaries, "prefs"), "ui", *([] if opens else ["--no-open"]), *arguments],
            env={**store.environment, **(environment or {})}, stdin=end, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, start_new_session=True)
        os.close(end)
        try:
            self.address = self.next_address()
        except BaseException:
            self.close()
            raise

    def next_address(self):
        ready, _, _ = select.select([self.process.stdout], [], [], 60)
        assert ready, "prefs ui prints no address"
        line = self.process.stdout.readline().strip()
        if not line:
            raise AssertionError(f"prefs ui ended: {self.process.stderr.read()}")
        return line

    def another_address(self):
        """What Enter gives."""
        os.write(self.terminal, b"\n")
        return self.next_address()

    @property
    def port(self):
        return int(self.address.split(":")[2].split("/")[0])

    @property
    def folder(self):
        return self.address.split("/")[3]

    @property
    def token(self):
        return self.address.split("#")[1]

    def request(self, method, path, body=None, headers=None, port=None):
        """One request by hand; returns status, headers and body."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=30)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def own_headers(self, session=None):
        """What the page itself sends."""
        headers = {
            "Host": f"127.0.0.1:{self.port}", "Origin": f"http://127.0.0.1:{self.port}",
            "Sec-Fetch-Site": "same-origin", "Content-Type": "application/octet-stream",
        }
        return {**headers, "X-Coffer-Session": session.name} if session else headers

    def call(self, name, request=None, session=None, channel=None, **headers):
        """A call as the page makes it."""
        channel = channel or session
        body = request if isinstance(request, bytes) else json.dumps(request or {}).encode()
        sealed = channel.seal(body, f"request {name}")
        status, answered, answer = self.request(
            "POST", f"/{self.folder}/api/{name}", sealed, {**self.own_headers(session), **headers})
        if answer:
            answer = channel.open(answer, f"{'answer' if status == 200 else 'failure'} {name}", sealed)
        return status, answered, answer

    def session(self):
        status, _, body = self.call("session", channel=Channel.of_token(self.token))
        assert status == 200, status
        answer = json.loads(body)
        return Channel(base64.urlsafe_b64decode(answer["key"] + "=="), answer["session"])

    def interrupt(self):
        """Ctrl-C."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=PATIENCE)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()
        os.close(self.terminal)


class Browser:
    """A Chromium of its own without a screen."""

    def __init__(self, width=1280, height=800, dark=False, arguments=()):
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or shutil.which("chromium-browser") or ""
        self.profile = tempfile.mkdtemp(prefix="prefs-browser-")
        flags = [
            "--headless=new", f"--window-size={width},{height}", f"--user-data-dir={self.profile}",
            "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--force-prefers-reduced-motion",
            "--enable-precise-memory-info", *arguments,
        ]
        # Chromium's sandbox refuses to be root's.
        if os.geteuid() == 0:
            flags.append("--no-sandbox")
        for flag in flags:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        options.add_experimental_option("prefs", {"download.default_directory": self.profile})
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.driver.set_page_load_timeout(PATIENCE)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})

    def size(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def open(self, address):
        self.driver.get("about:blank")
        self.driver.get(address)

    def open_list(self, address):
        self.open(address)
        self.wait(lambda: self.rows())

    # Looking

    def wait(self, condition, seconds=PATIENCE, interval=0.02):
        """Waits until something is so, and returns what it is."""
        def attempt(_):
            try:
                return condition()
            except Exception as error:  # Elements redrawn meanwhile are searched again.
                if "stale element" in str(error) or "no such element" in str(error):
                    return None
                raise
        return WebDriverWait(self.driver, seconds, interval).until(attempt, str(condition))

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector):
        """The text of what is there; None where it is not."""
        return self.driver.execute_script(
            "return document.querySelector(arguments[0])?.innerText ?? null", selector)

    def rows(self):
        """The rows that are drawn, in their order: name, value, classes."""
        return self.driver.execute_script(f"""
            const shown = {SHOWN};
            return [...document.querySelectorAll('.row')].filter((row) => row.querySelector('.value'))
              .sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((row) => ({{
                name: (row.querySelector('.collection')?.textContent ?? '') + row.querySelector('.key').textContent,
                value: shown(row.querySelector('.value')), summary: row.querySelector('.summary').textContent,
                classes: [...row.classList], index: Number(row.ariaRowIndex) - 1 }}))""")

    def row(self, name):
        return next((row for row in self.rows() if row["name"] == name), None)

    def names(self):
        return [row["name"] for row in self.rows()]

    def focused(self):
        return self.driver.execute_script("const n = document.activeElement; return n.id || n.tagName.toLowerCase()")

    def console(self):
        return [entry["message"] for entry in self.driver.get_log("browser") if "favicon" not in entry["message"]]

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(self.driver.get_screenshot_as_png())

    # Doing

    def choose(self, name):
        """Clicks a row, and waits for the setting beside it."""
        def click():
            row = self.row(name)
            return row and self.driver.execute_script("""
                const row = document.getElementById('row-' + arguments[0]); row?.click(); return Boolean(row)""", row["index"])
        self.wait(click)
        self.wait(lambda: self.text("#details-title") == name)

    def search(self, text):
        box = self.one("#search")
        box.clear()
        box.send_keys(text)

    def fill(self, selector, text):
        def attempt():
            field = self.one(selector)
            field.send_keys(Keys.CONTROL, "a")
            field.send_keys(Keys.BACKSPACE)
            field.send_keys(text)
            return True
        self.wait(attempt)

    def keys(self, *keys):
        self.driver.switch_to.active_element.send_keys(*keys)

    def click(self, selector):
        def attempt():
            self.one(selector).click()
            return True
        self.wait(attempt)

    def press(self, word, within="body"):
        """Clicks the button that says so."""
        def attempt():
            button = next((b for b in self.all(f"{within} button") if b.is_displayed() and b.text.startswith(word)), None)
            if button:
                button.click()
            return button
        self.wait(attempt)

    def close(self):
        self.driver.quit()
        shutil.rmtree(self.profile, ignore_errors=True)
