"""What libsecret does by Python's gi; prints what came of each step as JSON.

Usage: peers_libsecret.py MAIN, the last part of the path of the default collection.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import gi

gi.require_version("Secret", "1")
from gi.repository import Gio, GLib, Secret

SCHEMA = Secret.Schema.new(
    "org.example.Test", Secret.SchemaFlags.NONE,
    {"server": Secret.SchemaAttributeType.STRING, "port": Secret.SchemaAttributeType.INTEGER, "tls": Secret.SchemaAttributeType.BOOLEAN})
ATTRIBUTES = {"server": "h", "port": "443", "tls": "true"}
SEARCH = Secret.SearchFlags
done: dict[str, str] = {}


def step(name: str, action: Callable[[], object]):
    try:
        value = action()
        done[name] = str(value)
        return value
    except GLib.Error as error:
        done[name] = Gio.DBusError.get_remote_error(error) or f"{error.domain} {error.code}"
    except Exception as error:  # A step that another has failed.
        done[name] = type(error).__name__
    return None


def main() -> None:
    path = f"/org/freedesktop/secrets/collection/{sys.argv[1]}"
    store = lambda secret, attributes=ATTRIBUTES, label="One": Secret.password_store_sync(SCHEMA, attributes, None, label, secret, None)
    step("password_store", lambda: store("pass ä"))
    step("password_lookup", lambda: Secret.password_lookup_sync(SCHEMA, {"server": "h"}, None))
    step("password_lookup by a number", lambda: Secret.password_lookup_sync(SCHEMA, {"port": "443"}, None))
    step("password_lookup of nothing", lambda: Secret.password_lookup_sync(SCHEMA, {"server": "none"}, None))
    step("password_store again", lambda: store("newer"))
    step("password_store of another", lambda: store("other", {**ATTRIBUTES, "port": "80"}, "Two"))
    step("password_store of an empty text", lambda: store("", {"server": "empty"}))
    step("password_lookup of an empty text", lambda: repr(Secret.password_lookup_sync(SCHEMA, {"server": "empty"}, None)))
    found = lambda flags: [item.get_label() for item in Secret.password_search_sync(SCHEMA, {"server": "h"}, flags, None)]
    step("password_search, how many without ALL", lambda: len(found(SEARCH.NONE)))
    step("password_search ALL", lambda: sorted(found(SEARCH.ALL)))
    service = Secret.Service.get_sync(Secret.ServiceFlags.OPEN_SESSION | Secret.ServiceFlags.LOAD_COLLECTIONS, None)
    step("the algorithms of the session", lambda: service.get_session_algorithms())
    step("the labels of collections, how many", lambda: len(service.get_collections()))
    search = lambda flags: service.search_sync(SCHEMA, {"server": "h"}, flags, None)
    step("service_search with LOAD_SECRETS", lambda: sorted(
        item.get_secret().get_text() for item in search(SEARCH.ALL | SEARCH.UNLOCK | SEARCH.LOAD_SECRETS)))
    collection = Secret.Collection.for_alias_sync(service, "default", Secret.CollectionFlags.LOAD_ITEMS, None)
    step("the default collection", lambda: collection.get_object_path() == path)
    step("the collection of the session", lambda: Secret.Collection.for_alias_sync(service, "session", Secret.CollectionFlags.NONE, None).get_locked())
    step("an alias that is none", lambda: Secret.Collection.for_alias_sync(service, "none", Secret.CollectionFlags.NONE, None))
    value = lambda text, kind="text/plain": Secret.Value.new(text, -1, kind)
    item = step_item = Secret.Item.create_sync(
        collection, SCHEMA, {"server": "item"}, "Item", value("secret"), Secret.ItemCreateFlags.NONE, None)
    step("Item.create", lambda: (step_item.get_label(), step_item.get_locked(), sorted(step_item.get_attributes().items())))
    step("its schema", item.get_schema_name)
    again = lambda flags: Secret.Item.create_sync(collection, SCHEMA, {"server": "item"}, "Item", value("again"), flags, None)
    step("Item.create with REPLACE is the same item", lambda: again(Secret.ItemCreateFlags.REPLACE).get_object_path() == item.get_object_path())
    step("Item.set_label", lambda: (item.set_label_sync("Renamed", None), item.get_label()))
    step("Item.set_attributes", lambda: (item.set_attributes_sync(SCHEMA, {"server": "moved"}, None), item.get_attributes().get("server")))
    step("the item by its new attributes", lambda: Secret.password_lookup_sync(SCHEMA, {"server": "moved"}, None))
    step("the item by its former attributes", lambda: Secret.password_lookup_sync(SCHEMA, {"server": "item"}, None))
    step("Item.set_secret", lambda: item.set_secret_sync(value("changed", "text/x-other"), None))
    step("Item.load_secret", lambda: (item.load_secret_sync(None), item.get_secret().get_text(), item.get_secret().get_content_type()))
    step("Item.get_created is a time", lambda: item.get_created() > 1_000_000_000)
    step("Item.get_modified is not before", lambda: item.get_modified() >= item.get_created())
    step("Item.delete", lambda: item.delete_sync(None))
    step("Item.delete again", lambda: item.delete_sync(None))
    step("Collection.search", lambda: sorted(
        item.get_label() for item in collection.search_sync(SCHEMA, {"server": "h"}, SEARCH.ALL, None)))
    step("Collection.create", lambda: Secret.Collection.create_sync(
        service, "Made", None, Secret.CollectionCreateFlags(0), None).get_label())
    step("lock", lambda: service.lock_sync([collection], None)[0])
    step("locked then", lambda: Secret.Collection.for_alias_sync(service, "default", Secret.CollectionFlags.NONE, None).get_locked())
    step("password_lookup while locked", lambda: Secret.password_lookup_sync(SCHEMA, {"server": "h"}, None))
    step("password_store while locked", lambda: store("x", {"server": "locked"}))
    step("password_search while locked, how many", lambda: len(found(SEARCH.ALL)))
    step("unlock where no one can be asked", lambda: service.unlock_sync([collection], None)[0])
    print(json.dumps(done))


def after() -> None:
    """What is left, once it is unlocked from outside."""
    step("password_clear of several", lambda: Secret.password_clear_sync(SCHEMA, {"server": "h"}, None))
    step("password_clear of the rest", lambda: Secret.password_clear_sync(SCHEMA, {"server": "h"}, None))
    step("password_lookup of what is cleared", lambda: Secret.password_lookup_sync(SCHEMA, {"server": "h"}, None))
    print(json.dumps(done))


if __name__ == "__main__":
    after() if sys.argv[2:] == ["after"] else main()
