"""`prefs keyring` with many items and many calls. `measure` prints the figures of a release build, beside gnome-keyring's."""

from __future__ import annotations

import unittest

from load import Load, fill, idle, memory
from services import Prefs

ITEMS, CALLS = 10_000, 50_000
# What a release has to do; one for debugging does it, too.
SEARCH, SECRET = 5.0, 2.0  # milliseconds


class Many(unittest.TestCase):
    def test_searches_and_secrets_of_ten_thousand_items_are_quick_and_calls_leave_nothing(self) -> None:
        peer = Prefs()
        self.addCleanup(peer.close)
        fill(peer, ITEMS)
        service = peer.serve().pid
        load = Load(peer, ITEMS)
        medians = load.medians(50)
        self.assertLess(medians["a search for one item"], SEARCH, medians)
        self.assertLess(medians["a secret"], SECRET, medians)
        load.calls(CALLS // 5)
        before = memory(service)["RssAnon"]
        for _ in range(4):
            load.calls(CALLS // 5)
        self.assertLess(memory(service)["RssAnon"] - before, 2 << 10)
        # It looks once a second whether the vault was locked.
        self.assertLess(idle(service, 5), 0.02)


if __name__ == "__main__":
    unittest.main()
