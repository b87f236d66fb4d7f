#!/usr/bin/env python3
"""Searches the rules of Documentation/FleetProtocol.md: with all guards no history of a few steps breaks a promise; without one of them, some does.

    fleet_model.py [GUARD ...]      (all guards, or the ones that are named)

Each world has a few hosts, a carrier that may do what an attacker or an accident makes it do, and a depth. All sequences of its steps are
tried; after each, every host syncs until nothing changes, and the promises are checked. A value stands for a change: no two changes set the same one.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, Iterable, NamedTuple, Optional

GUARDS = {
    "set": "1: a name counts once, however often it is listed",
    "verified renewal": "2: a renewed key seals the verified state",
    "author": "3: a record is signed by its author",
    "one content": "3: two contents of one change are two changes",
    "unshared is forgotten": "4: a collection that is no longer shared leaves the carrier and the hosts' rows",
    "descent": "5: descent is proved at any distance",
    "fork is a conflict": "5: an accepted fork is merged, never overwritten",
    "lost is not new": "5: what the carrier has lost is pushed again with its clock",
    "keys by collection": "6: a member has the keys of its collections and no others",
    "new key for less": "6: a collection that a member loses, or that is no longer shared, gets another key",
    "own collections": "6: a head changes only collections that its author has",
    "consent": "6: a host takes and gives only the collections agreed to there",
    "one clock": "7: all records of a transaction have one clock",
    "horizon": "8: removals are forgotten by a signed horizon",
    "no base, no opinion": "8: a joining host does not bring a removed setting back",
    "base is kept": "8: a host that leaves keeps what it was in step with, and joins again with it",
    "one key, one host": "9: an invitation admits one host",
    "clones": "9: a change by the own member is not always the own one",
    "authority first": "10: an authority does not wait for data",
    "freshness": "10: an invitation names the authority that it was made under",
    "own files": "11: each host writes files of its own in a folder that a tool copies",
}


class Broken(Exception):
    """A promise is broken."""


def search(start: Any, steps: Callable[[Any], Iterable[tuple]], check: Callable[[Any], None], depth: int) -> int:
    """Tries all sequences of steps; each is a name and the next state. Returns the number of states."""
    seen, layer = {start}, [(start, ())]
    check(start)
    for _ in range(depth):
        following = []
        for state, path in layer:
            for name, next_state in steps(state):
                if next_state in seen:
                    continue
                seen.add(next_state)
                try:
                    check(next_state)
                except Broken as error:
                    raise Broken(f"{error}: {', '.join(path + (name,))}") from None
                following.append((next_state, path + (name,)))
        layer = following
    return len(seen)


# MARK: Merging


class Record(NamedTuple):
    counter: int
    clock: int
    author: str
    value: Optional[str]
    """None for a removal."""


class Commit(NamedTuple):
    parent: Optional["Commit"]
    number: int
    records: tuple
    """Pairs of a key and its record."""
    horizon: int


class Host(NamedTuple):
    name: str
    member: str
    items: tuple = ()
    """Pairs of a key and its value."""
    dirty: tuple = ()
    """Pairs of a key and the clock of its change here."""
    rows: tuple = ()
    """Pairs of a key and the record that the host was in step with."""
    base: Optional[Commit] = None
    history: frozenset = frozenset()
    stopped: bool = False
    ahead: int = 0


class World(NamedTuple):
    time: int
    hosts: tuple
    head: Optional[Commit]
    superseded: frozenset = frozenset()
    """Values that a later change, made with knowledge of them, replaced or removed."""
    written: frozenset = frozenset()
    extra: Any = None


def put(pairs: tuple, key: str, value: Any) -> tuple:
    return tuple(sorted([pair for pair in pairs if pair[0] != key] + ([] if value is None else [(key, value)])))


TOLERATED = 4


class Engine:
    def __init__(self, guards: set):
        self.guards = guards

    def has(self, guard: str) -> bool:
        return guard in self.guards

    # MARK: Local changes

    def change(self, world: World, index: int, values: dict) -> World:
        """One transaction on a host."""
        host = world.hosts[index]
        now = world.time + host.ahead
        rows, items = dict(host.rows), dict(host.items)

        def follow(key: str) -> int:
            row = rows.get(key)
            return max(now, row.clock + 1) if row and row.clock <= now + TOLERATED else now

        superseded, written = set(world.superseded), set(world.written)
        for key, value in values.items():
            clock = max(follow(key) for key in values) if self.has("one clock") else follow(key)
            if key in items:
                superseded.add(items[key])
            if value is not None:
                written.add(value)
            host = host._replace(items=put(host.items, key, value), dirty=put(host.dirty, key, clock))
        return self.replace(world, index, host)._replace(
            time=world.time + 1, superseded=frozenset(superseded), written=frozenset(written)
        )

    @staticmethod
    def replace(world: World, index: int, host: Host) -> World:
        return world._replace(hosts=world.hosts[:index] + (host,) + world.hosts[index + 1 :])

    # MARK: Syncing

    def sync(self, world: World, index: int, accepting: bool = False) -> World:
        host, head = world.hosts[index], world.head
        if head is None or host.stopped and not accepting:
            return world
        if host.base is not None and head != host.base and not accepting and not self.descends(head, host.base):
            return self.replace(world, index, host._replace(stopped=True))
        merged = self.merge(host, head, world.time + host.ahead, accepting)
        if merged.stopped:
            return self.replace(world, index, merged)
        merged, head = self.push(merged, head)
        return self.replace(world, index, merged)._replace(head=head)

    def descends(self, head: Commit, base: Commit) -> bool:
        distance, earlier = 0, head
        while earlier is not None and earlier != base:
            if not self.has("descent") and distance == 2:
                # Too far to tell.
                return head.number > base.number
            distance, earlier = distance + 1, earlier.parent
        return earlier is not None

    def merge(self, host: Host, head: Commit, now: int, accepting: bool) -> Host:
        records, rows = dict(head.records), dict(host.rows)
        for key in sorted(set(records) | set(rows)):
            record, row = records.get(key), rows.get(key)
            host = self.merge_key(host, head, key, record, row, now, accepting)
            if host.stopped:
                return host
            if key in records or not (accepting or not self.has("horizon")):
                host = host._replace(rows=put(host.rows, key, record))
        return host._replace(base=head)

    def merge_key(self, host: Host, head: Commit, key: str, record: Any, row: Any, now: int, accepting: bool) -> Host:
        item, dirty = dict(host.items).get(key), dict(host.dirty).get(key)
        if record is None:
            lost = dirty if dirty is not None else row.clock if self.has("lost is not new") else now
            if row.value is None:
                if accepting and head.horizon <= host.base.number:
                    return host._replace(dirty=put(host.dirty, key, lost))
                return host._replace(rows=put(host.rows, key, None))
            if head.horizon > host.base.number:
                if self.has("horizon"):
                    return self.take(host, key, None, loses=dirty is not None)._replace(rows=put(host.rows, key, None))
                # Its user accepts a rollback, as the message says, and what is missing is pushed again.
                return host._replace(dirty=put(host.dirty, key, row.clock))
            return host._replace(dirty=put(host.dirty, key, lost)) if accepting else host._replace(stopped=True)
        if row is None:
            if host.base is None and self.has("no base, no opinion"):
                return self.take(host, key, record.value, loses=item not in (None, record.value))
            if item is None:
                # A row that was never in step looked like a removal.
                return host if dirty is not None else self.take(host, key, record.value)
            if record.value is None:
                return host._replace(dirty=put(host.dirty, key, dirty or now))
            return self.decide(host, key, record, dirty if dirty is not None else 0, now)
        if record[:3] == row[:3]:
            if record.value != row.value and self.has("one content"):
                return host if dirty is not None else self.take(host, key, record.value, loses=True)
            return host
        if accepting and self.has("fork is a conflict"):
            if record.value == item:
                return host._replace(dirty=put(host.dirty, key, None))
            return self.decide(host, key, record, dirty if dirty is not None else row.clock, now)
        if record.counter <= row.counter:
            return host._replace(dirty=put(host.dirty, key, row.clock)) if accepting else host._replace(stopped=True)
        if dirty is None:
            return self.take(host, key, record.value)
        if record.value == item:
            return host._replace(dirty=put(host.dirty, key, None))
        if record.author == host.member and not self.has("clones"):
            # Its own push, it thinks, that was cut off.
            return host if item is None else self.keep(host, record)
        if item is None and record.author != host.member:
            return self.take(host, key, record.value)
        if record.value is None:
            return host
        return self.decide(host, key, record, dirty, now)

    def decide(self, host: Host, key: str, record: Record, ours: int, now: int) -> Host:
        if record.clock > now + TOLERATED or (record.clock, record.author) < (ours, host.member):
            return self.keep(host, record)._replace(dirty=put(host.dirty, key, ours))
        return self.take(host, key, record.value, loses=True)

    @staticmethod
    def keep(host: Host, record: Record) -> Host:
        return host._replace(history=host.history | {record.value})

    @staticmethod
    def take(host: Host, key: str, value: Optional[str], loses: bool = False) -> Host:
        item = dict(host.items).get(key)
        if loses:
            host = host._replace(history=host.history | {item})
        return host._replace(items=put(host.items, key, value), dirty=put(host.dirty, key, None))

    def push(self, host: Host, head: Commit) -> tuple:
        if not host.dirty:
            return host, head
        records, items, rows = dict(head.records), dict(host.items), dict(host.rows)
        for key, clock in host.dirty:
            row = rows.get(key)
            records[key] = rows[key] = Record((row.counter if row else 0) + 1, clock, host.member, items.get(key))
        head = Commit(head, head.number + 1, tuple(sorted(records.items())), head.horizon)
        return host._replace(dirty=(), rows=tuple(sorted(rows.items())), base=head), head

    def forget(self, world: World) -> World:
        """A host whose clock is far ahead forgets all removals."""
        head = world.head
        kept = tuple(pair for pair in head.records if pair[1].value is not None)
        return world._replace(head=Commit(head, head.number + 1, kept, head.number))

    # MARK: Promises

    def check(self, world: World) -> None:
        for _ in range(3):
            for index in range(len(world.hosts)):
                world = self.sync(world, index)
        # A host that is stopped says so, and its user accepts.
        for index, host in enumerate(world.hosts):
            if host.stopped:
                world = self.replace(world, index, host._replace(stopped=False))
                world = self.sync(world, index, accepting=True)
        for _ in range(3):
            for index in range(len(world.hosts)):
                world = self.sync(world, index)
        running = [host for host in world.hosts if not host.stopped and host.base is not None]
        for host in running:
            if host.items != running[0].items:
                raise Broken(f"{host.name} and {running[0].name} are in step and different")
        present = {value for host in running for _, value in host.items}
        if present & world.superseded:
            raise Broken(f"{sorted(present & world.superseded)} is back")
        kept = present | world.superseded | {value for host in world.hosts for value in host.history}
        if world.written - kept:
            raise Broken(f"{sorted(world.written - kept)} is lost")
        for host in running:
            pair = {value.split(" of ")[1] for key, value in host.items if " of " in value}
            if len(pair) > 1:
                raise Broken("a transaction is torn")


def in_step(engine: Engine, hosts: list, values: dict) -> World:
    """Hosts that have these values."""
    world = World(0, tuple(Host(name, member) for name, member in hosts), Commit(None, 0, (), 0))
    world = engine.change(engine.sync(world, 0), 0, values)
    for index in range(len(hosts)):
        world = engine.sync(world, index)
    return world


# MARK: Worlds


def forks(engine: Engine) -> tuple:
    """Two branches, and a host that is shown the other one."""
    start = in_step(engine, [("a", "a"), ("b", "b")], {"k": "old"})
    start = start._replace(extra=start.head)

    def steps(world: World) -> Iterable[tuple]:
        for index, name in enumerate("ab"):
            yield f"{name} sets", engine.change(world, index, {"k": f"{name}{world.time}"})
            yield f"{name} syncs", engine.sync(world, index)
        yield "the carrier shows its other branch", world._replace(head=world.extra, extra=world.head)

    return start, steps, engine.check, 7


def rollbacks(engine: Engine) -> tuple:
    """A carrier that is put back to before a key was set, and a host that has missed the key's removal."""
    start = in_step(engine, [("b", "b"), ("a", "a")], {"other": "o"})
    start = start._replace(extra=start.head)

    def steps(world: World) -> Iterable[tuple]:
        if world.time == 1:
            yield "a sets", engine.change(world, 1, {"k": "new"})
        if "k" in dict(world.hosts[1].items):
            yield "a removes", engine.change(world, 1, {"k": None})
        for index, host in enumerate(world.hosts):
            if host.stopped:
                accepting = engine.replace(world, index, host._replace(stopped=False))
                yield f"{host.name} accepts", engine.sync(accepting, index, accepting=True)
            else:
                yield f"{host.name} syncs", engine.sync(world, index)
        if world.extra is not None:
            yield "the carrier is put back", world._replace(head=world.extra, extra=None)

    return start, steps, engine.check, 9


def second_content(engine: Engine) -> tuple:
    start = in_step(engine, [("a", "a"), ("b", "b"), ("w", "w")], {"k": "old"})

    def forge(world: World, record: Record) -> World:
        head = world.head
        return world._replace(head=Commit(head, head.number + 1, put(head.records, "k", record), head.horizon))

    def steps(world: World) -> Iterable[tuple]:
        record = dict(world.head.records)["k"]
        for index, name in enumerate("ab"):
            yield f"{name} syncs", engine.sync(world, index)
        yield "w writes", engine.sync(engine.change(engine.sync(world, 2), 2, {"k": f"w{world.time}"}), 2)
        if record.author == "w":
            yield "w writes it again", forge(world, record._replace(value=f"{record.value}'"))

    return start, steps, engine.check, 4


def transactions(engine: Engine) -> tuple:
    start = in_step(engine, [("a", "a"), ("b", "b"), ("c", "c")], {"user": "u", "password": "p"})
    start = engine.replace(start, 2, start.hosts[2]._replace(ahead=TOLERATED))

    def steps(world: World) -> Iterable[tuple]:
        for index, name in enumerate("abc"):
            yield f"{name} syncs", engine.sync(world, index)
        for index, name in enumerate("ab"):
            both = {key: f"{key} of {name}{world.time}" for key in ("user", "password")}
            yield f"{name} sets both", engine.change(world, index, both)
        if world.time == 1:
            yield "c sets one", engine.change(world, 2, {"user": "by c"})

    def check(world: World) -> None:
        if all(any(" of " in value for _, value in host.items) for host in world.hosts[:2]):
            engine.check(world)

    return start, steps, check, 7


def removals(engine: Engine) -> tuple:
    start = in_step(engine, [("a", "a"), ("b", "b")], {"k": "old", "other": "o"})

    def steps(world: World) -> Iterable[tuple]:
        for index, name in enumerate("ab"):
            yield f"{name} syncs", engine.sync(world, index)
        if "k" in dict(world.hosts[0].items):
            yield "a removes", engine.change(world, 0, {"k": None})
        yield "b changes", engine.change(world, 1, {"k": f"b{world.time}"})
        if any(record.value is None for _, record in world.head.records):
            yield "a clock far ahead forgets", engine.forget(world)
        leaver = world.hosts[1]
        if not leaver.dirty:
            joined = Host("b", f"b{world.time}", leaver.items)
            if engine.has("base is kept"):
                joined = leaver._replace(member=joined.member)
            yield "b leaves and joins", engine.sync(engine.replace(world, 1, joined), 1)
        if len(world.hosts) == 2 and world.head.horizon == 0:
            # What the fleet has forgotten, no one can tell from what is new.
            copy = world._replace(hosts=world.hosts + (Host("copy", "copy", (("k", "old"),)),))
            yield "a host with a copy joins", engine.sync(copy, 2)

    return start, steps, engine.check, 5


def clones(engine: Engine) -> tuple:
    start = in_step(engine, [("a", "a"), ("b", "b")], {"k": "old"})
    start = start._replace(hosts=start.hosts + (start.hosts[1]._replace(name="clone"),))

    def steps(world: World) -> Iterable[tuple]:
        for index in (1, 2):
            name = world.hosts[index].name
            yield f"{name} sets", engine.change(world, index, {"k": f"{name}{world.time}"})
            yield f"{name} syncs", engine.sync(world, index)
            if dict(world.hosts[index].items).get("k"):
                yield f"{name} removes", engine.change(world, index, {"k": None})

    return start, steps, lambda world: clone_check(engine, world), 5


def clone_check(engine: Engine, world: World) -> None:
    """A removal that was earlier than a change does not win."""
    engine.check(world)
    for _ in range(3):
        for index in range(len(world.hosts)):
            world = engine.sync(world, index)
    values = {value for host in world.hosts for _, value in host.items} | {v for host in world.hosts for v in host.history}
    if world.written - world.superseded - values:
        raise Broken("a clone's change is lost")


def resharing(engine: Engine) -> tuple:
    """A collection is dropped, a writer joins, and it is shared again. The state: shared, carrier's keys, and of each host items and rows."""
    everything = frozenset("12")
    start = (True, everything, ((everything, everything), (frozenset(), None)))

    def steps(state: tuple) -> Iterable[tuple]:
        shared, carrier, hosts = state
        if shared:
            kept = frozenset() if engine.has("unshared is forgotten") else carrier
            rows = tuple((items, frozenset() if engine.has("unshared is forgotten") and known is not None else known) for items, known in hosts)
            yield "a stops sharing", (False, kept, rows)
        else:
            yield "a shares again", (True, carrier, hosts)
        for index, (items, known) in enumerate(hosts):
            if not shared:
                # What is not shared is noted, and not taken.
                yield f"{index} syncs", (shared, carrier, hosts[:index] + ((items, (known or frozenset()) | carrier),) + hosts[index + 1 :])
                continue
            # Three ways: what was known, what is here, what is there.
            base = known or frozenset()
            taken = (items - (base - carrier)) | (carrier - base)
            after = (carrier - (base - items)) | (items - base)
            yield f"{index} syncs", (shared, after, hosts[:index] + ((taken, after),) + hosts[index + 1 :])

    def check(state: tuple) -> None:
        # No one has removed anything.
        if state[2][0][0] != everything:
            raise Broken("a collection is deleted on the host that has it")

    return start, steps, check, 5


def sets(engine: Engine) -> tuple:
    """Sums of copies, in a group of four elements: how often each of three records is listed."""
    signed = (1, 0, 0)

    def steps(state: tuple) -> Iterable[tuple]:
        for index in range(3):
            yield f"{'signed earlier planted'.split()[index]} listed once more", state[:index] + (state[index] + 1,) + state[index + 1 :]

    def check(state: tuple) -> None:
        accepted = state == signed if engine.has("set") else tuple(count % 4 for count in state) == signed
        if accepted and state != signed:
            raise Broken("a record is accepted that no writer committed")

    return signed, steps, check, 6


def planting(engine: Engine) -> tuple:
    """The state: what the carrier lists, what the admin has verified, and what is signed."""
    start = (frozenset({"a"}), frozenset({"a"}), frozenset({"a"}))

    def steps(state: tuple) -> Iterable[tuple]:
        listed, verified, _ = state
        yield "a reader plants", (listed | {"planted"}, verified, state[2])
        yield "the carrier hides", (listed - {"a"}, verified, state[2])
        if not engine.has("verified renewal"):
            yield "the admin renews", (listed, verified, listed)
        elif verified <= listed:
            yield "the admin renews", (verified, verified, verified)

    def check(state: tuple) -> None:
        if state[2] != state[1]:
            raise Broken("an admin signs what it has not verified")

    return start, steps, check, 3


def authors(engine: Engine) -> tuple:
    """The state: pairs of who wrote a record and in whose name, as accepted."""

    def steps(state: frozenset) -> Iterable[tuple]:
        for writer in ("admin", "w"):
            for name in ("admin", "w"):
                if writer == name or not engine.has("author"):
                    yield f"{writer} writes as {name}", state | {(writer, name)}

    def check(state: frozenset) -> None:
        if any(writer != name for writer, name in state):
            raise Broken("a record is in another's name")

    return frozenset(), steps, check, 2


def collections(engine: Engine) -> tuple:
    """The state: shared collections, which of them a contractor has, each one's key, the contractor's keys, all records that were ever on the
    carrier, with whether the contractor may read them, and what a host took. The carrier keeps what was on it."""
    names = ("payroll", "web")
    start = (frozenset(names), frozenset(), (1, 1), frozenset(), frozenset(), frozenset())

    def renewed(keys: tuple, name: str) -> tuple:
        if not engine.has("new key for less"):
            return keys
        return tuple(key + (known == name) for known, key in zip(names, keys))

    def key_of(keys: tuple, name: str) -> tuple:
        return (name, keys[names.index(name)]) if engine.has("keys by collection") else ("all", sum(keys))

    def steps(state: tuple) -> Iterable[tuple]:
        shared, has, keys, known, records, taken = state
        for name in names:
            if name not in shared:
                yield f"{name} is shared again", (shared | {name}, has, keys, known, records, taken)
                continue
            record = (name, key_of(keys, name), name in has)
            yield f"{name} is written", (shared, has, keys, known, records | {record}, taken)
            rest = renewed(keys, name)
            yield f"{name} is dropped", (shared - {name}, has - {name}, rest, known, records, taken)
            if name in has:
                yield f"{name} is taken from the contractor", (shared, has - {name}, rest, known, records, taken)
            else:
                # Under the present key it may read what is there.
                key = key_of(keys, name)
                readable = frozenset((of, by, may or (of, by) == (name, key)) for of, by, may in records)
                yield f"the contractor is invited for {name}", (shared, has | {name}, keys, known | {key}, readable, taken)
        yield "the admin shares sudo", (shared | {"sudo"}, has, keys, known, records, taken)
        if "sudo" in shared and not engine.has("consent"):
            yield "a host syncs", (shared, has, keys, known, records, taken | {"sudo"})

    def check(state: tuple) -> None:
        _, _, _, known, records, taken = state
        for name, key, may_read in records:
            if key in known and not may_read:
                raise Broken(f"a contractor reads {name}")
        if "sudo" in taken:
            raise Broken("a host takes what no one there agreed to")

    return start, steps, check, 5


def foreign_collections(engine: Engine) -> tuple:
    """A writer of one collection commits. The state: of the other one, the last entry that a member who has it signed, that of the head, that
    which a host has taken, and the last that it has seen."""
    start = (1, (1, True), (1, True), 1)

    def steps(state: tuple) -> Iterable[tuple]:
        signed, head, taken, seen = state
        if head == (signed, True):
            yield "a member who has it commits", (signed + 1, (signed + 1, True), taken, seen)
        yield "a writer changes it", (signed, (signed + 1, False), taken, seen)
        for earlier in range(1, signed):
            yield "a writer puts it back", (signed, (earlier, True), taken, seen)
        yield "the carrier is put right", (signed, (signed, True), taken, seen)
        if head[1] and head[0] >= taken[0] or not engine.has("own collections"):
            yield "the host syncs", (signed, head, head, max(seen, head[0]))

    def check(state: tuple) -> None:
        if not state[2][1]:
            raise Broken("a host takes a collection from a member who does not have it")
        if state[2][0] < state[3]:
            raise Broken("a host goes back in a collection")

    return start, steps, check, 6


def invitations(engine: Engine) -> tuple:
    """The state: who has a copy of the invitation's key, who acts as the member, whether its key was replaced."""

    def steps(state: tuple) -> Iterable[tuple]:
        acting, replaced = state
        for host in ("host", "thief"):
            if not (engine.has("one key, one host") and acting):
                if not replaced:
                    yield f"{host} joins", (acting | {host}, replaced)
        if acting and engine.has("one key, one host"):
            yield "the admin admits", (acting, True)

    def check(state: tuple) -> None:
        if len(state[0]) > 1:
            raise Broken("two hosts are one member")

    return (frozenset(), False), steps, check, 4


def authority(engine: Engine) -> tuple:
    """A member commits whenever the admin is about to. The state: the head that the admin read, the head, whether the member is removed, who is served an old copy."""
    start = (0, 0, 0, False, "none")

    def steps(state: tuple) -> Iterable[tuple]:
        read, head, tries, removed, joined = state
        if not removed:
            yield "the member commits", (read, head + 1, tries, removed, joined)
            yield "the admin reads", (head, head, tries, removed, joined)
            if read == head or engine.has("authority first"):
                yield "the admin publishes", (read, head, tries, True, joined)
            else:
                yield "the admin fails", (read, head, tries + 1, removed, joined)
        else:
            fresh = engine.has("freshness")
            yield "a host joins at an old copy", (read, head, tries, removed, "refused" if fresh else "old")

    def check(state: tuple) -> None:
        if state[2] >= 3:
            raise Broken("a member keeps the admin from removing it")
        if state[4] == "old":
            raise Broken("a removed member serves a host that was invited after its removal")

    return start, steps, check, 7


def folders(engine: Engine) -> tuple:
    """Two copies of a folder, and a tool that copies the newer file. The state: for each copy the commits in it, and which is newer."""
    start = (frozenset(), frozenset(), 0, frozenset())

    def steps(state: tuple) -> Iterable[tuple]:
        first, second, newer, written = state
        number = f"{len(written)}"
        yield "a commits", (first | {number}, second, 1, written | {number})
        yield "b commits", (first, second | {number}, 2, written | {number})
        if engine.has("own files"):
            yield "the tool copies", (first | second, first | second, 0, written)
        elif newer:
            both = first if newer == 1 else second
            yield "the tool copies", (both, both, 0, written)

    def check(state: tuple) -> None:
        if state[3] - state[0] - state[1]:
            raise Broken("a commit is lost")

    return start, steps, check, 4


WORLDS = {
    forks: ("descent", "fork is a conflict"),
    rollbacks: ("lost is not new",),
    second_content: ("one content",),
    transactions: ("one clock",),
    removals: ("horizon", "no base, no opinion", "base is kept"),
    clones: ("clones",),
    resharing: ("unshared is forgotten",),
    sets: ("set",),
    planting: ("verified renewal",),
    authors: ("author",),
    collections: ("keys by collection", "new key for less", "consent"),
    foreign_collections: ("own collections",),
    invitations: ("one key, one host",),
    authority: ("authority first", "freshness"),
    folders: ("own files",),
}


def main(arguments: list) -> int:
    failed = 0
    for world, guards in WORLDS.items():
        for missing in (None,) + guards:
            if arguments and missing not in arguments:
                continue
            engine = Engine(set(GUARDS) - {missing})
            name = world.__name__ if missing is None else f"{world.__name__} without \"{missing}\""
            try:
                count = search(*world(engine))
                outcome, is_right = f"nothing in {count} states", missing is None
            except Broken as error:
                outcome, is_right = str(error), missing is not None
            failed += not is_right
            print(f"{'ok' if is_right else 'WRONG'}: {name}: {outcome}", flush=True)
    print("all as expected" if failed == 0 else f"{failed} are wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
