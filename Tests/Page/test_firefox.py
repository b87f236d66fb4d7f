"""The page in a Firefox with a window: what it is used for most, seven tabs, and a program that is gone."""

import json
import os
import shutil
import tempfile
import unittest

from cases import BINARIES, HOLD, PageCase
from firefox import Firefox
from program import Store
from test_files import DROP
from test_taken_port import Impostor

PASSPHRASE = "correct horse"


@unittest.skipUnless(Firefox.is_there(), "there is no Firefox, or no Xvfb")
class FirefoxTests(PageCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.firefox = Firefox()
        cls.addClassCleanup(cls.firefox.close)

    def setUp(self):
        self.managed = tempfile.mkdtemp(prefix="prefs-managed-")
        os.chmod(self.managed, 0o755)
        self.addCleanup(shutil.rmtree, self.managed)
        os.mkdir(os.path.join(self.managed, "notes.d"))
        self.environment = {"PREFS_MANAGED_DIR": self.managed}
        super().setUp()
        self.open_page()

    def prepare(self):
        super().prepare()
        self.store.prefs("set", "vault/pin", "4711-sealed")
        self.store.seal("vault", PASSPHRASE)

    def open_page(self):
        self.firefox.open(self.page.another_address())
        self.firefox.wait(lambda: self.firefox.text(".row .value") is not None)

    def row(self, name):
        return self.firefox.script("""
            const row = [...document.querySelectorAll('.row')].find((row) => row.querySelector('.name')?.textContent.startsWith(arguments[0]));
            return row?.querySelector('.value').textContent ?? null""", name)

    def test_a_setting_is_changed_with_enter_and_undone_and_a_change_of_a_shell_arrives(self):
        firefox = self.firefox
        firefox.choose("notes/first")
        firefox.type("#editor textarea", "Bring the bread\ue007")
        self.wait_value("notes/first", "Bring the bread")
        firefox.click("#undo")
        self.wait_value("notes/first", "Bring the milk")
        self.store.prefs("set", "notes/count", "4")
        firefox.wait(lambda: self.row("notes/count") == "4")

    def click_row(self, name):
        self.firefox.wait(lambda: self.firefox.script("""
            const row = [...document.querySelectorAll('.row')].find((row) => row.querySelector('.name')?.innerText.startsWith(arguments[0]));
            row?.click(); return Boolean(row)""", name))

    def test_a_setting_chosen_while_the_one_before_changes_is_shown(self):
        firefox = self.firefox
        firefox.choose("notes/first")
        firefox.script(HOLD, "user")
        self.click_row("notes/count")
        firefox.wait(lambda: firefox.script("return window.held.length === 1"))
        # The pane still shows the one before, and follows its change.
        self.store.prefs("set", "notes/first", "Bring the bread")
        firefox.wait(lambda: firefox.script("return document.querySelector('#editor textarea')?.value === 'Bring the bread'"))
        firefox.script("window.release()")
        firefox.wait(lambda: firefox.text("#details-title") == "notes/count")

    def test_a_late_answer_about_another_setting_does_not_replace_the_chosen_one(self):
        firefox = self.firefox
        firefox.choose("notes/first")
        firefox.script(HOLD, "itself")
        self.store.prefs("set", "notes/first", "Bring the bread")
        firefox.wait(lambda: firefox.script("return window.held.length > 0"))
        firefox.script("window.holding = false")
        firefox.choose("notes/count")
        firefox.script("window.release()")
        # Had the answer replaced it, this change would concern another setting than the shown one.
        self.store.prefs("set", "notes/count", "4")
        firefox.wait(lambda: firefox.script("return document.querySelector('#editor input')?.value === '4'"))
        self.assertEqual(firefox.text("#details-title"), "notes/count")

    def click_value(self, name):
        self.firefox.wait(lambda: self.firefox.script("""
            const row = [...document.querySelectorAll('.row')].find((row) => row.querySelector('.name')?.innerText.startsWith(arguments[0]));
            row?.querySelector('.value.editable, .value input')?.click();
            return Boolean(row?.querySelector('.value input'))""", name))

    def test_a_row_is_changed_in_place_and_undone_and_redone_after_a_reload(self):
        firefox = self.firefox
        self.click_value("editor/size")
        firefox.type(".row .value input:not([type=checkbox])", "18\ue007")
        self.wait_value("editor/size", "18")
        self.open_page()
        firefox.click("#undo:enabled")
        self.firefox.wait(lambda: self.stored("editor/size") is None)
        self.open_page()
        firefox.click("#redo:enabled")
        self.wait_value("editor/size", "18")
        firefox.click(".row .switch input")
        self.wait_value("editor/autosave", "true")

    def test_a_search_word_a_due_date_and_the_help(self):
        firefox = self.firefox
        firefox.type("#search", "type:int notes")
        firefox.wait(lambda: firefox.text("#count") == "1 setting")
        firefox.choose("notes/count")
        firefox.click("#dates summary")
        firefox.script("document.getElementById('due').value = '2030-01-31T08:30'")
        firefox.click("#save-dates")
        firefox.wait(lambda: '"due"' in self.store.prefs("get", "--json", "notes/count"))
        firefox.click("#help")
        firefox.wait(lambda: "is:problem" in (firefox.text("dialog") or ""))

    def test_a_dropped_file_is_shown_and_saved_as_one(self):
        firefox = self.firefox
        firefox.script(DROP, "some.yaml", "notes: {first: Bring the bread, count: 4}\n")
        firefox.wait(lambda: "notes/count" in (firefox.text("dialog .review") or ""))
        firefox.click("#apply:enabled")
        self.wait_value("notes/first", "Bring the bread")
        self.wait_value("notes/count", "4")

    def test_the_timeline_puts_a_change_back(self):
        firefox = self.firefox
        self.store.prefs("history", "--keep", "notes")
        self.store.prefs("set", "notes/first", "Bring the bread")
        firefox.click("#timeline")
        firefox.click("[aria-label='Put back notes/first as it was before']")
        firefox.wait(lambda: "milk" in (firefox.text("dialog .review") or ""))
        firefox.click("dialog button.main")
        self.wait_value("notes/first", "Bring the milk")

    def test_sections_fold_and_a_setting_gets_another_name(self):
        firefox = self.firefox
        firefox.script("const menu = document.getElementById('order'); menu.value = 'sections'; menu.dispatchEvent(new Event('change'))")
        firefox.wait(lambda: "mail" in (firefox.text("#rows") or "") and firefox.script("return document.querySelectorAll('.fold').length > 2"))
        firefox.click(".fold")
        firefox.wait(lambda: firefox.script("return document.querySelector('.fold').getAttribute('aria-expanded')") == "false")
        firefox.choose("notes/first")
        firefox.click("#rename summary")
        firefox.type("#rename-key", "shopping\ue007")
        self.wait_value("notes/shopping", "Bring the milk")
        firefox.wait(lambda: firefox.text("#details-title") == "notes/shopping")

    def test_environments_are_columns_changed_in_their_cells_and_copied(self):
        firefox = self.firefox
        self.store.prefs("env", "create", "notes@staging")
        firefox.click("#compare:not([hidden])")
        cell = "[id='row-0-1']"
        firefox.wait(lambda: firefox.text(f"{cell} .value") == "3")
        firefox.click(f"{cell} .editable")
        firefox.type(f"{cell} input", "8\ue007")
        self.wait_value("notes@staging/count", "8")
        firefox.wait(lambda: firefox.script(f"return document.querySelector(\"{cell}\").classList.contains('differs')"))
        firefox.click(f"{cell} .summary")
        firefox.click("#copy-across")
        firefox.wait(lambda: "3 → 8" in (firefox.text("dialog .review") or ""))
        firefox.click("#apply:enabled")
        self.wait_value("notes/count", "8")

    def test_tenants_and_what_an_administrator_gives_are_columns_too(self):
        firefox = self.firefox
        self.store.prefs("set", "-c", "acme/notes", "count", "--int", "5")
        path = os.path.join(self.managed, "notes.d", "10.json")
        with open(path + ".new", "w") as file:
            json.dump({"count": 4}, file)
        os.rename(path + ".new", path)
        firefox.click("#compare:not([hidden])")
        firefox.wait(lambda: [firefox.text(f"[id='row-0-{column}'] .value") for column in range(3)] == ["3", "4", "5"])
        firefox.click("[id='row-0-2'] .editable")
        firefox.type("[id='row-0-2'] input", "8\ue007")
        firefox.wait(lambda: firefox.text("[id='row-0-2'] .value") == "8")
        self.assertEqual(self.store.prefs("get", "-c", "acme/notes", "count"), "8\n")
        firefox.click("[id='row-0-1'] .copy")
        firefox.wait(lambda: "3 → 4" in (firefox.text("dialog .review") or ""))
        firefox.click("#apply:enabled")
        self.wait_value("notes/count", "4")

    def test_the_history_of_a_number_is_a_line_and_large_limits_keep_their_digits(self):
        firefox = self.firefox
        self.store.prefs("history", "--keep", "notes")
        self.store.prefs("set", "notes/count", "9")
        firefox.choose("notes/count")
        firefox.wait(lambda: (firefox.text("#chart figcaption") or "").endswith("from 3 to 9"))
        self.store.declare([{"name": "id", "collection": "far", "type": "int", "default": 9007199254740993,
                             "limits": [{"minimum": 9007199254740993}], "summary": "A large number"}], application="org.example.far")
        firefox.choose("far/id")
        firefox.type("#editor input", "9007199254740992")
        firefox.wait(lambda: "9007199254740993 or more" in (firefox.text("#editor-problem") or ""))

    def test_a_conflict_of_a_fleet_ends_with_one_click(self):
        firefox = self.firefox
        self.store.prefs("fleet", "create", "team", "--at", f"file://{self.store.home}/carrier", "--collection", "notes")
        self.store.prefs("fleet", "sync")
        other = Store(BINARIES)
        self.addCleanup(other.close)
        other.prefs("fleet", "join", "-", input=self.store.prefs("fleet", "invite", "laptop", "--role", "writer"))
        self.store.prefs("fleet", "sync")
        other.prefs("fleet", "sync")
        self.store.prefs("set", "notes/first", "mine")
        other.prefs("set", "notes/first", "theirs")
        other.prefs("fleet", "sync")
        self.store.prefs("fleet", "sync")
        firefox.wait(lambda: firefox.text("#fleet") == "Fleet (1 conflict)")
        firefox.click("#fleet")
        firefox.wait(lambda: "laptop" in (firefox.text("#members") or ""))
        firefox.click("#conflicts .restore")
        self.wait_value("notes/first", "mine")

    def test_a_sealed_value_is_revealed_and_hidden_again(self):
        firefox = self.firefox
        firefox.choose("vault/pin")
        firefox.click("#reveal")
        firefox.type("#passphrase", PASSPHRASE + "\ue007")
        firefox.wait(lambda: firefox.text("#secret") == "4711-sealed")
        self.store.prefs("lock")
        firefox.wait(lambda: firefox.text("#secret") != "4711-sealed")

    def test_seven_tabs_hear_of_a_change(self):
        for _ in range(6):
            address = self.page.another_address()
            handle = self.firefox.command("WebDriver:NewWindow", {"type": "tab"})["handle"]
            self.firefox.command("WebDriver:SwitchToWindow", {"handle": handle})
            self.firefox.open(address)
            self.firefox.wait(lambda: self.firefox.text(".row .value") is not None)
        self.store.prefs("set", "notes/count", "70")
        handles = self.firefox.command("WebDriver:GetWindowHandles")
        self.assertEqual(len(handles), 7)
        for handle in handles:
            self.firefox.command("WebDriver:SwitchToWindow", {"handle": handle})
            self.firefox.wait(lambda: self.row("notes/count") == "70")
            if handle != handles[-1]:
                self.firefox.command("WebDriver:CloseWindow")

    def test_who_takes_the_port_gets_nothing_and_is_not_believed(self):
        firefox = self.firefox
        firefox.choose("notes/first")
        firefox.type("#editor textarea", "typed but not saved")
        port = self.page.port
        self.page.process.kill()
        self.page.process.wait()
        other = Impostor(port)
        self.addCleanup(other.close)
        firefox.wait(lambda: "This page has ended" in firefox.text("body"))
        self.assertTrue(other.seen)
        self.assertFalse(any(b"typed but" in request or b"notes" in request for request in other.seen))
        self.assertEqual(firefox.script("return document.querySelector('#unsaved textarea').value"), "typed but not saved")

    def test_no_field_is_one_that_it_offers_to_keep_the_password_of(self):
        firefox = self.firefox
        firefox.choose("mail/token")
        self.assertEqual(firefox.script("return getComputedStyle(document.querySelector('#editor input')).webkitTextSecurity"), "disc")
        firefox.choose("vault/pin")
        firefox.click("#reveal")
        firefox.wait(lambda: firefox.script("return Boolean(document.querySelector('#passphrase'))"))
        self.assertEqual(firefox.script("return document.querySelectorAll('[type=password]').length"), 0)


if __name__ == "__main__":
    unittest.main()
