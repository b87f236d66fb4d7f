"""Settings that are read from memory, and follow the store."""

from __future__ import annotations

import contextlib
import copy
import logging
import os
import queue
import random
import re
import threading
import time
import weakref
from typing import Any, Callable, Iterator, Sequence, TypedDict, TypeVar, Unpack, overload

from .child import Child, Line, checked, error_of
from .errors import CofferError, Conflict, Unavailable
from .values import NOTHING, Item, Secret, encode

T = TypeVar("T")
D = TypeVar("D")
Place = tuple[str, str]
Observer = Callable[[Item], object]
OPEN: weakref.WeakSet[Settings] = weakref.WeakSet()
CHANGES = {"set", "unset", "update", "transaction"}  # They are not sent to another child if the answer is missing.


class Options(TypedDict, total=False):
    """Those of `prefs set`."""

    type: str
    if_version: int
    expires_in: str
    expires_at: str
    due: str
    undeclared: bool


class Settings:
    """Collections of a store, as they are now.

    A child, `prefs serve`, runs for as long as this object is open. While it is away, for whatever reason, values stay as they
    were, `problem` says why, and it is started again.
    """

    def __init__(
        self, *collections: str, store: str | os.PathLike[str] | None = None, key_file: str | os.PathLike[str] | None = None,
        app: str | None = None, arguments: Sequence[str] = (), reveal: bool = False, program: str = "prefs", patience: float = 30,
    ) -> None:
        """Without collections, the default one. `arguments` are more of them for `prefs serve`; with `reveal`, secrets are in memory
        like other values. A request waits for `patience` seconds before it is `Unavailable`."""
        options = {"--store": store, "--key-file": key_file, "--app": app}
        self._command = [program, "serve", *arguments]
        self._command += [os.fspath(text) for name, value in options.items() if value is not None for text in (name, value)]
        self._wanted: Line = {"collections": list(collections or (app or "",)), "reveal": reveal}
        self._patience = patience
        self.problem: CofferError | None = None
        self._items: dict[Place, Item] = {}
        self._store = ""
        self._child: Child | None = None
        self._watch: int | None = None
        self._has_started = False
        self._delay = 0.05
        self._current, self._closing, self._lock = threading.Event(), threading.Event(), threading.Condition()
        self._observers: dict[object, tuple[tuple[str, str | None], Observer]] = {}
        self._changed: dict[Place, None] = {}
        OPEN.add(self)
        self._follower = threading.Thread(target=self._follow, name="coffer", daemon=True)
        self._follower.start()
        self._observing = threading.Thread(target=self._observe, name="coffer observers", daemon=True)
        self._observing.start()
        try:
            self._current.wait(patience)
            if not self._has_started:
                raise self.problem or Unavailable(f"prefs serve has not answered for {patience} s.")
        except BaseException:
            self.close()
            raise

    @overload
    def get(self, collection: str, key: str) -> Any: ...
    @overload
    def get(self, collection: str, key: str, kind: type[T]) -> T: ...
    @overload
    def get(self, collection: str, key: str, kind: type[T], default: D) -> T | D: ...

    def get(self, collection: str, key: str, kind: type[Any] = object, default: Any = NOTHING) -> Any:
        """The value, else its declared default, else `default`. "wrongType" if it is not of this kind; an int is a float, too, where that is exact."""
        item = self.item(collection, key)
        if default is not NOTHING and not item.is_set:
            return default
        value = item.value
        if kind is float and type(value) is int and float(value) == value:
            return float(value)
        if isinstance(value, kind) and (kind in (bool, object) or not isinstance(value, bool)):
            return value
        raise CofferError(f"{collection}/{key} has a value of type {type(value).__name__}, and {kind.__name__} was asked for.", "wrongType")

    def item(self, collection: str, key: str) -> Item:
        """The setting with its version and origin; one that is absent has version 0."""
        return self._items.get((collection, key)) or Item(self._followed(collection), key, store=self._store)

    def items(self, collection: str) -> list[Item]:
        """All that are set or have a default, by key, as of one moment."""
        self._followed(collection)
        with self._lock:
            items = [item for item in self._items.values() if item.collection == collection and item.is_set]
        return sorted(items, key=lambda item: item.key)

    def secret(self, collection: str, key: str) -> Secret:
        """A secret, which is asked for now, and not kept."""
        value = Item.of("", self.request("get", collection=collection, key=key, reveal=True)).value
        if isinstance(value, Secret):
            return value
        raise CofferError(f"{collection}/{key} has a value of type {type(value).__name__}, and is no secret.", "wrongType")

    def on_change(self, collection: str, key: str | None, observer: Observer) -> Callable[[], object]:
        """Calls `observer` with the newest item after changes of a key, or of any for None; on one thread for all. Returns what ends it."""
        entry = object()
        self._observers[entry] = ((self._followed(collection), key), observer)
        return lambda: self._observers.pop(entry, None)

    def set(self, collection: str, key: str, value: Any, **options: Unpack[Options]) -> Item:
        """Sets a value with all checks of `prefs set`. When this returns it is on the disk, and `get` has it."""
        # The item is of the store before: if another one takes its place, a check must fail.
        return Item.of(self._store, self.request("set", collection=collection, key=key, value=encode(value), **_members(options)))

    def unset(self, collection: str, key: str, **options: Unpack[Options]) -> Item:
        """Removes a value; a default may be in force then. Of the options, only `if_version` counts."""
        return Item.of(self._store, self.request("unset", collection=collection, key=key, **_members(options)))

    def update(self, collection: str, key: str, change: Callable[[Any], Any], **options: Unpack[Options]) -> Any:
        """Sets what `change` makes of the present value, or of None, and returns it; again if another program was faster."""
        item = self.item(collection, key)
        for attempt in range(1000):
            value = change(copy.deepcopy(item.value) if item.is_set else None)  # It may change a list in place, and fail.
            members = _members(options) | {"ifVersion": item.version, "reveal": self._wanted["reveal"]} | item.expected
            answer = self.request("update", collection=collection, key=key, value=encode(value), **members)
            if "conflict" not in answer:
                return value
            item = Item.of(answer.get("store", ""), answer["conflict"])
            time.sleep(random.random() * min(attempt, 20) / 1000)
        raise Conflict(f"Other programs changed {collection}/{key} each time; nothing was changed.")

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Changes that are made together, or not at all, at the end of a `with` block."""
        transaction = Transaction()
        yield transaction
        if transaction.changes or transaction.checks:
            store, answer = self._store, self.request("transaction", checks=transaction.checks, changes=transaction.changes)
            transaction.items = [Item.of(store, item) for item in answer["items"]]

    def request(self, do: str, **members: Any) -> Line:
        """Any request of the protocol; `ok` of its answer, or its error raised."""
        answers: queue.SimpleQueue[Line] = queue.SimpleQueue()
        late = Unavailable(f"prefs serve has not answered for {self._patience} s; a change may still be made.")

        def take(answer: Line) -> None:
            with self._lock:
                answers.put(answer)
                self.problem = None if self.problem is late else self.problem

        while True:
            is_current, child = self._current.wait(self._patience), self._child
            if self._closing.is_set() or not is_current or not child:
                reason = "The settings are closed." if self._closing.is_set() else "It has not sent the values."
                raise Unavailable(f"prefs serve does not run. {self.problem or reason}")
            try:
                child.send(do, members, take)
            except Unavailable:
                continue  # It has just ended: this waits for the next one.
            try:
                answer = answers.get(timeout=self._patience)
            except queue.Empty:
                with self._lock:
                    if answers.empty():
                        self.problem = self.problem or late
                raise late from None
            if do in CHANGES or "error" not in answer or answer["error"]["error"] != "unavailable":
                return checked(answer)

    def close(self) -> None:
        """Ends the child. Values can still be read."""
        self._closing.set()
        with self._lock:
            self._lock.notify_all()
        if child := self._child:
            child.close()
            self._follower.join(5)
            child.end()
        if threading.current_thread() is not self._observing:
            self._observing.join(5)

    def __enter__(self) -> Settings:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _followed(self, collection: str) -> str:
        if collection not in self._wanted["collections"]:
            raise CofferError(f'These settings do not follow the collection "{collection}": name it when they are opened.', "usage", 2)
        return collection

    def _leave(self) -> None:
        """In a forked process, which has no threads, and locks in any state."""
        self._current, self._closing, self._lock = threading.Event(), threading.Event(), threading.Condition()
        self._current.set()
        self._closing.set()
        if self._child:
            self._child.input.close()  # The child is that of the other process, and must not have its input from two.
        self._child, self.problem = None, Unavailable("The settings were opened before this process was forked; open them in it.")

    def _follow(self) -> None:
        """Starts one child after another."""
        while not self._closing.is_set():
            # In the place of a store that is away, another one would be empty.
            command = self._command + ["--must-exist"] * self._has_started
            problem: CofferError = Unavailable("prefs serve has ended.")
            try:
                self._child = child = Child(command, self._patience, self._notice)
                try:
                    if not self._closing.is_set():  # Else `close` may not have seen this child.
                        child.follow(self._begin)
                finally:
                    self._current.clear()
                    child.end()
            except CofferError as error:
                problem = error
            except Exception as error:
                problem = Unavailable(f"What prefs serve has sent is not understood: {error!r}.")
            with self._lock:
                self.problem = problem
            if not self._has_started:
                break
            self._closing.wait(self._delay)
            self._delay = min(self._delay * 2, 5)
        if self._has_started:
            self.problem = Unavailable("The settings are closed.")
        self._closing.set()
        self._current.set()  # So that nothing waits.
        with self._lock:
            self._lock.notify_all()

    def _begin(self, child: Child) -> None:
        def note(answer: Line) -> None:
            self._watch = checked(answer)["watch"]

        self._watch = None
        child.send("watch", {**self._wanted, "snapshots": True}, note)

    def _notice(self, notice: Line) -> None:
        if notice["watch"] != self._watch:
            return  # Of one that the program has asked for.
        with self._lock:
            if "unavailable" in notice:
                self.problem = error_of(notice["unavailable"])
                return
            if "items" in notice:
                self._store, former = notice["store"], self._items
                self._items = {(line["collection"], line["key"]): Item.of(self._store, line) for line in notice["items"] if _is_kept(line)}
                changed = [place for place in [*former, *self._items] if former.get(place) != self._items.get(place)]
                self._changed |= {place: None for place in changed if self._has_started}
                self._has_started, self._delay, self.problem = True, 0.05, None
                self._current.set()
            for line in (change["item"] for change in notice.get("changes", ())):
                place = line["collection"], line["key"]
                self._changed[place] = None
                if _is_kept(line):
                    self._items[place] = Item.of(self._store, line)
                else:
                    self._items.pop(place, None)
            self._lock.notify_all()

    def _observe(self) -> None:
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._changed or self._closing.is_set())
                changed, self._changed = self._changed, {}
            if not changed:
                return
            for collection, key in changed:
                for place, observer in list(self._observers.values()):
                    if place in ((collection, key), (collection, None)):
                        try:
                            observer(self.item(collection, key))
                        except BaseException:  # sys.exit() ends no thread, either.
                            logging.getLogger("coffer_client").exception("An observer of %s/%s failed.", collection, key)


class Transaction:
    """Collects changes; `items` are the settings after it."""

    def __init__(self) -> None:
        self.checks: list[Line] = []
        self.changes: list[Line] = []
        self.items: list[Item] = []

    def check(self, item: Item) -> None:
        """`Conflict`, and no change, unless the setting still has the version of this item, in the same store."""
        self.checks.append({"collection": item.collection, "key": item.key, "version": item.version} | item.expected)

    def set(self, collection: str, key: str, value: Any, **options: Unpack[Options]) -> None:
        self.changes.append({"set": {"collection": collection, "key": key, "value": encode(value), **_members(options)}})

    def unset(self, collection: str, key: str) -> None:
        self.changes.append({"unset": {"collection": collection, "key": key}})


def _members(options: Options) -> Line:
    if unknown := options.keys() - Options.__annotations__.keys():
        raise TypeError(f"There is no option {', '.join(sorted(unknown))}; there are {', '.join(Options.__annotations__)}.")
    if not isinstance(options.get("if_version", 0), int):
        raise TypeError("if_version is an int; 0 means that there must be no value.")
    return {re.sub("_(.)", lambda part: part[1].upper(), name): value for name, value in options.items()}


def _is_kept(item: Line) -> bool:
    """Whether there is anything to know of it; a stored value that does not fit is a problem without a value."""
    return "type" in item or "problem" in item


def _leave_all() -> None:
    for settings in list(OPEN):
        settings._leave()


os.register_at_fork(after_in_child=_leave_all)
