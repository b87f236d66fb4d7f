"""What the tests of the page begin with."""

import os
import pathlib
import unittest

from harness import Browser
from program import Page, Store

BINARIES = os.environ["PREFS_BINARIES"]
PICTURES = pathlib.Path(__file__).parents[2] / "Sources/Coffer/Coffer.docc/Images"

DECLARATIONS = [
    {"name": "theme", "collection": "editor", "type": "string", "default": "light",
     "limits": [{"choices": ["light", "dark", "blue"]}], "summary": "The colour theme of the window"},
    {"name": "size", "collection": "editor", "type": "int", "default": 14, "limits": [{"minimum": 6, "maximum": 72}],
     "summary": "The font size, in points", "effect": "restart", "since": "2.0"},
    {"name": "autosave", "collection": "editor", "type": "bool", "default": False,
     "summary": "Save a document when its window loses the focus"},
    {"name": "greeting", "collection": "editor", "type": "string", "default": "Hello",
     "limits": [{"minimumCount": 1, "maximumCount": 200}], "summary": "The text of a new document"},
    {"name": "backup-after", "collection": "editor", "type": "date", "summary": "The time of the next backup"},
    {"name": "recent", "collection": "editor", "type": "array<string>", "default": [], "summary": "Recently opened documents"},
    {"name": "shortcuts", "collection": "editor", "type": "dict<string>", "default": {}, "summary": "Keyboard shortcuts"},
    {"name": "logo", "collection": "editor", "type": "data", "summary": "The picture at the top of each page"},
    {"name": "zoom", "collection": "editor", "type": "double", "default": 1.0, "limits": [{"minimum": 0.25, "maximum": 4}],
     "summary": "How much a page is enlarged"},
    {"name": "old-theme", "collection": "editor", "type": "string", "deprecated": "Use theme.", "summary": "The former colour theme"},
    {"name": "token", "collection": "mail", "type": "secret", "summary": "What the mail server knows us by"},
    {"name": "host", "collection": "mail", "type": "string", "default": "localhost", "summary": "The mail server"},
]


# Holds back the answers to requests for a setting, until release() is called: those of the "user", who opens it, or those that the
# page makes by "itself".
HOLD = """
    const [real, whose] = [window.fetch, arguments[0]];
    window.held = [];
    window.holding = true;
    window.release = () => window.held.splice(0).forEach((resolve) => resolve());
    window.fetch = async (path, options) => {
      const answer = await real(path, options);
      const isAutomatic = 'X-Coffer-Automatic' in options.headers;
      if (window.holding && path.endsWith('api/setting') && isAutomatic === (whose === 'itself')) {
        await new Promise((resolve) => window.held.push(resolve));
      }
      return answer;
    }"""


class PageCase(unittest.TestCase):
    """A store with declared settings, its page, and a browser that is shared."""

    arguments = ()
    environment = None
    browser = None

    @classmethod
    def setUpClass(cls):
        if PageCase.browser is None:
            PageCase.browser = Browser()
            unittest.addModuleCleanup(PageCase.end)

    @staticmethod
    def end():
        PageCase.browser.close()
        PageCase.browser = None

    def setUp(self):
        self.store = Store(BINARIES)
        self.addCleanup(self.store.close)
        self.prepare()
        self.page = Page(self.store, *self.arguments, environment=self.environment)
        self.addCleanup(self.page.close)
        # The page of the test before looks for its program, in vain, until it is left.
        self.browser.driver.get("about:blank")
        self.browser.console()
        self.browser.open_list(self.page.address)

    def prepare(self):
        self.store.prefs("set", "editor/theme", "dark")
        self.store.prefs("set", "mail/token", "--secret", "-", input="hunter2-secret")
        self.store.prefs("set", "notes/first", "Bring the milk")
        self.store.prefs("set", "notes/count", "--int", "3")
        self.store.declare(DECLARATIONS)

    def another_page(self, browser=None):
        """A second tab of the same program."""
        tab = browser or Browser()
        self.addCleanup(tab.close)
        tab.open_list(self.page.another_address())
        return tab

    def wait_value(self, key, value):
        self.browser.wait(lambda: self.stored(key) == value)

    def stored(self, key):
        """What the store has, as text; None where it has nothing."""
        import subprocess
        run = subprocess.run(
            [os.path.join(BINARIES, "prefs"), "get", "--show-origin", key], env=self.store.environment, capture_output=True,
            text=True)
        origin, _, text = run.stdout.partition("\t")
        return text.rstrip("\n") if run.returncode == 0 and origin == "store" else None
