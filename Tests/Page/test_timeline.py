"""The timeline: who changed what and when, and the ways back."""

import datetime
import json
import time
import unittest

from cases import PageCase


class TimelineTests(PageCase):
    def prepare(self):
        super().prepare()
        self.store.prefs("history", "--keep", "notes")
        self.store.prefs("set", "notes/first", "Bring the bread", "--actor", "ticket-7")
        self.store.prefs("set", "notes/new", "made later")

    def show(self):
        self.browser.click("#timeline")
        self.browser.wait(lambda: "notes/new" in (self.browser.text(".timeline ol") or ""))

    def entry(self, name, word):
        return self.browser.wait(lambda: next(
            (node for node in self.browser.all(".timeline li") if node.text.startswith(f"{name} {word}")), None))

    def test_shows_all_changes_with_time_author_and_difference_and_searches_them(self):
        self.show()
        text = self.entry("notes/first", "changed").text
        self.assertIn("ticket-7", text)
        self.assertIn("prefs", text)
        self.assertIn("Bring the", text)
        self.assertLessEqual(self.browser.driver.execute_script("const box = document.querySelector('dialog'); return box.scrollWidth - box.clientWidth"), 0)
        self.browser.fill(".timeline input[type=search]", "ticket-7")
        self.browser.wait(lambda: len(self.browser.all(".timeline li")) == 1)

    def test_one_change_is_put_back_in_three_clicks(self):
        self.show()
        self.browser.click("[aria-label='Put back notes/first as it was before']")
        text = self.browser.wait(lambda: "milk" in (self.browser.text("dialog .review") or "") and self.browser.text("dialog .review"))
        self.assertIn("notes/first", text)
        self.browser.press("Save", "dialog")
        self.wait_value("notes/first", "Bring the milk")
        self.browser.wait(lambda: "Saved notes/first" in self.browser.text("#messages"))
        self.browser.click("#undo")
        self.wait_value("notes/first", "Bring the bread")

    def test_a_setting_that_was_new_is_removed_and_one_that_was_removed_comes_back(self):
        self.show()
        self.entry("notes/new", "new").find_element("css selector", "button").click()
        self.browser.press("Save", "dialog")
        self.browser.wait(lambda: self.stored("notes/new") is None)
        self.browser.wait(lambda: not self.browser.all("dialog"))
        self.browser.click("#timeline")
        self.entry("notes/new", "removed").find_element("css selector", "button").click()
        self.browser.press("Save", "dialog")
        self.wait_value("notes/new", "made later")

    def moment_after_the_last_change(self):
        """A moment in milliseconds, as commits have them, once the clock is past it: what is changed from now on is later."""
        last = json.loads(self.store.prefs("log", "--json"))[0]["time"]
        moment = round(datetime.datetime.fromisoformat(last).timestamp() * 1000) + 1
        self.browser.wait(lambda: time.time_ns() // 1_000_000 > moment, interval=0.001)
        return moment / 1000

    def test_everything_is_put_back_to_a_moment_as_one_reviewed_transaction(self):
        moment = self.moment_after_the_last_change()
        self.store.prefs("set", "notes/first", "Bring the butter")
        self.store.prefs("set", "notes/first", "Bring the beer")
        self.store.prefs("unset", "notes/new")
        self.store.prefs("set", "notes/extra", "x")
        self.store.prefs("set", "editor/theme", "blue")
        self.browser.wait(lambda: self.browser.row("notes/extra"))
        self.show()
        self.browser.driver.execute_script("""
            const field = document.getElementById('moment'), date = new Date(arguments[0] * 1000);
            field.step = '0.001';
            field.value = new Date(date.getTime() - date.getTimezoneOffset() * 60000).toISOString().slice(0, -1)""", moment)
        self.browser.click("#go-back")
        text = self.browser.wait(lambda: self.browser.text("dialog .review"))
        for words in ["notes/first", "notes/new", "notes/extra"]:
            self.assertIn(words, text)
        # Its collection keeps no history.
        self.assertNotIn("editor/theme", text)
        self.assertIn("1 setting has changed since, but what was there before is not known", self.browser.text("dialog"))
        self.browser.press("Save 3 changes as one", "dialog")
        self.wait_value("notes/first", "Bring the bread")
        self.assertEqual(self.stored("notes/new"), "made later")
        self.assertIsNone(self.stored("notes/extra"))
        self.assertEqual(self.stored("editor/theme"), "blue")
        log = json.loads(self.store.prefs("log", "--json"))
        self.assertEqual(len({change["sequence"] for change in log[:3]}), 1)
        self.browser.wait(lambda: "Saved 3 changes as one." in self.browser.text("#messages"))
        self.browser.click("#undo")
        self.wait_value("notes/first", "Bring the beer")
        self.assertEqual(self.stored("notes/extra"), "x")

    def test_says_where_history_is_off_and_switches_it_on(self):
        self.show()
        self.assertIn("editor keeps no history", self.browser.text(".timeline"))
        for name in ["editor", "mail"]:
            self.assertIn(f"{name} keeps no history", self.browser.text(".timeline .notes"))
        self.browser.press("Keep it from now on", ".timeline .notes")
        self.browser.wait(lambda: "editor keeps no history" not in self.browser.text(".timeline .notes"))
        self.store.prefs("set", "editor/theme", "blue")
        self.browser.press("Close", "dialog")
        self.browser.click("#timeline")
        self.browser.wait(lambda: "dark → blue" in self.entry("editor/theme", "changed").text)

    def test_the_details_switch_it_on_too(self):
        self.browser.choose("editor/theme")
        self.browser.click("#history summary")
        self.browser.click("#keep-history")
        self.browser.wait(lambda: "Nothing was overwritten yet." in (self.browser.text(".history") or ""))

    def test_secrets_stand_there_by_their_lengths_and_what_is_sealed_not_at_all(self):
        self.store.prefs("history", "--keep", "mail")
        self.store.prefs("set", "mail/token", "--secret", "-", input="another-secret!")
        self.store.prefs("set", "vault/pin", "4711-sealed")
        self.store.seal("vault", "correct horse")
        self.show()
        self.assertIn("<secret: 14 bytes> → <secret: 15 bytes>", self.entry("mail/token", "changed").text)
        source = self.browser.driver.page_source
        for secret in ["hunter2-secret", "another-secret!", "4711-sealed"]:
            self.assertNotIn(secret, source)


class ReadOnlyTimelineTests(PageCase):
    arguments = ("--read-only",)

    def test_offers_no_way_back(self):
        self.browser.click("#timeline")
        self.browser.wait(lambda: "notes/first" in (self.browser.text(".timeline ol") or ""))
        self.assertEqual(self.browser.all(".timeline .back, #go-back, .timeline .notes button"), [])


if __name__ == "__main__":
    unittest.main()
