"""Several at once: two pages, a shell, a program that is killed, a page that is reloaded."""

import subprocess
import time
import unittest

from cases import PageCase


class LiveTests(PageCase):
    def test_what_a_shell_commits_shows_within_a_second_and_is_marked_for_a_moment(self):
        self.store.prefs("set", "notes/count", "4")
        start = time.monotonic()
        self.browser.wait(lambda: self.browser.row("notes/count")["value"] == "4")
        self.assertLess(time.monotonic() - start, 1)
        self.browser.wait(lambda: "fresh" in self.browser.row("notes/count")["classes"], seconds=2)
        self.browser.wait(lambda: "fresh" not in self.browser.row("notes/count")["classes"], seconds=8)

    def test_a_setting_that_a_shell_makes_or_removes_comes_and_goes_with_its_count(self):
        self.store.prefs("set", "fresh/one", "1")
        self.browser.wait(lambda: self.browser.row("fresh/one"))
        self.assertIn("fresh\n1", self.browser.text("#collections"))
        self.store.prefs("unset", "fresh/one")
        self.browser.wait(lambda: not self.browser.row("fresh/one"))

    def test_what_is_being_edited_is_not_overwritten_and_the_conflict_is_shown(self):
        self.browser.choose("notes/first")
        self.browser.fill("#editor textarea", "mine")
        self.store.prefs("set", "notes/first", "theirs")
        text = self.browser.wait(lambda: self.browser.text(".conflict"))
        self.assertIn("theirs", text)
        self.assertIn("prefs", text)
        self.assertEqual(self.browser.one("#editor textarea").get_attribute("value"), "mine")
        self.assertFalse(self.browser.one("#save").is_enabled())
        self.browser.press("Take theirs")
        self.browser.wait(lambda: self.browser.one("#editor textarea").get_attribute("value") == "theirs")
        self.assertEqual(self.stored("notes/first"), "theirs")

    def test_mine_may_be_kept_on_purpose(self):
        self.browser.choose("notes/first")
        self.browser.fill("#editor textarea", "mine")
        self.store.prefs("set", "notes/first", "theirs")
        self.browser.press("Keep mine")
        self.browser.wait(lambda: self.browser.one("#save").is_enabled())
        self.browser.click("#save")
        self.wait_value("notes/first", "mine")

    def test_two_pages_and_a_shell_lose_no_change_without_a_word(self):
        other = self.another_page()
        for tab in [self.browser, other]:
            tab.choose("notes/count")
        self.browser.fill("#editor input", "10")
        other.fill("#editor input", "20")
        self.browser.click("#save")
        self.wait_value("notes/count", "10")
        other.wait(lambda: "It is now" in (other.text(".conflict") or ""))
        self.assertFalse(other.one("#save").is_enabled())
        self.assertEqual(other.one("#editor input").get_attribute("value"), "20")
        self.store.prefs("set", "notes/count", "30")
        other.wait(lambda: "30" in other.text(".conflict"))
        other.press("Keep mine")
        other.wait(lambda: other.one("#save").is_enabled())
        other.click("#save")
        self.wait_value("notes/count", "20")
        self.browser.wait(lambda: self.browser.row("notes/count")["value"] == "20")

    def test_who_saves_several_changes_and_is_late_with_one_saves_none(self):
        self.browser.choose("notes/count")
        self.browser.fill("#editor input", "10")
        self.browser.choose("notes/first")
        self.browser.fill("#editor textarea", "mine")
        # Between the page's last look and its save: the events are held up.
        self.browser.driver.execute_script("""
            const real = fetch; let late = true;
            window.fetch = async (address, options) => {
              if (late && address.endsWith('change')) { late = false; await new Promise((go) => { window.release = go; }); }
              return real(address, options);
            }""")
        self.browser.click("#save")
        self.browser.press("Save 2 changes", "dialog")
        self.browser.wait(lambda: self.browser.driver.execute_script("return Boolean(window.release)"))
        self.store.prefs("set", "notes/first", "theirs")
        self.browser.driver.execute_script("release()")
        self.browser.wait(lambda: "nothing was changed" in self.browser.text("#messages"))
        self.assertEqual(self.stored("notes/count"), "3")
        self.assertEqual(self.stored("notes/first"), "theirs")
        self.assertIn("2 changes are not saved", self.browser.text("#pending"))

    def test_a_killed_program_leaves_nothing_half_written_and_the_page_says_so(self):
        self.browser.choose("notes/first")
        self.browser.fill("#editor textarea", "not saved")
        # `prefs` has put prefs-ui in its own place.
        self.page.process.kill()
        self.page.process.wait()
        self.browser.wait(lambda: "Not connected" in self.browser.text("#connection"))
        self.browser.click("#save")
        self.browser.wait(lambda: "does not answer" in (self.browser.text("#messages") or "") or "has ended" in self.browser.text("body"))
        self.browser.wait(lambda: "This page has ended" in self.browser.text("body"), seconds=15)
        self.assertNotIn("milk", self.browser.driver.page_source)
        self.assertEqual(self.stored("notes/first"), "Bring the milk")
        self.assertIn("No problems found", self.store.prefs("doctor"))

    def test_a_page_that_is_loaded_anew_shows_nothing_and_says_how_to_go_on(self):
        self.browser.driver.refresh()
        self.browser.wait(lambda: "This page has ended" in self.browser.text("body"))
        self.assertEqual(self.browser.rows(), [])
        self.browser.open_list(self.page.another_address())
        self.assertIn("notes/first", self.browser.names())

    def test_ctrl_c_ends_it_well(self):
        self.assertEqual(self.page.interrupt(), 0)
        self.browser.wait(lambda: "This page has ended" in self.browser.text("body"), seconds=15)
        self.assertEqual(subprocess.run(["ls", "-A", self.store.runtime], capture_output=True, text=True).stdout, "")


if __name__ == "__main__":
    unittest.main()
