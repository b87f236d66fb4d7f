"""A store of 100,000 settings: how long the first row takes, and a search, and what the page needs of memory.

The limits hold for the tool as it is built for use; one for debugging has ten times as long, and 15 MB more: relocated pages of the
shared Swift libraries, which the other does not load. PREFS_RELEASE=1 says which it is.
"""

import os
import json
import statistics
import time
import unittest

from cases import BINARIES
from firefox import Firefox
from harness import Browser
from program import Page, Store

COUNT = 100_000
SLACK = 1 if os.environ.get("PREFS_RELEASE") else 10
SERVER_MB = 60 if os.environ.get("PREFS_RELEASE") else 75


class LargeCase(unittest.TestCase):
    """A store with 100,000 settings, and its page."""

    @classmethod
    def make_store(cls):
        cls.store = Store(BINARIES)
        cls.addClassCleanup(cls.store.close)
        path = os.path.join(cls.store.home, "many.json")
        with open(path, "w") as file:
            json.dump({f"setting-{n:06}": f"the value of number {n}, and a few words more" if n % 3 else n for n in range(COUNT)}, file)
        cls.store.prefs("import", path, "-c", "many")

    @classmethod
    def open_page(cls, what):
        start = time.monotonic()
        cls.page = Page(cls.store)
        cls.addClassCleanup(cls.page.close)
        print(f"\n{what}: prefs ui is there after {time.monotonic() - start:.2f} s")


class LargeTests(LargeCase):
    @classmethod
    def setUpClass(cls):
        cls.make_store()
        cls.open_page("100,000 settings")
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)
        cls.browser.open_list(cls.page.address)

    def test_the_first_row_is_painted_within_half_a_second_of_opening(self):
        painted = self.browser.driver.execute_script("return performance.getEntriesByName('first-row')[0].startTime")
        print(f"\n100,000 settings: the first row is there {painted:.0f} ms after opening")
        self.assertLess(painted, 500 * SLACK)
        self.assertEqual(self.browser.text("#count"), "100,000 settings")

    def test_a_search_is_answered_within_100_ms_as_it_is_typed(self):
        times = self.browser.driver.execute_async_script("""
            const done = arguments[0];
            const box = document.getElementById('search');
            const count = document.getElementById('count');
            (async () => {
              const times = [];
              for (let round = 0; round < 20; round += 1) {
                const before = count.textContent;
                const start = performance.now();
                box.value = `number ${round + 1}7`;
                box.dispatchEvent(new Event('input'));
                await new Promise((resolve) => {
                  const observer = new MutationObserver(() => { observer.disconnect(); resolve(); });
                  observer.observe(count, { childList: true, characterData: true, subtree: true });
                });
                await new Promise((resolve) => requestAnimationFrame(resolve));
                times.push(performance.now() - start);
              }
              box.value = ''; box.dispatchEvent(new Event('input'));
              done(times);
            })();""")
        print(f"\n100,000 settings: a search takes {statistics.median(times):.0f} ms, the longest {max(times):.0f} ms")
        self.assertEqual(len(times), 20)
        self.assertLess(statistics.median(times), 100 * SLACK)

    def test_another_order_is_there_in_a_moment(self):
        self.browser.wait(lambda: self.browser.text("#count") == "100,000 settings")
        times = {}
        for order, first in [("time", "document.querySelector('#row-0 .type').textContent.match(/\\d/)"), ("sections", "document.querySelector('.fold')"),
                             ("name", "!document.querySelector('.fold')")]:
            times[order] = self.browser.driver.execute_async_script(f"""
                const done = arguments[0], menu = document.getElementById('order'), start = performance.now();
                menu.value = '{order}';
                menu.dispatchEvent(new Event('change'));
                const look = () => {first} ? done(performance.now() - start) : requestAnimationFrame(look);
                look();""")
        print("\n100,000 settings: " + ", ".join(f"in the order of {name} after {taken:.0f} ms" for name, taken in times.items()))
        self.assertLess(max(times.values()), 500 * SLACK)

    def test_it_scrolls_to_the_end_and_holds_few_rows_and_little_memory(self):
        self.browser.search("")
        self.browser.wait(lambda: self.browser.text("#count") == "100,000 settings")
        for part in range(1, 21):
            self.browser.driver.execute_script(
                "const l = document.getElementById('list'); l.scrollTop = l.scrollHeight * arguments[0] / 20", part)
            time.sleep(0.1)
        self.browser.wait(lambda: "many/setting-099999" in self.browser.names())
        self.assertLess(self.browser.driver.execute_script("return document.querySelectorAll('.row').length"), 60)
        memory = self.browser.driver.execute_async_script("""
            const done = arguments[0];
            Promise.resolve(performance.memory.usedJSHeapSize).then(done)""")
        process = self.memory_of_page()
        with open(f"/proc/{self.page.process.pid}/smaps_rollup") as file:
            server = sum(int(line.split()[1]) for line in file if line.startswith("Private_")) / 1024
        print(f"\n100,000 settings: prefs ui holds {server:.0f} MB")
        self.assertLess(server, SERVER_MB)
        print(f"\n100,000 settings: the page holds {memory / 1e6:.1f} MB, its process {process / 1e6:.0f} MB")
        self.assertLess(memory, 200e6)
        self.assertLess(process, 200e6)

    # At twice the size the rows need more than a browser lets an element be high, as a million rows do otherwise.
    SCROLLED = """
        const list = document.getElementById('list');
        const pause = () => new Promise((resolve) => setTimeout(resolve, 300));
        const shown = () => {
          const box = list.getBoundingClientRect();
          return [...document.querySelectorAll('.row')].filter((row) => {
            const { top, bottom } = row.getBoundingClientRect();
            return bottom > box.top + 1 && top < box.bottom - 1;
          }).map((row) => Number(row.getAttribute('aria-rowindex'))).sort((a, b) => a - b);
        };
        document.documentElement.style.fontSize = '200%';
        await pause();
        const seen = { height: document.getElementById('rows').offsetHeight };
        list.scrollTop = list.scrollHeight; await pause(); seen.end = shown();
        list.scrollTop = list.scrollHeight / 2; await pause(); seen.middle = shown();
        list.dispatchEvent(new WheelEvent('wheel', { deltaY: 96, bubbles: true, cancelable: true })); await pause(); seen.step = shown();
        list.dispatchEvent(new KeyboardEvent('keydown', { key: 'End' })); await pause(); seen.key = shown();
        list.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowUp' })); await pause(); seen.up = shown();
        list.scrollTop = 0; await pause(); seen.start = shown();
        document.documentElement.style.fontSize = '';
        return seen;"""

    def assert_reached(self, seen):
        self.assertLess(seen["height"], 17_000_000)
        self.assertEqual(seen["end"][-1], COUNT)
        self.assertEqual(seen["middle"], list(range(seen["middle"][0], seen["middle"][0] + len(seen["middle"]))))
        self.assertAlmostEqual(seen["middle"][0], COUNT / 2, delta=50)
        self.assertEqual(seen["step"][0], seen["middle"][0] + 1)
        self.assertEqual(seen["key"][-1], COUNT)
        self.assertEqual(seen["up"], seen["key"])
        self.assertEqual(seen["start"][0], 1)

    def test_rows_beyond_the_greatest_height_of_an_element_are_reached_in_chromium(self):
        self.assert_reached(self.browser.driver.execute_async_script(
            f"const done = arguments[0]; (async () => {{ {self.SCROLLED} }})().then(done)"))

    @unittest.skipUnless(Firefox.is_there(), "there is no Firefox, or no Xvfb")
    def test_rows_beyond_the_greatest_height_of_an_element_are_reached_in_firefox(self):
        firefox = Firefox()
        self.addCleanup(firefox.close)
        firefox.open(self.page.another_address())
        firefox.wait(lambda: firefox.text(".row"))
        firefox.script(f"(async () => {{ {self.SCROLLED} }})().then((seen) => {{ document.documentElement.dataset.seen = JSON.stringify(seen); }})")
        self.assert_reached(json.loads(firefox.wait(lambda: firefox.script("return document.documentElement.dataset.seen ?? null"))))

    def memory_of_page(self):
        """The private memory of the largest renderer of this browser, in bytes."""
        sizes = []
        for process in os.listdir("/proc"):
            try:
                with open(f"/proc/{process}/cmdline") as file:
                    words = file.read()
                if self.browser.profile not in words and "--type=renderer" not in words:
                    continue
                if "--type=renderer" not in words or not self.is_ours(process):
                    continue
                with open(f"/proc/{process}/smaps_rollup") as file:
                    lines = file.read().split("\n")
                sizes.append(sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_")))
            except (OSError, ProcessLookupError):
                continue
        return max(sizes)

    def is_ours(self, process):
        """Whether a process descends from this test's own driver."""
        driver = self.browser.driver.service.process.pid
        while process not in ("0", "1"):
            with open(f"/proc/{process}/stat") as file:
                process = file.read().rsplit(")", 1)[1].split()[1]
            if int(process) == driver:
                return True
        return False


class LargeColumnTests(LargeCase):
    """As many settings with an environment beside them: twice as many rows for the list, as many for the columns."""

    @classmethod
    def setUpClass(cls):
        cls.make_store()
        cls.store.prefs("env", "create", "many@staging")
        for place in [7, COUNT - 11]:
            cls.store.prefs("set", f"many@staging/setting-{place:06}", "other")
        cls.open_page("100,000 settings and an environment")
        cls.session = cls.page.session()

    def timed(self, name, limit, **request):
        """The answer with a part of the columns, once it was there within `limit` milliseconds (median of five)."""
        times = []
        for _ in range(5):
            start = time.monotonic()
            status, _, body = self.page.call("list", {"columns": True, "limit": 100, **request}, self.session)
            times.append((time.monotonic() - start) * 1000)
            self.assertEqual(status, 200)
            if "search" in request:
                # Another word, so that nothing is remembered.
                request["search"] += "7"
        print(f"\n100,000 settings as columns: {name} after {statistics.median(times):.0f} ms, the longest {max(times):.0f} ms")
        self.assertLess(statistics.median(times), limit * SLACK)
        return json.loads(body)

    def test_columns_are_answered_in_parts_and_in_little_memory(self):
        first = self.timed("the first part", 200)
        self.assertEqual([len(first["rows"]), first["total"]], [100, COUNT])
        last = self.timed("the last part", 200, offset=COUNT - 100)
        self.assertEqual(last["rows"][-1]["key"], f"setting-{COUNT - 1:06}")
        self.assertGreater(self.timed("a search", 200, search="number 1")["total"], 0)
        different = self.timed("what differs", 200, onlyDifferent=True)
        self.assertEqual([row["key"] for row in different["rows"]], ["setting-000007", f"setting-{COUNT - 11:06}"])
        with open(f"/proc/{self.page.process.pid}/smaps_rollup") as file:
            memory = sum(int(line.split()[1]) for line in file if line.startswith("Private_")) / 1024
        print(f"\n100,000 settings as columns: prefs ui holds {memory:.0f} MB")
        self.assertLess(memory, 100)


if __name__ == "__main__":
    unittest.main()
