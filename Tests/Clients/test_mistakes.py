#!/usr/bin/env python3
"""What a program can do wrong with a client: it is an error at once, and never a change that was not meant.

    test_mistakes.py --bin DIR      (the rest as for test_clients.py)
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import signal
import sys
import threading
import time
import unittest.mock

import coffer_client
from coffer_client import Secret, Settings, Unavailable

from case import NODE_MODULES, TOOLS, ClientsTestCase, main


class MistakesInPython(ClientsTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.prefs("init")

    def open(self, *collections: str, **options) -> Settings:
        place = {"store": self.work / "store", "key_file": self.work / "key", "program": str(self.bin / "prefs")}
        settings = Settings(*collections, **(place | options))
        self.addCleanup(settings.close)
        return settings

    def in_a_fork(self, body) -> str:
        """What `body` returns in a forked process."""
        output, end = os.pipe()
        if not (process := os.fork()):
            try:
                os.write(end, body().encode())
            finally:
                os._exit(0)
        os.close(end)
        with os.fdopen(output) as text:
            answer = text.read()
        os.waitpid(process, 0)
        return answer

    def test_a_forked_process_opens_them_again(self) -> None:
        """Two processes at one child's input would get each other's answers."""
        settings = self.open("web")
        settings.set("web", "port", 1)

        def use() -> str:
            assert settings.get("web", "port") == 1
            try:
                settings.set("web", "port", 2)
            except Unavailable as error:
                with self.open("web") as own:
                    return f"{error} {settings.problem} {own.set('web', 'host', 'a').key}"
            return "set"

        message = "The settings were opened before this process was forked; open them in it."
        self.assertEqual(self.in_a_fork(use), f"prefs serve does not run. {message} {message} host")
        self.assertEqual(settings.set("web", "port", 3).key, "port")
        self.assertEqual((settings.get("web", "port"), settings.get("web", "host"), settings.problem), (3, "a", None))

    def test_they_close_at_once_beside_a_fork(self) -> None:
        settings = self.open("web")
        output, end = os.pipe()
        if not (process := os.fork()):
            os.close(end)
            os.read(output, 1)
            os._exit(0)
        start = time.monotonic()
        settings.close()
        self.assertLess(time.monotonic() - start, 4)
        os.close(end)
        os.close(output)
        os.waitpid(process, 0)

    def test_a_request_waits_no_longer_than_it_may(self) -> None:
        """Even for a child that has stopped, and takes no more input."""
        settings = self.open("web", patience=1)
        settings.set("web", "port", 1)
        os.kill(settings._child._process.pid, signal.SIGSTOP)
        start = time.monotonic()
        with self.assertRaises(Unavailable):
            settings.set("web", "text", "x" * 1_000_000)
        self.assertLess(time.monotonic() - start, 30)
        self.eventually(lambda: settings.problem is None)
        self.assertEqual(settings.set("web", "port", 2).key, "port")

    def test_a_child_that_does_not_answer_is_a_problem_until_it_does(self) -> None:
        settings = self.open("web", patience=1)
        child = settings._child._process.pid
        os.kill(child, signal.SIGSTOP)
        with self.assertRaisesRegex(Unavailable, "has not answered for 1 s"):
            settings.set("web", "port", 1)
        self.assertRegex(str(settings.problem), "has not answered for 1 s")
        os.kill(child, signal.SIGCONT)
        self.eventually(lambda: settings.problem is None)
        self.assertEqual(settings.request("get", collection="web", key="port")["value"], 1)

    def test_a_store_that_is_away_is_a_problem_until_it_is_back(self) -> None:
        """Also where its values are read again meanwhile."""
        managed = self.work / "managed"
        (managed / "web.d").mkdir(parents=True)
        with unittest.mock.patch.dict(os.environ, PREFS_MANAGED_DIR=str(managed)):
            settings = self.open("web")
        settings.set("web", "port", 1)
        (self.work / "store").rename(self.work / "away")
        self.eventually(lambda: settings.problem is not None)
        (managed / "draft").write_text('{"locked": {"port": 8080}}')
        (managed / "draft").rename(managed / "web.d/10.json")
        self.eventually(lambda: settings.get("web", "port") == 8080)
        self.eventually(lambda: settings.problem is not None)
        (self.work / "away").rename(self.work / "store")
        self.eventually(lambda: settings.problem is None)

    def test_an_update_notices_another_store(self) -> None:
        """Whose value has the same version."""
        for store, value in (("store", "100"), ("other", "7")):
            self.environment["PREFS_STORE"] = store
            self.prefs("set", "--int", "web/visits", value)
        settings = self.open("web")
        former = settings.item("web", "visits")

        def change(value: int) -> int:
            if value == 100:
                (self.work / "other").rename(self.work / "store")
                self.eventually(lambda: settings.get("web", "visits") == 7)
            return value + 1

        self.assertEqual(settings.update("web", "visits", change), 8)
        with self.assertRaises(coffer_client.Conflict), settings.transaction() as transaction:
            transaction.check(former)
            transaction.set("web", "host", "a")

    def test_a_change_while_they_close_has_a_reason(self) -> None:
        settings = self.open("web")
        child = settings._child._process.pid
        os.kill(child, signal.SIGSTOP)
        closing = threading.Thread(target=settings.close)
        closing.start()
        self.eventually(settings._closing.is_set)
        with self.assertRaisesRegex(Unavailable, "The settings are closed."):
            settings.set("web", "port", 1)
        os.kill(child, signal.SIGCONT)
        closing.join()

    def test_a_child_that_says_nothing_is_ended(self) -> None:
        program = self.work / "program"
        program.write_text(f"#!/bin/sh\necho $$ >{self.work}/process\nexec sleep 1000\n")
        program.chmod(0o700)
        with self.assertRaisesRegex(Unavailable, "has not answered for 0.5 s"):
            self.open(program=str(program), patience=0.5)
        process = (self.work / "process").read_text().strip()
        self.eventually(lambda: not pathlib.Path(f"/proc/{process}").exists())

    def test_an_interrupt_in_the_middle_of_a_line_ends_its_child(self) -> None:
        """What follows half a line would be part of it."""
        settings = self.open("web", patience=20)
        os.kill(settings._child._process.pid, signal.SIGSTOP)
        former = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
        self.addCleanup(signal.signal, signal.SIGALRM, former)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with self.assertRaises(KeyboardInterrupt):
            settings.set("web", "text", "x" * 1_000_000)
        settings.request("get", collection="web", key="port")
        settings.set("web", "port", 2)
        self.assertEqual([item.key for item in settings.items("web")], ["port"])

    def test_the_first_error_of_a_child_is_the_problem(self) -> None:
        with self.assertRaisesRegex(coffer_client.NotFound, 'no environment "test" of collection "web"'):
            self.open("web@test")
        self.prefs("env", "create", "web@test")
        settings = self.open("web", "web@test")
        self.prefs("env", "remove", "web@test")
        self.eventually(lambda: settings.problem is not None)
        self.assertIn('no environment "test"', str(settings.problem))

    def test_observers_are_called_whatever_others_do(self) -> None:
        settings, seen = self.open("web"), []
        end = settings.on_change("web", "port", lambda item: sys.exit(3))
        settings.on_change("web", "port", lambda item: seen.append(item.value))
        with self.assertLogs("coffer_client", "ERROR"):
            settings.set("web", "port", 1)
            self.eventually(lambda: seen == [1])
        end()
        end()
        settings.set("web", "port", 2)
        self.eventually(lambda: seen == [1, 2])

    def test_values_that_mean_something_else_are_refused(self) -> None:
        settings = self.open("web")
        settings.set("web", "port", 1)
        for value in ({1: 2}, {"a": {None: 1}}, {True: 1}):
            with self.assertRaises(TypeError):
                settings.set("web", "port", value)
        for version in (None, "1"):
            with self.assertRaises(TypeError):
                settings.set("web", "port", 2, if_version=version)
        with self.assertRaisesRegex(coffer_client.CofferError, "beyond 64 bits"):
            settings.set("web", "port", 2**64)
        with self.assertRaises(coffer_client.InvalidValue):
            settings.set("web", "port", "\ud800")
        for number, is_exact in ((2**60, True), (2**53 + 1, False)):
            settings.set("web", "number", number)
            self.assertEqual(settings.get("web", "number"), number)
            with contextlib.nullcontext() if is_exact else self.assertRaisesRegex(coffer_client.CofferError, "float was asked for"):
                self.assertEqual(settings.get("web", "number", float), float(number))
        answer = settings.set("web", "host", "a")
        with self.assertRaisesRegex(coffer_client.CofferError, "without a value"):
            answer.value
        self.assertEqual(settings.get("web", "port"), 1)
        settings.set("web", "token", Secret("s3cret"))
        with self.assertRaisesRegex(coffer_client.CofferError, "is a secret"):
            settings.get("web", "token")

    def test_a_secret_is_shown_by_nothing(self) -> None:
        secret = Secret("s3cret")
        self.assertNotIn("s3cret", f"{secret} {dataclasses.asdict(coffer_client.Item('web', 'token', stored=secret))}")
        self.assertEqual({secret: 1}[Secret(b"s3cret")], 1)
        self.assertNotIn(secret, ("s3cret", b"s3cret", Secret("another")))

    def run_with_other_packages(self, script: str) -> None:
        text = f"from coffer_client import CofferError, Secret, Settings\nsettings = Settings('web')\n{script}settings.close()\n"
        self.run_program(TOOLS, "-", text=text)

    def test_dynaconf_has_text_as_it_is(self) -> None:
        self.run_with_other_packages("""\
from dynaconf import Dynaconf

values = {
    "number": "@int 42", "format": "@format {env[HOME]}", "jinja": "@jinja {{ env.HOME }}", "gone": "@del", "at": "@ada", "nan": float("nan"),
    "list": ["@none", {"a": "@int 1", "B b": ["@json [1]"]}], "two": "@int @format {env[HOME]}", "plain": "a @int 1",
}
for key, value in values.items():
    settings.set("web", key, value)
settings.set("web", "token", Secret("@int 0042"))
options = {"LOADERS_FOR_DYNACONF": ["coffer_client.dynaconf"], "COFFER_FOR_DYNACONF": {"collections": ["web"]}}
loaded = Dynaconf(**options)
for key, value in values.items():
    assert loaded[key] == value or key == "nan", (key, loaded[key])
assert loaded.token == "@int 0042"
try:
    Dynaconf(**options, AUTO_CAST_FOR_DYNACONF=False).get("at")
except CofferError as error:
    assert "web/at" in str(error), error
else:
    raise AssertionError("text became another one")
""")

    def test_pydantic_has_values_by_alias(self) -> None:
        self.run_with_other_packages("""\
from coffer_client.pydantic import CofferSource
from pydantic import AliasChoices, Field
from pydantic_settings import BaseSettings

for key in ("WEB-PORT", "second", "url", "plain"):
    settings.set("web", key, key)

class Web(BaseSettings):
    port: str = Field(validation_alias="WEB_PORT")
    host: str = Field(validation_alias=AliasChoices("first", "second"))
    address: str = Field(alias="url")
    plain: str

    @classmethod
    def settings_customise_sources(cls, settings_cls, init_settings, **_):
        return init_settings, CofferSource(settings_cls, settings, "web")

web = Web()
assert (web.port, web.host, web.address, web.plain) == ("WEB-PORT", "second", "url", "plain"), web
""")


class MistakesInNode(ClientsTestCase):
    def test_values_that_mean_something_else_are_refused(self) -> None:
        self.prefs("init")
        (self.work / "node_modules").symlink_to(NODE_MODULES)
        (self.work / "mistakes.mjs").write_text("""\
import assert from 'node:assert/strict'
import { Json, Secret, Settings, Unavailable } from 'coffer-client'

await assert.rejects(Settings.open('web', { program: '/bin/echo' }), Unavailable)
await assert.rejects(Settings.open('web', { program: './silent', patience: 300 }), /has not sent the values for 300 ms/)
await assert.rejects(Settings.open('web', { args: ['a\\0b'] }), TypeError)
const settings = await Settings.open(['web', 'a', 'a\\0b'], { keyFile: null })
await settings.set('web', 'port', 1)
for (const ifVersion of [undefined, null, NaN, '1']) await assert.rejects(settings.set('web', 'port', 2, { ifVersion }), TypeError)
for (const value of ['\\ud800', 1n << 64n]) await assert.rejects(settings.set('web', 'port', value), { name: 'usage' })
assert.throws(() => new Secret('\\ud800'), TypeError)
await assert.rejects(settings.set('web', 'port', [1, , 3]), TypeError)
for (const name of [undefined, null, 1]) {
  await assert.rejects(settings.set(name, 'port', 2), TypeError)
  await assert.rejects(settings.unset('web', name), TypeError)
  await assert.rejects(settings.transaction([{ set: [name, 'port', 2] }]), TypeError)
}
const secret = new Secret('s3cret')
secret.data.fill(0)
assert.equal(secret.text, 's3cret')
for (const value of [undefined, NaN, [-Infinity]]) await assert.rejects(settings.set('web', 'port', new Json(value)), TypeError)
await settings.set('web', 'object', { constructor: 1 })
assert.deepEqual(settings.get('web', 'object', Object), { constructor: 1 })
assert.throws(() => settings.get('web', 'port', Object), { name: 'wrongType' })
assert.equal(settings.get('web', 'port'), 1)
const answer = await settings.set('web', 'host', 'a')
assert.throws(() => answer.value, /without a value/)

// Names with any characters.
await settings.set('a\\0b', 'c', 1)
await settings.set('a', 'b\\0c', 2)
assert.equal(settings.get('a\\0b', 'c'), 1)

// Numbers that JSON would write as other ones.
for (const value of [2 ** 53, -1e20, 1e20, 2 ** 64]) {
  assert.equal((await settings.set('web', 'large', value)).type, 'double')
  assert.equal(settings.get('web', 'large'), value)
}
await settings.set('web', 'json', new Json({ a: [2n ** 64n, -0], b: { $json: -1n } }))
assert.deepEqual(settings.get('web', 'json').value, { a: [2n ** 64n, -0], b: { $json: -1 } })
const far = new Date(Date.UTC(20000, 1))
assert.equal((await settings.set('web', 'far', far)).type, 'date')

// Observers get the newest item, even if there is another one before they are called.
const endNewest = settings.onChange('web', 'port', item => assert.equal(item, settings.item('web', 'port')))
const several = [5, 6, 7].map(value => settings.set('web', 'port', value))
await new Promise(resolve => setTimeout(resolve))
for (const end = Date.now() + 300; Date.now() < end; );
await Promise.all(several)
endNewest()

// What was to be called is not, once it has ended.
const end = settings.onChange('web', 'port', () => assert.fail())
settings.onChange('web', 'host', () => assert.fail())()
settings.onChange('web', 'port', end)
const done = settings.set('web', 'port', 3)
end()
await done

// What was asked for is done before the end.
const last = settings.set('web', 'port', 4)
await settings.close()
assert.equal((await last).key, 'port')
assert.equal(settings.get('web', 'port'), 4)
""")
        (self.work / "silent").write_text("#!/bin/sh\nexec sleep 100\n")
        (self.work / "silent").chmod(0o700)
        self.run_program("node", "mistakes.mjs")


if __name__ == "__main__":
    main()
