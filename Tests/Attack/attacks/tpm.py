"""The key that a machine's TPM has sealed, on another machine."""

from __future__ import annotations

import contextlib
import shutil

from registry import attempt
from samples import refused
from workshop import Home, NotAllowed, Place, needs

from emulator import Emulator


@attempt("Files with a key that a TPM has sealed")
def elsewhere(threat) -> None:
    needs("swtpm", "tpm2_unseal")
    place = Place(Home(), "sealed-by-tpm")
    place.do("init")
    place.do("set", "web/token", "sesame")
    place.do("key", "recovery", "-o", place.folder / "recovery")
    slots = [line.split("\t") for line in place.do("key", "list", "--plain").decode().splitlines()]
    recovery = next(slot[0] for slot in slots if slot[1] == "recovery key")

    def without_key(command, *words, store=place.store, machine):
        return place.home.prefs(command, *words, "--store", store, "--no-input", environment=machine.environment)

    with contextlib.ExitStack() as machines:
        own, other = (Emulator(place.folder / name) for name in ("own", "other"))
        for machine in (own, other):
            machines.callback(machine.end)
        place.do("key", "add", "--tpm", environment=own.environment)
        if without_key("get", "web/token", machine=own).code != 0:
            raise NotAllowed("its own TPM does not open the store")
        threat.tried("the files beside another TPM", refused(without_key("get", "web/token", machine=other), 6))
        copy = place.folder / "copy.coffer"
        shutil.copy(place.store, copy)
        threat.tried(
            "the store without the file, beside its own TPM", refused(without_key("get", "web/token", store=copy, machine=own), 6)
        )
        threat.tried(
            "the only recovery key removed, so that the TPM is all there is",
            refused(without_key("key", "remove", recovery, "--force", machine=own), 11),
        )
        threat.tried("a backup with the TPM's key", refused(without_key("backup", place.folder / "backup", machine=own), 11))
    threat.tried("the files where there is no TPM", refused(without_key("get", "web/token", machine=own), 6))
