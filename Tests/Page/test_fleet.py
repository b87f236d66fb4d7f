"""A store of a fleet: where settings go, its members, and its conflicts."""

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


class NoFleetTests(PageCase):
    def test_without_a_fleet_there_is_no_button(self):
        self.assertFalse(self.browser.one("#fleet").is_displayed())


if __name__ == "__main__":
    unittest.main()
