"""A store of a fleet: where settings go, its members, and its conflicts."""

import os
import shutil
import unittest

from axe_core_python.selenium import Axe

from cases import BINARIES, PageCase
from program import Store


class FleetTests(PageCase):
    def prepare(self):
        super().prepare()
        self.carrier = f"file://{self.store.home}/carrier"
        self.store.prefs("fleet", "create", "team", "--at", self.carrier, "--collection", "notes")
        self.store.prefs("fleet", "sync")
        self.other = Store(BINARIES)
        self.addCleanup(self.other.close)
        invitation = self.store.prefs("fleet", "invite", "laptop", "--role", "writer")
        self.other.prefs("fleet", "join", "-", input=invitation)
        # An admin's host admits it.
        self.store.prefs("fleet", "sync")
        self.other.prefs("fleet", "sync")

    def make_conflict(self, here="mine", there="theirs"):
        """The other host's change is the later one, and wins."""
        self.store.prefs("set", "notes/first", here)
        self.other.prefs("set", "notes/first", there)
        self.other.prefs("fleet", "sync")
        self.store.prefs("fleet", "sync")
        self.browser.wait(lambda: self.browser.text("#fleet") == "Fleet (1 conflict)")

    def show(self):
        self.browser.click("#fleet")
        self.browser.wait(lambda: self.browser.text("dialog h2") == "The fleet")

    def test_a_setting_says_where_it_goes(self):
        self.browser.choose("notes/first")
        self.browser.wait(lambda: f"Shared through {self.carrier}. Last in sync" in self.browser.text("#details"))
        self.store.prefs("set", "notes/first", "mine")
        self.browser.wait(lambda: "This value is not there yet" in self.browser.text("#details"))
        self.store.prefs("fleet", "sync")
        self.browser.wait(lambda: "Last in sync" in self.browser.text("#details"))
        self.browser.choose("editor/theme")
        self.assertNotIn("Shared through", self.browser.text("#details"))

    def test_members_are_shown(self):
        self.show()
        self.browser.wait(lambda: "laptop" in (self.browser.text("#members") or ""))
        text = self.browser.text("#members")
        for words in ["writer", "admin", "this store"]:
            self.assertIn(words, text)
        self.assertTrue(self.browser.one("#no-conflicts").is_displayed())
        self.browser.press("Close", "dialog")

    def test_a_conflict_shows_both_values_and_one_click_takes_the_other_one(self):
        self.make_conflict()
        self.assertEqual(self.stored("notes/first"), "theirs")
        self.show()
        self.browser.wait(lambda: "theirs → mine" in (self.browser.text("#conflicts") or ""))
        findings = Axe().run(self.browser.driver)["violations"]
        self.assertEqual([finding["id"] for finding in findings if finding["impact"] in ("serious", "critical")], [])
        self.browser.click("#conflicts .restore")
        self.wait_value("notes/first", "mine")
        self.browser.wait(lambda: self.browser.all("#no-conflicts"))
        self.assertEqual(self.store.prefs("fleet", "conflicts", "--json").strip(), "[]")
        self.browser.press("Close", "dialog")
        self.browser.click("#undo")
        self.wait_value("notes/first", "theirs")
        self.browser.wait(lambda: self.browser.text("#fleet") == "Fleet")

    def test_one_click_keeps_what_is(self):
        self.make_conflict()
        self.show()
        self.browser.press("Keep as it is", "#conflicts")
        self.browser.wait(lambda: self.browser.all("#no-conflicts"))
        self.assertEqual(self.stored("notes/first"), "theirs")


class ProgramCase(PageCase):
    """The page beside another prefs-fleet than the built one."""

    def prepare(self):
        super().prepare()
        self.store.prefs("set", "notes/first", "mine")
        self.store.prefs("fleet", "create", "team", "--at", f"file://{self.store.home}/carrier", "--collection", "notes")
        folder = os.path.join(self.store.home, "programs")
        os.mkdir(folder)
        for name in ["prefs", "prefs-ui"]:
            shutil.copy(os.path.join(BINARIES, name), folder)
        self.store.binaries = folder
        self.program = os.path.join(folder, "prefs-fleet")

    def write(self, lines):
        with open(self.program, "w") as file:
            file.write("#!/bin/sh\n" + lines)
        os.chmod(self.program, 0o755)

    def show(self):
        self.browser.click("#fleet")
        self.browser.wait(lambda: self.browser.text("dialog h2") == "The fleet")

    def assert_fallback(self):
        self.show()
        self.assertIn("The command “prefs fleet members” shows them", self.browser.text("dialog"))
        # The rest of the view is there.
        self.assertIn(f"file://{self.store.home}/carrier", self.browser.text("dialog"))
        self.assertTrue(self.browser.one("#no-conflicts").is_displayed())
        self.assertEqual(self.browser.all("#members"), [])
        self.browser.press("Close", "dialog")
        self.browser.choose("notes/first")

    def test_the_view_says_what_shows_the_members_where_the_program_is_missing_or_fails(self):
        self.assert_fallback()
        for lines in ["exit 1\n", "echo nonsense\n", "echo '[]'; exit 1\n", "kill -9 $$\n", "echo '['; exec sleep 1000\n"]:
            self.write(lines)
            self.assert_fallback()
        # It is asked again each time.
        self.write("""echo '[{"name": "desk", "role": "admin", "standing": "admitted", "isThisStore": true, "invited": null}]'\n""")
        self.show()
        self.assertIn("desk", self.browser.text("#members"))
        self.browser.press("Close", "dialog")


class NoFleetTests(PageCase):
    def test_without_a_fleet_there_is_no_button(self):
        self.assertFalse(self.browser.one("#fleet").is_displayed())


if __name__ == "__main__":
    unittest.main()
