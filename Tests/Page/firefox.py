"""A Firefox with a window, driven by its own protocol (Marionette), which needs no driver."""

import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time


class Firefox:
    """A Firefox with a profile of its own, on a screen of its own (Xvfb)."""

    @staticmethod
    def is_there():
        return bool(Firefox.binary()) and bool(shutil.which("Xvfb"))

    @staticmethod
    def binary():
        return shutil.which("firefox-esr") or shutil.which("firefox")

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="prefs-firefox-")
        reader, writer = os.pipe()
        self.screen = subprocess.Popen(
            ["Xvfb", "-displayfd", str(writer), "-screen", "0", "1280x900x24", "-nolisten", "tcp"], pass_fds=(writer,),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            display = pipe.readline().strip()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        with open(os.path.join(self.profile, "user.js"), "w") as file:
            for name, value in {
                "marionette.port": port, "browser.sessionstore.interval": 100, "browser.sessionstore.interval.idle": 100,
                "browser.shell.checkDefaultBrowser": False, "datareporting.policy.dataSubmissionEnabled": False,
                "browser.aboutwelcome.enabled": False, "app.update.enabled": False, "signon.rememberSignons": True,
                "toolkit.cosmeticAnimations.enabled": False, "network.captive-portal-service.enabled": False,
            }.items():
                file.write(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n")
        self.process = subprocess.Popen(
            [self.binary(), "--marionette", "--profile", self.profile, "--no-remote", "about:blank"],
            env={**os.environ, "DISPLAY": f":{display}", "HOME": self.profile, "MOZ_DISABLE_CONTENT_SANDBOX": "1"},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.connection = self.connect(port)
        self.count = 0
        self.receive()
        self.command("WebDriver:NewSession", {"capabilities": {"alwaysMatch": {}}})

    @staticmethod
    def connect(port):
        end = time.monotonic() + 60
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port), timeout=60)
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def receive(self):
        size = b""
        while not size.endswith(b":"):
            size += self.connection.recv(1)
        text = b""
        while len(text) < int(size[:-1]):
            text += self.connection.recv(int(size[:-1]) - len(text))
        return json.loads(text)

    def command(self, name, arguments=None):
        self.count += 1
        text = json.dumps([0, self.count, name, arguments or {}]).encode()
        self.connection.sendall(str(len(text)).encode() + b":" + text)
        _, _, error, result = self.receive()
        if error:
            raise AssertionError(f"{name}: {error['error']}: {error['message']}")
        return result

    # Doing and looking

    def open(self, address):
        self.command("WebDriver:Navigate", {"url": address})

    def script(self, text, *arguments):
        return self.command("WebDriver:ExecuteScript", {"script": text, "args": list(arguments)})["value"]

    def wait(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while True:
            value = condition()
            if value:
                return value
            assert time.monotonic() < end, "it did not come true"
            time.sleep(0.05)

    def text(self, selector):
        return self.script("return document.querySelector(arguments[0])?.innerText ?? null", selector)

    def click(self, selector):
        self.wait(lambda: self.script(
            "const node = document.querySelector(arguments[0]); node?.click(); return Boolean(node)", selector))

    def choose(self, name):
        self.wait(lambda: self.script("""
            const row = [...document.querySelectorAll('.row')].find((row) => row.querySelector('.name')?.innerText.startsWith(arguments[0]));
            row?.click(); return Boolean(row)""", name))
        self.wait(lambda: self.text("#details-title") == name)

    def type(self, selector, text):
        """Types as a person does, with keys."""
        self.wait(lambda: self.script(
            "const node = document.querySelector(arguments[0]); node?.focus(); node?.select?.(); return Boolean(node)", selector))
        element = self.command("WebDriver:FindElement", {"using": "css selector", "value": selector})["value"]
        self.command("WebDriver:ElementSendKeys", {"id": next(iter(element.values())), "text": text})

    # What it leaves

    def kept(self):
        """All that the profile has in its files, with the session's unpacked."""
        contents = []
        for folder, _, names in os.walk(self.profile):
            for name in names:
                try:
                    with open(os.path.join(folder, name), "rb") as file:
                        data = file.read()
                except OSError:
                    continue
                contents.append((name, unpacked(data) if data.startswith(b"mozLz40\0") else data))
        return contents

    def close(self):
        self.connection.close()
        for process in [self.process, self.screen]:
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)


def unpacked(data):
    """What a file of the session has: one block of LZ4 behind a head."""
    size = struct.unpack("<I", data[8:12])[0]
    output = bytearray()
    place = 12

    def length(start, place):
        total = start
        if start == 15:
            while True:
                byte = data[place]
                place += 1
                total += byte
                if byte != 255:
                    break
        return total, place

    while place < len(data):
        token = data[place]
        literals, place = length(token >> 4, place + 1)
        output += data[place:place + literals]
        place += literals
        if place >= len(data):
            break
        offset = data[place] | data[place + 1] << 8
        count, place = length(token & 15, place + 2)
        for _ in range(count + 4):
            output.append(output[-offset])
    assert len(output) == size
    return bytes(output)
