"""A hostile etcd on loopback: it answers as its JSON gateway does, and lists what it likes."""

from __future__ import annotations

import base64
import contextlib
import datetime
import ipaddress
import itertools
import json
import os
import pathlib
import ssl
import threading
from typing import Callable, Iterator, Optional

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

import loopback

PREFIX = b"/team/"


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


class Hostile:
    """Has objects by name, and lists others in addition: a number of copies, or without end."""

    def __init__(self, objects: dict, listed: Optional[Callable] = None, answer: Optional[Callable] = None):
        self.objects, self.served, self.answer = dict(objects), 0, answer
        self._listed = listed or (lambda: iter(()))
        self._rest: Optional[Iterator] = None
        self.lock = threading.Lock()

    def page(self, start: bytes, limit: int) -> dict:
        with self.lock:
            if start == PREFIX:
                records = sorted(self.objects.items())
                self._rest = itertools.chain(records, self._listed())
            pairs = list(itertools.islice(self._rest or iter(()), min(limit, 5_000)))
            self.served += len(pairs)
        more = len(pairs) == min(limit, 5_000)
        return {
            "header": {"cluster_id": "1", "revision": "7"}, "more": more, "count": "99",
            "kvs": [{"key": encoded(PREFIX + name.encode()), "value": encoded(data)} for name, data in pairs],
        }

    def transaction(self, request: dict) -> dict:
        responses = []
        for operation in request.get("success", []):
            if "request_range" in operation:
                name = base64.b64decode(operation["request_range"]["key"])[len(PREFIX) :].decode()
                found = (
                    [{"key": encoded(PREFIX + name.encode()), "value": encoded(self.objects[name])}] if name in self.objects else []
                )
                responses.append({"response_range": {"kvs": found}})
            elif "request_put" in operation:
                put = operation["request_put"]
                self.objects[base64.b64decode(put["key"])[len(PREFIX) :].decode()] = base64.b64decode(put["value"])
            elif "request_delete_range" in operation:
                self.objects.pop(base64.b64decode(operation["request_delete_range"]["key"])[len(PREFIX) :].decode(), None)
        return {"header": {"cluster_id": "1", "revision": "7"}, "succeeded": True, "responses": responses}

    @contextlib.contextmanager
    def running(self, certificate: Optional[pathlib.Path] = None) -> Iterator[str]:
        """Its address; with a certificate, that of a carrier with TLS."""
        hostile = self

        class Handler(loopback.Handler):
            def do_POST(self) -> None:
                request = json.loads(self.received() or b"{}")
                if hostile.answer is not None:
                    with contextlib.suppress(OSError):
                        hostile.answer(self)
                    self.close_connection = True
                    return
                if self.path == "/v3/kv/range":
                    body = hostile.page(base64.b64decode(request["key"]), int(request.get("limit") or 1))
                else:
                    body = hostile.transaction(request)
                data = json.dumps(body).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.send(data)

            do_GET = do_POST

        server = loopback.Server(Handler)
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            scheme, options = ("etcd", "") if certificate is None else ("etcds", f"?ca={certificate}")
            yield f"{scheme}://127.0.0.1:{server.server_port}{PREFIX.decode().rstrip('/')}{options}"
        finally:
            server.shutdown()
            server.server_close()


def certificate(path: pathlib.Path) -> pathlib.Path:
    """A key and a certificate of 127.0.0.1, signed by itself."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "carrier")])
    now = datetime.datetime.now(datetime.timezone.utc)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(plain + signed.public_bytes(serialization.Encoding.PEM))
    return path


def raw(status: bytes, headers: bytes, body: Callable) -> Callable:
    """An answer of bytes, which may have no end."""

    def answer(handler) -> None:
        handler.wfile.write(b"HTTP/1.1 " + status + b"\r\n" + headers + b"\r\n\r\n")
        for part in body():
            handler.wfile.write(part)

    return answer


def endless_records(folder: str) -> Callable:
    def records():
        while True:
            yield f"r/{folder}/{os.urandom(20).hex()}", b"\1" + os.urandom(300)

    return records
