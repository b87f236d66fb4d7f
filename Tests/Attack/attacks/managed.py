"""Users and files against an administrator's locks."""

from __future__ import annotations

import json
import os

from registry import attempt
from samples import Outcomes, refused
from workshop import NOBODY, Home, NotAllowed


class Managed:
    """A person, a store, and an administrator's folder."""

    def __init__(self, text: str = '{"size": 12, "locked": {"port": 80}}', name: str = "10.json"):
        self.home = Home("managed")
        self.folder = self.home.folder / "managed/web.d"
        self.folder.mkdir(parents=True)
        self.file = self.folder / name
        self.write(self.file, text)
        self.environment = {"PREFS_MANAGED_DIR": str(self.folder.parent)}
        self.home.do("set", "web/port", "8080", "--int")
        self.home.do("set", "web/other", "9", "--int")
        self.home.do("history", "--keep", "web")

    def write(self, path, text: str, mode: int = 0o644) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    def prefs(self, *words, **options):
        return self.home.prefs(*words, environment=self.environment, **options)


@attempt("A lock of the administrator is misspelt")
def misspelt(threat) -> None:
    for what, text in (
        ("`locked` is a text", '{"port": 80, "locked": "port"}'), ("`Locked`", '{"port": 80, "Locked": ["port"]}'),
        ("`lokced`", '{"lokced": {"port": 80}}'), ("`locks`", '{"locks": {"port": 80}}'),
        ("a name that has no default", '{"locked": ["prot"]}'), ("a comma missing", '{"size": 1 "locked": {"port": 80}}'),
        ("cut off", '{"locked": {"port": 80}'), ("an empty file", ""), ("not UTF-8", '{"locked": {"p\udcffort": 80}}'),
        ("a list", '["port"]'), ("a name twice", '{"locked": {"port": 80, "port": 81}}'), ("NUL bytes", "\0" * 100),
    ):
        managed = Managed("{}")
        managed.file.write_bytes(text.encode("utf-8", "surrogateescape"))
        for words in (("get", "web/port"), ("set", "web/port", "1", "--int")):
            done = managed.prefs(*words).check(8)
            if str(managed.file) not in done.err.decode():
                raise NotAllowed(f"{what}: the file is not named: {done}")
        managed.prefs("doctor").check(7)
        threat.tried(what, f"get and set end with 8, doctor with 7: …{done.says.split('10.json')[-1][:90]}")
    for what, name in (
        ("10.toml", "10.toml"), ("10.yaml", "10.yaml"), ("10.JSON", "10.JSON"), ("lokcs/10.json", "lokcs/10.json"),
        ("Locks/10.json", "Locks/10.json"),
    ):
        managed = Managed("{}")
        managed.write(managed.folder / name, '{"port": 80}')
        threat.tried(f"a file {what}", refused(managed.prefs("get", "web/port"), 8))
    managed = Managed("{}")
    managed.write(managed.folder.parent / "web.json", '{"locked": {"port": 80}}')
    doctor, validate = managed.prefs("doctor"), managed.prefs("validate")
    threat.tried(
        "web.json beside the folder web.d", f"reported by doctor and validate ({validate.code})",
        b"web.json" in doctor.out and b"web.json" in validate.err + validate.out,
    )
    for what, change in (
        ("writable by others", lambda managed: managed.file.chmod(0o666)),
        ("writable by a group", lambda managed: managed.file.chmod(0o664)),
        ("in a folder that others can write", lambda managed: managed.folder.chmod(0o777)),
        ("that cannot be read", lambda managed: managed.file.chmod(0)),
        ("a link that leads nowhere", lambda managed: link(managed, "/none")), ("a pipe", pipe), ("a folder", folder),
        ("of another user", lambda managed: os.chown(managed.file, NOBODY, NOBODY)),
        ("in a folder of another user", lambda managed: os.chown(managed.folder, NOBODY, NOBODY)),
    ):
        if os.geteuid() != 0 and "another user" in what or os.geteuid() == 0 and "cannot be read" in what:
            continue
        managed = Managed()
        change(managed)
        done = managed.prefs("get", "web/port", patience=30)
        written = managed.prefs("set", "web/port", "1", "--int", patience=30)
        threat.tried(f"a file: {what}", f"get {refused(done, 8, 14)[:3]} set {refused(written, 8, 13, 14)}")


def link(managed: Managed, target: str) -> None:
    managed.file.unlink()
    managed.file.symlink_to(target)


def pipe(managed: Managed) -> None:
    managed.file.unlink()
    os.mkfifo(managed.file)


def folder(managed: Managed) -> None:
    managed.file.unlink()
    managed.file.mkdir()


@attempt("A lock is gone round")
def gone_round(threat) -> None:
    managed = Managed('{"locked": {"port": 80, "ui/width": 5}}')
    outcomes = Outcomes()
    managed.home.do("set", "elsewhere/port", "7", "--int")
    # So the tool knows whose settings they are.
    managed.home.do("schema", "load", "-", "--application", "web", input=b'[{"name": "width", "collection": "ui", "type": "int"}]')
    imports = {"json": '{"web": {"port": 1}}', "yaml": "web:\n  port: 1\n", "toml": "[web]\nport = 1\n"}
    tries = [
        ("set", "web/port", "1", "--int"), ("set", "-c", "web", "port", "1", "--int"),
        ("set", "--int", "web/port", "1", "--force"), ("set", "web/port", "1", "--int", "--undeclared", "--force"),
        ("increment", "web/port"), ("append", "web/port", "x"), ("rename", "-f", "web/other", "web/port"),
        ("revert", "web/port@1"), ("copy", "elsewhere", "web", "--merge"), ("set", "web/port", "--secret", "-"),
        ("set", "ui/width", "9", "--int"), ("set", "-c", "ui", "width", "9", "--int"), ("set", "web/ui/width", "9", "--int"),
        (
            "--app", "org.example.other", "--store", str(managed.home.store), "--key-file", str(managed.home.key), "set", "-c",
            "web", "port", "1", "--int",
        ),
    ]
    for words in tries:
        done = managed.prefs(*words, "--no-input", input=b"5")
        if done.code not in (8, 13):
            raise NotAllowed(f"{done} set it")
        outcomes.add(f"exit code {done.code}")
    for name, text in imports.items():
        done = managed.prefs("import", "-", "--format", name, input=text.encode()).check(13)
        outcomes.add(f"exit code {done.code}")
    done = managed.prefs("import", "-", "-c", "web", "--format", "env", input=b"PORT=1\n").check(13)
    shown = managed.prefs("get", "web/port").text.strip()
    variables = managed.prefs("exec", "-c", "web", "--", "env").out
    threat.tried(
        f"{len(tries)} commands that set, and {len(imports) + 1} imports, of a locked setting",
        f"{outcomes}; get still says {shown}", shown == "80" and b"PORT=80" in variables,
    )
    managed.home.do("set", "web/port", "1", "--int")
    shown = managed.prefs("get", "web/port").text.strip()
    threat.tried(
        "a value that was stored without the administrator's files", f"get says {shown}, and programs get it", shown == "80"
    )
    managed = Managed('{"locked": {"port": 80}}')
    managed.home.do("unset", "web/port", "web/other")
    for version, more in (("1", {"name": "old"}), ("2", {"name": "port", "formerly": [{"name": "old"}]})):
        text = json.dumps([{"collection": "web", "type": "int", **more}]).encode()
        managed.home.do("schema", "load", "-", "--application", "web", "--application-version", version, input=text)
    done = managed.prefs("set", "web/old", "1", "--int")
    threat.tried("a former name of the setting set, while a version that has it may run", refused(done, 13))


@attempt("Locks of an administrator")
def variable(threat) -> None:
    managed = Managed()
    shown = managed.home.do("get", "web/port").decode().strip()
    threat.limit("a folder of PREFS_MANAGED_DIR, which the user does not set", f"its locks do not bind: get says {shown}")
