"""A browser in front of the page that program.py serves."""

import contextlib
import os
import shutil
import tempfile

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from program import PATIENCE

# What the value of a row says: its text, or the state of its switch, its menu or its field.
SHOWN = """(cell) => {
  const control = cell.querySelector('input, select');
  return !control ? cell.textContent : control.type === 'checkbox' ? String(control.checked) : control.value;
}"""
NAME = "(row) => (row.querySelector('.collection')?.textContent ?? '') + row.querySelector('.key').textContent"


class Browser:
    """A Chromium of its own without a screen."""

    def __init__(self, width=1280, height=800, dark=False, arguments=(), settings=None):
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or shutil.which("chromium-browser") or ""
        self.profile = tempfile.mkdtemp(prefix="prefs-browser-")
        flags = [
            "--headless=new", f"--window-size={width},{height}", f"--user-data-dir={self.profile}",
            "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--force-prefers-reduced-motion",
            "--enable-precise-memory-info", *arguments,
        ]
        # Chromium's sandbox refuses to be root's.
        if os.geteuid() == 0:
            flags.append("--no-sandbox")
        for flag in flags:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        options.add_experimental_option("prefs", {"download.default_directory": self.profile, **(settings or {})})
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.driver.set_page_load_timeout(PATIENCE)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})

    def size(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def open(self, address):
        self.driver.get("about:blank")
        self.driver.get(address)

    def open_list(self, address):
        self.open(address)
        self.wait(lambda: self.rows())

    # Looking

    def wait(self, condition, seconds=PATIENCE, interval=0.02):
        """Waits until something is so, and returns what it is."""
        def attempt(_):
            try:
                return condition()
            except Exception as error:  # Elements redrawn meanwhile are searched again.
                if "stale element" in str(error) or "no such element" in str(error):
                    return None
                raise
        return WebDriverWait(self.driver, seconds, interval).until(attempt, str(condition))

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector):
        """The text of what is there; None where it is not."""
        return self.driver.execute_script(
            "return document.querySelector(arguments[0])?.innerText ?? null", selector)

    def rows(self):
        """The rows that are drawn, in their order: name, value, classes."""
        return self.driver.execute_script(f"""
            const [name, shown] = [{NAME}, {SHOWN}];
            return [...document.querySelectorAll('.row')].filter((row) => row.querySelector('.value'))
              .sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((row) => ({{
                name: name(row), value: shown(row.querySelector('.value')), summary: row.querySelector('.summary').textContent,
                classes: [...row.classList], index: Number(row.ariaRowIndex) - 1 }}))""")

    def row(self, name):
        return next((row for row in self.rows() if row["name"] == name), None)

    def names(self):
        return [row["name"] for row in self.rows()]

    def focused(self):
        return self.driver.execute_script("const n = document.activeElement; return n.id || n.tagName.toLowerCase()")

    def console(self):
        return [entry["message"] for entry in self.driver.get_log("browser") if "favicon" not in entry["message"]]

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(self.driver.get_screenshot_as_png())

    @contextlib.contextmanager
    def clock_stopped(self):
        """Stops the page's clock: what is marked for a moment stays marked, however long a look takes."""
        self.driver.execute_script("window.clock = Date.now; const now = Date.now(); Date.now = () => now")
        try:
            yield
        finally:
            self.driver.execute_script("Date.now = window.clock")

    # Doing

    def choose(self, name):
        """Clicks a row, and waits for the setting beside it."""
        # In one script: the rows may be drawn again between two.
        self.wait(lambda: self.driver.execute_script(f"""
            const name = {NAME};
            const row = [...document.querySelectorAll('.row')].find((row) => row.querySelector('.value') && name(row) === arguments[0]);
            row?.click(); return Boolean(row)""", name))
        self.wait(lambda: self.text("#details-title") == name)

    def search(self, text):
        box = self.one("#search")
        box.clear()
        box.send_keys(text)

    def fill(self, selector, text):
        def attempt():
            field = self.one(selector)
            field.send_keys(Keys.CONTROL, "a")
            field.send_keys(Keys.BACKSPACE)
            field.send_keys(text)
            return True
        self.wait(attempt)

    def keys(self, *keys):
        self.driver.switch_to.active_element.send_keys(*keys)

    def click(self, selector):
        def attempt():
            self.one(selector).click()
            return True
        self.wait(attempt)

    def press(self, word, within="body"):
        """Clicks the button that says so."""
        def attempt():
            button = next((b for b in self.all(f"{within} button") if b.is_displayed() and b.text.startswith(word)), None)
            if button:
                button.click()
            return button
        self.wait(attempt)

    def close(self):
        self.driver.quit()
        shutil.rmtree(self.profile, ignore_errors=True)
