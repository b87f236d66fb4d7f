"""Environments, tenants and administrators as columns: compared, changed in place, and copied across."""

import json
import os
import shutil
import tempfile
import unittest

from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from cases import PageCase
from program import Page


class ColumnCase(PageCase):
    def prepare(self):
        super().prepare()
        self.store.prefs("set", "net/limit", "--int", "500")
        self.store.prefs("set", "net/colour", "blue")
        self.store.prefs("set", "net/on", "--bool", "true")
        self.store.prefs("set", "net/password", "--secret", "-", input="hunter2-secret")
        for name in ["staging", "test"]:
            self.store.prefs("env", "create", f"net@{name}")
        self.store.prefs("set", "net@staging/limit", "--int", "100")
        self.store.prefs("set", "net@test/colour", "blue")
        self.store.prefs("set", "net@test/extra", "only here")

    def compare(self):
        self.browser.click("#compare")
        self.browser.wait(lambda: self.browser.all("#columns .label"))
        self.browser.wait(lambda: "net/limit" in self.table())

    def table(self):
        """The rows: for each name what its cells show, with a star where it differs."""
        return self.browser.driver.execute_script("""
            return Object.fromEntries([...document.querySelectorAll('#rows .row')].map((row) => [
              (row.querySelector('.collection')?.textContent ?? '') + row.querySelector('.key').textContent,
              [...row.querySelectorAll('.cell')].map((cell) => {
                const control = cell.querySelector('.value input, .value select');
                const text = control?.type === 'checkbox' ? String(control.checked) : control?.value ?? cell.querySelector('.value')?.textContent ?? '';
                return text + (cell.classList.contains('differs') ? '*' : '') })]))""")

    def cell(self, name, column, selector=""):
        def find():
            row = self.browser.row(name)
            return row and self.browser.one(f"#row-{row['index']}-{column} {selector}".strip())
        return self.browser.wait(find)


    def click_cell(self, name, column, selector=""):
        """Clicks a cell, also if it is drawn again meanwhile."""
        self.browser.wait(lambda: self.cell(name, column, selector).click() or True)


class ColumnTests(ColumnCase):
    def test_one_click_shows_the_environments_side_by_side_and_marks_what_differs(self):
        self.compare()
        self.browser.wait(lambda: self.table() == {
            "net/colour": ["blue", "blue", "blue"], "net/extra": ["not set", "not set", "only here*"], "net/limit": ["500", "100*", "500"],
            "net/on": ["true", "true", "true"], "net/password": ["<secret: 14 bytes>"] * 3})
        self.assertEqual(self.browser.text("#count"), "5 settings")
        self.browser.click("#only-different")
        self.browser.wait(lambda: list(self.table()) == ["net/extra", "net/limit"])
        self.browser.click("#collections [data-collection='c:net@staging']")
        self.browser.wait(lambda: self.browser.text("#columns").split("\n")[:2] == ["Setting", "net"])
        # A collection without environments is listed as usual, and the columns come back.
        self.browser.click("#collections [data-collection='c:notes']")
        self.browser.wait(lambda: self.browser.names() == ["notes/count", "notes/first"] and not self.browser.one("#compare").is_displayed())
        self.browser.click("#collections [data-collection='c:net@staging']")
        self.browser.wait(lambda: list(self.table()) == ["net/extra", "net/limit"])
        self.browser.click("#compare")
        self.browser.wait(lambda: not self.browser.one("#columns").is_displayed() and "net@staging/limit" in self.browser.names())

    def test_a_value_is_changed_in_its_column_with_undo_and_reset(self):
        self.compare()
        self.click_cell("net/limit", 2, ".editable")
        self.browser.wait(lambda: self.cell("net/limit", 2, "input").get_attribute("value") == "500")
        self.browser.keys("700", Keys.ENTER)
        self.wait_value("net@test/limit", "700")
        self.browser.wait(lambda: self.table()["net/limit"] == ["500", "100*", "700*"])
        self.assertEqual(self.stored("net/limit"), "500")
        self.click_cell("net/on", 1, "input")
        self.wait_value("net@staging/on", "false")
        self.browser.click("#undo")
        self.browser.wait(lambda: self.table()["net/on"] == ["true", "true", "true"])
        self.click_cell("net/limit", 1, ".reset")
        self.browser.wait(lambda: self.table()["net/limit"][1] == "500")
        self.assertIsNone(self.stored("net@staging/limit"))

    def test_a_change_of_a_shell_arrives_in_its_column(self):
        self.compare()
        self.store.prefs("set", "net/limit", "--int", "9")
        self.browser.wait(lambda: self.table()["net/limit"] == ["9", "100*", "9"])
        self.store.prefs("set", "net@staging/limit", "--int", "9")
        self.browser.wait(lambda: self.table()["net/limit"] == ["9", "9", "9"])

    def test_the_keyboard_leads_through_the_cells(self):
        self.compare()
        box = self.browser.one("#list")
        box.send_keys(Keys.HOME, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
        self.browser.wait(lambda: self.browser.text("#details-title") == "net@staging/limit")
        active = self.browser.one("#" + box.get_attribute("aria-activedescendant"))
        self.assertEqual(active.get_attribute("role"), "gridcell")
        box.send_keys(Keys.F2)
        self.browser.wait(lambda: self.browser.focused() == "input")
        self.browser.keys("11", Keys.ENTER)
        self.wait_value("net@staging/limit", "11")
        self.browser.wait(lambda: self.browser.focused() == "list")

    def test_one_value_is_copied_across_after_a_look(self):
        self.compare()
        self.click_cell("net/limit", 1, ".summary")
        self.browser.wait(lambda: self.browser.text("#details-title") == "net@staging/limit")
        Select(self.browser.one("#copy-to")).select_by_visible_text("net@test")
        self.browser.click("#copy-across")
        self.browser.wait(lambda: "100" in (self.browser.text("dialog .review") or ""))
        self.assertIsNone(self.stored("net@test/limit"))
        self.browser.click("#apply")
        self.wait_value("net@test/limit", "100")
        self.browser.wait(lambda: self.table()["net/limit"] == ["500", "100*", "100*"])
        self.browser.click("#undo")
        self.browser.wait(lambda: self.stored("net@test/limit") is None)

    def test_a_secret_is_copied_without_being_shown(self):
        self.browser.choose("net/password")
        Select(self.browser.one("#copy-to")).select_by_visible_text("net@test")
        self.browser.click("#copy-across")
        self.browser.wait(lambda: "<secret: 14 bytes>" in (self.browser.text("dialog .review") or ""))
        self.assertNotIn("hunter2", self.browser.driver.page_source)
        self.browser.click("#apply")
        self.browser.wait(lambda: self.stored("net@test/password") == "hunter2-secret")

    def test_all_of_a_column_is_copied_in_one_transaction(self):
        self.compare()
        self.browser.click("#collections [data-collection='c:net']")
        self.browser.click("[aria-label='Copy all that is set in net@test']")
        self.browser.wait(lambda: "net/extra" in (self.browser.text("dialog .review") or ""))
        self.assertIn("1 setting has that value in net already.", self.browser.text("dialog"))
        Select(self.browser.one("#copy-into")).select_by_visible_text("net@staging")
        self.browser.wait(lambda: "net@staging/colour" in (self.browser.text("dialog .review") or ""))
        self.browser.click("#apply")
        self.wait_value("net@staging/extra", "only here")
        self.wait_value("net@staging/colour", "blue")

    def test_a_value_is_copied_only_among_the_environments_of_its_collection(self):
        self.store.prefs("env", "create", "mail@test")
        self.browser.choose("net/limit")
        self.assertEqual([option.text for option in self.browser.all("#copy-to option")], ["net@staging", "net@test"])
        self.browser.choose("editor/theme")
        self.assertEqual(self.browser.all("#copy-to"), [])

    def test_what_is_sealed_is_not_copied_to_where_it_would_be_readable(self):
        self.store.prefs("set", "vault/pin", "4711-sealed")
        self.store.seal("vault", "correct horse")
        page = Page(self.store)
        self.addCleanup(page.close)
        session = page.session()
        request = {"from": "vault", "to": "notes", "key": "pin"}
        self.assertEqual(page.call("copy", request, session)[0], 423)
        self.assertEqual(page.call("unlock", b"correct horse", session)[0], 200)
        status, _, body = page.call("copy", request, session)
        self.assertEqual(status, 200)
        self.assertIsNone(json.loads(body)["plan"])
        self.assertIn(b"is sealed, and", body)
        self.assertNotIn(b"4711-sealed", body)

    def test_it_fits_on_a_phone_and_is_read_by_screen_readers(self):
        self.compare()
        self.browser.size(390, 844)
        self.addCleanup(self.browser.size, 1280, 800)
        self.browser.wait(lambda: self.browser.rows())
        overflow = self.browser.driver.execute_script(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        self.assertLessEqual(overflow, 0)


class ReadOnlyColumnTests(ColumnCase):
    arguments = ("--read-only",)

    def test_a_page_that_is_read_only_compares_and_changes_nothing(self):
        self.compare()
        self.browser.click("#collections [data-collection='c:net']")
        self.assertEqual(self.browser.all(".cell input, .cell .reset, .cell .editable, #columns button"), [])
        self.click_cell("net/limit", 0)
        self.browser.wait(lambda: self.browser.text("#details-title") == "net/limit")
        self.assertEqual(self.browser.all("#copy-across"), [])


class TenantTests(ColumnCase):
    def prepare(self):
        super().prepare()
        self.store.prefs("env", "create", "acme/net@staging")
        self.store.prefs("set", "-c", "acme/net", "limit", "--int", "7")
        self.store.prefs("set", "-c", "globex/net", "colour", "green")
        # No collection of this name is known.
        self.store.prefs("set", "-c", "acme/other", "limit", "--int", "7")

    def labels(self):
        return [label.text for label in self.browser.all("#columns .label")]

    def test_tenants_stand_beside_the_collection_and_what_differs_is_marked(self):
        self.compare()
        self.assertEqual(self.labels(), ["Collection itself", "@staging", "@test", "acme/…", "acme/…@staging", "globex/…"])
        self.browser.wait(lambda: self.table()["net/limit"] == ["500", "100*", "500", "7*", "7*", "not set*"])
        self.assertEqual(self.table()["net/colour"], ["blue", "blue", "blue", "not set*", "not set*", "green*"])
        self.browser.click("#collections [data-collection='c:acme/net']")
        self.browser.wait(lambda: self.labels() == ["net", "net@staging", "net@test", "acme/net", "acme/net@staging", "globex/net"])
        self.browser.click("#collections [data-collection='c:acme/other']")
        self.browser.wait(lambda: self.browser.names() == ["acme/other/limit"])

    def test_a_value_of_a_tenant_is_changed_in_its_column_and_copied_to_another_tenant(self):
        self.compare()
        self.click_cell("net/limit", 3, ".editable")
        self.browser.wait(lambda: self.cell("net/limit", 3, "input").get_attribute("value") == "7")
        self.browser.keys("8", Keys.ENTER)
        self.browser.wait(lambda: self.table()["net/limit"] == ["500", "100*", "500", "8*", "8*", "not set*"])
        self.assertEqual(self.store.prefs("get", "-c", "acme/net", "limit"), "8\n")
        self.click_cell("net/limit", 3, ".summary")
        self.browser.wait(lambda: self.browser.text("#details-title") == "acme/net/limit")
        Select(self.browser.one("#copy-to")).select_by_visible_text("globex/net")
        self.browser.click("#copy-across")
        self.browser.wait(lambda: "globex/net/limit" in (self.browser.text("dialog .review") or ""))
        self.browser.click("#apply")
        self.browser.wait(lambda: self.table()["net/limit"][5] == "8*")
        self.assertEqual(self.store.prefs("get", "-c", "globex/net", "limit"), "8\n")


class AdministratorTests(ColumnCase):
    def setUp(self):
        self.managed = tempfile.mkdtemp(prefix="prefs-managed-")
        os.chmod(self.managed, 0o755)
        self.addCleanup(shutil.rmtree, self.managed)
        os.makedirs(os.path.join(self.managed, "net.d"))
        self.write({"colour": "grey", "extra": "given", "locked": {"on": False}})
        self.environment = {"PREFS_MANAGED_DIR": self.managed}
        super().setUp()

    def write(self, settings):
        path = os.path.join(self.managed, "net.d", "10.json")
        with open(path + ".new", "w") as file:
            json.dump(settings, file)
        os.rename(path + ".new", path)

    def test_what_an_administrator_gives_stands_beside_what_is_set(self):
        self.compare()
        self.browser.wait(lambda: self.table() == {
            "net/colour": ["blue", "grey*", "blue", "blue"], "net/extra": ["given", "given", "given", "only here*"],
            "net/limit": ["500", "", "100*", "500"], "net/on": ["false"] * 4, "net/password": ["<secret: 14 bytes>", ""] + ["<secret: 14 bytes>"] * 2})
        self.assertEqual(self.cell("net/on", 1, ".tag").text, "locked")
        self.assertIn("default", self.cell("net/colour", 1, ".summary").text)
        self.assertIn("10.json", self.cell("net/colour", 1).get_attribute("title"))
        self.assertEqual(self.browser.all("#row-0-1 .editable, #row-0-1 .reset"), [])
        # Its cell leads to the setting, which says the same.
        self.click_cell("net/colour", 1, ".value")
        self.browser.wait(lambda: self.browser.text("#details-title") == "net/colour")
        self.assertIn("grey, as the default, in", self.browser.text("#details dl"))
        self.browser.click("#only-different")
        self.browser.wait(lambda: list(self.table()) == ["net/colour", "net/extra", "net/limit"])
        # Followed as it changes.
        self.write({"colour": "blue"})
        self.browser.wait(lambda: list(self.table()) == ["net/extra", "net/limit"])

    def test_what_an_administrator_gives_is_copied_to_a_collection_after_a_look(self):
        self.compare()
        self.click_cell("net/colour", 1, ".copy")
        self.browser.wait(lambda: "blue → grey" in (self.browser.text("dialog .review") or ""))
        Select(self.browser.one("#copy-into")).select_by_visible_text("net@staging")
        self.browser.wait(lambda: "net@staging/colour" in (self.browser.text("dialog .review") or ""))
        self.browser.click("#apply")
        self.wait_value("net@staging/colour", "grey")
        self.browser.wait(lambda: self.table()["net/colour"] == ["blue", "grey*", "grey*", "blue"])
        self.browser.click("#undo")
        self.browser.wait(lambda: self.stored("net@staging/colour") is None)

    def test_a_locked_value_is_copied_nowhere_because_it_holds_there_anyway(self):
        self.compare()
        self.browser.click("#collections [data-collection='c:net']")
        self.browser.click("[aria-label='Copy all that an administrator gives for net']")
        self.browser.wait(lambda: "locked" in (self.browser.text("dialog .review .problem") or ""))
        self.assertFalse(self.browser.one("#apply").is_enabled())


class NoEnvironmentTests(PageCase):
    def test_there_is_nothing_to_compare_without_environments(self):
        self.assertFalse(self.browser.one("#compare").is_displayed())
        self.store.prefs("env", "create", "mail@staging")
        self.browser.wait(lambda: self.browser.one("#compare").is_displayed())


if __name__ == "__main__":
    unittest.main()
