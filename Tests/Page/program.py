"""A store, and the program that serves its page, without a browser."""

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

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

PATIENCE = 20


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
