"""Import of a dropped file, shown first and saved as one; export in every format."""

import json
import pathlib
import tempfile
import unittest

from selenium.webdriver.support.ui import Select

from cases import PageCase
from program import Page

# What a person does who drags a file onto the page.
DROP = """
    const data = new DataTransfer();
    data.items.add(new File([arguments[1]], arguments[0]));
    document.querySelector('#list').dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }))"""


class ImportTests(PageCase):
    def drop(self, name, text):
        self.browser.driver.execute_script(DROP, name, text)
        self.browser.wait(lambda: self.browser.text("dialog h2") == f"Import {name}")

    def into(self):
        return Select(self.browser.one("#import-into")).first_selected_option.text

    def test_a_dropped_file_is_shown_and_saved_in_one_transaction_that_one_undo_takes_back(self):
        for name, text in [
            ("all.json", '{"editor": {"size": 20, "theme": "dark"}, "notes": {"first": "Bring the bread", "new": [1]}}'),
            ("all.yaml", "editor: {size: 20, theme: dark}\nnotes: {first: Bring the bread, new: [1]}\n"),
            ("all.toml", '[editor]\nsize = 20\ntheme = "dark"\n[notes]\nfirst = "Bring the bread"\nnew = [1]\n'),
            ("all.plist", """<?xml version="1.0"?><plist version="1.0"><dict><key>editor</key><dict><key>size</key><integer>20</integer>
             <key>theme</key><string>dark</string></dict><key>notes</key><dict><key>first</key><string>Bring the bread</string>
             <key>new</key><array><integer>1</integer></array></dict></dict></plist>"""),
        ]:
            with self.subTest(name):
                self.drop(name, text)
                shown = self.browser.wait(lambda: self.browser.text("dialog .review"))
                for words in ["editor/size", "notes/first", "notes/new"]:
                    self.assertIn(words, shown)
                self.assertNotIn("editor/theme", shown)
                self.assertIn("1 setting is as in the file.", self.browser.text("dialog"))
                self.assertIsNone(self.stored("editor/size"))
                self.browser.press("Save 3 changes as one", "dialog")
                self.wait_value("notes/first", "Bring the bread")
                log = json.loads(self.store.prefs("log", "--json"))
                self.assertEqual(len({change["sequence"] for change in log[:3]}), 1)
                self.browser.wait(lambda: "Saved 3 changes as one." in self.browser.text("#messages"))
                self.browser.click("#undo")
                self.wait_value("notes/first", "Bring the milk")
                self.assertIsNone(self.stored("notes/new"))
                self.assertIsNone(self.stored("editor/size"))
                self.browser.driver.execute_script("document.getElementById('messages').replaceChildren()")

    def test_variables_go_into_the_chosen_collection_with_the_types_of_its_settings(self):
        self.browser.click("#collections [data-collection='c:editor']")
        self.browser.wait(lambda: "notes/first" not in self.browser.names())
        self.drop(".env", "SIZE=20\nAUTOSAVE=true\n")
        self.browser.wait(lambda: "editor/autosave" in (self.browser.text("dialog .review") or ""))
        self.assertEqual(self.into(), "editor")
        self.browser.press("Save 2 changes as one", "dialog")
        self.wait_value("editor/size", "20")
        self.assertEqual(self.store.prefs("type", "editor/autosave").strip(), "bool")

    def test_the_collection_can_be_chosen(self):
        self.drop("one.json", '{"first": "Bring the bread"}')
        self.browser.wait(lambda: self.browser.all("#import-into"))
        Select(self.browser.one("#import-into")).select_by_visible_text("notes")
        self.browser.wait(lambda: "notes/first" in (self.browser.text("dialog .review") or ""))
        self.browser.press("Save 1 change", "dialog")
        self.wait_value("notes/first", "Bring the bread")

    def test_what_would_be_refused_says_why_and_nothing_can_be_saved(self):
        self.drop("bad.json", '{"editor": {"size": 400, "thme": "dark"}, "notes": {"count": 4}}')
        shown = self.browser.wait(lambda: self.browser.text("dialog .review"))
        self.assertIn("6 to 72", shown)
        self.assertIn("editor/thme", shown)
        self.assertFalse(self.browser.one("#apply").is_enabled())
        self.browser.press("Cancel", "dialog")
        self.drop("broken.json", '{"editor": ')
        self.browser.wait(lambda: "broken.json" in (self.browser.text("dialog .problem") or ""))
        self.assertFalse(self.browser.one("#apply").is_enabled())

    def test_a_change_meanwhile_saves_nothing(self):
        self.drop("one.json", '{"notes": {"first": "mine", "count": 4}}')
        self.browser.wait(lambda: self.browser.text("dialog .review"))
        self.store.prefs("set", "notes/first", "theirs")
        self.browser.press("Save 2 changes", "dialog")
        self.browser.wait(lambda: "changed since; nothing was saved" in self.browser.text("#messages"))
        self.assertEqual(self.stored("notes/first"), "theirs")
        self.assertEqual(self.stored("notes/count"), "3")

    def test_secrets_are_neither_shown_nor_lost(self):
        self.store.prefs("set", "notes/pin", "--secret", "-", input="1234")
        self.drop("secrets.json", '{"mail": {"token": {"$secret": "new-hunter"}}, "notes": {"pin": "<secret: 4 bytes>"}}')
        shown = self.browser.wait(lambda: self.browser.text("dialog"))
        self.browser.wait(lambda: "mail/token" in self.browser.text("dialog .review"))
        self.assertNotIn("new-hunter", self.browser.driver.page_source)
        self.assertIn("<secret: 14 bytes> → <secret: 10 bytes>", self.browser.text("dialog .review"))
        self.assertIn("1 secret is not shown in the file", self.browser.text("dialog"))
        self.browser.press("Save 1 change", "dialog")
        self.browser.wait(lambda: self.store.get("mail/token") == "new-hunter")
        self.assertEqual(self.store.get("notes/pin"), "1234")

    def test_a_file_is_chosen_without_a_mouse_too(self):
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            file.write(b'{"notes": {"first": "Bring the bread"}}')
            file.flush()
            self.browser.one("#import-file").send_keys(file.name)
            self.browser.press("Save 1 change", "dialog")
        self.wait_value("notes/first", "Bring the bread")


class ReadOnlyImportTests(PageCase):
    arguments = ("--read-only",)

    def test_a_page_that_is_read_only_imports_nothing(self):
        self.assertFalse(self.browser.one("#import").is_displayed())
        self.browser.driver.execute_script(DROP, "one.json", '{"notes": {"first": "x"}}')
        self.assertEqual(self.browser.all("dialog"), [])
        page = Page(self.store, "--read-only")
        self.addCleanup(page.close)
        session = page.session()
        for name, request in [("import", {"name": "a.json", "data": "e30="}), ("moment", {"moment": "2026-01-01T00:00:00Z"}),
                              ("keepHistory", {"collection": "notes"})]:
            self.assertEqual(page.call(name, request, session)[0], 422, name)


class ScopedImportTests(PageCase):
    arguments = ("-c", "notes")

    def test_a_page_of_one_collection_imports_into_no_other(self):
        self.browser.driver.execute_script(DROP, "one.json", '{"editor": {"size": 20}}')
        self.browser.wait(lambda: self.browser.text("dialog h2"))
        self.browser.wait(lambda: "does not show" in (self.browser.text("dialog") or ""))
        self.assertFalse(self.browser.one("#apply").is_enabled())


class ExportTests(PageCase):
    def export(self, format, name):
        self.browser.click("#export")
        self.browser.wait(lambda: self.browser.all("#export-format"))
        Select(self.browser.one("#export-format")).select_by_value(format)
        self.browser.press("Save file", "dialog")
        folder = pathlib.Path(self.browser.profile)
        return self.browser.wait(lambda: next((path for path in folder.glob(name) if path.stat().st_size > 0), None))

    def test_every_format_is_read_back_as_the_same_settings(self):
        self.browser.search("notes")
        self.browser.wait(lambda: self.browser.names() == ["notes/count", "notes/first"])
        for format in ["json", "yaml", "toml", "plist"]:
            path = self.export(format, f"settings*.{format}")
            self.store.prefs("unset", "notes/first", "notes/count")
            self.store.prefs("import", str(path))
            self.assertEqual((self.stored("notes/first"), self.stored("notes/count")), ("Bring the milk", "3"), format)
            self.browser.wait(lambda: self.browser.names() == ["notes/count", "notes/first"])

    def test_variables_are_of_one_collection_and_have_no_secret(self):
        self.browser.click("#export")
        Select(self.browser.one("#export-format")).select_by_value("env")
        self.browser.press("Save file", "dialog")
        self.browser.wait(lambda: "one collection" in self.browser.text("dialog .problem"))
        self.browser.press("Cancel", "dialog")
        self.store.prefs("set", "mail/host", "mail.example.org")
        self.browser.click("#collections [data-collection='c:mail']")
        self.browser.wait(lambda: self.browser.names() == ["mail/host", "mail/token"])
        text = self.export("env", "*env*").read_text()
        self.assertEqual(text, "HOST='mail.example.org'\n")
        self.browser.wait(lambda: "1 secrets are left out" in self.browser.text("#messages"))


if __name__ == "__main__":
    unittest.main()
