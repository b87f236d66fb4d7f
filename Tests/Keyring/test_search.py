"""Searches of the Secret Service of `prefs keyring`, which has an index of attributes."""

from __future__ import annotations

from services import ITEM, PROPERTIES, ROOT, SERVICE
from test_service import ServiceTestCase

import secretstorage


class Search(ServiceTestCase):
    def found(self, connection, **attributes: str) -> list[str]:
        """The values of `n` of what is found, as they were set, the newest first."""
        unlocked, locked = self.call(connection, ROOT, SERVICE, "SearchItems", "a{ss}", attributes)
        self.assertEqual(locked, [])
        return [self.call(connection, path, PROPERTIES, "Get", "ss", ITEM, "Attributes")[0][1]["n"] for path in unlocked]

    def test_items_are_found_by_their_present_attributes(self) -> None:
        self.serve()
        connection = self.connect()
        main = secretstorage.get_default_collection(connection)
        items = [main.create_item("", {"n": str(n), "even": str(n % 2 == 0), "a": "b"}, b"x", replace=False) for n in range(6)]
        self.assertEqual(self.found(connection, a="b"), ["5", "4", "3", "2", "1", "0"])
        self.assertEqual(self.found(connection, a="b", even="True"), ["4", "2", "0"])
        self.assertEqual(self.found(connection, a="b", n="3"), ["3"])
        self.assertEqual(self.found(connection, n="3", even="True"), [])
        self.assertEqual(self.found(connection, b="a"), [])
        self.assertEqual(len(self.found(connection)), 6)
        items[2].set_attributes({"n": "2", "even": "no longer"})
        items[4].delete()
        self.assertEqual(self.found(connection, even="True"), ["0"])
        self.assertEqual(self.found(connection, even="no longer"), ["2"])
        # The same attributes are the same item, also if another program has set it.
        again = main.create_item("", items[1].get_attributes(), b"y", replace=True)
        self.assertEqual(again.item_path, items[1].item_path)
        self.prefs("set", "--secret", "keyring/b=c&n=6#00112233445566aa", "-", text="x")
        self.assertEqual(main.create_item("", {"n": "6", "b": "c"}, b"y", replace=True).item_path[-16:], "00112233445566aa")
        self.assertEqual(self.found(connection, b="c"), ["6"])
        # Another program's changes, and all of them at once.
        key = next(key for key in self.keys() if "n=0" in key)
        self.prefs("unset", f"keyring/{key}")
        self.assertEqual(self.found(connection, even="True"), [])
        self.prefs("unset", "-c", "keyring", "--all", "--force")
        self.assertEqual(self.found(connection), [])
