"""Search words and their help, expiry and due date, and what leads to a terminal and back."""

import datetime
import json
import subprocess
import unittest

from selenium.webdriver.common.keys import Keys

from cases import PageCase
from program import Page


class SearchWordTests(PageCase):
    def expect(self, search, *names):
        self.browser.search(search)
        self.browser.wait(lambda: self.browser.names() == list(names))

    def test_words_search_by_type_time_author_and_state(self):
        self.store.prefs("set", "--force", "editor/size", "--int", "400")
        self.store.prefs("set", "notes/first", "Bring the bread", "--actor", "Ticket-7")
        self.store.prefs("set", "notes/later", "x", "--expires-in", "30d")
        self.expect("type:double", "editor/zoom")
        self.expect("type:array", "editor/recent")
        self.expect("type:int notes", "notes/count")
        self.expect("by:ticket-7", "notes/first")
        self.expect("changed:1h notes", "notes/count", "notes/first", "notes/later")
        self.expect("changed:2999-01-01")
        self.expect("is:problem", "editor/size")
        self.expect("is:secret", "mail/token")
        self.expect("is:expiring", "notes/later")
        self.expect("is:changed editor", "editor/size", "editor/theme")

    def test_an_author_is_known_from_the_moment_of_the_change(self):
        self.expect("by:ticket-8")
        self.store.prefs("set", "notes/count", "4", "--actor", "ticket-8")
        self.browser.wait(lambda: self.browser.names() == ["notes/count"])
        self.store.prefs("set", "notes/count", "5", "--actor", "ticket-9")
        self.browser.wait(lambda: self.browser.names() == [])

    def test_a_word_that_is_not_understood_says_what_it_takes(self):
        self.browser.search("is:broken")
        self.browser.wait(lambda: "is: takes changed, problem, secret" in self.browser.text("#empty"))
        self.browser.search("changed:soon")
        self.browser.wait(lambda: "changed:2d" in self.browser.text("#empty"))

    def test_a_colon_that_is_no_search_word_is_text(self):
        self.store.prefs("set", "notes/link", "https://example.org")
        self.expect("https://example", "notes/link")

    def test_the_question_mark_shows_the_words(self):
        self.browser.keys("?")
        self.browser.wait(lambda: "is:problem" in (self.browser.text("dialog") or ""))
        self.browser.keys(Keys.ESCAPE)
        self.browser.wait(lambda: not self.browser.all("dialog"))
        self.browser.click("#search")
        self.browser.keys("?")
        self.assertEqual(self.browser.one("#search").get_attribute("value"), "?")
        self.assertEqual(self.browser.all("dialog"), [])
        self.browser.click("#help")
        self.browser.wait(lambda: "by:ada" in (self.browser.text("dialog") or ""))


class DateTests(PageCase):
    def dates(self, key):
        item = json.loads(self.store.prefs("get", "--json", key))
        return item.get("expires"), item.get("due")

    def fill(self, selector, date):
        self.browser.driver.execute_script("""
            const field = document.querySelector(arguments[0]); field.value = arguments[1];
            field.dispatchEvent(new Event('input'))""", selector, date.strftime("%Y-%m-%dT%H:%M") if date else "")

    def test_an_expiry_and_a_due_date_are_shown_set_and_removed(self):
        later = datetime.datetime.now().replace(microsecond=0, second=0) + datetime.timedelta(days=30)
        self.browser.choose("notes/first")
        self.browser.click("#dates summary")
        self.fill("#expires", later)
        self.fill("#due", later - datetime.timedelta(days=7))
        self.browser.click("#save-dates")
        expires, due = self.browser.wait(lambda: all(self.dates("notes/first")) and self.dates("notes/first"))
        self.assertEqual(datetime.datetime.fromisoformat(expires).timestamp(), later.timestamp())
        self.assertEqual(datetime.datetime.fromisoformat(due).timestamp(), later.timestamp() - 7 * 86400)
        self.assertEqual(self.store.get("notes/first"), "Bring the milk")
        self.browser.wait(lambda: "Expires" in self.browser.text("#details dl") and "Renew by" in self.browser.text("#details dl"))
        self.browser.click("#remove-dates")
        self.browser.wait(lambda: self.dates("notes/first") == (None, None))
        self.browser.click("#undo")
        self.browser.wait(lambda: self.dates("notes/first") == (expires, due))

    def test_a_new_value_keeps_its_dates(self):
        self.store.prefs("set", "notes/first", "one", "--expires-in", "30d", "--due", "20d")
        before = self.dates("notes/first")
        self.browser.choose("notes/first")
        self.browser.wait(lambda: "Expires" in self.browser.text("#details dl"))
        self.browser.fill("#editor textarea", "two")
        self.browser.click("#save-one")
        self.wait_value("notes/first", "two")
        self.assertEqual(self.dates("notes/first"), before)

    def test_an_expiry_in_the_past_is_refused_and_nothing_is_sent(self):
        self.browser.choose("notes/first")
        self.browser.click("#dates summary")
        self.fill("#expires", datetime.datetime(2020, 1, 1))
        self.browser.click("#save-dates")
        self.browser.wait(lambda: "must be in the future" in self.browser.text("#dates"))
        self.assertEqual(self.dates("notes/first"), (None, None))

    def test_what_is_not_set_has_no_dates(self):
        self.browser.choose("editor/size")
        self.assertEqual(self.browser.all("#dates"), [])


class CommandTests(PageCase):
    def command(self, name):
        self.browser.choose(name)
        return self.browser.wait(lambda: self.browser.one("#copy-command").get_attribute("title"))

    def run_command(self, command):
        return subprocess.run(
            ["sh", "-c", command], env={**self.store.environment, "PATH": f"{self.store.binaries}:{self.store.environment['PATH']}"},
            capture_output=True, text=True, timeout=60)

    def test_a_copied_command_sets_the_same_value_in_a_shell(self):
        values = {
            "notes/plain": ["it's $HOME\nand `more`"], "notes/dash": ["--", "--looks like an option"], "notes/minus": ["--int", "-5"],
            "notes/double": ["--double", "1.5"], "notes/list": ["--array", '["a",1]'], "notes/day": ["--date", "2026-01-31T08:30:00Z"],
            "notes/data": ["--base64", "AAEC"], "notes/on": ["--bool", "true"],
        }
        for key, arguments in values.items():
            self.store.prefs("set", key, *arguments)
        self.store.prefs("set", "-c", "a/b", "c/d", "deep")
        for name in [*values, "a/b/c/d"]:
            place = ["-c", "a/b", "c/d"] if name == "a/b/c/d" else [name]
            before = json.loads(self.store.prefs("get", "--json", *place))
            self.browser.search(name.split("/")[-1])
            command = self.command(name)
            self.store.prefs("unset", *place)
            self.assertEqual(self.run_command(command).returncode, 0, command)
            after = json.loads(self.store.prefs("get", "--json", *place))
            self.assertEqual((after["type"], after["value"]), (before["type"], before["value"]), command)

    def test_no_command_holds_a_secret(self):
        self.assertEqual(self.command("mail/token"), "prefs set --secret mail/token")
        self.store.prefs("set", "vault/pin", "4711-sealed")
        self.store.seal("vault", "correct horse")
        self.assertEqual(self.command("vault/pin"), "prefs set --secret vault/pin")

    def test_a_link_opens_the_page_at_a_setting(self):
        self.browser.choose("editor/theme")
        self.assertEqual(self.browser.one("#copy-link").get_attribute("title"), "prefs ui editor/theme")
        for arguments in [("editor/theme",), ("-c", "editor", "theme")]:
            page = Page(self.store, *arguments)
            self.addCleanup(page.close)
            self.browser.open_list(page.address)
            self.browser.wait(lambda: self.browser.text("#details-title") == "editor/theme")
            self.browser.wait(lambda: self.browser.focused() == "select")

    def test_a_read_only_page_sets_no_dates(self):
        page = Page(self.store, "--read-only", "notes/first")
        self.addCleanup(page.close)
        self.browser.open_list(page.address)
        self.browser.wait(lambda: self.browser.text("#details-title") == "notes/first")
        self.assertEqual(self.browser.all("#dates"), [])


if __name__ == "__main__":
    unittest.main()
