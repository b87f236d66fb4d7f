"""Keyboard alone, accessibility, sizes, light and dark; and the pictures of the documentation."""

import os
import unittest

from axe_core_python.selenium import Axe
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from cases import PICTURES, PageCase
from harness import Browser
from test_files import DROP


class KeyboardTests(PageCase):
    def test_everything_is_done_by_keyboard_alone(self):
        browser = self.browser
        browser.wait(lambda: browser.focused() == "list")
        browser.keys("/")
        browser.wait(lambda: browser.focused() == "search")
        browser.keys("size")
        browser.wait(lambda: browser.names() == ["editor/size"])
        browser.keys(Keys.ARROW_DOWN)
        browser.wait(lambda: browser.focused() == "list" and browser.text("#details-title") == "editor/size")
        browser.keys(Keys.ENTER)
        browser.wait(lambda: browser.driver.switch_to.active_element.get_attribute("value") == "14")
        browser.keys(Keys.ARROW_UP, Keys.ARROW_UP)
        browser.keys(Keys.ENTER)
        self.wait_value("editor/size", "16")
        browser.keys(Keys.ESCAPE)
        browser.wait(lambda: browser.focused() == "list")
        browser.keys(Keys.CONTROL, "z")
        browser.wait(lambda: self.stored("editor/size") is None)
        browser.keys("/")
        browser.keys(Keys.BACKSPACE)
        browser.wait(lambda: len(browser.names()) > 5)

    def test_arrows_walk_through_the_list_and_screen_readers_hear_of_it(self):
        browser = self.browser
        first = browser.names()
        browser.one("#list").send_keys(Keys.ARROW_DOWN)
        browser.wait(lambda: browser.text("#details-title") == first[0])
        browser.one("#list").send_keys(Keys.ARROW_DOWN)
        browser.wait(lambda: browser.text("#details-title") == first[1])
        active = browser.one("#list").get_attribute("aria-activedescendant")
        row = browser.one(f"#{active}")
        self.assertEqual(row.get_attribute("aria-selected"), "true")
        self.assertEqual(row.get_attribute("aria-rowindex"), "2")
        browser.one("#list").send_keys(Keys.END)
        browser.wait(lambda: browser.text("#details-title") == first[-1])
        browser.one("#list").send_keys(Keys.HOME)
        browser.wait(lambda: browser.text("#details-title") == first[0])

    def test_escape_closes_a_dialog_and_the_setting(self):
        browser = self.browser
        browser.one("#doctor").send_keys(Keys.ENTER)
        browser.wait(lambda: browser.text("#verdict"))
        browser.keys(Keys.ESCAPE)
        browser.wait(lambda: not browser.all("dialog"))
        browser.choose("editor/size")
        browser.one("#editor input").send_keys(Keys.ESCAPE)
        browser.wait(lambda: not browser.one("#details").is_displayed())

    def test_the_tab_key_reaches_every_control(self):
        browser = self.browser
        browser.choose("editor/theme")
        browser.driver.execute_script("document.activeElement.blur()")
        reached = set()
        for _ in range(40):
            browser.driver.switch_to.active_element.send_keys(Keys.TAB)
            reached.add(browser.focused())
        for name in ["new", "export", "doctor", "search", "list", "remove"]:
            self.assertIn(name, reached)


class AccessibilityTests(PageCase):
    def expect_no_serious_finding(self, browser, what):
        findings = [
            f"{finding['id']}: {finding['help']}: {node['html'][:150]}"
            for finding in Axe().run(browser.driver)["violations"] if finding["impact"] in ("serious", "critical")
            for node in finding["nodes"]]
        self.assertEqual(findings, [], what)

    def test_axe_has_no_serious_finding_in_any_state_of_the_page(self):
        self.store.prefs("set", "--force", "editor/size", "--int", "400")
        self.store.prefs("env", "create", "mail@staging")
        self.store.prefs("set", "mail@staging/host", "staging.example.org")
        self.store.prefs("set", "-c", "notes", "http.host", "a")
        self.store.prefs("set", "-c", "notes", "http.port", "b")
        self.store.prefs("history", "--keep", "notes")
        for number in ["3", "5"]:
            self.store.prefs("set", "notes/count", number)
        for dark in [False, True]:
            browser = Browser(dark=dark)
            self.addCleanup(browser.close)
            # All rows are in view.
            browser.size(1280, 1400)
            browser.open_list(self.page.another_address())
            self.expect_no_serious_finding(browser, "the list")
            for name in ["editor/size", "editor/recent", "editor/theme", "editor/autosave", "editor/logo",
                         "editor/backup-after", "editor/greeting", "mail/token"]:
                browser.choose(name)
                self.expect_no_serious_finding(browser, name)
            browser.driver.execute_script("document.getElementById('row-' + arguments[0]).querySelector('.editable').click()",
                                          browser.row("editor/zoom")["index"])
            browser.wait(lambda: browser.all(".row.editing input"))
            browser.keys("9")
            browser.wait(lambda: "0.25 to 4" in browser.row("editor/zoom")["summary"])
            self.expect_no_serious_finding(browser, "a value changed in its row")
            browser.keys(Keys.ESCAPE)
            browser.choose("notes/count")
            browser.wait(lambda: browser.all("#chart"))
            for summary in ["#rename summary", "#dates summary"]:
                browser.click(summary)
            self.expect_no_serious_finding(browser, "a number with its history, and another name")
            Select(browser.one("#order")).select_by_visible_text("In sections")
            browser.wait(lambda: browser.all(".fold"))
            self.expect_no_serious_finding(browser, "sections")
            Select(browser.one("#order")).select_by_visible_text("By name")
            browser.click("#compare")
            browser.wait(lambda: browser.all(".cell.differs"))
            browser.click(".cell.differs .value")
            self.expect_no_serious_finding(browser, "environments as columns")
            browser.keys(Keys.ESCAPE)
            browser.click("#compare")
            browser.choose("notes/first")
            browser.fill("#editor textarea", "mine")
            self.store.prefs("set", "notes/first", f"theirs {dark}")
            browser.wait(lambda: browser.text(".conflict"))
            self.expect_no_serious_finding(browser, "a conflict")
            for button, there in [("#help", "dialog dl"), ("#export", "#export-format"), ("#timeline", ".timeline li")]:
                browser.click(button)
                browser.wait(lambda: browser.all(there))
                self.expect_no_serious_finding(browser, button)
                browser.keys(Keys.ESCAPE)
                browser.wait(lambda: not browser.all("dialog"))
            browser.driver.execute_script(DROP, "some.json", '{"editor": {"size": 20, "zoom": 9}}')
            browser.wait(lambda: browser.text("dialog .review"))
            self.expect_no_serious_finding(browser, "an import")
            browser.press("Cancel", "dialog")
            browser.click("#doctor")
            browser.wait(lambda: browser.text("#verdict"))
            self.expect_no_serious_finding(browser, "the report")

    def test_it_is_readable_at_twice_the_size_and_on_a_phone(self):
        for width, height in [(640, 400), (390, 844), (320, 640)]:
            self.browser.size(width, height)
            self.addCleanup(self.browser.size, 1280, 800)
            self.browser.wait(lambda: self.browser.rows())
            overflow = self.browser.driver.execute_script(
                "return document.documentElement.scrollWidth - document.documentElement.clientWidth")
            self.assertLessEqual(overflow, 0, f"{width} wide")
            self.assertGreater(self.browser.one("#list").size["height"], 80)
            self.assertLess(self.browser.one("header").size["height"], 105, f"{width} wide")
            self.browser.choose("editor/size")
            self.browser.driver.execute_script("document.querySelector('.row').click()")
            self.browser.wait(lambda: self.browser.one("#details").is_displayed())
            box = self.browser.one("#details")
            self.assertLessEqual(box.rect["x"] + box.rect["width"], width)
            self.browser.click("#details [aria-label=Close]")

    def test_on_a_phone_collections_are_a_menu_and_a_setting_is_changed(self):
        self.browser.size(390, 844)
        self.addCleanup(self.browser.size, 1280, 800)
        menu = self.browser.wait(lambda: self.browser.one("#collection-menu"))
        self.assertTrue(menu.is_displayed())
        menu.send_keys("notes")
        self.browser.wait(lambda: self.browser.names() == ["notes/count", "notes/first"])
        self.browser.choose("notes/count")
        self.browser.fill("#editor input", "9")
        self.browser.click("#save-one")
        self.wait_value("notes/count", "9")

    def test_what_is_selected_is_seen_in_forced_colours(self):
        self.browser.choose("editor/size")
        self.browser.click("#search")
        row = self.browser.row("editor/size")["index"]
        style = "return getComputedStyle(document.getElementById('row-' + arguments[0])).outlineStyle"
        self.assertEqual(self.browser.driver.execute_script(style, row), "none")
        self.browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "forced-colors", "value": "active"}]})
        self.addCleanup(self.browser.driver.execute_cdp_cmd, "Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": "light"}]})
        self.assertEqual(self.browser.driver.execute_script(style, row), "solid")
        self.assertEqual(self.browser.driver.execute_script(style, row + 1), "none")

    def test_follows_the_light_and_the_dark_of_the_system(self):
        colours = []
        for dark in [False, True]:
            self.browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
                "features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
            colours.append(self.browser.driver.execute_script("return getComputedStyle(document.body).backgroundColor"))
        self.addCleanup(self.browser.driver.execute_cdp_cmd, "Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": "light"}]})
        self.assertEqual(colours, ["rgb(255, 255, 255)", "rgb(22, 27, 25)"])


@unittest.skipUnless(os.environ.get("PICTURES"), "pictures are taken where PICTURES says so")
class PictureTests(PageCase):
    """The pictures of the README and the articles."""

    def prepare(self):
        super().prepare()
        self.store.prefs("set", "editor/size", "18")
        self.store.prefs("set", "--force", "editor/zoom", "--double", "9.5")
        self.store.prefs("set", "mail/host", "mail.example.org")

    def test_takes_them(self):
        PICTURES.mkdir(exist_ok=True)
        for name, dark, size in [("settings-page", False, (1200, 640)), ("settings-page~dark", True, (1200, 640)),
                                 ("settings-page-phone", False, (390, 640))]:
            browser = Browser(dark=dark)
            self.addCleanup(browser.close)
            browser.size(*size)
            browser.open_list(self.page.another_address())
            browser.driver.execute_script(
                "document.getElementById('store').textContent = '~/.local/share/prefs/settings.coffer'")
            if size[0] > 600:
                browser.choose("editor/size")
                browser.fill("#editor input", "20")
                browser.driver.execute_script("""
                    const name = [...document.querySelectorAll('#details dt')].find((node) => node.textContent === 'By');
                    name.nextSibling.textContent = 'prefs, ada@laptop'""")
            browser.picture(PICTURES / f"{name}.png")


if __name__ == "__main__":
    unittest.main()
