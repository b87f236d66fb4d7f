"""The command line."""

from __future__ import annotations

import argparse
import getpass
import json
import os
import sys
from typing import Any

from .contents import Contents
from .errors import CofferError, KeyMissing, KeyUnavailable
from .keys import Key, KeyFile, Passphrase, RecoveryKey
from .store import Store
from .tables import Item
from .text import marked, raw, text
from .values import Sealed


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_intermixed_args(arguments)
    try:
        vault = vault_key(options)
        store = Store(options.store, store_key(options))
        if options.output is not None:
            store.write_plain(options.output, vault)
        else:
            sys.stdout.buffer.write(answer(store.contents(vault), options))
            sys.stdout.buffer.flush()
    except CofferError as error:
        return failed(str(error), error.code)
    except MemoryError:
        return failed("Out of memory.", 1)
    except BrokenPipeError:
        # What reads the output has enough. Python would complain once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        return failed(f"{error.strerror}.", 14)
    return 0


def failed(sentence: str, code: int) -> int:
    print(f"coffer-reader: {sentence}", file=sys.stderr)
    return code


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="coffer-reader", allow_abbrev=False, description="Reads a Coffer store, and changes nothing.",
        epilog="Without KEY it lists all settings, without secrets. Exit codes are those of prefs.")
    add = parser.add_argument
    add("store", metavar="STORE", help="the store; its log, STORE-wal, is read, too")
    add("name", metavar="KEY", nargs="?", help="print one value: KEY, or COLLECTION/KEY")
    add("-c", "--collection", metavar="NAME", help="only this collection; a KEY may then contain slashes")
    add("--json", action="store_true", help="print JSON that prefs import reads")
    add("--reveal", action="store_true", help="with --json: secrets, too")
    add("-o", "--output", metavar="PLAIN.db", help="write everything, unencrypted, to a new SQLite database")
    key = parser.add_argument_group("key of the store").add_mutually_exclusive_group(required=True)
    key.add_argument("--key-file", metavar="FILE", help="a key file")
    key.add_argument("--passphrase-fd", metavar="N", type=int, help="a passphrase, from this file descriptor")
    key.add_argument("--recovery-key-fd", metavar="N", type=int, help="a recovery key, from this file descriptor")
    vault = parser.add_argument_group("key of the vault, which opens sealed values").add_mutually_exclusive_group()
    vault.add_argument("--vault-key-file", metavar="FILE", help="a key file")
    vault.add_argument("--vault-passphrase-fd", metavar="N", type=int, help="a passphrase, from this file descriptor")
    return parser


def store_key(options: argparse.Namespace) -> Key:
    if options.key_file is not None:
        return KeyFile.read(options.key_file)
    if options.recovery_key_fd is not None:
        return RecoveryKey.read(options.recovery_key_fd)
    return passphrase(options.passphrase_fd, "Passphrase: ")


def vault_key(options: argparse.Namespace) -> Key | None:
    if options.vault_key_file is not None:
        return KeyFile.read(options.vault_key_file)
    if options.vault_passphrase_fd is not None:
        return passphrase(options.vault_passphrase_fd, "Passphrase of the vault: ")
    return None


def passphrase(descriptor: int, prompt: str) -> Passphrase:
    # At a terminal it is not shown.
    return Passphrase(getpass.getpass(prompt).encode()) if os.isatty(descriptor) else Passphrase.read(descriptor)


def answer(contents: Contents, options: argparse.Namespace) -> bytes:
    if options.name is not None:
        item = named(contents, options)
        if isinstance(item.value, Sealed):
            raise KeyUnavailable(f"{options.name} is sealed; give a key of the vault, by --vault-key-file or --vault-passphrase-fd.")
        if not options.json:
            value = raw(item.value)
            return value if isinstance(item.value, bytes) else value + b"\n"
        return as_json(marked(item.value, options.reveal))
    items = contents.items(options.collection)
    if options.json:
        found: dict[str, Any] = {}
        for item in items:
            found.setdefault(item.collection, {})[item.key] = marked(item.value, options.reveal)
        return as_json(found if options.collection is None else found.get(options.collection, {}))
    return "".join(f"{shown(item.collection, item.key, options)}\t{text(item.value)}\n" for item in items).encode()


def named(contents: Contents, options: argparse.Namespace) -> Item:
    """The setting with the name: as by prefs, one of several slashes is the one behind which there is a key."""
    parts = options.name.split("/")
    places = [("/".join(parts[:count]), "/".join(parts[count:])) for count in range(len(parts))]
    if options.collection is not None:
        places = [(options.collection, options.name)]
    found = [item for collection, key in places for item in contents.items(collection) if item.key == key]
    if len(found) > 1:
        raise CofferError(f"{options.name} names several settings; say which with --collection.", 2)
    if not found:
        raise KeyMissing(f"There is no {options.name}.")
    return found[0]


def shown(collection: str, key: str, options: argparse.Namespace) -> str:
    return f"{collection}/{key}" if collection and options.collection is None else key


def as_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=2).encode() + b"\n"
