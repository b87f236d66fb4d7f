"""The list: searching, collections, marks, filters, export, the doctor."""

import json
import pathlib
import unittest

from cases import PageCase
from program import Page


class ListTests(PageCase):
    def test_lists_what_is_set_and_what_is_declared_with_its_default(self):
        self.assertIn("mail/host", self.browser.names())
        row = self.browser.row("editor/theme")
        self.assertEqual(row["value"], "dark")
        self.assertEqual(row["summary"], "The colour theme of the window")
        self.assertEqual(self.browser.row("editor/size")["value"], "14")
        self.assertIn("unset", self.browser.row("editor/size")["classes"])

    def test_search_finds_names_summaries_and_texts_as_they_are_typed(self):
        for text, name in [("thm", None), ("theme", "editor/theme"), ("POINTS", "editor/size"), ("milk", "notes/first")]:
            self.browser.search(text)
            self.browser.wait(lambda: (name in self.browser.names()) if name else self.browser.names() == [])
        self.assertEqual(self.browser.names(), ["notes/first"])

    def test_search_finds_what_has_each_of_several_words(self):
        for text, names in [
            ("document", ["editor/autosave", "editor/greeting", "editor/recent"]), ("lose  DOCUMENT", ["editor/autosave"]),
            ("document milk", []), ("document lose", ["editor/autosave"]),
        ]:
            self.browser.search(text)
            self.browser.wait(lambda: self.browser.names() == names)

    def test_an_empty_list_says_why(self):
        self.browser.search("nothing like this")
        self.browser.wait(lambda: self.browser.text("#empty") == "No setting matches the search.")
        self.browser.search("milk")
        self.browser.wait(lambda: self.browser.text("#empty") == "")

    def test_joiners_stay_where_they_join_and_show_where_they_do_not(self):
        self.store.prefs("set", "notes/family", "\U0001f468\u200d\U0001f469 \u0645\u06cc\u200c\u062e a\u200db")
        row = self.browser.wait(lambda: self.browser.row("notes/family"))
        self.assertEqual(row["value"], "\U0001f468\u200d\U0001f469 \u0645\u06cc\u200c\u062e a\\u200db")

    def test_texts_are_written_in_their_own_direction(self):
        self.store.prefs("set", "notes/greeting", "\u05e9\u05dc\u05d5\u05dd, world")
        row = self.browser.wait(lambda: self.browser.row("notes/greeting"))
        cell = f"#row-{row['index']} .value"
        direction = "return getComputedStyle(document.querySelector(arguments[0])).direction"
        self.assertEqual(self.browser.driver.execute_script(direction, cell), "rtl")
        self.browser.click(cell)
        self.browser.wait(lambda: self.browser.all(f"{cell} input"))
        self.assertEqual(self.browser.driver.execute_script(direction, f"{cell} input"), "rtl")
        self.browser.choose("notes/count")
        self.assertEqual(self.browser.driver.execute_script(direction, "#details-title"), "ltr")

    def test_types_are_words(self):
        index = self.browser.row("editor/shortcuts")["index"]
        self.assertEqual(self.browser.text(f"#row-{index} .type"), "dict")
        self.browser.choose("editor/shortcuts")
        self.assertIn("dictionary of texts", self.browser.text("#details dl"))

    def test_search_never_finds_a_secret(self):
        self.browser.search("hunter2")
        self.browser.wait(lambda: self.browser.text("#count") == "0 settings")
        self.browser.search("token")
        self.browser.wait(lambda: self.browser.names() == ["mail/token"])
        self.assertNotIn("hunter2", self.browser.driver.page_source)

    def test_sidebar_counts_the_settings_of_each_collection_and_chooses_one(self):
        text = self.browser.text("#collections").split("\n")
        self.assertEqual(dict(zip(text[::2], text[1::2])), {"All collections": "14", "editor": "10", "mail": "2", "notes": "2"})
        self.browser.click("#collections [data-collection='c:notes']")
        self.browser.wait(lambda: self.browser.names() == ["notes/count", "notes/first"])
        self.browser.search("milk")
        self.browser.wait(lambda: "All collections\n1" in self.browser.text("#collections"))

    def test_marks_what_differs_from_its_default_and_shows_only_that(self):
        self.assertIn("changed", self.browser.row("editor/theme")["classes"])
        self.assertNotIn("changed", self.browser.row("editor/size")["classes"])
        self.store.prefs("set", "mail/host", "localhost")
        self.browser.click("input[value=changed]")
        self.browser.wait(lambda: self.browser.names() == ["editor/theme", "mail/token", "notes/count", "notes/first"])

    def test_shows_only_problems_and_says_what_they_are(self):
        self.store.prefs("set", "--force", "editor/size", "--int", "400")
        self.store.prefs("set", "editor/thme", "dark", "--undeclared")
        self.browser.click("input[value=problems]")
        self.browser.wait(lambda: self.browser.names() == ["editor/size", "editor/thme"])
        self.assertIn("6 to 72, not 400", self.browser.row("editor/size")["summary"])
        self.assertIn("did you mean \"editor/theme\"", self.browser.row("editor/thme")["summary"])

    def test_exports_what_the_list_shows_without_secrets(self):
        self.browser.search("mail")
        self.browser.wait(lambda: self.browser.names() == ["mail/host", "mail/token"])
        self.browser.search("t")
        self.browser.click("#collections [data-collection='c:mail']")
        self.browser.wait(lambda: self.browser.text("#count") == "2 settings")
        self.browser.click("#export")
        self.browser.press("Save file", "dialog")
        # Chromium makes an empty file of that name first.
        folder = pathlib.Path(self.browser.profile)
        text = self.browser.wait(lambda: "".join(path.read_text() for path in folder.glob("settings*.json")))
        self.assertEqual(json.loads(text), {"mail": {"token": "<secret: 14 bytes>"}})

    def test_shows_the_report_of_the_doctor(self):
        self.browser.click("#doctor")
        self.browser.wait(lambda: self.browser.text("#verdict") == "No problems found.")
        self.assertIn("settings.coffer", self.browser.text("dialog"))
        self.browser.press("Close", "dialog")
        self.browser.wait(lambda: not self.browser.all("dialog"))

    def test_shows_the_fleet_and_when_the_store_was_last_in_step(self):
        carrier = f"file://{self.store.home}/carrier"
        self.store.prefs("fleet", "create", "team", "--at", carrier, "--collection", "notes")
        self.store.prefs("fleet", "sync")
        self.browser.click("#doctor")
        self.browser.wait(lambda: f"{carrier}, in sync since" in (self.browser.text("dialog") or ""))

    def test_loads_nothing_from_anywhere_else_and_breaks_no_rule_of_its_own(self):
        self.browser.choose("editor/theme")
        entries = self.browser.driver.execute_script(
            "return performance.getEntriesByType('resource').map((entry) => entry.name)")
        self.assertTrue(entries)
        self.assertEqual([name for name in entries if not name.startswith(f"http://127.0.0.1:{self.page.port}/")], [])
        self.assertEqual(self.browser.console(), [])


class OneCollectionTests(PageCase):
    arguments = ("-c", "mail")

    def test_shows_one_collection_and_nothing_else(self):
        self.assertEqual(self.browser.names(), ["mail/host", "mail/token"])
        self.assertNotIn("editor", self.browser.text("#collections"))


class ReadOnlyTests(PageCase):
    arguments = ("--read-only",)

    def test_reveals_no_secret(self):
        self.browser.choose("mail/token")
        self.assertEqual(self.browser.all("#reveal"), [])
        page = Page(self.store, "--read-only")
        self.addCleanup(page.close)
        status, _, body = page.call("reveal", {"collection": "mail", "key": "token"}, page.session())
        self.assertEqual(status, 422)
        self.assertIn(b"--reveal", body)
        page = Page(self.store, "--read-only", "--reveal")
        self.addCleanup(page.close)
        self.assertEqual(page.call("reveal", {"collection": "mail", "key": "token"}, page.session())[0], 200)

    def test_offers_no_change(self):
        self.browser.choose("editor/theme")
        self.assertEqual(self.browser.text("#editor"), "dark")
        self.assertEqual(self.browser.all("#editor input, #editor select, #editor textarea, #save-one, #remove"), [])
        self.assertFalse(self.browser.one("#new").is_displayed())


class EnvironmentTests(PageCase):
    def prepare(self):
        super().prepare()
        self.store.prefs("set", "mail/host", "mail.example.org")
        self.store.prefs("env", "create", "mail@staging")

    def test_an_environment_shows_what_is_in_force_there_and_from_where(self):
        row = self.browser.wait(lambda: self.browser.row("mail@staging/host") or self.browser.row("mail@staging/hostfrom mail"))
        self.assertEqual(row["value"], "mail.example.org")
        self.browser.choose("mail@staging/host")
        self.assertEqual(self.browser.one("#editor textarea").get_attribute("value"), "mail.example.org")
        self.browser.fill("#editor textarea", "staging.example.org")
        self.browser.click("#save-one")
        self.wait_value("mail@staging/host", "staging.example.org")
        self.browser.press("Back to the value of mail", "#details")
        self.browser.click("#save-one")
        self.browser.wait(lambda: self.stored("mail@staging/host") is None)
        self.browser.wait(lambda: self.browser.one("#editor textarea").get_attribute("value") == "mail.example.org")


class OneEnvironmentTests(EnvironmentTests):
    arguments = ("--env", "staging")

    def test_shows_that_environment_alone(self):
        self.assertTrue(all(name.startswith("mail@staging/") for name in self.browser.names()))


if __name__ == "__main__":
    unittest.main()
