"""A hostile storage with the interface of Amazon S3, on loopback; it checks no signatures, and keeps what it was sent."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import struct
import threading
import urllib.parse
from typing import Callable, Iterator, Optional

import loopback

ACCESS_KEY, SECRET = "AKIDATTACK", "secret-of-the-access-key-46"
BUCKET = "/fleets/"


@dataclasses.dataclass
class Storage:
    """Objects by name, and what it does wrong."""

    objects: dict = dataclasses.field(default_factory=dict)
    # The headers of conditions that it ignores.
    ignores: set = dataclasses.field(default_factory=set)
    # Called once, between the reading of a root and its replacement.
    meanwhile: Optional[Callable] = None
    # Answers in its place.
    answer: Optional[Callable] = None
    # All that it was sent.
    sent: list = dataclasses.field(default_factory=list)
    served: int = 0
    lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)
    address: str = ""

    def saved(self) -> dict:
        with self.lock:
            return dict(self.objects)

    def put_back(self, objects: dict) -> None:
        with self.lock:
            self.objects = dict(objects)

    def respond(self, method: str, name: str, query: dict, headers, body: bytes) -> tuple:
        """The status, more headers, and the body of an answer."""
        if name == "":
            return 200, {}, self.listed(query["prefix"][0])
        if method == "PUT" and name.endswith("/root") and self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        with self.lock:
            found = self.objects.get(name)
            if method == "PUT":
                if not self.met(found, headers):
                    return 412, {}, error("PreconditionFailed")
                self.objects[name] = body
                return 200, {"ETag": tag(body)}, b""
            if method == "DELETE":
                self.objects.pop(name, None)
                return 204, {}, b""
        if found is None:
            return 404, {}, error("NoSuchKey")
        if headers.get("If-None-Match") == tag(found):
            return 304, {"ETag": tag(found)}, b""
        if headers.get("Range") is None:
            return 200, {"ETag": tag(found)}, found
        first, last = map(int, headers["Range"].removeprefix("bytes=").split("-"))
        return 206, {"ETag": tag(found)}, found[first : last + 1]

    def met(self, found: Optional[bytes], headers) -> bool:
        wanted, absent = headers.get("If-Match"), headers.get("If-None-Match")
        if absent is not None and "If-None-Match" not in self.ignores and found is not None:
            return False
        return wanted is None or "If-Match" in self.ignores or found is not None and tag(found) == wanted

    def listed(self, prefix: str) -> bytes:
        contents = "".join(
            f"<Contents><Key>{name}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            for name in sorted(self.saved())
            if name.startswith(prefix)
        )
        return f"<ListBucketResult><IsTruncated>false</IsTruncated>{contents}</ListBucketResult>".encode()

    @contextlib.contextmanager
    def running(self) -> Iterator["Storage"]:
        storage = self

        class Handler(loopback.Handler):
            def do_GET(self) -> None:
                body = self.received()
                storage.sent.append(self.requestline.encode() + str(self.headers).encode() + body)
                if storage.answer is not None:
                    with contextlib.suppress(OSError):
                        storage.answer(self)
                    self.close_connection = True
                    return
                url = urllib.parse.urlsplit(self.path)
                name = urllib.parse.unquote(url.path + "/").removeprefix(BUCKET).rstrip("/")
                status, headers, data = storage.respond(self.command, name, urllib.parse.parse_qs(url.query), self.headers, body)
                storage.served += len(data)
                self.send_response(status)
                for key, value in headers.items():
                    self.send_header(key, value)
                if status not in (204, 304):
                    self.send_header("Content-Length", str(len(data)))
                self.send(data)

            do_PUT = do_DELETE = do_GET

        server = loopback.Server(Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.address = f"s3://fleets/team?endpoint=http://127.0.0.1:{server.server_port}&region=eu-central-1&poll=1"
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()


def tag(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'


def error(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()


# MARK: - The layout of Documentation/PackedCarrier.md


def name_of(text: str) -> bytes:
    return bytes([len(text)]) + text.encode()


def entry(name: str, data: bytes, number: int) -> bytes:
    return name_of(name) + struct.pack(">QBI", number, 1, len(data)) + data


def root(recent: dict, runs: tuple = (), number: int = 1) -> bytes:
    """A root with these objects, and packs in which there are others."""
    data = b"\1" + bytes(8) + struct.pack(">QQQ", number, 0, 0) + bytes([min(number, 64)])
    data += b"".join(bytes(7) + bytes([index + 1]) for index in range(min(number, 64)))
    data += bytes([len(runs)]) + b"".join(runs) + bytes(8) + struct.pack(">I", len(recent))
    return data + b"".join(entry(name, found, number) for name, found in sorted(recent.items()))


def with_numbers(root: bytes, merges: int = 0, retired: tuple = ()) -> bytes:
    """A root that has neither runs nor large objects, with another number of merges, and retired parts of these times."""
    runs = 34 + 8 * root[33]
    parts = b"".join(index.to_bytes(16, "big") + struct.pack(">q", date) for index, date in enumerate(retired))
    numbers = struct.pack(">I", len(retired)) + parts
    return root[:25] + struct.pack(">Q", merges) + root[33 : runs + 5] + numbers + root[runs + 9 :]


def packed(objects: dict, number: int = 1, size: int = 1 << 20) -> tuple:
    """A run with these objects, and its parts, of one section each, by name."""
    parts, packs, names = {}, b"", sorted(objects)
    while names:
        section, first = b"", names[0]
        while names and len(section) < size:
            last = names.pop(0)
            section += entry(last, objects[last], 0)
        identifier = hashlib.sha256(section).digest()[:16]
        parts[f"team/parts/{identifier.hex()}"] = section
        packs += (
            identifier + struct.pack(">II", len(section), 1) + name_of(first) + name_of(last) + struct.pack(">I", len(section))
        )
    return struct.pack(">QIII", number, len(objects), 0, len(parts)) + packs, parts


def endless_list() -> Callable:
    """Pages of a list, each with another token."""
    count = itertools.count()

    def answer(handler) -> None:
        token = f"<IsTruncated>true</IsTruncated><NextContinuationToken>{next(count)}</NextContinuationToken>"
        body = f"<ListBucketResult>{token}</ListBucketResult>"
        handler.wfile.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())

    return answer
