"""Names and values that mean something to a terminal, a shell, a parser of files or a file system."""

from __future__ import annotations

import json
import os
import pty
import select
import shlex
import subprocess
import time

from registry import attempt
from samples import Outcomes, home, once, refused
from workshop import BINARIES, PATIENCE, Home, NotAllowed, Place, needs, run

# Sets the clipboard, clears the screen, colours, turns text round, begins lines and columns, ends words.
CONTROL = "a\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b31m\u202eb\nFAKE\tx\r\x7f"
RAW = (b"\x1b", b"\x07", b"\x9b", b"\xc2\x9b", b"\0", b"\x7f", b"\xe2\x80\xae", b"\nFAKE")
SHELL = (
    "$(touch pwned)", "`touch pwned`", "a;touch pwned", "a&touch pwned", "a|touch pwned", "a>pwned", "a\ntouch pwned\n", "*",
    "?", "~", "~root", "a b", "'", '"', "a'$(touch pwned)'", 'a"$(touch pwned)"', "\\", "a\\", "${HOME}", "$HOME", "!!",
    "!touch", "#a", "a=b", "-n", "--all", "{a,b}", "[ab]", "<(touch pwned)", "\u2028", "$'\\x41'", "a\x1b[31m", "%s%n", "é",
    "a:b", "a@b", "((1))",
)


@once
def hostile() -> Place:
    place = Place(home(), "names")
    place.do("init")
    items = {
        f"col{CONTROL}": {CONTROL: CONTROL}, "web": {CONTROL: CONTROL, "nul\0key": "x", "k": CONTROL},
        "shell": {name: "x" for name in SHELL},
    }
    place.do("import", "-", "--format", "json", input=json.dumps(items).encode())
    place.do("history", "--keep", "web")
    place.do("set", "web/k", "--actor", CONTROL, CONTROL + "2")
    place.do("key", "label", "0", "slot\x1b[31m")
    return place


def on_terminal(place: Place, words: tuple, environment: dict = {}) -> tuple:
    """The exit code, and what a terminal gets."""
    needs("setsid")
    ours, theirs = pty.openpty()
    options = [str(option) for option in place.options() if option != "--no-input"]
    process = subprocess.Popen(
        ["setsid", "--ctty", "--wait", str(BINARIES / "prefs"), words[0], *options, "--color", "never", *words[1:]],
        stdin=theirs, stdout=theirs, stderr=theirs,
        env={**place.home.environment, "PAGER": "", "TERM": "xterm", **environment}, cwd=place.folder,
    )
    os.close(theirs)
    shown = b""
    # The answer to any question.
    os.write(ours, b"n\n")
    end = time.monotonic() + PATIENCE
    while True:
        if not select.select([ours], [], [], max(0, end - time.monotonic()))[0]:
            process.kill()
            raise NotAllowed(f"{words} did not end on a terminal: {shown[-200:]!r}")
        try:
            data = os.read(ours, 65_536)
        except OSError:
            break
        if not data:
            break
        shown += data
    os.close(ours)
    return process.wait(), shown


SHOWN = (
    ("collections",), ("list", "web"), ("list", "web", "--values"), ("list", "web", "-l", "--values"),
    ("list", "shell", "--values"), ("find", "FAKE"), ("log", "--no-pager"), ("log", "web", "--no-pager"), ("history", "web/k"),
    ("history", "-c", "web"), ("diff", "web", f"col{CONTROL}"), ("key", "list"), ("get", f"web/none{CONTROL}"),
    ("get", f"none{CONTROL}/k"), ("type", "-c", "web", f"x{CONTROL}"), ("unset", f"web/no{CONTROL}"), ("status",),
    ("validate", "web"), ("schema", "infer", "web"), ("import", f"/none{CONTROL}"), ("inject", f"/none{CONTROL}"),
    ("history", f"web/none{CONTROL}"),
)


@attempt("A name is a command")
def terminal(threat) -> None:
    """control characters on a terminal"""
    place, outcomes, shown = hostile(), Outcomes(), []
    for words in SHOWN:
        code, data = on_terminal(place, words)
        # A terminal gets CR LF for LF.
        found = [mark for mark in RAW if mark in data.replace(b"\r\n", b"\n").replace(b"\nprefs: ", b"")]
        if found:
            shown.append(f"{words[:2]}: {found} in {data[:100]!r}")
        outcomes.add(f"exit code {code}")
    threat.tried(
        f"names and values with control characters, by {len(SHOWN)} commands on a terminal",
        "\n".join([f"{outcomes}; {'none' if not shown else len(shown)} of them reaches it", *shown]), not shown,
    )


@attempt("A name is a command")
def lines(threat) -> None:
    """newlines and tabs in --plain and -0"""
    place, wrong = hostile(), []
    count = len(json.loads(place.do("list", "web", "--json")))
    for words, ending in (
        (("list", "web", "--plain"), b"\n"), (("list", "web", "--plain", "--values"), b"\n"), (("list", "web"), b"\n"),
        (("list", "web", "-0"), b"\0"),
    ):
        done = place.prefs(*words)
        got = done.out.count(ending)
        if done.code == 0 and got != count or done.code not in (0, 8):
            wrong.append(f"{' '.join(words)}: {got} records for {count} keys, exit code {done.code}")
    for words in (
        ("log", "--plain", "--no-pager"), ("history", "web/k", "--plain"), ("collections", "--plain"),
        ("find", "FAKE", "--plain"),
    ):
        done = place.prefs(*words)
        if any(line.startswith(b"FAKE") for line in done.out.split(b"\n")):
            wrong.append(f"{' '.join(words)}: a value begins a line")
    threat.tried(
        f"{count} keys, with newlines, tabs and NUL, in --plain and -0",
        "\n".join(wrong) or "one record for each key, no line of their own", not wrong,
    )


@attempt("A name is a command")
def completion(threat) -> None:
    """completed by bash, and run"""
    needs("bash")
    place, folder = hostile(), hostile().folder / "shell"
    folder.mkdir()
    (folder / "file").write_text("")
    script = folder / "completion.bash"
    script.write_bytes(place.home.do("completion", "bash"))
    test = r"""
      source ./completion.bash
      function=$(complete -p prefs | sed 's/.*-F \([^ ]*\).*/\1/')
      COMP_WORDS=(prefs get shell/) COMP_CWORD=2 COMP_LINE='prefs get shell/' COMP_POINT=16 COMP_TYPE=9
      "$function" prefs shell/ get
      for word in "${COMPREPLY[@]}"; do
        eval "set -- $word" && printf '%s\0' "$*"
      done"""
    environment = {
        **place.home.environment, "PATH": f"{BINARIES}:{os.environ['PATH']}", "PREFS_STORE": str(place.store),
        "PREFS_KEY_FILE": str(place.key),
    }
    done = run(["bash", "-c", test], env=environment, cwd=folder)
    words = {word.decode("utf-8", "replace") for word in done.out.split(b"\0")[:-1]}
    offered = {name for name in SHELL if f"shell/{name}" in words or name in words}
    made = sorted(file.name for file in folder.iterdir() if file.name not in ("file", "completion.bash"))
    threat.tried(
        f"{len(SHELL)} keys that a shell would run or expand, completed in bash, inserted and evaluated",
        f"{len(offered)} offered unchanged, {'and ' + ', '.join(made) + ' was made' if made else 'nothing was run'}",
        not made and len(offered) > 10,
    )
    for shell in ("bash", "zsh", "fish"):
        place.home.do("completion", shell)


@attempt("A name is a command")
def paths(threat) -> None:
    """names that are paths"""
    person = Home("paths")
    before = {path for path in person.folder.parent.rglob("*") if person.folder not in path.parents and "paths" in path.name}
    outcomes = Outcomes()
    for name in (
        "../../../../evil", "/tmp/coffer-evil", "..", ".", "a/../../evil", "a\0b", "a\nb", "\u202eevil", "x" * 300, "con", "~",
        "~root",
    ):
        if "\0" in name:
            continue
        for words in (
            ("--app", name, "set", "k", "v"), ("--env", name, "set", "web/k", "v"), (name, "k"),
            ("env", "create", f"web@{name}"),
        ):
            done = person.prefs(*words, "--no-input")
            outcomes.add(f"exit code {done.code}")
    strange = [path for path in person.folder.parent.rglob("*") if "evil" in path.name and person.folder not in path.parents]
    inside = [path for path in person.folder.rglob("*evil*") if ".local/share" not in str(path) and ".local/state" not in str(path)]
    after = {path for path in person.folder.parent.rglob("*") if person.folder not in path.parents and "paths" in path.name}
    threat.tried(
        "applications, environments and commands named ../../../../evil, /tmp/coffer-evil, .., ~root and others",
        f"{outcomes}; {[str(path) for path in strange + inside] or 'no file outside of the folders of data, state and configuration'}",
        not strange
        and not os.path.exists("/tmp/coffer-evil")
        and before == after
        and all(".config" in str(path) for path in inside),
    )
    place = hostile()
    note = place.folder / "editor.txt"
    editor = place.folder / "editor"
    editor.write_text(f'#!/bin/sh\nprintf "%s" "$1" > {shlex.quote(str(note))}\n')
    editor.chmod(0o700)
    for name in ("../../evil", "a/b", "$(touch pwned)", "-x"):
        place.do("set", "-c", name, "k", "v")
        note.unlink(missing_ok=True)
        code, shown = on_terminal(place, ("edit", "--", name), {"EDITOR": str(editor)})
        path = note.read_text() if note.exists() else str(shown)
        if code != 0 or ".." in path or not path.startswith((str(place.home.runtime), str(place.folder))):
            raise NotAllowed(f"edit of {name!r} ended with {code} and opened {path}")
    threat.tried(
        "collections named ../../evil, a/b, $(touch pwned) and -x, edited",
        "each is a file in the folder that only its owner can enter",
    )


VALUES = (
    "plain", "two words", "a'b", 'a"b', "a\\b", "a\nB=injected", "a\r\nB=injected", "$(touch pwned)", "`touch pwned`",
    "${HOME}", "$HOME", "# no comment", "a #b", "=x", " x ", "'", '"', "''", "", "\\n", "'; touch pwned; '", "a\u2028b", "é",
    "null", "true", "1e5", "- a", "a: b", "{a: b}", "[x]", "&a", "*a", "!!python/object/apply:os.system ['touch pwned']",
    "%TAG", "@x", "`", "<script>", "]]>", "&lt;", "\\u0041", "'''", '"""', "\t", "yes", "~",
)


@attempt("A name is a command")
def files(threat) -> None:
    """values in files for other programs"""
    place = Place(home(), "files")
    place.do("init")
    items = {f"K{number}": value for number, value in enumerate(VALUES)}
    place.do("import", "-", "--format", "json", input=json.dumps({"v": items}).encode())
    read = {"json": lambda text: json.loads(text)}
    try:
        import tomllib

        read["toml"] = tomllib.loads
    except ImportError:
        pass
    try:
        import yaml

        read["yaml"] = yaml.safe_load
    except ImportError:
        pass
    for name, parse in read.items():
        found = parse(place.do("export", "--format", name).decode())["v"]
        if found != items:
            raise NotAllowed(
                f"{name}: {[key for key in items if found.get(key) != items[key]]} are other values for another parser"
            )
    place.do(
        "import", "-", "-c", "v", "--format", "json", "--replace",
        input=json.dumps({k: v for k, v in items.items() if "${" not in v}).encode(),
    )
    exported = place.prefs("export", "v", "--format", "env")
    refusals = []
    while exported.code == 8:
        # The message names what the readers of such files would take differently.
        name = next(
            (
                key
                for key in sorted(items, key=len, reverse=True)
                if f'{key}"' in exported.says
                or f"{key}:" in exported.says
                or f"/{key} " in exported.says
                or f"{key} " in exported.says
            ),
            None,
        )
        if name is None:
            raise NotAllowed(f"env: {exported}")
        refusals.append(items[name])
        place.do("unset", f"v/{name}")
        exported = place.prefs("export", "v", "--format", "env")
    exported.check(0)
    path = place.folder / ".env"
    path.write_bytes(exported.out)
    done = run(["sh", "-c", "set -a; . ./.env; env -0"], cwd=place.folder, env={"PATH": os.environ["PATH"]})
    variables = dict(entry.split("=", 1) for entry in done.out.decode().split("\0") if "=" in entry)
    stored = place.values()["v"]
    wrong = [key for key in stored if variables.get(key) != stored[key]]
    if wrong or "B" in variables or (place.folder / "pwned").exists():
        raise NotAllowed(f".env: {wrong} are other values for a shell, or a value was run")
    threat.tried(
        f"{len(VALUES)} values as {', '.join(read)} for Python's parsers, and as .env for a shell",
        f"the same values, and nothing is run; .env refuses {refusals or 'none of them'}",
    )
    done = place.do("exec", "-c", "v", "--", "env", "-0")
    variables = dict(entry.split("=", 1) for entry in done.decode().split("\0") if "=" in entry)
    if any(variables.get(key) != value for key, value in stored.items()) or "B" in variables:
        raise NotAllowed("exec: other variables than the settings")
    template = "".join(f"{{{{prefs:v/{key}}}}}|" for key in stored).encode()
    if place.do("inject", "-", input=template).decode() != "".join(f"{value}|" for value in stored.values()):
        raise NotAllowed("inject: other text than the values")
    threat.tried("the same as variables of a program, and in a template", "the same values")


@attempt("A setting's name loads code")
def loads_code(threat) -> None:
    names = (
        "PATH", "LD_PRELOAD", "ld.preload", "LD_LIBRARY_PATH", "LD_AUDIT", "BASH_ENV", "bash-env", "ENV", "IFS", "PYTHONPATH",
        "PYTHONSTARTUP", "PERL5LIB", "PERL5OPT", "RUBYOPT", "RUBYLIB", "NODE_OPTIONS", "JAVA_TOOL_OPTIONS", "GIT_CONFIG_COUNT",
        "GIT_SSH_COMMAND", "npm_config_script-shell", "PREFS_STORE", "HOME", "EDITOR", "PAGER", "BASH_FUNC_ls%%",
        "DYLD_INSERT_LIBRARIES", "GCONV_PATH", "SHELLOPTS", "PS4", "PROMPT_COMMAND", "LUA_INIT", "CLASSPATH", "OPENSSL_CONF",
        "SSLKEYLOGFILE", "HTTP_PROXY", "TERMINFO", "MALLOC_CHECK_", "GLIBC_TUNABLES", "LOCPATH", "ZDOTDIR", "MANPAGER",
        "LESSOPEN", "TAR_OPTIONS", "GREP_OPTIONS", "PHPRC", "R_PROFILE",
    )
    refusals, passed = [], []
    for name in names:
        place = Place(home(), "loads")
        place.do("set", "-c", "e", name, "evil")
        done = place.prefs("exec", "-c", "e", "--", "/usr/bin/env")
        (refusals if done.code == 125 else passed).append(name)
        place.remove()
    stated = (
        "PATH", "IFS", "ENV", "LD_PRELOAD", "ld.preload", "DYLD_INSERT_LIBRARIES", "BASH_ENV", "bash-env", "BASH_FUNC_ls%%",
        "PYTHONPATH", "PERL5LIB", "RUBYOPT", "NODE_OPTIONS", "JAVA_TOOL_OPTIONS", "GIT_CONFIG_COUNT",
        "npm_config_script-shell", "PREFS_STORE", "HOME", "EDITOR", "PAGER",
    )
    threat.tried(
        f"{len(names)} names that load code, or change how programs run",
        f"{len(refusals)} refused; passed on: {', '.join(passed) or 'none'}", set(stated) <= set(refusals),
    )
    place = Place(home(), "prefix")
    place.do("set", "-c", "e", "preload", "evil")
    threat.tried("the key preload with --prefix LD_", refused(place.prefs("exec", "--prefix", "LD_", "-c", "e", "--", "env"), 125))
    place.do("set", "-c", "e", "PATH", "/evil")
    done = place.prefs("exec", "-c", "e", "--allow", "PATH,LD_PRELOAD", "--prefix", "", "--only", "PATH", "--", "/usr/bin/env")
    threat.tried(
        "PATH with --allow PATH", f"exit code {done.code}: passed on as asked", done.code == 0 and b"PATH=/evil" in done.out
    )


@attempt("The text of values")
def one_value(threat) -> None:
    _, data = on_terminal(hostile(), ("get", "web/k"))
    threat.limit(
        "`get` of a text with control characters, on a terminal", f"they reach it: {b'52;c' in data and chr(27).encode() in data}"
    )
