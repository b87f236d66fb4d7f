"""The page of `prefs ui`: other users of the host, and pages of other origins, by hand and without a browser."""

from __future__ import annotations

import os
import pathlib
import select
import socket
import subprocess

import program
from registry import attempt, untried
from samples import Outcomes
from served import raw, refuses, served
from workshop import NotAllowed, until


@attempt("Another user of the host finds the port")
def port(threat) -> None:
    with served() as page:
        host, outcomes = {"Host": f"127.0.0.1:{page.port}"}, Outcomes()
        paths = (
            "/", "/index.html", "/api/list", f"/{page.folder}", f"/{page.folder[:-1]}/", f"/{page.folder.upper()}x/",
            "/../etc/passwd", "//", "/%2e%2e/", f"/%00{page.folder}/", f"/{page.folder}/../{page.folder}/api/list", "/page.js",
            f"/x/{page.folder}/", "http://127.0.0.1/", "*",
        )
        for path in paths:
            for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "TRACE", "CONNECT", "PATCH"):
                refuses(page.request(method, path, headers=host), f"{method} {path}")
                outcomes.add("403 without a body")
        for call in ("list", "session", "reveal", "change", "events", "export", "unlock"):
            refuses(page.request("POST", f"/{page.folder}/api/{call}", b"{}", page.own_headers()), f"{call} without a session")
            outcomes.add("403 without a body")
        threat.tried(
            "paths and methods by someone who has only the port, and calls by someone who has the path, too", str(outcomes)
        )
        arguments = pathlib.Path(f"/proc/{page.process.pid}/cmdline").read_bytes()
        threat.tried(
            "folder and token looked for in the arguments of the program", "not there",
            page.folder.encode() not in arguments and page.token.encode() not in arguments,
        )


@attempt("They open connections")
def idle(threat) -> None:
    with served() as page:
        connections = [socket.create_connection(("127.0.0.1", page.port)) for _ in range(400)]
        session = page.session()
        status, _, _ = page.call("list", session=session)
        closed = sum(1 for connection in connections if select.select([connection], [], [], 0)[0])
        threat.tried(
            "400 connections that send nothing, then the page", f"status {status}; {closed} of them were closed",
            status == 200 and closed >= 200,
        )
        for connection in connections:
            connection.close()
        slow = [socket.create_connection(("127.0.0.1", page.port)) for _ in range(50)]
        for connection in slow:
            connection.sendall(b"GET / HTTP/1.1\r\nX: ")
        ended = until(lambda: all(select.select([connection], [], [], 0)[0] for connection in slow), 20)
        for connection in slow:
            connection.close()
        threat.tried(
            "50 connections that send half a head", "closed after some seconds" if ended else "stay open for more than 20 s", ended
        )


@attempt("They send a head or a line without end")
def long_head(threat) -> None:
    with served() as page:
        for what, data in (
            ("a header of 10 MB", b"GET / HTTP/1.1\r\nCookie: " + b"a" * 10_000_000), ("a line of 10 MB", b"a" * 10_000_000),
            ("10,000 headers", b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 10_000),
            ("no colon", b"GET / HTTP/1.1\r\nno colon\r\n\r\n"), ("no version", b"GET /\r\n\r\n"),
            ("NUL", b"GET /\0 HTTP/1.1\r\n\r\n"),
            ("two lengths", b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"),
            ("random bytes", os.urandom(20_000)),
            ("a TLS greeting", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500)),
            ("two requests at once", f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\n\r\n".encode() * 2),
        ):
            answer = raw(page, data)
            if answer and not (answer.startswith(b"HTTP/1.1 403") and answer.count(b"HTTP/1.1") == 1):
                raise NotAllowed(f"{what}: {answer[:120]!r}")
            threat.tried(what, "one refusal" if answer else "the connection ends")
        threat.tried("the page afterwards", f"status {page.call('list', session=page.session())[0]}", page.process.poll() is None)


@attempt("A token is stolen")
def token(threat) -> None:
    with served() as page:
        trade = lambda text: page.call("session", channel=program.Channel.of_token(text))  # noqa: E731
        for wrong in ("A", page.token[:-1], page.token + "A", page.token[::-1], page.token.swapcase(), ""):
            refuses(trade(wrong), "a wrong token")
        page.session()
        refuses(trade(page.token), "the token a second time")
        threat.tried("six wrong tokens, the right one, and that a second time", "only the right one is good, and once")
        file = [
            path for path in pathlib.Path(page.store.home).rglob("*") if path.is_file() and page.token.encode() in path.read_bytes()
        ]
        threat.tried("the token looked for in files, after its use", f"in {len(file)}", not file)


@attempt("A page of another origin")
def origin(threat) -> None:
    with served() as page:
        session, outcomes = page.session(), Outcomes()
        own = f"http://127.0.0.1:{page.port}"
        for changed in (
            {"Origin": "http://evil.example.org"}, {"Origin": "null"}, {"Origin": None}, {"Origin": own + "0"},
            {"Origin": own.replace("http", "https")}, {"Origin": own + "/"}, {"Origin": own.upper()},
            {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "none"},
            {"Content-Type": "text/plain"}, {"Content-Type": "application/x-www-form-urlencoded"},
            {"Content-Type": "multipart/form-data"}, {"Content-Type": None}, {"X-Coffer-Session": None},
            {"X-Coffer-Session": ""}, {"X-Coffer-Session": "AAAA"}, {"X-Coffer-Session": session.name + "A"},
        ):
            sealed = session.seal(b"{}", "request list")
            headers = {name: value for name, value in {**page.own_headers(session), **changed}.items() if value is not None}
            refuses(page.request("POST", f"/{page.folder}/api/list", sealed, headers), str(changed))
            outcomes.add("403 without a body")
        threat.tried("a session's call with one header changed or missing", str(outcomes))
        status, headers, _ = page.request(
            "OPTIONS", f"/{page.folder}/api/list", headers={**page.own_headers(), "Access-Control-Request-Method": "POST"}
        )
        cross = [name for name in headers if name.lower().startswith("access-control")]
        threat.tried("a preflight request", f"status {status}, {cross or 'no CORS header'}", status == 403 and not cross)
        other = program.Channel(os.urandom(32), session.name)
        refuses(
            page.request("POST", f"/{page.folder}/api/list", other.seal(b"{}", "request list"), page.own_headers(session)),
            "another key",
        )
        refuses(page.request("POST", f"/{page.folder}/api/list", b"{}", page.own_headers(session)), "plaintext")
        refuses(
            page.request("POST", f"/{page.folder}/api/doctor", session.seal(b"{}", "request list"), page.own_headers(session)),
            "another call",
        )
        threat.tried("the session's name with another key, plaintext, and a request sealed for another call", "403 without a body")


@attempt("It puts the page into a frame")
def frame(threat) -> None:
    with served() as page:
        host = {"Host": f"127.0.0.1:{page.port}"}
        for path, site, mode, destination in (
            ("", "cross-site", "navigate", "iframe"), ("", "cross-site", "no-cors", "image"),
            ("page.js", "cross-site", "no-cors", "script"), ("", "same-site", "navigate", "frame"),
            ("page.css", "cross-site", "no-cors", "style"), ("", "cross-site", "navigate", "object"),
        ):
            headers = {**host, "Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": destination}
            refuses(page.request("GET", f"/{page.folder}/{path}", headers=headers), f"{destination} of {path or 'the page'}")
        threat.tried("six files as frame, image, script and style of another site", "403 without a body")
        status, headers, body = page.request("GET", f"/{page.folder}/", headers=host)
        policy = headers.get("Content-Security-Policy", "")
        wanted = (
            "default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
        )
        lacking = [part for part in wanted if part not in policy] + ["unsafe"] * ("unsafe" in policy)
        threat.tried(
            "the headers of the page", f"{lacking or policy[:120]}",
            status == 200
            and not lacking
            and headers.get("X-Frame-Options") == "DENY"
            and b"<script>" not in body
            and "Set-Cookie" not in headers,
        )


@attempt("DNS rebinding")
def rebinding(threat) -> None:
    with served() as page:
        session = page.session()
        names = (
            "evil.example.org", f"evil.example.org:{page.port}", f"localhost:{page.port}", f"[::1]:{page.port}", "127.0.0.1",
            "127.0.0.1:1", f"127.1:{page.port}", f"127.0.0.1:{page.port}.", f"0.0.0.0:{page.port}", "",
        )
        for name in names:
            refuses(page.request("GET", f"/{page.folder}/", headers={"Host": name}), f"Host {name}")
            headers = {**page.own_headers(session), "Host": name, "Origin": f"http://{name}"}
            refuses(page.request("POST", f"/{page.folder}/api/list", session.seal(b"{}", "request list"), headers), f"Host {name}")
        threat.tried(f"{len(names)} other names in Host, for a file and for a session's call", "403 without a body")
        addresses = (
            subprocess.run(["ss", "-Hltn"], capture_output=True, text=True).stdout
            if os.path.exists("/bin/ss") or os.path.exists("/usr/bin/ss")
            else ""
        )
        listening = [line.split()[3] for line in addresses.splitlines() if line.split()[3].endswith(f":{page.port}")]
        if listening:
            threat.tried("the addresses that the program listens at", ", ".join(listening), listening == [f"127.0.0.1:{page.port}"])


@attempt("A body that is too large")
def body(threat) -> None:
    with served() as page:
        session = page.session()
        headers = "".join(f"{name}: {value}\r\n" for name, value in page.own_headers(session).items())
        start = f"POST /{page.folder}/api/list HTTP/1.1\r\n{headers}"
        for what, rest in (
            ("99,999,999 bytes announced", b"Content-Length: 99999999\r\n\r\n"),
            ("2^64 bytes announced", b"Content-Length: 18446744073709551616\r\n\r\n"),
            ("-1 bytes announced", b"Content-Length: -1\r\n\r\n"),
            ("chunks", b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"),
            ("both", b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}"), ("no length", b"\r\n{}"),
            ("9 MB", b"Content-Length: 9000000\r\n\r\n" + bytes(9_000_000)),
        ):
            answer = raw(page, start.encode() + rest, 20)
            first = answer.split(b"\r\n")[0].decode("latin-1")
            if b" 200 " in answer[:20]:
                raise NotAllowed(f"{what}: {first}")
            threat.tried(what, first or "the connection ends")
        deep = session.seal(b'{"changes":' + b"[" * 500_000, "request change")
        status, _, _ = page.request("POST", f"/{page.folder}/api/change", deep, page.own_headers(session))
        threat.tried(
            "lists in lists, 500,000 deep, by the page itself", f"status {status}",
            status not in (200, 0) and page.process.poll() is None,
        )
        threat.tried("the page afterwards", f"status {page.call('list', session=session)[0]}", page.process.poll() is None)


BROWSER = "it needs a browser, as `make test` has one (Tests/Page/run)"
untried("Another user takes the port", BROWSER)
untried("HTML or script in keys", BROWSER)
untried("What is typed is kept", BROWSER)
