"""The passphrase of the vault by pinentry: a small one that speaks the protocol, with the Secret Service of `prefs keyring`."""

from __future__ import annotations

import contextlib
import subprocess
import sys

from case import PATIENCE, has_ended, wait_until
from services import BUS, PROMPT, ROOT, SERVICE, end
from test_service import ServiceTestCase

from jeepney import MatchRule, new_method_call
from jeepney.wrappers import DBusErrorResponse, unwrap_msg

PASSPHRASE = "päss 100% of it"

# Answers GETPIN with the lines of the file `answers`, one after the other; waits for a line as long as there is none.
PINENTRY = f"""#!{sys.executable}
import os, pathlib, sys, time
folder = pathlib.Path(__file__).parent
log = open(folder / "asked", "a", encoding="utf-8", errors="replace")
def write(line):
    sys.stdout.write(line + "\\n")
    sys.stdout.flush()
(folder / "pid").write_text(str(os.getpid()))
number = 0
write("OK Pleased to meet you")
for line in sys.stdin:
    log.write(line)
    log.flush()
    if line == "GETPIN\\n":
        while True:
            answers = (folder / "answers").read_text("utf-8").splitlines() if (folder / "answers").exists() else []
            if len(answers) > number:
                break
            time.sleep(0.02)
        answer = answers[number]
        number += 1
        if answer == "cancel":
            write("ERR 83886179 Operation cancelled <Pinentry>")
            continue
        if answer == "broken":
            write("ERR 83918950 Inappropriate ioctl for device <Pinentry>")
            continue
        if answer == "die":
            os._exit(1)
        write("S PASSWORD_FROM_CACHE")
        write("# a comment")
        # In two parts, with more escapes than needed.
        parts = [answer[:2], answer[2:]]
        for part in parts:
            write("D " + "".join("%%%02x" % byte for byte in part.encode()))
        write("OK")
        log.write("answered\\n")
        log.flush()
    elif line.startswith("OPTION parent-wid"):
        write("ERR 83886254 Unknown option <Pinentry>")
    else:
        write("OK")
        if line == "BYE\\n":
            break
"""

# Ends neither on a signal nor on a command.
STUBBORN = """#!/bin/sh
trap '' TERM
folder=$(dirname "$0")
echo $$ >"$folder/pid"
echo OK
while read -r line; do
  echo "$line" >>"$folder/asked"
  if [ "$line" = GETPIN ]; then while :; do sleep 1; done; fi
  echo OK
done
"""


class Pinentry(ServiceTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.pinentry = self.folder / "bin" / "pinentry"
        self.pinentry.write_text(PINENTRY)
        self.pinentry.chmod(0o755)
        self.prefs("set", "other/name", "value")
        self.with_passphrase("seal", "other")
        self.with_passphrase("unlock")

    def with_passphrase(self, *arguments: str) -> None:
        secret = self.folder / "passphrase"
        secret.write_text(PASSPHRASE, "utf-8")
        with open(secret) as file:
            subprocess.run(
                ["prefs", *arguments, "--vault-passphrase-fd", str(file.fileno())], cwd=self.work, env=self.environment, check=True,
                pass_fds=[file.fileno()], timeout=PATIENCE, stdin=subprocess.DEVNULL)
        secret.unlink()

    def serve_locked(self, *options: str) -> None:
        """Starts the service with an item, and locks it."""
        self.serve(*options)
        self.tool("store", "--label=One", "server", "h", text="hidden")
        self.prefs("lock")

    def answer(self, *answers: str) -> None:
        new = self.folder / "bin" / "new"
        new.write_text("".join(f"{answer}\n" for answer in answers), "utf-8")
        new.rename(self.folder / "bin" / "answers")

    def asked(self) -> list[str]:
        log = self.folder / "bin" / "asked"
        return log.read_text("utf-8").splitlines() if log.exists() else []

    def wait(self, what: str, condition) -> None:
        wait_until(condition, lambda: f"{what}: {self.asked()}, {self.notes()}")

    def wait_for_question(self) -> None:
        self.wait("pinentry was not asked", lambda: "GETPIN" in self.asked())

    def wait_for_end_of_pinentry(self) -> None:
        pinentry = (self.folder / "bin" / "pid").read_text()
        self.wait("pinentry goes on", lambda: has_ended(pinentry))

    def prompt(self, connection, window: str = "") -> str:
        main = f"{ROOT}/collection/keyring"
        opened, prompt = self.call(connection, ROOT, SERVICE, "Unlock", "ao", [main])
        self.assertEqual(opened, [])
        self.call(connection, prompt, PROMPT, "Prompt", "s", window)
        return prompt

    def watched(self, connection):
        rule = MatchRule(type="signal", interface=PROMPT)
        unwrap_msg(connection.send_and_get_reply(new_method_call(BUS, "AddMatch", "s", (rule.serialise(),))))
        return connection.filter(rule, bufsize=10)

    def completed(self, connection, queue) -> tuple:
        return connection.recv_until_filtered(queue, timeout=PATIENCE).body

    def test_the_passphrase_unlocks_for_a_client_that_prompts(self) -> None:
        self.environment.update(GPG_TTY="/dev/pts/77", TERM="vt100", LC_CTYPE="de_DE.UTF-8")
        del self.environment["LC_ALL"]
        self.serve_locked()
        self.answer("wrong", PASSPHRASE)
        self.assertEqual(self.tool("lookup", "server", "h"), "hidden")
        asked = self.asked()
        for option in ("OPTION ttyname=/dev/pts/77", "OPTION ttytype=vt100", "OPTION lc-ctype=de_DE.UTF-8"):
            self.assertIn(option, asked)
        description = next(line for line in asked if line.startswith("SETDESC "))
        self.assertIn("secret-tool (process ", description)
        self.assertLess(asked.index("GETPIN"), next(place for place, line in enumerate(asked) if line.startswith("SETERROR ")))
        self.wait_for_end_of_pinentry()
        # prefs lock locks that, too.
        self.prefs("lock")
        self.answer("cancel")
        self.tool("lookup", "server", "h", code=1)
        for text in ("\n".join(self.asked()), (self.folder / "log").read_text()):
            self.assertNotIn("of it", text)

    def test_a_dialog_that_is_cancelled_dismisses_the_prompt(self) -> None:
        self.serve_locked()
        self.answer("cancel")
        self.tool("lookup", "server", "h", code=1)
        self.assertEqual(self.asked().count("GETPIN"), 1)

    def test_three_wrong_passphrases_are_enough(self) -> None:
        self.serve_locked()
        self.answer("a", "b", "c", PASSPHRASE)
        self.tool("lookup", "server", "h", code=1)
        self.assertEqual(self.asked().count("GETPIN"), 3)
        self.assertIn("wrong 3 times", self.notes())

    def test_others_are_answered_meanwhile_and_one_dialog_serves_all(self) -> None:
        self.serve_locked()
        one, other = self.connect(), self.connect()
        with self.watched(one) as first, self.watched(other) as second:
            self.prompt(one, "4711")
            self.wait_for_question()
            self.assertIn("OPTION parent-wid=4711", self.asked())
            self.assertTrue(self.is_locked(other))
            self.prompt(other)
            self.answer(PASSPHRASE)
            for connection, queue in ((one, first), (other, second)):
                self.assertEqual(self.completed(connection, queue), (False, ("ao", [f"{ROOT}/collection/keyring"])))
        self.assertEqual(self.asked().count("GETPIN"), 1)

    def test_dismiss_and_the_end_of_the_client_end_the_dialog(self) -> None:
        self.serve_locked()
        one, other = self.connect(), self.connect()
        with self.watched(one) as queue:
            prompt = self.prompt(one)
            self.wait_for_question()
            self.refused("org.freedesktop.Secret.Error.NoSuchObject", other, prompt, PROMPT, "Dismiss")
            self.refused("org.freedesktop.DBus.Error.Failed", one, prompt, PROMPT, "Prompt", "s", "")
            self.call(one, prompt, PROMPT, "Dismiss")
            self.assertEqual(self.completed(one, queue), (True, ("ao", [])))
        self.wait_for_end_of_pinentry()
        (self.folder / "bin" / "asked").unlink()
        self.prompt(other)
        self.wait_for_question()
        other.close()
        self.wait_for_end_of_pinentry()
        self.assertIsNone(self.service.poll())

    def test_what_locks_while_a_passphrase_is_stretched_wins(self) -> None:
        self.serve_locked()
        main = f"{ROOT}/collection/keyring"
        for action in ("Dismiss", "Lock", "prefs lock"):
            with self.subTest(action):
                connection = self.connect()
                with self.watched(connection) as queue:
                    prompt = self.prompt(connection)
                    self.wait_for_question()
                    self.answer(PASSPHRASE)
                    self.wait("pinentry has not answered", lambda: "answered" in self.asked())
                    # Stretching may be over by now.
                    if action == "Dismiss":
                        with contextlib.suppress(DBusErrorResponse):
                            self.call(connection, prompt, PROMPT, "Dismiss")
                    elif action == "Lock":
                        self.call(connection, ROOT, SERVICE, "Lock", "ao", [main])
                    else:
                        self.prefs("lock")
                    dismissed = self.completed(connection, queue)[0]
                self.wait_for_end_of_pinentry()
                if action == "Dismiss":
                    self.assertEqual(self.is_locked(connection), dismissed)
                else:
                    self.wait("it is unlocked", lambda: self.is_locked(connection))
                self.prefs("lock")
                self.wait("it is unlocked", lambda: self.is_locked(connection))
                for name in ("asked", "answers"):
                    (self.folder / "bin" / name).unlink()

    def test_prefs_lock_of_another_session_locks(self) -> None:
        if list(self.folder.glob("runtime/prefs/*.sock")):
            self.skipTest("there is no keyring of the kernel, which is one for all sessions")
        self.serve_locked()
        self.answer(PASSPHRASE)
        self.assertEqual(self.tool("lookup", "server", "h"), "hidden")
        other = {name: value for name, value in self.environment.items() if name != "XDG_RUNTIME_DIR"}
        subprocess.run(["prefs", "lock"], cwd=self.work, env=other, check=True, timeout=PATIENCE)
        self.answer("cancel")
        self.tool("lookup", "server", "h", code=1)

    def test_prefs_lock_reaches_a_store_that_has_replaced_another(self) -> None:
        self.serve_locked()
        backup = self.folder / "backup"
        self.prefs("backup", str(backup))
        self.prefs("restore-store", str(backup), "--force")
        self.answer(PASSPHRASE)
        self.assertEqual(self.tool("lookup", "server", "h"), "hidden")
        self.prefs("lock")
        self.answer("cancel")
        self.tool("lookup", "server", "h", code=1)

    def test_a_pinentry_that_does_not_want_to_end_is_killed(self) -> None:
        self.pinentry.write_text(STUBBORN)
        self.serve_locked()
        connection = self.connect()
        for ending in (lambda: self.call(connection, prompt, PROMPT, "Dismiss"), lambda: end(self.service)):
            prompt = self.prompt(connection)
            self.wait_for_question()
            ending()
            self.wait_for_end_of_pinentry()
            (self.folder / "bin" / "asked").unlink()

    def test_prefs_unlock_ends_the_dialog(self) -> None:
        self.serve_locked()
        connection = self.connect()
        with self.watched(connection) as queue:
            self.prompt(connection)
            self.wait_for_question()
            self.with_passphrase("unlock")
            self.assertFalse(self.completed(connection, queue)[0])
        self.wait_for_end_of_pinentry()

    def test_the_end_of_the_service_ends_the_dialog(self) -> None:
        self.serve_locked()
        self.prompt(self.connect())
        self.wait_for_question()
        self.assertEqual(end(self.service), 0)
        self.wait_for_end_of_pinentry()

    def test_a_pinentry_that_fails_is_no_unlocking(self) -> None:
        self.serve_locked()
        for answer, expected in (("broken", "Inappropriate ioctl"), ("die", "pinentry has ended")):
            self.answer(answer)
            self.tool("lookup", "server", "h", code=1)
            self.assertIn(expected, self.notes())
            self.assertIn("prefs unlock", self.notes())
        self.pinentry.write_text("#!/bin/sh\nexec head -c 100000 /dev/zero\n")
        self.tool("lookup", "server", "h", code=1)
        self.assertIsNone(self.service.poll())

    def test_another_program_can_be_named_and_no_input_asks_none(self) -> None:
        other = self.folder / "bin" / "other"
        self.pinentry.rename(other)
        self.pinentry.write_text("#!/bin/sh\nexit 1\n")
        self.pinentry.chmod(0o755)
        self.environment["PREFS_PINENTRY"] = str(other)
        self.serve_locked()
        self.answer(PASSPHRASE)
        self.assertEqual(self.tool("lookup", "server", "h"), "hidden")
        end(self.service)
        (self.folder / "bin" / "asked").unlink()
        self.environment["PREFS_PINENTRY"] = str(self.folder)
        self.serve()
        self.prefs("lock")
        self.tool("lookup", "server", "h", code=1)
        self.assertIn(f"PREFS_PINENTRY names no program: {self.folder}", self.notes())
        end(self.service)
        self.environment["PREFS_PINENTRY"] = str(other)
        self.serve("--no-input")
        self.tool("lookup", "server", "h", code=1)
        self.assertEqual(self.asked(), [])
        self.assertIn("prefs unlock", self.notes())


class PinentryOfKeyFile(ServiceTestCase):
    def test_a_vault_without_a_passphrase_is_not_asked_for(self) -> None:
        pinentry = self.folder / "bin" / "pinentry"
        pinentry.write_text(f"#!/bin/sh\ntouch {self.folder}/asked\n")
        pinentry.chmod(0o755)
        key = self.make_vault()
        self.prefs("unlock", "--vault-key-file", str(key))
        self.serve()
        self.tool("store", "--label=One", "server", "h", text="hidden")
        self.prefs("lock")
        self.tool("lookup", "server", "h", code=1)
        self.assertFalse((self.folder / "asked").exists())
        self.assertIn("prefs unlock", self.notes())
