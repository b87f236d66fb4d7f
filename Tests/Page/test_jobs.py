"""The ten everyday jobs, with their clicks counted."""

import json
import unittest

from selenium.webdriver.common.keys import Keys

from cases import PageCase

# Counts what a mouse does; keys that press a button do not count.
COUNT = """
    window.clicks = 0;
    addEventListener('pointerdown', (event) => { if (event.isTrusted) window.clicks += 1; }, { capture: true });"""


class JobTests(PageCase):
    def prepare(self):
        super().prepare()
        self.store.prefs("history", "--keep", "notes")
        self.store.prefs("set", "notes/first", "Bring the bread")
        self.store.prefs("env", "create", "mail@staging")
        self.store.prefs("set", "mail@staging/host", "staging.example.org")

    def setUp(self):
        super().setUp()
        self.browser.driver.execute_script(COUNT)

    def click(self, selector):
        """A click where a mouse would click."""
        self.browser.click(selector)

    def row(self, name, part=""):
        """The row of a setting, or a part of it."""
        row = self.browser.wait(lambda: self.browser.row(name))
        return f"#row-{row['index']} {part}".strip()

    def clicks(self):
        return self.browser.driver.execute_script("return window.clicks")

    def test_to_change_a_limit_takes_one(self):
        self.click(self.row("editor/size", ".editable"))
        self.browser.keys("18", Keys.ENTER)
        self.wait_value("editor/size", "18")
        self.assertEqual(self.clicks(), 1)

    def test_to_undo_what_was_done_yesterday_takes_three(self):
        self.click("#timeline")
        self.click("[aria-label='Put back notes/first as it was before']")
        self.browser.wait(lambda: "milk" in (self.browser.text("dialog .review") or ""))
        self.click("dialog button.main")
        self.wait_value("notes/first", "Bring the milk")
        self.assertEqual(self.clicks(), 3)

    def test_to_replace_a_secret_takes_one(self):
        self.click(self.row("mail/token", ".key"))
        self.browser.wait(lambda: self.browser.focused() == "input")
        self.browser.keys("another-secret!", Keys.ENTER)
        self.wait_value("mail/token", "another-secret!")
        self.assertEqual(self.clicks(), 1)

    def test_to_see_what_differs_takes_one(self):
        self.click("input[value=changed]")
        self.browser.wait(lambda: "editor/size" not in self.browser.names() and "editor/theme" in self.browser.names())
        self.assertEqual(self.clicks(), 1)

    def test_to_add_a_setting_takes_one(self):
        self.click("#new")
        self.browser.wait(lambda: self.browser.focused() == "new-collection")
        self.browser.keys("lists", Keys.TAB)
        self.browser.keys("shopping", Keys.ENTER)
        self.browser.wait(lambda: self.browser.focused() == "textarea")
        self.browser.keys("milk", Keys.ENTER)
        self.wait_value("lists/shopping", "milk")
        self.assertEqual(self.clicks(), 1)

    def test_to_remove_one_takes_one(self):
        self.click(self.row("notes/count", ".reset"))
        self.browser.wait(lambda: self.stored("notes/count") is None)
        self.assertEqual(self.clicks(), 1)

    def test_to_schedule_an_expiry_takes_three(self):
        self.click(self.row("notes/count", ".key"))
        self.click("#dates summary")
        self.click("#expires")
        # What is typed there depends on the country.
        self.browser.driver.execute_script("document.getElementById('expires').value = '2035-01-31T08:30'")
        self.browser.keys(Keys.ENTER)
        self.browser.wait(lambda: json.loads(self.store.prefs("get", "--json", "notes/count")).get("expires"))
        self.assertEqual(self.clicks(), 3)

    def test_to_compare_with_staging_takes_one(self):
        self.click("#compare")
        self.browser.wait(lambda: "staging.example.org" in (self.browser.text("#rows .cell.differs") or ""))
        self.assertEqual(self.clicks(), 1)

    def test_to_watch_a_change_arrive_takes_none(self):
        with self.browser.clock_stopped():
            self.store.prefs("set", "notes/count", "9")
            self.browser.wait(lambda: self.browser.row("notes/count")["value"] == "9" and "fresh" in self.browser.row("notes/count")["classes"])
        self.assertEqual(self.clicks(), 0)

    def test_to_resolve_a_conflict_takes_one(self):
        self.click(self.row("notes/first", ".editable"))
        self.browser.keys("mine")
        self.store.prefs("set", "notes/first", "theirs")
        self.browser.wait(lambda: self.browser.text(".conflict") or self.browser.keys(Keys.ENTER))
        before = self.clicks()
        self.browser.press("Take theirs", ".conflict")
        self.browser.wait(lambda: not self.browser.all(".conflict"))
        self.assertEqual(self.clicks() - before, 1)
        self.assertEqual(self.stored("notes/first"), "theirs")


if __name__ == "__main__":
    unittest.main()
