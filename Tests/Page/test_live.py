"""Several at once: two pages, a shell, a program that is killed, a page that is reloaded."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from cases import PageCase
from harness import Browser


class LiveTests(PageCase):
    def test_what_a_shell_commits_shows_within_a_second_and_is_marked_for_a_moment(self):
        with self.browser.clock_stopped():
            self.store.prefs("set", "notes/count", "4")
            start = time.monotonic()
            self.browser.wait(lambda: self.browser.row("notes/count")["value"] == "4")
            self.assertLess(time.monotonic() - start, 1)
            self.browser.wait(lambda: "fresh" in self.browser.row("notes/count")["classes"], seconds=2)
        self.browser.wait(lambda: "fresh" not in self.browser.row("notes/count")["classes"], seconds=8)

    def test_a_browser_that_blocks_cookies_shows_it_too(self):
        browser = Browser(settings={"profile.default_content_setting_values.cookies": 2})
        tab = self.another_page(browser)
        # The first ones may be among what it loads at the start.
        for value in "456":
            self.store.prefs("set", "notes/count", value)
            tab.wait(lambda: tab.row("notes/count")["value"] == value)

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
        other.wait(lambda: other.one("#editor input").get_attribute("value") == "20")
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

    def test_a_change_of_a_store_that_was_removed_is_no_success_and_stays(self):
        path = os.path.join(self.store.home, ".local/share/prefs")
        self.browser.choose("notes/first")
        self.browser.fill("#editor textarea", "mine")
        os.rename(path, path + ".moved")
        self.browser.click("#save")
        self.browser.wait(lambda: "is gone" in self.browser.text("#messages"))
        self.assertIn("1 change is not saved", self.browser.text("#pending"))
        self.assertEqual(self.browser.row("notes/first")["value"], "Bring the milk")
        os.rename(path + ".moved", path)
        self.browser.click("#save")
        self.wait_value("notes/first", "mine")

    def test_a_page_that_is_loaded_anew_shows_nothing_and_says_how_to_go_on(self):
        self.browser.driver.refresh()
        self.browser.wait(lambda: "This page has ended" in self.browser.text("body"))
        # Nothing was typed.
        self.assertNotIn("lost", self.browser.text("body"))
        self.assertNotIn("Not saved", self.browser.text("body"))
        self.assertEqual(self.browser.rows(), [])
        self.browser.open_list(self.page.another_address())
        self.assertIn("notes/first", self.browser.names())

    def test_ctrl_c_ends_it_well(self):
        self.assertEqual(self.page.interrupt(), 0)
        self.browser.wait(lambda: "This page has ended" in self.browser.text("body"), seconds=15)
        self.assertEqual(subprocess.run(["ls", "-A", self.store.runtime], capture_output=True, text=True).stdout, "")


class OneStateTests(PageCase):
    def test_list_pane_and_edits_are_those_of_the_store_after_a_restore_and_after_a_commit_of_thousands(self):
        backup = os.path.join(self.store.home, "backup.coffer")
        self.store.prefs("backup", backup)
        self.store.prefs("set", "notes/first", "later")
        self.browser.choose("notes/count")
        self.browser.fill("#editor input", "30")
        self.browser.choose("notes/first")
        self.browser.wait(lambda: self.browser.one("#editor textarea").get_attribute("value") == "later")
        self.store.prefs("restore-store", backup, "--force", "--no-input")
        self.browser.wait(lambda: self.browser.row("notes/first")["value"] == "Bring the milk")
        self.browser.wait(lambda: self.browser.one("#editor textarea").get_attribute("value") == "Bring the milk")
        # Based on the former store, whose versions are not those of this one.
        self.browser.wait(lambda: "1 change is not saved. 1 changed meanwhile." in self.browser.text("#pending"))
        path = os.path.join(self.store.home, "many.json")
        with open(path, "w") as file:
            json.dump({"first": "one of thousands", "count": 7, **{f"many-{n}": n for n in range(5000)}}, file)
        self.store.prefs("import", path, "-c", "notes")
        self.browser.wait(lambda: self.browser.one("#editor textarea").get_attribute("value") == "one of thousands")
        self.browser.wait(lambda: "1 changed meanwhile" in self.browser.text("#pending"))
        self.browser.wait(lambda: self.browser.row("notes/first")["value"] == "one of thousands")


class SlowTests(PageCase):
    def test_a_program_that_does_not_answer_is_named_until_it_does(self):
        self.addCleanup(self.page.process.send_signal, signal.SIGCONT)
        self.page.process.send_signal(signal.SIGSTOP)
        self.browser.search("milk")
        self.browser.wait(lambda: self.browser.text("#connection") == "The program has not answered yet.")
        self.page.process.send_signal(signal.SIGCONT)
        self.browser.wait(lambda: self.browser.text("#connection") == "")
        self.browser.wait(lambda: self.browser.names() == ["notes/first"])


class ManagedTests(PageCase):
    def setUp(self):
        self.managed = tempfile.mkdtemp(prefix="prefs-managed-")
        os.chmod(self.managed, 0o755)
        self.addCleanup(shutil.rmtree, self.managed)
        os.makedirs(os.path.join(self.managed, "notes.d", "locks"))
        self.environment = {"PREFS_MANAGED_DIR": self.managed}
        super().setUp()

    def test_what_an_administrator_locks_shows_at_once(self):
        path = os.path.join(self.managed, "notes.d", "locks", "10.json")
        with open(path + ".new", "w") as file:
            json.dump({"first": "locked text"}, file)
        os.rename(path + ".new", path)
        self.browser.wait(lambda: self.browser.row("notes/first")["value"] == "locked text")
        self.assertIn("locked", self.browser.row("notes/first")["classes"])
        os.remove(path)
        self.browser.wait(lambda: self.browser.row("notes/first")["value"] == "Bring the milk")


class TabTests(PageCase):
    def test_seven_tabs_of_a_browser_work_and_hear_of_changes(self):
        driver = self.browser.driver
        first = driver.current_window_handle
        self.addCleanup(self.close_others, first)
        for _ in range(6):
            address = self.page.another_address()
            driver.switch_to.new_window("tab")
            self.browser.open_list(address)
        self.store.prefs("set", "notes/count", "70")
        for handle in driver.window_handles:
            driver.switch_to.window(handle)
            self.browser.wait(lambda: self.browser.row("notes/count")["value"] == "70")
        # The one that listens goes, and another one takes its place.
        driver.switch_to.window(first)
        others = [handle for handle in driver.window_handles if handle != first]
        driver.close()
        driver.switch_to.window(others[0])
        self.store.prefs("set", "notes/count", "71")
        for handle in others:
            driver.switch_to.window(handle)
            self.browser.wait(lambda: self.browser.row("notes/count")["value"] == "71")

    def close_others(self, first):
        driver = self.browser.driver
        handles = driver.window_handles
        kept = first if first in handles else handles[0]
        for handle in handles:
            if handle != kept:
                driver.switch_to.window(handle)
                driver.close()
        driver.switch_to.window(kept)


if __name__ == "__main__":
    unittest.main()
