"""The memory of another process, as root reads it, and what is in it."""

from __future__ import annotations

import base64
import pathlib


def mappings(process: int) -> list[tuple[str, bytes]]:
    """What the process can read: the line of each mapping, and its bytes."""
    found = []
    with open(f"/proc/{process}/mem", "rb", 0) as memory:
        for line in pathlib.Path(f"/proc/{process}/maps").read_text().splitlines():
            start, stop = (int(part, 16) for part in line.split(" ", 1)[0].split("-"))
            # The kernel's own cannot be read, nor what the process itself has closed.
            if line.split()[1][0] != "r" or "[vvar" in line or "[vsyscall]" in line:
                continue
            memory.seek(start)
            contents = b""
            while start + len(contents) < stop:
                try:
                    part = memory.read(stop - start - len(contents))
                except OSError:
                    break
                if not part:
                    break
                contents += part
            found.append((line, contents))
    return found


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


def find(process: int, secrets: dict[str, bytes]) -> list[str]:
    """Where any of the secrets is, in whatever form, with the bytes around it."""
    maps = mappings(process)
    found = []
    for name, secret in secrets.items():
        for form, wanted in forms(secret).items():
            for line, contents in maps:
                at = contents.find(wanted)
                while at >= 0:
                    around = contents[max(0, at - 48) : at + len(wanted) + 48]
                    found.append(f"{name}, {form}, at {at:#x} of {' '.join(line.split())}: {around!r}")
                    at = contents.find(wanted, at + 1)
    return found
