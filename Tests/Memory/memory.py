"""The memory of another process, as root reads it, and what is in it."""

from __future__ import annotations

import base64
import dataclasses
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clients/reader"))

import coffer_reader.vault
from coffer_reader.keys import Key


@dataclasses.dataclass
class Mapping:
    """A part of what a process can read."""

    line: str
    flags: list[str]
    contents: bytes

    @property
    def is_dumped(self) -> bool:
        """Whether the kernel takes it into a core dump: not with the flag `dd`, which MADV_DONTDUMP sets (proc_pid_smaps(5))."""
        return "dd" not in self.flags


def mappings(process: int) -> list[Mapping]:
    """What the process can read."""
    found, line = [], ""
    with open(f"/proc/{process}/mem", "rb", 0) as memory:
        for row in pathlib.Path(f"/proc/{process}/smaps").read_text().splitlines():
            if re.match(r"[0-9a-f]+-[0-9a-f]+ ", row):
                line = row
            # The last row of a mapping. The kernel's own cannot be read.
            elif row.startswith("VmFlags:") and line.split()[1][0] == "r" and "[vvar" not in line and "[vsyscall]" not in line:
                start, stop = (int(part, 16) for part in line.split(" ", 1)[0].split("-"))
                found.append(Mapping(line, row.split()[1:], contents_of(memory, start, stop)))
    return found


def contents_of(memory, start: int, stop: int) -> bytes:
    memory.seek(start)
    contents = b""
    while start + len(contents) < stop:
        try:
            part = memory.read(stop - start - len(contents))
        except OSError:  # What the process itself has closed.
            break
        if not part:
            break
        contents += part
    return contents


def forms(secret: bytes) -> dict[str, bytes]:
    """A secret as programs may have it in memory."""
    text = {"raw": secret, "hexadecimal": secret.hex().encode(), "HEXADECIMAL": secret.hex().upper().encode()}
    for encoding in ("utf-16-le", "utf-32-le"):
        try:
            text[encoding] = secret.decode().encode(encoding)
        except UnicodeDecodeError:
            pass
    # Its base64, wherever it begins in a longer text: without the ends, which depend on what is around.
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + secret).rstrip(b"=")
        text[f"base64, shifted by {shift}"] = encoded[4 if shift else 0 : len(encoded) - 2]
    return text


@dataclasses.dataclass
class Find:
    """A secret in memory, with the bytes around it."""

    name: str
    form: str
    mapping: Mapping
    at: int
    around: bytes

    def __str__(self) -> str:
        return f"{self.name}, {self.form}, at {self.at:#x} of {' '.join(self.mapping.line.split())}: {self.around!r}"


def find(process: int, secrets: dict[str, bytes]) -> list[Find]:
    """Where any of the secrets is, in whatever form."""
    maps = mappings(process)
    found = []
    for name, secret in secrets.items():
        for form, wanted in forms(secret).items():
            for mapping in maps:
                at = mapping.contents.find(wanted)
                while at >= 0:
                    around = mapping.contents[max(0, at - 48) : at + len(wanted) + 48]
                    found.append(Find(name, form, mapping, at, around))
                    at = mapping.contents.find(wanted, at + 1)
    return found


def keys_of_vault(store: pathlib.Path, store_key: Key, secret: Key) -> dict[str, bytes]:
    """The key that the slots open, and those derived from it, as the reader of the format finds them."""
    found: dict[str, bytes] = {}
    derive = coffer_reader.vault.hkdf

    def noting(key: bytes, salt: bytes, info: str) -> bytes:
        found["key of the vault"] = key
        found[info] = derive(key, salt, info)
        return found[info]

    coffer_reader.vault.hkdf = noting
    try:
        coffer_reader.read(store, store_key, secret)
    finally:
        coffer_reader.vault.hkdf = derive
    return found
