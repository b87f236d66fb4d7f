"""The order of the list, its sections, and other names for settings."""

import unittest

from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from cases import PageCase


class OrderTests(PageCase):
    def prepare(self):
        super().prepare()
        for key, value in [("http.port", "80"), ("http.host", "example.org"), ("http/proxy", "none"), ("smtp.host", "a"), ("name", "web")]:
            self.store.prefs("set", "-c", "web", key, value)

    def setUp(self):
        super().setUp()
        # All rows are in view.
        self.browser.size(1280, 1600)
        self.addCleanup(self.browser.size, 1280, 800)

    def order(self, words):
        Select(self.browser.one("#order")).select_by_visible_text(words)

    def lines(self):
        """The rows in their order, the heads of sections with a hash in front."""
        return self.browser.driver.execute_script("""
            return [...document.querySelectorAll('.row')].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((row) => {
              const fold = row.querySelector('.fold');
              if (fold) return `# ${fold.innerText.replace(/\\s+/g, ' ')}`;
              return (row.querySelector('.collection')?.textContent ?? '') + (row.querySelector('.key')?.textContent ?? '…') })""")

    def fold(self, name):
        self.browser.wait(lambda: self.browser.driver.execute_script("""
            const fold = [...document.querySelectorAll('.fold')].find((fold) => fold.innerText.includes(` ${arguments[0]} `));
            fold?.click(); return Boolean(fold)""", name))

    def test_sections_are_the_collections_and_what_names_begin_with(self):
        self.order("In sections")
        self.browser.wait(lambda: "# ▾ web 5" in self.lines())
        lines = self.lines()
        self.assertEqual(lines[lines.index("# ▾ web 5"):], [
            "# ▾ web 5", "web/name", "web/smtp.host", "# ▾ http 3", "web/http.host", "web/http.port", "web/http/proxy"])
        self.assertIn("# ▾ notes 2", lines)
        self.assertEqual(self.browser.text("#count"), "19 settings")
        self.browser.click("#collections [data-collection='c:web']")
        self.browser.wait(lambda: self.lines()[0] == "web/name" and "# ▾ http 3" in self.lines())

    def test_sections_fold_and_a_search_opens_them(self):
        self.order("In sections")
        self.fold("http")
        self.browser.wait(lambda: "# ▸ http 3" in self.lines())
        self.assertNotIn("web/http.port", self.lines())
        self.fold("editor")
        self.browser.wait(lambda: "# ▸ editor 10" in self.lines())
        self.assertNotIn("editor/size", self.lines())
        self.browser.search("port")
        self.browser.wait(lambda: self.lines() == ["# ▾ web 1", "web/http.port"])
        self.browser.search("")
        self.browser.keys("x", Keys.BACKSPACE)
        self.browser.wait(lambda: "# ▸ editor 10" in self.lines() and "# ▸ http 3" in self.lines())
        # What comes while it is folded counts.
        self.store.prefs("set", "-c", "web", "http.timeout", "3")
        self.browser.wait(lambda: "# ▸ http 4" in self.lines())

    def test_the_order_and_what_is_folded_are_kept_when_the_page_is_opened_again(self):
        # All is open at first, in the order of names.
        self.assertEqual(Select(self.browser.one("#order")).first_selected_option.text, "By name")
        self.order("In sections")
        self.fold("http")
        self.fold("notes")
        self.browser.wait(lambda: "# ▸ notes 2" in self.lines() and "# ▸ http 3" in self.lines())
        self.fold("notes")
        self.browser.wait(lambda: "# ▾ notes 2" in self.lines())
        self.browser.driver.refresh()
        self.browser.wait(lambda: "This page has ended" in self.browser.text("h1"))
        self.browser.open(self.page.another_address())
        self.browser.wait(lambda: "# ▸ http 3" in self.lines() and "# ▾ notes 2" in self.lines())
        self.assertEqual(Select(self.browser.one("#order")).first_selected_option.text, "In sections")
        # The browser itself has nothing of it.
        self.assertEqual(self.browser.driver.execute_script("return localStorage.length + sessionStorage.length"), 0)

    def test_the_keyboard_folds(self):
        self.order("In sections")
        self.browser.wait(lambda: self.lines()[0] == "# ▾ editor 10")
        box = self.browser.one("#list")
        box.send_keys(Keys.HOME, Keys.ARROW_LEFT)
        self.browser.wait(lambda: self.lines()[:2] == ["# ▸ editor 10", "# ▾ mail 2"])
        self.assertFalse(self.browser.one("#details").is_displayed())
        box.send_keys(Keys.ARROW_RIGHT)
        self.browser.wait(lambda: self.lines()[1] == "editor/autosave")
        box.send_keys(Keys.ENTER)
        self.browser.wait(lambda: self.lines()[1] == "# ▾ mail 2")

    def test_the_last_changed_come_first_with_their_time(self):
        self.order("Last changed first")
        self.browser.wait(lambda: self.lines()[0] == "web/name")
        self.store.prefs("set", "editor/theme", "blue")
        self.browser.wait(lambda: self.lines()[0] == "editor/theme")
        self.assertRegex(self.browser.text(".row:first-child .type") or self.browser.text(".row .type"), r"\d")
        # What was never changed is last.
        self.assertEqual(self.lines()[-1], "mail/host")
        self.order("By name")
        self.browser.wait(lambda: self.lines()[0] == "editor/autosave")

    def test_a_value_is_changed_in_a_section(self):
        self.order("In sections")
        self.browser.wait(lambda: "# ▾ notes 2" in self.lines())
        row = self.browser.row("notes/count")
        self.browser.click(f"#row-{row['index']} .editable")
        self.browser.keys("8", Keys.ENTER)
        self.wait_value("notes/count", "8")


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
