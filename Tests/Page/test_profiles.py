"""What browsers write to their profiles of what is typed into the page."""

import os
import time
import unittest

from cases import PageCase
from firefox import Firefox
from harness import Browser

PASSPHRASE = "correct horse"
TYPED = {"notes/first": "typed-text-7391", "vault/pin": "typed-sealed-7392", "mail/token": "typed-secret-7393"}


class ProfileCase(PageCase):
    def prepare(self):
        super().prepare()
        self.store.prefs("set", "vault/pin", "4711-sealed")
        self.store.seal("vault", PASSPHRASE)

    def assert_clean(self, contents):
        for name, data in contents:
            for text in [*TYPED.values(), "typed-passphrase-7394", "search-7395"]:
                self.assertNotIn(text.encode(), data, name)
                self.assertNotIn(text.encode("utf-16-le"), data, name)


@unittest.skipUnless(Firefox.is_there(), "there is no Firefox, or no Xvfb")
class FirefoxTests(ProfileCase):
    def setUp(self):
        super().setUp()
        self.firefox = Firefox()
        self.addCleanup(self.firefox.close)
        self.firefox.open(self.page.another_address())
        self.firefox.wait(lambda: self.firefox.text(".row"))

    def test_firefox_keeps_nothing_of_what_is_typed(self):
        firefox = self.firefox
        for name, text in TYPED.items():
            firefox.choose(name)
            firefox.type("#editor input, #editor textarea", text)
        firefox.choose("vault/pin")
        firefox.click("#reveal")
        firefox.type("#passphrase", "typed-passphrase-7394")
        # A field that it does keep shows that it has written, after what is typed above.
        firefox.script("""const field = document.createElement('textarea'); field.id = 'kept'; document.querySelector('dialog').append(field)""")
        firefox.type("#kept", "typed-kept-7396")
        firefox.wait(lambda: any(b"typed-kept-7396" in data for _, data in firefox.kept()), seconds=40)
        self.assert_clean(firefox.kept())
        self.assertTrue(firefox.script("return [...document.querySelectorAll('input:not(#kept), textarea:not(#kept), select')].every((node) => node.getAttribute('autocomplete') === 'off')"))


class ChromiumTests(ProfileCase):
    def test_chromium_keeps_nothing_of_what_is_typed(self):
        browser = Browser()
        self.addCleanup(browser.close)
        browser.open_list(self.page.another_address())
        for name, text in TYPED.items():
            browser.choose(name)
            browser.fill("#editor input, #editor textarea", text)
        browser.driver.execute_script("""const field = document.createElement('textarea'); field.id = 'kept'; document.body.append(field)""")
        browser.fill("#kept", "typed-kept-7396")

        def kept():
            contents = []
            for folder, _, names in os.walk(browser.profile):
                for name in names:
                    try:
                        with open(os.path.join(folder, name), "rb") as file:
                            contents.append((name, file.read()))
                    except OSError:
                        pass
            return contents

        marks = ["typed-kept-7396".encode(code) for code in ["utf-8", "utf-16-le"]]
        # It writes the state of a page when it is left.
        browser.driver.execute_script("window.onbeforeunload = null; history.pushState(null, '', '?left')")
        end = time.monotonic() + 20
        while time.monotonic() < end and not any(mark in data for _, data in kept() for mark in marks):
            time.sleep(0.2)
        self.assertTrue(any(mark in data for _, data in kept() for mark in marks))
        self.assert_clean(kept())


if __name__ == "__main__":
    unittest.main()
