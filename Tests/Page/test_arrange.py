"""Other names for settings."""

import unittest

from selenium.webdriver.common.keys import Keys

from cases import PageCase


class RenameTests(PageCase):
    def rename(self, name, collection, key):
        self.browser.choose(name)
        self.browser.click("#rename summary")
        for selector, text in [("#rename-collection", collection), ("#rename-key", key)]:
            if text is not None:
                self.browser.fill(selector, text)
        self.browser.click("#save-name")

    def test_a_setting_gets_another_name_and_undo_takes_it_back(self):
        self.store.prefs("set", "notes/first", "Bring the milk", "--expires-in", "30d")
        self.rename("notes/first", None, "shopping")
        self.wait_value("notes/shopping", "Bring the milk")
        self.assertIsNone(self.stored("notes/first"))
        self.browser.wait(lambda: self.browser.text("#details-title") == "notes/shopping")
        self.assertIn("Expires", self.browser.text("#details dl"))
        self.browser.wait(lambda: "notes/shopping" in self.browser.names() and "notes/first" not in self.browser.names())
        self.browser.click("#undo")
        self.wait_value("notes/first", "Bring the milk")
        self.assertIsNone(self.stored("notes/shopping"))

    def test_it_moves_to_another_collection(self):
        self.rename("notes/first", "lists", "first")
        self.wait_value("lists/first", "Bring the milk")
        self.assertIsNone(self.stored("notes/first"))

    def test_what_the_command_refuses_says_why_and_changes_nothing(self):
        self.store.prefs("set", "vault/pin", "4711")
        self.store.seal("vault", "correct horse")
        for name, collection, key, reason in [
            ("notes/first", None, "count", "exists already"), ("notes/first", "editor", "thme", "not declared"),
            ("notes/first", "editor", "size", "editor/size must be"), ("notes/first", None, " first", "begins or ends with a blank"),
            ("notes/first", "notes@staging", "first", "no environment"),
        ]:
            self.rename(name, collection, key)
            self.browser.wait(lambda: reason in (self.browser.text("#rename-problem") or ""))
            self.browser.click("#details [aria-label=Close]")
        self.assertEqual(self.stored("notes/first"), "Bring the milk")
        self.assertEqual(self.stored("notes/count"), "3")

    def test_what_changed_meanwhile_or_has_an_unsaved_change_is_not_renamed(self):
        self.browser.choose("notes/first")
        self.browser.fill("#editor textarea", "typed")
        self.browser.click("#rename summary")
        self.browser.fill("#rename-key", "other")
        self.browser.keys(Keys.ENTER)
        self.browser.wait(lambda: "Save or discard" in (self.browser.text("#rename-problem") or ""))
        self.assertEqual(self.stored("notes/first"), "Bring the milk")

    def test_what_is_not_stored_has_no_other_name(self):
        self.browser.choose("editor/size")
        self.assertEqual(self.browser.all("#rename"), [])


class ReadOnlyRenameTests(PageCase):
    arguments = ("--read-only",)

    def test_a_page_that_is_read_only_renames_nothing(self):
        self.browser.choose("notes/first")
        self.assertEqual(self.browser.all("#rename"), [])


if __name__ == "__main__":
    unittest.main()
