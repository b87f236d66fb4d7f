"""An HTTP server for hostile carriers, which stays quiet when the tool hangs up."""

from __future__ import annotations

import contextlib
import http.server


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def received(self) -> bytes:
        """The body of the request."""
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def send(self, data: bytes) -> None:
        """Ends the headers, and sends this after them."""
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(data)

    def log_message(self, *_) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, handler: type[Handler]):
        super().__init__(("127.0.0.1", 0), handler)

    def handle_error(self, *_) -> None:
        """The tool has hung up."""
