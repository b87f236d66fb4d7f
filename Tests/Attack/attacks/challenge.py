"""The store and the carrier of Documentation/Challenge, whose keys no one has: what can be tried at once."""

from __future__ import annotations

import hashlib
import os
import re
import shutil

from coffer_reader.envelope import Envelope
from coffer_reader.fleet import Fleet
from coffer_reader.fleet_objects import Invitation, load_folder
from registry import attempt
from samples import Outcomes
from teams import Host
from workshop import FOLDER, HERE, Home, NotAllowed, Place

CHALLENGE = HERE.parents[1] / "Documentation/Challenge"
README = (CHALLENGE / "README.md").read_text()


@attempt("A copy of the files is read")
def challenge_store(threat) -> None:
    for name, digest in re.findall(r"^\| `([^`]+)` \| `([0-9a-f]{64})` \|$", README, re.MULTILINE):
        if hashlib.sha256((CHALLENGE / name).read_bytes()).hexdigest() != digest:
            raise NotAllowed(f"Documentation/Challenge/{name} is another one than its README says")
    place, outcomes = Place(Home("challenge"), "challenge"), Outcomes()
    shutil.copy(CHALLENGE / "settings.coffer", place.store)
    for key in (bytes(32), b"\xff" * 32, bytes(range(32)), *(os.urandom(32) for _ in range(8))):
        place.write(place.key, key)
        outcomes.add(f"exit code {place.prefs('export', '--reveal').check(5).code}")
    output = place.folder / "saved.coffer"
    outcomes.add(f"exit code {place.prefs('salvage', '-o', output).check(5).code}")
    threat.tried(
        "the store of Documentation/Challenge, by zeros, other vectors' keys and random ones, and by salvage", outcomes,
        not output.exists(),
    )
    envelope = Envelope.parse(place.store.read_bytes())
    if {slot.kind for slot in envelope.slots} != {1, 2}:
        raise NotAllowed("the store of the challenge opens with other kinds of secrets")


@attempt("A contractor")
def challenge_carrier(threat) -> None:
    carrier = FOLDER / "challenge-carrier"
    shutil.copytree(CHALLENGE / "carrier", carrier)
    invitation = (CHALLENGE / "invitation").read_bytes()
    objects = load_folder(str(carrier))
    fleet = Fleet(objects, Invitation.parse(invitation.decode()))
    host = Host("challenge")
    host.do("fleet", "join", "-", "--at", f"file://{carrier}", input=invitation)
    threat.tried(
        "the carrier of Documentation/Challenge, with the invitation there",
        f"commit {fleet.number}: {host.values()}; {len(fleet.shared)} collections",
        host.values() == {"open": {"greeting": "Anyone may read this."}}
        and fleet.collections == ["open"]
        and len(fleet.shared) == 2
        and (fleet.number, fleet.author) == (4, "keeper"),
    )
