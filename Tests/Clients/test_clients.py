#!/usr/bin/env python3
"""The clients of `prefs serve` beside each other, and beside the shell, on one store.

    test_clients.py --bin DIR

DIR holds the built prefs. The python3 that runs this has coffer_client installed; case.py lists what else there is. COFFER_SEED repeats random edits.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import pathlib
import pty
import random
import shlex
import shutil
import signal
import subprocess
import sys
import termios
import time
import unittest

import coffer_client

from case import GO_WORKER, NODE_MODULES, PATIENCE, ClientsTestCase, main

HERE = pathlib.Path(__file__).resolve().parent
LANGUAGES = {"python": [sys.executable, str(HERE / "worker.py")], "node": ["node", "worker.mjs"]}
if GO_WORKER:
    LANGUAGES["go"] = [GO_WORKER]
SEED = int(os.environ.get("COFFER_SEED", time.time_ns() % 1_000_000))


class Worker:
    """A program in one of the languages, with its client."""

    def __init__(self, case: ClientsTestCase, language: str, *collections: str) -> None:
        self.language = language
        self.process = subprocess.Popen(
            [*LANGUAGES[language], *collections], cwd=case.work, env=case.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        case.addCleanup(self.end)
        first = self.process.stdout.readline()
        case.assertEqual(first, b'"ready"\n', language)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def ask(self, *request) -> dict:
        self.start(*request)
        return self.answer()

    def start(self, *request) -> None:
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self) -> dict:
        return json.loads(self.process.stdout.readline())

    def do(self, *request):
        """What a request returns, which is no error."""
        answer = self.ask(*request)
        assert "ok" in answer, (self.language, request, answer)
        return answer["ok"]

    @property
    def child(self) -> int | None:
        """Its `prefs serve`."""
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                if b"serve" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes():
                    return int(child)
        return None


def in_each_language(*collections: str, **replies: list):
    """A test that gets a worker of one language after another, each with a fresh store; with replies, its server is a script that gives those."""

    def decorate(test):
        @functools.wraps(test)
        def run(self) -> None:
            for language in LANGUAGES:
                with self.subTest(language):
                    # A worker that has what another language's left behind would not have to wait for anything.
                    self.doCleanups()
                    self.setUp()
                    if replies:
                        self.start_script(replies)
                    test(self, Worker(self, language, *collections))

        return run

    return decorate


HELLO = '{"serve":1,"program":"prefs 0.1.0","store":"one","path":"x","position":"1-00000000","maximum":33554432}'
SERVER = """\
import json, sys
replies = json.loads(sys.argv[1])
print(sys.argv[2], flush=True)
for line in sys.stdin:
    with open("requests", "a") as requests:
        requests.write(line)
    lines = replies[json.loads(line)["do"]]
    for answer in lines.pop(0) if len(lines) > 1 else lines[0]:
        print(json.dumps(answer), flush=True)
"""


def ok(**members) -> dict:
    return {"id": 0, "ok": members}


def item(key: str, **members) -> dict:
    return {"collection": "web", "key": key, "origin": "store", **members}


def watched(*items: dict) -> list[list[dict]]:
    """The replies to the one watch."""
    return [[ok(watch=1, position="1"), everything(*items)]]


def everything(*items: dict, store: str = "one") -> dict:
    return notice(store=store, items=items)


def changed(value: int) -> dict:
    return notice(changes=[{"change": "updated", "item": number(value)}])


def number(value: int) -> dict:
    return item("n", type="int", value=value, version=value)


def notice(watch: int = 1, **members) -> dict:
    return {"watch": watch, "position": "1", **members}


BUSY = notice(unavailable={"error": "busy", "code": 10, "message": "", "store": ""})


class TheClients(ClientsTestCase):
    def setUp(self) -> None:
        super().setUp()
        (self.work / "node_modules").symlink_to(NODE_MODULES)
        shutil.copy(HERE / "worker.mjs", self.work)
        self.prefs("init")
        self.first = self.folder / "first"
        self.first.mkdir()
        self.environment["PATH"] = f"{self.first}:{self.environment['PATH']}"

    def workers(self, *collections: str) -> list[Worker]:
        return [Worker(self, language, *collections) for language in LANGUAGES]

    def start_next(self, script: str) -> None:
        """Has workers start a script in place of `prefs`."""
        program = self.first / "next"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o700)
        program.rename(self.first / "prefs")

    def start_script(self, replies: dict) -> None:
        """Has workers, whose patience is 3 s, start a server that answers requests with these lines: the next of the name, or again the last."""
        self.environment["COFFER_PATIENCE"] = "3"
        words = [sys.executable, "-c", SERVER, json.dumps({"watch": watched(), **replies}), HELLO]
        self.start_next(f"exec {shlex.join(words)}")

    def requests(self, name: str) -> list[dict]:
        """Those that a script has read."""
        return [request for line in (self.work / "requests").read_text().splitlines() if (request := json.loads(line))["do"] == name]

    def exported(self, collection: str) -> dict:
        return json.loads(self.prefs("export", "--format", "json", collection))

    @in_each_language("web", "other")
    def test_read_and_change_values(self, worker: Worker) -> None:
        self.prefs("set", "web/port", "--int", "8080")
        self.prefs("set", "--secret", "web/token", "-", text="s3cret")
        self.assertEqual(worker.do("get", "web", "port"), 8080)
        self.assertEqual(worker.do("number", "web", "port"), 8080)
        self.assertEqual(worker.do("default", "web", "nothing", "it"), "it")
        self.assertEqual(worker.ask("get", "web", "nothing")["error"], "notFound")
        version = worker.do("set", "web", "host", f"{worker.language}.example.org")
        self.assertEqual(worker.do("get", "web", "host"), f"{worker.language}.example.org")
        self.assertEqual(worker.do("item", "web", "host"), [version, "store"])
        self.assertEqual(self.prefs("get", "web/host"), f"{worker.language}.example.org\n")
        self.assertEqual(worker.ask("number", "web", "host")["error"], "wrongType")
        self.assertEqual(worker.do("items", "web"), ["host", "port", "token"])
        self.assertEqual(worker.do("items", "other"), [])
        refused = worker.ask("set", "web", "host", "x", {"if_version": version - 1})
        self.assertEqual((refused["error"], refused["code"]), ("conflict", 9))
        worker.do("set", "web", "host", "y", {"if_version": version})
        worker.do("unset", "web", "host")
        self.assertEqual(worker.ask("get", "web", "host")["error"], "notFound")
        self.assertEqual(worker.do("problem"), None)
        worker.do("close")
        self.assertEqual(worker.do("get", "web", "port"), 8080)
        self.assertEqual(worker.ask("set", "web", "port", 1)["error"], "unavailable")
        self.assertEqual(self.prefs("get", "web/port"), "8080\n")

    @in_each_language("web")
    def test_show_no_secret_unless_it_is_asked_for(self, worker: Worker) -> None:
        worker.do("set-secret", "web", "token", "s3cret")
        self.assertEqual(worker.ask("get", "web", "token")["error"], "hidden")
        self.assertEqual(worker.do("secret", "web", "token"), "s3cret")
        shown = worker.do("shown", "web", "token")
        self.assertIn("<secret: 6 bytes>", shown)
        self.assertNotIn("s3cret", shown)
        self.assertEqual(self.prefs("type", "web/token"), "secret\n")

    def test_have_secrets_in_memory_if_they_are_to(self) -> None:
        self.environment["COFFER_REVEAL"] = "1"
        for language in LANGUAGES:
            self.prefs("set", "--secret", "web/token", "-", text="s3cret")
            with self.subTest(language):
                text, _, shown = Worker(self, language, "web").do("lengthen", "web", "token").partition(" ")
                self.assertEqual(text, "s3cret!")
                for bytes_of_it in ("s3cret", "115 51 99", "s 3 c", "'s' '3'", "U+0073", "733363", "0x73", "73 33"):
                    self.assertNotIn(bytes_of_it, shown)
                self.assertEqual(self.prefs("get", "-n", "web/token"), "s3cret!")

    @in_each_language("web")
    def test_have_defaults_and_limits_of_declarations(self, worker: Worker) -> None:
        port = {"name": "port", "collection": "web", "type": "int", "default": 8080, "limits": [{"minimum": 1, "maximum": 65535}]}
        self.prefs("schema", "load", "-", "--application", "shop", text=json.dumps([port]))
        self.assertTrue(worker.do("wait", "web", "port", 8080))
        self.assertEqual(worker.do("get", "web", "port"), 8080)
        self.assertEqual(worker.do("item", "web", "port"), [0, "default"])
        self.assertEqual(worker.do("describe", "web", "port"), "int")
        refused = worker.ask("set", "web", "port", 99999)
        self.assertEqual((refused["error"], refused["code"]), ("format", 8))
        self.assertEqual(worker.ask("set", "web", "prot", 1)["error"], "format")
        self.assertEqual(worker.ask("transaction", "web", None, 0, ["prot", 1])["error"], "format")
        self.assertEqual(worker.ask("transaction", "web", None, 0, ["prot", 1, {"undeclared": True}], ["prto", 1])["error"], "format")
        worker.do("transaction", "web", None, 0, ["prot", 1, {"undeclared": True}])
        worker.do("unset", "web", "prot")
        worker.do("set", "web", "port", 9090)
        worker.do("unset", "web", "port")
        self.assertEqual(worker.do("get", "web", "port"), 8080)

    @in_each_language("c")
    def test_return_every_type_as_it_came(self, worker: Worker) -> None:
        text = json.dumps({"c": {
            "bool": True, "int": 1, "least": -(2**63), "big": 2**63 - 1, "odd": 2**53 + 1, "unsigned": 2**64 - 1, "double": 1.5, "zero": -0.0,
            "nan": {"$double": "nan"}, "inf": {"$double": "-inf"}, "text": 'é🗝 \\" 12345678901234567890 \\', "empty": "",
            "date": {"$date": "2026-01-31T08:30:00.123Z"}, "far": {"$date": -1e11}, "data": {"$data": "AAEC/w=="},
            "url": {"$url": "https://example.org/?q=%20"}, "uuid": {"$uuid": "6BA7B810-9DAD-11D1-80B4-00C04FD430C8"},
            "json": {"$json": {"a": [1, 2.5]}}, "names": {"$json": {"a": {"$json": 2**53 + 1}}}, "text of it": {"$json": '{"a":12345678901234567890123,"b":{"$date":"x"}}'},
            "whole": 2.0**60, "list": [None, {"$date": "2026-01-31T08:30:00.123Z"}, 2**53 + 1],
            "dict": {"a": 1, "b": {}}, "one": {"a": {"$data": "AA=="}}, "looks": {"$dict": {"$date": "no date"}},
        }})
        self.prefs("import", "--format", "json", "-", text=text)
        before = self.exported("c")
        self.eventually(lambda: worker.do("items", "c") == sorted(before))
        for key in before:
            worker.do("copy", "c", key, f"copy of {key}")
        after = self.exported("c")
        for key, value in before.items():
            self.assertEqual(after[f"copy of {key}"], value, key)
            self.assertEqual(self.prefs("type", "-c", "c", f"copy of {key}"), self.prefs("type", "-c", "c", key), key)

    @in_each_language("web")
    def test_change_several_values_or_none(self, worker: Worker) -> None:
        version = worker.do("set", "web", "port", 1)
        worker.do("transaction", "web", "port", version, ["port", 2], ["host", "a"])
        self.assertEqual(worker.do("values", "web"), {"port": 2, "host": "a"})
        self.assertEqual(worker.ask("transaction", "web", "port", version, ["port", 3], ["host", None])["error"], "conflict")
        self.assertEqual(worker.do("values", "web"), {"port": 2, "host": "a"})
        worker.do("transaction", "web", None, 0, ["port", None], ["host", None])
        self.assertEqual(worker.do("values", "web"), {})
        self.assertEqual(worker.ask("transaction", "web", "port", version)["error"], "usage")

    @in_each_language("web")
    def test_have_more_changes_than_a_notice_has(self, worker: Worker) -> None:
        for number in range(3):
            worker.do("transaction", "web", None, 0, *([f"key{key}", number] for key in range(1_200)))
            self.assertEqual(worker.do("get", "web", "key1199"), number)

    @in_each_language("web")
    def test_read_only_collections_that_were_named(self, worker: Worker) -> None:
        worker.do("set", "other", "port", 1)
        for request in (["get"], ["default", "x"], ["observe"], ["increment", 1], ["check", 2]):
            name, *more = request
            self.assertEqual(worker.ask(name, "other", "port", *more)["error"], "usage", name)
        self.assertEqual(worker.ask("items", "other")["error"], "usage")
        self.assertEqual(self.prefs("get", "other/port"), "1\n")

    @in_each_language(
        "web", watch=watched(item("n", type="int", value=100, version=3)), transaction=[[ok(items=[])]],
        update=[[ok(conflict=item("n", type="int", value=7, version=3), store="two")], [ok(**item("n", type="int", version=4))]],
        set=[[everything(store="three"), ok(**item("x", version=5))]])
    def test_say_which_store_a_version_is_of(self, worker: Worker) -> None:
        self.assertEqual(worker.do("increment", "web", "n", 1), 8)
        updates = [(request["ifVersion"], request["store"], request["value"]) for request in self.requests("update")]
        self.assertEqual(updates, [(3, "one", 101), (3, "two", 8)])
        worker.do("check", "web", "n", 5)
        worker.do("set", "web", "x", 5)
        worker.do("check", "web", "n", 5)
        self.assertEqual([request["checks"][0]["store"] for request in self.requests("transaction")], ["one", "three"])

    @in_each_language(
        "web",
        set=[[*before, ok(**item("x", version=1))] for before in ([BUSY], [everything(), BUSY], [changed(1)], [everything()])])
    def test_have_a_problem_until_the_store_is_back(self, worker: Worker) -> None:
        for problem in ("busy", "busy", "busy", None):
            worker.do("set", "web", "x", 1)
            self.assertEqual(worker.do("problem"), problem)

    @in_each_language("web", set=[[]], unset=[[ok(**item("x", version=0)), ok(**item("x", version=0))]])
    def test_have_a_problem_until_what_is_late_comes(self, worker: Worker) -> None:
        self.assertEqual(worker.ask("set", "web", "x", 1)["error"], "unavailable")
        self.assertEqual(worker.do("problem"), "unavailable")
        worker.do("unset", "web", "x")
        self.assertEqual(worker.do("problem"), None)

    @in_each_language(
        "web", watch=watched(number(1), item("gone", type="int", value=1, version=1)),
        set=[[changed(30), everything(number(20)), ok(**item("n", version=20))], [everything(number(9)), changed(10), ok(**item("n", version=10))]])
    def test_take_everything_and_changes_in_their_order(self, worker: Worker) -> None:
        for value in (20, 10):
            worker.do("set", "web", "n", value)
            self.assertEqual(worker.do("values", "web"), {"n": value})

    @in_each_language("web", watch=watched(
        item("deep", type="dict", version=2, problem="it is too deep"),
        {"collection": "web", "key": "odd", "version": 3, "problem": "it does not fit"}))
    def test_know_the_problems_of_values(self, worker: Worker) -> None:
        self.assertEqual(worker.do("items", "web"), ["deep"])
        for name, key, *more, error, text in (
            ("get", "deep", "format", "it is too deep"), ("get", "odd", "notFound", "it does not fit"),
            ("increment", "deep", 1, "format", "web/deep"),
        ):
            answer = worker.ask(name, "web", key, *more)
            self.assertEqual(answer["error"], error)
            self.assertIn(text, answer["message"])
        self.assertEqual(worker.do("item", "web", "odd")[0], 3)
        self.assertEqual(worker.do("default", "web", "odd", "x"), "x")
        self.assertEqual(self.requests("update"), [])

    @in_each_language("web", watch=watched(item("x", type="int", value=1, version=3)), set=[[
        notice(2, changes=[{"change": "updated", "item": item("x", type="int", value=2, version=4)}]), notice(2, store="two", items=[]),
        notice(2, unavailable=BUSY["unavailable"]), ok(**item("y", version=5))]])
    def test_ignore_what_another_watch_says(self, worker: Worker) -> None:
        worker.do("set", "web", "y", 1)
        self.assertEqual(worker.do("get", "web", "x"), 1)
        self.assertEqual(worker.do("problem"), None)

    @unittest.skipUnless(GO_WORKER, "there is no Go")
    def test_have_the_types_of_go(self) -> None:
        self.assertEqual(Worker(self, "go", "web").do("types", "web"), None)

    @in_each_language("web")
    def test_keep_a_value_that_an_update_spoils(self, worker: Worker) -> None:
        worker.do("set", "web", "limits", {"list": [1]})
        self.assertEqual(worker.ask("spoil", "web", "limits")["error"], "format")
        self.assertEqual(worker.do("get", "web", "limits"), {"list": [1]})

    @in_each_language("web")
    def test_call_observers_with_changes_of_others(self, worker: Worker) -> None:
        worker.do("observe", "web", "port")
        self.prefs("set", "web/host", "a")
        self.prefs("set", "web/port", "--int", "1")
        self.assertTrue(worker.do("wait", "web", "port", 1))
        worker.do("set", "web", "port", 2)
        self.prefs("unset", "web/port")
        self.assertTrue(worker.do("wait", "web", "port", None))
        self.eventually(lambda: worker.do("seen")[-1:] == [["port", None]])
        self.assertLessEqual({json.dumps(entry) for entry in worker.do("seen")}, {'["port", 1]', '["port", 2]', '["port", null]'})

    def test_see_the_last_value_of_random_edits(self) -> None:
        """By the shell and by each client; sometimes all wait for the edit, and at the end all have what the store has."""
        print(f"seed {SEED}", file=sys.stderr)
        chance = random.Random(SEED)
        workers = self.workers("a", "b")
        model: dict[str, dict] = {"a": {}, "b": {}}
        for step in range(150):
            collection, key = chance.choice("ab"), chance.choice("klmno")
            value = chance.choice([None, step, f"text {step}", [step], {"n": step}, step + 0.5])
            editor = chance.choice([None, *workers])
            if value is None:
                if key not in model[collection]:
                    continue
                self.prefs("unset", f"{collection}/{key}") if editor is None else editor.do("unset", collection, key)
                del model[collection][key]
            else:
                if editor is None:
                    self.prefs("import", "-c", collection, "--format", "json", "-", text=json.dumps({key: value}))
                else:
                    editor.do("set", collection, key, value)
                    self.assertEqual(editor.do("get", collection, key), value)
                model[collection][key] = value
            if chance.random() < 0.2:
                for worker in workers:
                    self.assertTrue(worker.do("wait", collection, key, value), (worker.language, step))
        for worker in workers:
            for collection, values in model.items():
                for key in "klmno":
                    self.assertTrue(worker.do("wait", collection, key, values.get(key)), (worker.language, key))
                self.assertEqual(worker.do("values", collection), values, worker.language)
        for collection, values in model.items():
            self.assertEqual(self.exported(collection) if values else {}, values)

    def test_add_exactly_in_several_processes(self) -> None:
        languages = [*LANGUAGES, *LANGUAGES][:4]
        workers = [Worker(self, language, "web") for language in languages]
        for worker in workers:
            worker.start("increment", "web", "visits", 100)
        results = [worker.answer()["ok"] for worker in workers]
        self.assertEqual(max(results), 400)
        self.assertEqual(self.prefs("get", "web/visits"), "400\n")
        for worker in workers:
            self.assertTrue(worker.do("wait", "web", "visits", 400))

    @in_each_language("web")
    def test_go_on_when_the_child_is_killed(self, worker: Worker) -> None:
        """At any moment: values stay, nothing acknowledged is lost, and the next child has what was missed."""
        chance = random.Random(SEED)
        self.prefs("set", "web/large", "x" * 100_000)
        self.assertTrue(worker.do("wait", "web", "large", "x" * 100_000))
        acknowledged, kills = [], 0
        for first in range(0, 1_000, 50):
            worker.start("write", "web", worker.language, first, 50, 100_000)
            moment = chance.randrange(50)
            while "acknowledged" in (answer := worker.answer()):
                acknowledged.append(answer["acknowledged"])
                if answer["acknowledged"] - first >= moment and (child := worker.child):
                    time.sleep(chance.random() / 1_000)
                    os.kill(child, signal.SIGKILL)
                    moment, kills = 50, kills + 1
            self.assertEqual(answer, {"ok": None})
        self.assertGreater(kills, 10)
        stored = self.exported("web")
        self.assertLessEqual({f"{worker.language}{number}" for number in acknowledged}, stored.keys())
        self.assertGreater(len(acknowledged), 900)
        # What is changed while no child runs is there with the next one.
        self.eventually(lambda: worker.child)
        os.kill(worker.child, signal.SIGKILL)
        self.prefs("set", "web/missed", worker.language)
        self.assertTrue(worker.do("wait", "web", "missed", worker.language))
        self.eventually(lambda: worker.do("problem") is None)
        self.assertEqual(worker.do("values", "web"), self.exported("web"))

    @in_each_language("web")
    def test_survive_children_that_end_before_they_answer(self, worker: Worker) -> None:
        """The first line of such a child is all there is of it."""
        worker.do("set", "web", "port", 1)
        self.start_next(f"echo '{HELLO}'; echo >>{self.work}/starts")
        os.kill(worker.child, signal.SIGKILL)
        starts = self.work / "starts"
        self.eventually(lambda: starts.exists() and len(starts.read_text()) > 2)
        self.assertEqual(worker.do("get", "web", "port"), 1)
        self.assertEqual(worker.do("problem"), "unavailable")
        self.start_next(f'exec "{self.bin}/prefs" "$@"')
        worker.do("set", "web", "port", 2)
        self.assertEqual(worker.do("get", "web", "port"), 2)

    @in_each_language("web")
    def test_raise_at_once_what_is_no_request_to_the_server(self, worker: Worker) -> None:
        """Its answer has no ID."""
        deep = 1
        for _ in range(250):
            deep = [deep]
        start = time.monotonic()
        for number in range(3):
            worker.do("set", "web", "port", number)
            self.assertEqual(worker.ask("set", "web", "deep", deep)["error"], "usage")
        self.assertLess(time.monotonic() - start, 20)
        self.assertEqual(worker.do("values", "web"), {"port": 2})

    def test_ask_no_question_at_a_terminal(self) -> None:
        """A child that waits for a passphrase has no program that could answer."""
        del self.environment["PREFS_KEY_FILE"]
        self.environment["PREFS_STORE"] = "secret"
        self.prefs("init", "--passphrase", "--cost", "14", "--passphrase-fd", "0", text="correct horse\n")
        for language, command in LANGUAGES.items():
            with self.subTest(language):
                ours, theirs = pty.openpty()
                with os.fdopen(ours, "rb"), os.fdopen(theirs, "rb"):
                    process = subprocess.Popen(
                        [*command, "web"], cwd=self.work, env=self.environment, stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
                    self.addCleanup(process.kill)
                    _, text = process.communicate(timeout=20)
                self.assertIn(b"needs a passphrase: there is no terminal", text)

    @in_each_language("web")
    def test_keep_values_while_the_store_is_away(self, worker: Worker) -> None:
        """A child that starts meanwhile makes no other one."""
        worker.do("set", "web", "port", 1)
        self.prefs("backup", "web.coffer")
        for file in self.work.glob("store*"):
            file.unlink()
        os.kill(worker.child, signal.SIGKILL)
        self.eventually(lambda: worker.do("problem") == "other")  # Exit code 4, for which the clients have no name.
        self.assertEqual(worker.do("get", "web", "port"), 1)
        self.assertEqual(list(self.work.glob("store*")), [])
        self.prefs("restore-store", "web.coffer")
        self.eventually(lambda: worker.do("problem") is None)
        worker.do("set", "web", "port", 2)
        self.assertEqual(worker.do("get", "web", "port"), 2)

    @in_each_language("web")
    def test_follow_a_store_that_is_replaced(self, worker: Worker) -> None:
        worker.do("set", "web", "port", 1)
        self.prefs("backup", "web.coffer")
        worker.do("set", "web", "port", 2)
        worker.do("set", "web", "host", "a")
        self.prefs("restore-store", "--force", "web.coffer")
        self.assertTrue(worker.do("wait", "web", "port", 1))
        self.assertTrue(worker.do("wait", "web", "host", None))
        worker.do("set", "web", "port", 3)
        self.assertEqual(worker.do("get", "web", "port"), 3)
        self.assertEqual(self.prefs("get", "web/port"), "3\n")
        self.prefs("set", "web/port", "--int", "4")
        self.assertTrue(worker.do("wait", "web", "port", 4))

    @in_each_language("web")
    def test_hide_sealed_values_while_the_vault_is_locked(self, worker: Worker) -> None:
        self.prefs("set", "web/host", "a.example.org")
        self.assertTrue(worker.do("wait", "web", "host", "a.example.org"))
        self.prefs("seal", "web", "--vault-key-file", "vault.key")
        self.eventually(lambda: worker.ask("get", "web", "host").get("error") == "hidden")
        self.assertIn("sealed", worker.ask("get", "web", "host")["message"])
        self.prefs("unseal", "web", "--vault-key-file", "vault.key")
        self.eventually(lambda: worker.ask("get", "web", "host").get("ok") == "a.example.org")

    @in_each_language("web")
    def test_end_their_child_with_themselves(self, worker: Worker) -> None:
        command = pathlib.Path(f"/proc/{worker.child}/cmdline")
        self.assertIn(b"serve", command.read_bytes())
        worker.process.kill()
        # One that has ended, and waits for init to notice, has no command.
        self.eventually(lambda: not command.exists() or not command.read_bytes())

    @in_each_language("web")
    def test_are_not_held_up_by_one_that_stops_reading(self, worker: Worker) -> None:
        os.kill(worker.process.pid, signal.SIGSTOP)
        with coffer_client.Settings("web", store=self.work / "store", key_file=self.work / "key", program=str(self.bin / "prefs")) as other:
            for number in range(3_000):
                other.set("web", f"key{number % 10}", f"{number} " + "x" * 200)
            values = {item.key: item.value for item in other.items("web")}
        os.kill(worker.process.pid, signal.SIGCONT)
        for key, value in values.items():
            self.assertTrue(worker.do("wait", "web", key, value))
        self.assertEqual(worker.do("values", "web"), values)

    def test_take_values_of_ten_megabytes(self) -> None:
        size = 10_000_000
        workers = self.workers("web")
        for worker in workers:
            worker.do("large", "web", "text", size)
            for other in workers:
                other.do("set", "web", "after", worker.language)
                self.assertTrue(other.do("wait", "web", "after", worker.language))
                self.assertEqual(other.do("size", "web", "text"), size // 2)

    def test_raise_what_is_wrong_at_the_start(self) -> None:
        folder = {"store": self.work / "store", "key_file": self.work / "key", "program": str(self.bin / "prefs")}
        (self.work / "other.key").write_text("coffer-key-1:" + "5" * 64 + "\n")
        (self.work / "other.key").chmod(0o600)
        for name, code, changes in (
            ("wrongKey", 5, {"key_file": self.work / "other.key"}), ("keyUnavailable", 6, {"key_file": self.work / "nowhere"}),
            ("unavailable", 1, {"program": "/nowhere/prefs"}),
            ("other", 1, {"program": "/bin/false"}),
        ):
            with self.assertRaises(coffer_client.CofferError) as caught:
                coffer_client.Settings("web", **(folder | changes))
            self.assertEqual((caught.exception.name, caught.exception.code), (name, code))

    def test_say_what_else_they_have_started(self) -> None:
        for lines, message in (
            ('{"serve":2,"program":"prefs 9.0"}', "prefs 9.0 has version 2 of the protocol; this package has 1."),
            ("usage: another program", "is not understood"), ('{"serve":1}', "is not understood"),
        ):
            program = self.work / "program"
            program.write_text(f"#!/bin/sh\ncat <<'END'\n{lines}\nEND\nexec cat >/dev/null\n")
            program.chmod(0o700)
            with self.assertRaisesRegex(coffer_client.Unavailable, message):
                coffer_client.Settings(program=str(program))

    def test_use_a_child_without_end(self) -> None:
        """`measure --requests 1000000` is the long form of this."""
        with coffer_client.Settings("web", store=self.work / "store", key_file=self.work / "key", program=str(self.bin / "prefs")) as settings:
            settings.set("web", "port", 8080)
            child = settings._child._process.pid

            def memory() -> int:
                pages = pathlib.Path(f"/proc/{child}/statm").read_text().split()[1]
                return int(pages) * os.sysconf("SC_PAGE_SIZE")

            for _ in range(5_000):
                settings.request("get", collection="web", key="port")
            before = memory()
            for _ in range(20_000):
                settings.request("get", collection="web", key="port")
            self.assertLess(memory() - before, 2 << 20)


if __name__ == "__main__":
    main()
