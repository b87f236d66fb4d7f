"""prefs key add --tpm, with a TPM in software for each machine."""

from __future__ import annotations

import concurrent.futures
import errno
import json
import os
import pathlib
import pty
import shutil
import stat
import subprocess
import tempfile
import unittest

from emulator import Emulator, free_port

BIN = pathlib.Path(os.environ["COFFER_BIN"])
PATIENCE = 120  # seconds, for any one program
DEVICE = pathlib.Path("/dev/tpmrm0")
FD = object()  # The number of the descriptor with the secret of a command.


class TPMTestCase(unittest.TestCase):
    """A home with a store whose key file is in slot 0, and a machine with a TPM."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="coffer-tpm-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("home", "runtime", "work"):
            (self.folder / name).mkdir(mode=0o700)
        self.home, self.runtime, self.work = (self.folder / name for name in ("home", "runtime", "work"))
        self.store = self.home / ".local/share/prefs/settings.coffer"
        self.key = self.home / ".config/prefs/key"
        self.sealed = self.store.with_name("settings.coffer.tpm")
        self.tpm = self.machine("own")
        self.succeed("set", "x", "1")

    def machine(self, name: str) -> dict:
        """Another TPM: the variable by which its programs find it."""
        emulator = Emulator(self.folder / f"tpm-{name}")
        self.addCleanup(emulator.end)
        return emulator.environment

    def environment(self, tpm: dict | None) -> dict:
        return {
            "PATH": "/usr/bin:/bin", "HOME": str(self.home), "LC_ALL": "C.UTF-8", "XDG_RUNTIME_DIR": str(self.runtime),
            **(self.tpm if tpm is None else tpm),
        }

    def prefs(
        self, *words: object, tpm: dict | None = None, secret: bytes | None = None
    ) -> subprocess.CompletedProcess:
        """Runs the tool without a terminal, by default beside this TPM, with a secret on a descriptor."""
        with tempfile.TemporaryFile() as file:
            file.write(secret or b"")
            file.seek(0)
            done = subprocess.run(
                [str(BIN / "prefs"), *(str(file.fileno() if word is FD else word) for word in words)], cwd=self.work,
                env=self.environment(tpm), stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE,
                start_new_session=True, pass_fds=[file.fileno()])
        done.text, done.message = done.stdout.decode(), done.stderr.decode()
        return done

    def succeed(self, *words: object, **more) -> str:
        done = self.prefs(*words, **more)
        self.assertEqual(done.returncode, 0, f"{words}: {done.message}")
        return done.text

    def refuse(self, code: int, *words: object, **more) -> str:
        done = self.prefs(*words, **more)
        self.assertEqual(done.returncode, code, f"{words}: {done.text}{done.message}")
        return done.message

    def slots(self, *words: str) -> list[dict]:
        return json.loads(self.succeed("key", "list", "--json", *words))

    def labels(self) -> list[str]:
        return [slot["label"] for slot in self.slots()]


class SealedStore(TPMTestCase):
    """A recovery key is in slot 1, and the TPM's in slot 2; the key file is gone."""

    def setUp(self) -> None:
        super().setUp()
        self.recovery = self.succeed("key", "recovery", "-o", "-").encode()
        self.succeed("key", "add", "--tpm")
        self.key.unlink()

    def expect_refusal(self, reason: str, tpm: dict | None = None) -> None:
        """The store does not open, for this reason, and does with the recovery key that the error names."""
        message = self.refuse(6, "get", "x", tpm=tpm)
        self.assertIn(reason, message)
        self.assertIn("a recovery key (--recovery-key-fd)", message)
        self.assertEqual(self.succeed("get", "x", "--recovery-key-fd", FD, tpm=tpm, secret=self.recovery), "1\n")

    def recovering(self, *words: object) -> str:
        """A command that the recovery key opens the store for."""
        return self.succeed(*words, "--recovery-key-fd", FD, secret=self.recovery)

    def leftovers(self) -> list[str]:
        folders = (self.runtime, self.store.parent, pathlib.Path("/dev/shm"))
        return [str(path) for folder in folders for path in folder.glob(".prefs-tpm-*")]

    def test_opens_the_store(self) -> None:
        for _ in range(4):
            self.assertEqual(self.succeed("get", "x"), "1\n")
        self.succeed("set", "x", "2")
        self.assertIn(str(self.sealed), self.prefs("get", "x", "-v").message)
        self.assertEqual(stat.S_IMODE(self.sealed.stat().st_mode), 0o600)
        slot = self.slots()[2]
        self.assertEqual((slot["kind"], slot["label"]), ("keyCommand", "TPM"))
        self.assertEqual(self.leftovers(), [])
        # What a killed command has left.
        (self.runtime / ".prefs-tpm-killed").mkdir(mode=0o700)
        (self.runtime / ".prefs-tpm-killed/parent").write_bytes(b"object")
        self.assertEqual(self.succeed("get", "x"), "2\n")
        self.assertEqual(self.leftovers(), [])

    def test_needs_its_recovery_key_also_where_its_file_is_gone(self) -> None:
        self.sealed.unlink()
        recovery = ("--recovery-key-fd", FD)
        message = self.refuse(11, "key", "remove", "1", "--force", *recovery, secret=self.recovery)
        self.assertIn("no recovery key or passphrase would be left", message)
        doctor = self.prefs("doctor", *recovery, secret=self.recovery)
        self.assertIn(f"{self.sealed}, which is gone", doctor.text + doctor.message)
        self.recovering("key", "remove", "TPM", "--force")
        self.assertNotIn("TPM", self.recovering("doctor"))

    def test_comes_after_every_other_key(self) -> None:
        other = self.work / "other-key"
        self.succeed("init", "-d", self.work / "other", "--key-file", other)
        self.refuse(5, "get", "x", "--key-file", other)
        self.refuse(5, "get", "x", tpm={**self.tpm, "PREFS_KEY_FILE": str(other)})
        # A default key file of another store does not matter.
        shutil.move(other, self.key)
        self.assertEqual(self.succeed("get", "x"), "1\n")

    def test_opens_nothing_that_another_TPM_has_sealed(self) -> None:
        other = self.machine("other")
        self.expect_refusal("another TPM has sealed it", tpm=other)
        copy = self.work / "copy"
        shutil.copy(self.store, copy)
        self.refuse(6, "get", "x", "-d", copy)
        shutil.copy(self.sealed, f"{copy}.tpm")
        self.refuse(6, "get", "x", "-d", copy, tpm=other)
        self.assertEqual(self.succeed("get", "x", "-d", copy), "1\n")

    def test_says_what_opens_the_store_when_something_is_missing(self) -> None:
        self.expect_refusal("in the package tpm2-tools", tpm={"PATH": str(self.work)})
        if not DEVICE.exists():
            self.expect_refusal("this machine has no TPM 2.0", tpm={})
        self.expect_refusal("tpm2_createprimary failed", tpm={"TPM2TOOLS_TCTI": f"swtpm:host=127.0.0.1,port={free_port()}"})
        self.sealed.unlink()
        self.expect_refusal("STORE.tpm")
        # The slot that nothing opens goes, and another comes.
        self.recovering("key", "remove", "2", "--force")
        self.recovering("key", "add", "--tpm")
        self.assertEqual(self.succeed("get", "x"), "1\n")

    def test_is_followed_by_a_prompt_on_a_terminal(self) -> None:
        other = self.machine("other")
        child, terminal = pty.fork()
        if child == 0:
            os.execve(BIN / "prefs", ["prefs", "get", "x"], self.environment(other))
        shown = b""
        while b"Recovery key for" not in shown:
            shown += os.read(terminal, 4096)
        self.assertIn(b"another TPM has sealed it", shown)
        os.write(terminal, self.recovery)
        _, status = os.waitpid(child, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)
        shown = b""
        # A read may get only a part of what the program has printed; Linux reports its end as an error.
        with self.assertRaises(OSError) as end:
            while True:
                shown += os.read(terminal, 4096)
        self.assertEqual(end.exception.errno, errno.EIO)
        self.assertTrue(shown.endswith(b"1\r\n"), shown)
        os.close(terminal)

    def test_says_what_opens_the_store_when_the_file_is_damaged(self) -> None:
        whole = self.sealed.read_bytes()
        digit = b"1" if whole[-20:-19] == b"0" else b"0"
        self.sealed.write_bytes(whole[:-20] + digit + whole[-19:])
        self.expect_refusal("its file was damaged")
        for count in (0, 10, len(whole) // 2, len(whole) - 1):
            self.sealed.write_bytes(whole[:count])
            self.expect_refusal("is damaged")
            message = self.refuse(9, "key", "add", "--tpm", "--recovery-key-fd", FD, secret=self.recovery)
            self.assertIn("is in the way", message)
        self.sealed.write_bytes(whole)
        self.assertEqual(self.succeed("get", "x"), "1\n")

    def test_keeps_its_slot_under_a_new_root_key(self) -> None:
        self.succeed("key", "remove", "0", "--force")
        self.succeed("key", "label", "TPM", "laptop")
        self.assertIn("TPM laptop", self.labels())
        self.succeed("rotate")
        # Opened by the TPM, and by the other.
        self.succeed("rotate", "--new-root-key", "--keep-recovery-key-fd", FD, secret=self.recovery)
        self.recovering("rotate", "--new-root-key")
        self.assertEqual(self.succeed("get", "x"), "1\n")
        message = self.refuse(
            6, "rotate", "--new-root-key", "--recovery-key-fd", FD, tpm=self.machine("other"), secret=self.recovery)
        self.assertIn("--drop 2", message)
        self.assertEqual(self.succeed("get", "x"), "1\n")

    def test_needs_a_recovery_key_also_beside_the_file_of_an_earlier_slot(self) -> None:
        earlier = self.sealed.read_bytes()
        self.succeed("key", "remove", "TPM", "--force")
        self.recovering("key", "add", "--tpm")
        self.sealed.write_bytes(earlier)
        found = self.prefs("doctor", "--recovery-key-fd", FD, secret=self.recovery)
        self.assertEqual(found.returncode, 7)
        self.assertIn("has that of another slot", found.text)
        self.recovering("key", "remove", "0", "--force")
        self.refuse(11, "key", "remove", "1", "--force", "--recovery-key-fd", FD, secret=self.recovery)
        self.assertEqual(self.sealed.read_bytes(), earlier)
        self.recovering("key", "remove", "TPM", "--force")
        # It may be of a store that comes back.
        self.assertEqual(self.sealed.read_bytes(), earlier)

    def test_is_no_longer_one_of_a_TPM_when_another_key_opens_it(self) -> None:
        kept = self.work / "kept"
        kept.write_bytes(os.urandom(32))
        self.recovering("key", "change", "TPM", "--key-command", f"cat '{kept}'")
        self.assertNotIn("TPM", " ".join(self.labels()))
        self.assertFalse(self.sealed.exists())
        self.recovering("key", "add", "--tpm", "--label", "again")
        self.assertIn("TPM again", self.labels())

    def test_takes_its_file_along_with_the_slot(self) -> None:
        self.succeed("key", "remove", "0", "--force")
        changed, replaced = self.work / "changed", self.work / "replaced"
        for words in (
            ("rotate", "--new-root-key", "--recovery-key-fd", FD, "--drop", "TPM"),
            ("key", "change", "TPM", "--new-key-file", changed, "--label", "changed"),
            ("key", "replace", "TPM", "--new-key-file", replaced, "--label", "replaced", "--keep-key-file", changed,
             "--keep-recovery-key-fd", FD),
            ("destroy", "--confirm", "settings.coffer"),
        ):
            self.assertTrue(self.sealed.exists())
            self.succeed(*words, secret=self.recovery)
            self.assertFalse(self.sealed.exists(), words)
            if words[0] != "destroy":
                self.refuse(6, "get", "x")
                self.recovering("key", "add", "--tpm")

    def test_is_not_used_for_a_copy_that_it_alone_would_open(self) -> None:
        copy = self.work / "copy"
        self.assertIn("--new-key-file", self.refuse(11, "backup", copy))
        self.refuse(6, "salvage", "-o", copy)
        self.assertFalse(copy.exists())
        self.succeed("backup", copy, "--new-key-file", self.work / "key")
        self.recovering("backup", self.work / "other")

    def test_is_checked_by_doctor(self) -> None:
        self.succeed("doctor")
        other = self.machine("other")
        found = self.prefs("doctor", "--recovery-key-fd", FD, tpm=other, secret=self.recovery)
        self.assertEqual(found.returncode, 7)
        self.assertIn("another TPM has sealed it", found.text)
        kept = self.sealed.read_bytes()
        self.succeed("key", "remove", "TPM", "--force")
        self.sealed.write_bytes(kept)
        found = self.prefs("doctor", "--recovery-key-fd", FD, secret=self.recovery)
        self.assertEqual(found.returncode, 7)
        self.assertIn("is of no slot", found.text)
        self.recovering("key", "add", "--tpm")
        self.succeed("doctor")


class Adding(TPMTestCase):
    def test_is_refused_without_a_recovery_key_or_a_passphrase_which_then_stays(self) -> None:
        self.assertIn("prefs key recovery", self.refuse(11, "key", "add", "--tpm"))
        self.assertEqual(self.labels(), [""])
        self.assertFalse(self.sealed.exists())
        self.succeed("key", "add", "--new-passphrase-fd", FD, "--cost", "14", "--label", "Ada", secret=b"hunter2")
        self.refuse(2, "key", "add", "--tpm", "--key-command", "true")
        self.succeed("key", "add", "--tpm", "--label", "laptop")
        self.refuse(9, "key", "add", "--tpm")
        new = self.work / "new"
        for words in (
            ("key", "remove", "Ada", "--force"), ("key", "change", "Ada", "--new-key-file", new),
            ("key", "replace", "Ada", "--new-key-file", new), ("rotate", "--new-root-key", "--drop", "Ada"),
        ):
            self.assertIn("prefs key recovery", self.refuse(11, *words))
        self.assertFalse(new.exists())
        self.assertEqual(self.labels(), ["", "Ada", "TPM laptop"])
        self.succeed("key", "change", "Ada", "--new-passphrase-fd", FD, "--cost", "14", secret=b"swordfish")
        self.succeed("key", "remove", "TPM laptop", "--force")
        self.succeed("key", "remove", "Ada", "--force")

    def test_adds_nothing_without_a_TPM(self) -> None:
        self.succeed("key", "recovery", "-o", "-")
        self.refuse(6, "key", "add", "--tpm", tpm={"TPM2TOOLS_TCTI": f"swtpm:host=127.0.0.1,port={free_port()}"})
        self.assertEqual(len(self.slots()), 2)
        self.assertFalse(self.sealed.exists())

    def test_is_added_once_by_two_commands_at_once(self) -> None:
        self.succeed("key", "recovery", "-o", "-")
        programs = self.folder / "programs"
        programs.mkdir()
        # One after the other, as a resource manager lets them use the TPM; both commands have looked for a slot before either adds one:
        # one that opens a fifo for writing waits for one that reads.
        os.mkfifo(programs / "meeting")
        meet = 'if mkdir "$0.first" 2>/dev/null; then : >"${0%/*}/meeting"; else : <"${0%/*}/meeting"; fi'
        run = '"/usr/bin/$0" "$@"; code=$?; /usr/bin/tpm2_flushcontext -Q -t >/dev/null 2>&1; exit $code'
        for name in ("tpm2_createprimary", "tpm2_create", "tpm2_load", "tpm2_unseal", "tpm2_flushcontext"):
            waits = meet if name == "tpm2_create" else ":"
            (programs / name).write_text(f"#!/bin/sh\n{waits}\nexec flock {self.folder}/turn sh -c '{run}' {name} \"$@\"\n")
            (programs / name).chmod(0o700)
        watched = {**self.tpm, "PATH": f"{programs}:/usr/bin:/bin"}
        with concurrent.futures.ThreadPoolExecutor() as threads:
            both = list(threads.map(lambda label: self.prefs("key", "add", "--tpm", "--label", label, tpm=watched), "ab"))
        self.assertEqual(sorted(done.returncode for done in both), [0, 9], [done.message for done in both])
        refused = next(done for done in both if done.returncode)
        self.assertIn("opens with a TPM already", refused.message)
        self.assertEqual(len(self.slots()), 3)
        self.key.unlink()
        self.assertEqual(self.succeed("get", "x"), "1\n")

    def test_a_file_that_is_not_of_a_TPM_is_not_read_whole(self) -> None:
        self.succeed("key", "recovery", "-o", "-")
        self.succeed("key", "add", "--tpm")
        self.key.unlink()
        os.truncate(self.sealed, 20 << 30)
        self.assertIn("is damaged", self.refuse(6, "get", "x"))

    def test_hands_the_key_over_through_pipes_alone(self) -> None:
        """It is in no argument, file or message."""
        self.succeed("key", "recovery", "-o", "-")
        programs, seen = self.folder / "programs", self.folder / "seen"
        programs.mkdir()
        seen.mkdir()
        for program in ("tpm2_createprimary", "tpm2_create", "tpm2_load", "tpm2_unseal"):
            run = f'exec /usr/bin/{program} "$@"'
            if program == "tpm2_create":
                run = f'cat >{seen}/key; {run} <{seen}/key'
            looks = f'echo "$0" "$@" >>{seen}/arguments\ncp -r {self.runtime}/. {seen}/'
            (programs / program).write_text(f"#!/bin/sh\n{looks}\n{run}\n")
            (programs / program).chmod(0o700)
        watched = {**self.tpm, "PATH": f"{programs}:/usr/bin:/bin"}
        added = self.prefs("key", "add", "--tpm", "-v", tpm=watched)
        self.assertEqual(added.returncode, 0, added.message)
        self.key.unlink()
        opened = self.prefs("get", "x", "-v", tpm=watched)
        self.assertEqual((opened.returncode, opened.text), (0, "1\n"))
        key = (seen / "key").read_bytes()
        self.assertEqual(len(key), 32)
        (seen / "key").unlink()
        files = [path for folder in (self.home, seen) for path in folder.rglob("*") if path.is_file()]
        self.assertTrue({self.sealed, seen / "arguments"} <= set(files))
        self.assertTrue(any(path.name == "private" for path in files), "the objects of the TPM were seen")
        texts = [path.read_bytes() for path in files] + [added.stderr, opened.stderr]
        for form in (key, key.hex().encode()):
            self.assertFalse(any(form in text for text in texts))


class Vault(TPMTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.succeed("set", "tokens/key", "value")

    def test_needs_a_recovery_key_or_a_passphrase_of_its_own(self) -> None:
        self.succeed("key", "recovery", "-o", "-")
        key = self.work / "vault-key"
        self.succeed("seal", "tokens", "--vault-key-file", key)
        message = self.refuse(11, "key", "add", "--vault", "--tpm", "--vault-key-file", key)
        self.assertIn("prefs key recovery --vault", message)

    def test_is_unlocked_by_prefs_unlock_alone(self) -> None:
        sealed = self.store.with_name("settings.coffer.tpm-vault")
        passphrase = ("--vault-passphrase-fd", FD)
        self.succeed("seal", "tokens", *passphrase, "--cost", "14", secret=b"vault")
        self.succeed("key", "add", "--vault", "--tpm", *passphrase, secret=b"vault")
        self.assertTrue(sealed.exists() and not self.sealed.exists())
        self.addCleanup(self.prefs, "lock")
        self.succeed("lock")
        self.refuse(6, "get", "tokens/key")
        self.succeed("unlock")
        self.assertEqual(self.succeed("get", "tokens/key"), "value\n")
        self.succeed("lock")
        self.refuse(6, "get", "tokens/key")

        message = self.refuse(6, "unlock", tpm=self.machine("other"))
        self.assertIn("another TPM has sealed it", message)
        self.assertIn("--vault-recovery-key-fd", message)
        # Its slot stays under a new key of the vault.
        self.succeed("rotate", "--vault", *passphrase, secret=b"vault")
        self.succeed("unlock")
        self.assertEqual(self.succeed("get", "tokens/key"), "value\n")
        self.succeed("doctor")
        self.refuse(11, "key", "remove", "0", "--vault", "--force")
        self.succeed("key", "remove", "TPM", "--vault", "--force")
        self.assertFalse(sealed.exists())
        self.succeed("lock")
        self.refuse(6, "unlock")


if __name__ == "__main__":
    unittest.main()
