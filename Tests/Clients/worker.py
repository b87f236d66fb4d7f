"""The client in Python, driven by lines of JSON: [name, argument…] in, {"ok": …} or {"error": name} out.

worker.mjs and go/main.go are the others.
"""

import json
import os
import sys
import threading

from coffer_client import CofferError, InvalidValue, Secret, Settings

settings = Settings(*sys.argv[1:], reveal="COFFER_REVEAL" in os.environ, patience=float(os.environ.get("COFFER_PATIENCE", 30)))
seen, changed = [], threading.Condition()


def note(item):
    with changed:
        seen.append([item.key, item.value if item.is_set else None])
        changed.notify_all()


def wake(item):
    with changed:
        changed.notify_all()


def wait(collection, key, value):
    """Until an observer has been called, and the value is this one."""
    with changed:
        return changed.wait_for(lambda: settings.get(collection, key, object, None) == value, 60)


def increment(collection, key, times):
    return [settings.update(collection, key, lambda value: (value or 0) + 1) for _ in range(times)][-1]


def lengthen(collection, key):
    """Appends to a secret that is in memory."""
    settings.update(collection, key, lambda secret: Secret(secret.text + "!"))
    return f"{settings.get(collection, key).text} {settings.item(collection, key)!r}"


def spoil(collection, key):
    """Changes a list in place, and then gives up."""

    def change(value):
        value["list"].append(5)
        raise InvalidValue("given up")

    settings.update(collection, key, change)


def write(collection, key, first, times, size):
    """Sets keys with numbers, and prints each number once it is acknowledged; reads meanwhile."""
    for number in range(first, first + times):
        try:
            settings.set(collection, f"{key}{number}", number)
            print(json.dumps({"acknowledged": number}), flush=True)
        except CofferError as error:
            assert error.name == "unavailable", error
        assert len(settings.get(collection, "large", str)) == size
    return None


def transaction(collection, key, version, *changes):
    with settings.transaction() as change:
        if key is not None:
            change.checks.append({"collection": collection, "key": key, "version": version})
        for name, value, *options in changes:
            change.unset(collection, name) if value is None else change.set(collection, name, value, **(options or [{}])[0])
    return [item.version for item in change.items]


def check(collection, key, value):
    """Sets a value if that in memory is the present one."""
    with settings.transaction() as change:
        change.check(settings.item(collection, key))
        change.set(collection, key, value)


DO = {
    "get": lambda collection, key: settings.get(collection, key),
    "default": lambda collection, key, value: settings.get(collection, key, type(value), value),
    "number": lambda collection, key: settings.get(collection, key, int),
    "item": lambda collection, key: [settings.item(collection, key).version, settings.item(collection, key).origin],
    "items": lambda collection: [item.key for item in settings.items(collection)],
    "values": lambda collection: {item.key: item.value for item in settings.items(collection)},
    "size": lambda collection, key: len(settings.get(collection, key, str)),
    "large": lambda collection, key, size: settings.set(collection, key, "é" * (size // 2)).version,
    "set": lambda collection, key, value, options={}: settings.set(collection, key, value, **options).version,
    "set-secret": lambda collection, key, value: settings.set(collection, key, Secret(value)).version,
    "secret": lambda collection, key: settings.secret(collection, key).text,
    "shown": lambda collection, key: f"{settings.item(collection, key)!r} {settings.secret(collection, key)}",
    "unset": lambda collection, key: settings.unset(collection, key).version,
    "copy": lambda collection, key, other: settings.set(collection, other, settings.get(collection, key)).version,
    "increment": increment, "lengthen": lengthen, "spoil": spoil, "write": write, "transaction": transaction, "check": check,
    "wait": wait,
    "describe": lambda collection, key: settings.request("describe", collection=collection, key=key)["type"],
    "observe": lambda collection, key: bool(settings.on_change(collection, key, note)),
    "seen": lambda: seen,
    "problem": lambda: settings.problem and settings.problem.name,
    "close": lambda: settings.close(),
}

for collection in sys.argv[1:]:
    settings.on_change(collection, None, wake)
print(json.dumps("ready"), flush=True)
for line in sys.stdin:
    name, *arguments = json.loads(line)
    try:
        answer = {"ok": DO[name](*arguments)}
    except CofferError as error:
        answer = {"error": error.name, "code": error.code, "message": str(error)}
    print(json.dumps(answer), flush=True)
