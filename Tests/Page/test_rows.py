"""Changing values in their rows: saved at once, undone and redone, also after a reload."""

import unittest

from selenium.webdriver.common.keys import Keys

from cases import PageCase


class RowTests(PageCase):
    def cell(self, name, selector=""):
        """The value of a row, or what is in it."""
        def find():
            row = self.browser.row(name)
            return row and self.browser.one(f"#row-{row['index']} .value {selector}".strip())
        return self.browser.wait(find)

    def click(self, name, selector=""):
        def attempt():
            self.cell(name, selector).click()
            return True
        self.browser.wait(attempt)

    def begin(self, name):
        """One click into a value, and what was there marked, as a person would type over it."""
        self.click(name)
        return self.browser.wait(lambda: self.cell(name, "input"))

    def test_a_number_is_changed_with_one_click_and_enter(self):
        self.begin("editor/size")
        self.browser.keys("18", Keys.ENTER)
        self.wait_value("editor/size", "18")
        self.browser.wait(lambda: self.browser.row("editor/size")["value"] == "18")
        self.assertFalse(self.browser.one("#pending").is_displayed())
        self.assertEqual(self.browser.focused(), "list")

    def test_a_switch_and_a_menu_save_when_they_are_used(self):
        self.click("editor/autosave", "input")
        self.wait_value("editor/autosave", "true")
        self.cell("editor/theme", "select").send_keys("blue")
        self.wait_value("editor/theme", "blue")
        self.browser.wait(lambda: self.browser.row("editor/theme")["value"] == "blue")

    def test_a_short_text_is_changed_in_place_and_a_long_one_beside(self):
        self.begin("notes/first")
        self.browser.keys("Bring the bread", Keys.ENTER)
        self.wait_value("notes/first", "Bring the bread")
        self.store.prefs("set", "notes/first", "x" * 300)
        self.browser.wait(lambda: self.browser.row("notes/first")["value"] == "x" * 300)
        self.click("notes/first")
        self.browser.wait(lambda: self.browser.all("#editor textarea"))
        self.assertEqual(self.browser.all(".row input:not([type=checkbox])"), [])

    def test_a_number_keeps_its_digits_and_its_type(self):
        self.store.prefs("set", "notes/big", "--int", "9007199254740993")
        self.store.prefs("set", "notes/double", "--double", "1.0")
        self.assertEqual(self.begin("notes/big").get_attribute("value"), "9007199254740993")
        self.browser.keys(Keys.END, Keys.BACKSPACE, "5", Keys.ENTER)
        self.wait_value("notes/big", "9007199254740995")
        self.begin("notes/double")
        self.browser.keys("2", Keys.ENTER)
        self.wait_value("notes/double", "2.0")

    def test_a_refused_value_says_why_in_the_row_and_escape_takes_it_back(self):
        self.begin("editor/size")
        self.browser.keys("400")
        self.browser.wait(lambda: self.browser.row("editor/size")["summary"] == "The value must be 6 to 72.")
        self.assertIn("refused", self.browser.row("editor/size")["classes"])
        self.browser.keys(Keys.ENTER)
        self.assertEqual(self.cell("editor/size", "input").get_attribute("aria-invalid"), "true")
        self.browser.keys(Keys.ESCAPE)
        self.browser.wait(lambda: self.browser.row("editor/size")["value"] == "14")
        self.assertEqual(self.browser.row("editor/size")["summary"], "The font size, in points")
        self.assertIsNone(self.stored("editor/size"))
        self.assertFalse(self.browser.one("#pending").is_displayed())

    def test_leaving_the_field_saves_and_what_cannot_be_saved_is_kept(self):
        self.begin("editor/size")
        self.browser.keys("18")
        self.begin("notes/count")
        self.wait_value("editor/size", "18")
        self.browser.keys("many")
        self.browser.click("#search")
        self.browser.wait(lambda: "1 cannot be saved" in (self.browser.text("#pending") or ""))
        self.browser.wait(lambda: self.browser.text("#details-title") == "notes/count")
        self.browser.wait(lambda: self.browser.one("#editor input").get_attribute("value") == "many")
        self.assertEqual(self.stored("notes/count"), "3")

    def test_a_row_that_moves_while_it_is_changed_keeps_what_is_typed(self):
        self.begin("notes/count")
        self.browser.keys("12")
        self.store.prefs("set", "a/first", "above")
        self.browser.wait(lambda: "a/first" in self.browser.names())
        self.assertEqual(self.browser.row("notes/count")["value"], "12")
        self.browser.keys("3", Keys.ENTER)
        self.wait_value("notes/count", "123")

    def test_a_change_by_somebody_else_meanwhile_is_a_conflict_that_one_click_ends(self):
        self.begin("notes/count")
        self.browser.keys("12")
        self.store.prefs("set", "notes/count", "99")
        self.browser.keys(Keys.ENTER)
        self.browser.wait(lambda: "It is now: 99" in (self.browser.text(".conflict") or ""))
        self.assertEqual(self.stored("notes/count"), "99")
        self.browser.press("Take theirs", ".conflict")
        self.browser.wait(lambda: not self.browser.one("#pending").is_displayed())
        self.browser.wait(lambda: self.browser.row("notes/count")["value"] == "99")

    def test_quick_changes_of_one_switch_are_saved_in_turn(self):
        switch = self.cell("editor/autosave", "input")
        self.browser.driver.execute_script("for (let i = 0; i < 3; i += 1) arguments[0].click()", switch)
        self.browser.wait(lambda: self.browser.text("#messages").count("Saved editor/autosave") == 3)
        self.assertEqual(self.stored("editor/autosave"), "true")
        self.assertFalse(self.browser.one("#pending").is_displayed())

    def test_the_row_has_a_way_back_to_the_default_and_one_to_remove(self):
        self.click_reset("editor/theme")
        self.browser.wait(lambda: self.stored("editor/theme") is None)
        self.browser.wait(lambda: self.browser.row("editor/theme")["value"] == "light")
        self.click_reset("notes/first")
        self.browser.wait(lambda: "notes/first" not in self.browser.names())
        self.browser.click("#undo")
        self.wait_value("notes/first", "Bring the milk")
        self.browser.wait(lambda: "notes/first" in self.browser.names())
        row = self.browser.row("editor/size")["index"]
        self.assertEqual(self.browser.all(f"#row-{row} .reset"), [])

    def click_reset(self, name):
        self.browser.click(f"#row-{self.browser.row(name)['index']} .reset")

    def test_undo_and_redo_survive_a_reload(self):
        for value in ["18", "20"]:
            self.begin("editor/size")
            self.browser.keys(value, Keys.ENTER)
            self.wait_value("editor/size", value)
            self.browser.wait(lambda: self.browser.row("editor/size")["value"] == value)
        self.browser.open_list(self.page.another_address())
        self.assertIn("editor/size", self.browser.one("#undo").get_attribute("title"))
        self.assertFalse(self.browser.one("#redo").is_enabled())
        self.browser.click("#undo")
        self.wait_value("editor/size", "18")
        self.browser.open_list(self.page.another_address())
        self.browser.click("#redo")
        self.wait_value("editor/size", "20")
        self.browser.wait(lambda: self.browser.row("editor/size")["value"] == "20")
        self.browser.keys(Keys.CONTROL, "z")
        self.browser.keys(Keys.NULL)
        self.wait_value("editor/size", "18")
        self.browser.keys(Keys.CONTROL, Keys.SHIFT, "z")
        self.browser.keys(Keys.NULL)
        self.wait_value("editor/size", "20")

    def test_another_tab_undoes_it_too(self):
        other = self.another_page()
        self.begin("editor/size")
        self.browser.keys("18", Keys.ENTER)
        self.wait_value("editor/size", "18")
        other.wait(lambda: other.one("#undo").is_enabled())
        other.click("#undo")
        self.browser.wait(lambda: self.stored("editor/size") is None)
        self.browser.wait(lambda: not self.browser.one("#undo").is_enabled() and self.browser.one("#redo").is_enabled())

    def test_the_keyboard_leads_into_a_row_and_back(self):
        self.browser.search("size")
        self.browser.wait(lambda: self.browser.names() == ["editor/size"])
        self.browser.keys(Keys.ENTER, Keys.F2)
        self.browser.wait(lambda: self.browser.all(".row input"))
        self.browser.keys("18", Keys.ENTER)
        self.wait_value("editor/size", "18")
        self.browser.wait(lambda: self.browser.focused() == "list")
        self.browser.search("autosave")
        self.browser.wait(lambda: self.browser.names() == ["editor/autosave"])
        self.browser.keys(Keys.ENTER, Keys.F2, Keys.SPACE)
        self.wait_value("editor/autosave", "true")
        self.browser.wait(lambda: self.browser.focused() == "input")
        self.browser.keys(Keys.ESCAPE)
        self.browser.wait(lambda: self.browser.focused() == "list")

    def test_secrets_and_what_is_sealed_have_no_field_in_their_row(self):
        self.store.prefs("set", "vault/pin", "4711")
        self.store.seal("vault", "correct horse")
        self.browser.wait(lambda: "vault/pin" in self.browser.names())
        for name in ["mail/token", "vault/pin"]:
            self.click(name)
            self.browser.wait(lambda: self.browser.text("#details-title") == name)
        self.assertEqual(self.browser.all(".row .value input:not([type=checkbox])"), [])


class ReadOnlyRowTests(PageCase):
    arguments = ("--read-only",)

    def test_a_page_that_is_read_only_has_no_fields_in_its_rows(self):
        self.assertEqual(self.browser.all(".row input, .row select, .row .reset, .row .editable"), [])
        self.assertFalse(self.browser.one("#redo").is_displayed())


if __name__ == "__main__":
    unittest.main()
