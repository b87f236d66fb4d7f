"""The page of `prefs ui`: what its own calls show and change, by hand and without a browser."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import time

from registry import attempt
from samples import Outcomes
from served import PASSPHRASE, SECRET, served
from workshop import NotAllowed, until

CALLS = (
    ("list", {}), ("list", {"search": "page-secret"}), ("list", {"columns": True, "collection": "api"}),
    ("setting", {"collection": "api", "key": "token"}), ("history", {"collection": "api", "key": "token"}), ("export", {}),
    ("export", {"format": "yaml"}), ("timeline", {}), ("timeline", {"search": SECRET}), ("doctor", {}), ("fleets", {}),
    ("setting", {"collection": "vault", "key": "pin"}), ("moment", {"moment": "2026-01-01T00:00:00Z"}),
    ("copy", {"from": "api", "to": "api@staging"}),
)


@attempt("A secret shows in a list, a search")
def listed(threat) -> None:
    with served() as page:
        session, outcomes, shown = page.session(), Outcomes(), []
        for name, request in CALLS:
            status, _, body = page.call(name, request, session=session)
            found = body + b"".join(
                base64.b64decode(json.loads(body).get("data", "")) for _ in [0] if name == "export" and status == 200
            )
            if SECRET.encode() in found:
                shown.append(f"{name} {request}")
            outcomes.add(f"status {status}")
        threat.tried(f"{len(CALLS)} calls that are no reveal", "; ".join(shown) or f"{outcomes}; none has the secret", not shown)
        status, _, body = page.call("reveal", {"collection": "api", "key": "token"}, session=session)
        threat.tried("a reveal", f"status {status}, with the secret: {SECRET.encode() in body}", SECRET.encode() in body)
        status, _, body = page.call("reveal", {"collection": "vault", "key": "pin"}, session=session)
        threat.tried(
            "a reveal of a sealed value, with the vault locked", f"status {status}", status != 200 and SECRET.encode() not in body
        )
    with served("--read-only") as page:
        session = page.session()
        status, _, body = page.call("reveal", {"collection": "api", "key": "token"}, session=session)
        threat.tried("a reveal on a page that is read-only", f"status {status}", status != 200 and SECRET.encode() not in body)
        for name, request in (
            ("change", {"changes": [{"collection": "editor", "key": "theme", "store": 0, "version": 1, "text": "x", "type": "string"}]}),
            ("import", {"name": "a.json", "data": base64.b64encode(b'{"editor":{"theme":"x"}}').decode()}),
            ("undo", {"undo": 1}), ("apply", {"plan": 1}), ("keepHistory", {"collection": "editor"}),
        ):
            status, _, _ = page.call(name, request, session=session)
            if status == 200 or page.store.get("editor/theme") != "dark":
                raise NotAllowed(f"{name} on a page that is read-only: {status}")
        threat.tried("change, import, apply, undo and history on a page that is read-only", "refused")


@attempt("The vault stays open")
def vault(threat) -> None:
    with served("--ttl", "3s") as page:
        session = page.session()
        reveal = lambda: page.call("reveal", {"collection": "vault", "key": "pin"}, session=session)  # noqa: E731
        status, _, _ = page.call("unlock", b"wrong", session=session)
        threat.tried("a wrong passphrase", f"status {status}", status != 200)
        page.call("unlock", PASSPHRASE.encode(), session=session)
        if SECRET.encode() not in reveal()[2]:
            raise NotAllowed("the vault was not unlocked")
        locked = False
        end = time.monotonic() + 12
        while time.monotonic() < end and not locked and page.process.poll() is None:
            # The page stays in use: only the vault's time is over.
            page.call("use", {}, session=session)
            time.sleep(0.3)
            with contextlib.suppress(OSError, http.client.HTTPException):
                locked = reveal()[0] != 200
        threat.tried(
            "a vault opened by its passphrase, with --ttl 3s, while the page is used",
            "locked after its time" if locked else "still open after 12 s", locked,
        )
        page.call("unlock", PASSPHRASE.encode(), session=session)
        page.store.prefs("lock")
        gone = until(lambda: reveal()[0] != 200, 3)
        threat.tried("`prefs lock` in a shell", "locks it" if gone else "it stays open", gone)


@attempt("A page left open")
def left_open(threat) -> None:
    with served("--ttl", "2s") as page:
        session = page.session()
        page.call("list", session=session)
        ended = until(lambda: page.process.poll() is not None, 15)
        threat.tried(
            "a page with --ttl 2s, and no use",
            f"its program has ended with {page.process.poll()}" if ended else "its program still runs", ended,
        )


@attempt("A file dropped onto the page")
def dropped(threat) -> None:
    with served("-c", "editor") as page:
        session = page.session()
        drop = lambda name, data: page.call(
            "import", {"name": name, "data": base64.b64encode(data).decode()}, session=session
        )  # noqa: E731
        status, _, answer = drop("settings.json", b'{"editor": {"theme": "light"}}')
        threat.tried(
            "a file of settings dropped, and nothing confirmed",
            f"status {status}; the setting is {page.store.get('editor/theme')}",
            status == 200 and page.store.get("editor/theme") == "dark",
        )
        for name, data in (
            ("other.json", b'{"other": {"name": "x"}}'), ("bad.json", b'{"editor": {"theme": "\xff"}}'),
            ("twice.json", b'{"editor": {"a": 1, "a": 2}}'), ("deep.yaml", b"[" * 50_000), ("x.exe", b"MZ"),
            ("deep.json", b"[" * 1_000_000),
        ):
            status, _, _ = drop(name, data)
            if status == 200:
                raise NotAllowed(f"{name} was accepted")
        threat.tried("files of another collection, not UTF-8, with a name twice, too deep, of no known format", "refused")
        for plan in (-1, 0, 99, 2**62):
            if page.call("apply", {"plan": plan}, session=session)[0] == 200:
                raise NotAllowed("a plan that was never shown was applied")
        threat.tried("plans that were never shown", "refused")


@attempt("The page is asked about collections")
def other_collections(threat) -> None:
    with served("-c", "editor") as page:
        session, outcomes = page.session(), Outcomes()
        for name, request in (
            ("list", {"collection": "other"}), ("setting", {"collection": "other", "key": "name"}),
            ("reveal", {"collection": "api", "key": "token"}), ("history", {"collection": "other", "key": "name"}),
            ("export", {"collection": "other"}),
            ("change", {"changes": [{"collection": "other", "key": "name", "store": 0, "version": 1, "text": "x", "type": "string"}]}),
            ("keepHistory", {"collection": "other"}), ("copy", {"from": "other", "to": "editor"}),
            ("rename", {"collection": "editor", "key": "theme", "store": 0, "version": 1, "to": {"collection": "other", "key": "theme"}}),
            ("list", {}), ("list", {"search": "name"}), ("timeline", {}), ("export", {}),
            ("moment", {"moment": "2026-01-01T00:00:00Z"}),
            ("moment", {"moment": "2026-01-01T00:00:00Z", "collection": "other"}),
        ):
            status, _, answer = page.call(name, request, session=session)
            text = answer + (base64.b64decode(json.loads(answer).get("data", "")) if name == "export" and status == 200 else b"")
            if b"not for this page" in text or SECRET.encode() in text or b'"other"' in text:
                raise NotAllowed(f"{name} {request}: {text[:200]!r}")
            outcomes.add(f"status {status}")
        answers = [page.call("timeline", {"collection": name}, session=session) for name in ("api", "none")]
        threat.tried(
            "the timeline of one that keeps history, and of one that there is none of", f"status {answers[0][0]} for both",
            answers[0][0] == answers[1][0] == 422 and answers[0][2].replace(b"api", b"none") == answers[1][2],
        )
        threat.tried(
            "15 calls of a page that was started for one collection",
            f"{outcomes}; nothing of others, and {page.store.get('other/name')!r} stayed",
            page.store.get("other/name") == "not for this page",
        )


@attempt("A secret is copied")
def secret_copied(threat) -> None:
    with served() as page:
        session = page.session()
        status, _, answer = page.call("copy", {"from": "api", "to": "api@staging"}, session=session)
        plan = json.loads(answer)
        page.store.prefs("get", "api/token", "--env", "staging")
        threat.tried(
            "a secret copied to another environment: the plan",
            f"status {status}, with the secret: {SECRET.encode() in answer}", SECRET.encode() not in answer,
        )
        status, _, answer = page.call("apply", {"plan": plan.get("plan", -1)}, session=session)
        threat.tried(
            "and its application", f"status {status}, with the secret: {SECRET.encode() in answer}", SECRET.encode() not in answer
        )
        page.store.prefs("set", "api/token", "--env", "staging", "--type", "string", "readable")
        page.call("unlock", PASSPHRASE.encode(), session=session)
        for what, source, to, key in (
            ("a sealed value to an open collection", "vault", "editor", "pin"),
            ("a readable text over a secret", "api@staging", "api", "token"),
        ):
            before = page.store.prefs("export")
            status, _, answer = page.call("copy", {"from": source, "to": to, "key": key}, session=session)
            applied, _, _ = page.call("apply", {"plan": json.loads(answer).get("plan", -1)}, session=session)
            threat.tried(
                f"{what}, copied", f"the plan has status {status}, its application {applied}",
                page.store.prefs("export") == before and SECRET.encode() not in answer,
            )
