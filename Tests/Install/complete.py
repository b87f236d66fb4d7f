#!/usr/bin/env python3
"""Presses TAB in bash, zsh and fish where names could be expanded, run or taken for files, and enters the completed line: it has to
name the key, and nothing else may have happened.

Usage: complete.py ROOT [SHELL...]        the folder into which the tool was installed; all three shells by default
"""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

# Each would make a file if a shell expanded it. All names differ in their first character, so that it completes the whole.
RUN = [
    "a${x:-$(touch ran-1)}", "b$[a[$(touch ran-2)]]", "c`touch ran-3`", "d$(touch ran-4)", "e$((a[$(touch ran-5)]))",
    "v;touch ran-6;", "g&touch ran-7&", "h|touch ran-8", "i>ran-9", "j<(touch ran-10)", "k'$(touch ran-11)'",
    'l"$(touch ran-12)"', "m\\$(touch ran-13)", "n=(touch ran-14)", "o(touch ran-15)", "p(e:touch ran-16:)",
    "q${(e)x:-`touch ran-17`}", "r\\`touch ran-18\\`", "s!$(touch ran-19)!",
]
ODD = [
    "A$HOME", "B b", "C'c", 'D"d', "E\\e", "F*", "G?[a-z]", "H{a,b}", "I!i!!", "J#j", "K~", "~L", "M:m", "N=n", "O@o",
    "P\u00e9\u00a0p", "Q\ufffdq", "R^r^s", "S%s", "T,t", "U\\", "V$", "W  w", "X\\'x", "Y$'y'", "=Z", "#z", "file", "tree",
]
# What a quote changes.
QUOTED = ["a${x:-$(touch ran-1)}", "c`touch ran-3`", "k'$(touch ran-11)'", 'l"$(touch ran-12)"', "I!i!!", "E\\e", "U\\", "B b"]
# They have no place on a command line, and are left out.
HIDDEN = ["-hidden", "\x1bhidden", "hidd\nen"]
PROMPT = "READY>> "


class Session:
    """A shell on a terminal of its own."""

    def __init__(self, arguments, setup, folder, environment):
        self.folder = folder
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            os.execvpe(arguments[0], arguments, environment)
        self.enter(setup + "; echo ST''ARTED\r", "STARTED")

    def enter(self, line, mark):
        """Types a line, and returns what is printed until the next prompt, after the mark."""
        os.write(self.terminal, line.encode())
        printed = ""
        # Only a test that has failed waits until then.
        end = time.monotonic() + 30
        while not re.search(f"{mark}.*{PROMPT}", printed, re.DOTALL):
            if time.monotonic() > end:
                raise SystemExit(f"complete.py: {line!r} is not answered: {printed[-2000:]!r}")
            if select.select([self.terminal], [], [], 1)[0]:
                printed += os.read(self.terminal, 65536).decode(errors="replace")
        return printed

    def close(self):
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self.terminal)


def shells(root, home):
    """The arguments and the first line of each shell."""
    return {
        "bash": (
            ["bash", "--norc", "--noprofile", "-i"],
            f"PS1='{PROMPT}'; source '{root}/share/bash-completion/completions/prefs'; bind 'set bell-style none'",
        ),
        "zsh": (
            ["zsh", "-f", "-i"],
            f"PS1='{PROMPT}'; fpath=('{root}/share/zsh/site-functions' $fpath); autoload -Uz compinit;"
            f" compinit -u -d '{home}/dump'; unsetopt beep",
        ),
        "fish": (
            ["fish", "--no-config", "-i"],
            f"function fish_prompt; printf '{PROMPT}'; end; source '{root}/share/fish/vendor_completions.d/prefs.fish'",
        ),
    }


def expect(session, shell, typed, arguments):
    """Types a line with TABs, and compares the arguments that the tool gets."""
    calls = os.path.join(session.folder, "..", "calls")
    session.enter(typed + "\r", "CALLED")
    with open(calls, "rb") as file:
        found = file.read().decode().split("\0")[:-1]
    if found != arguments:
        raise SystemExit(f"complete.py: in {shell}, {typed!r} became {found}, and not {arguments}")
    made = [name for name in os.listdir(session.folder) if name not in ("file", "tree")]
    if made:
        raise SystemExit(f"complete.py: in {shell}, {typed!r} made {made}")


def test(shell, root, home, folder, environment):
    arguments, setup = shells(root, home)[shell]
    session = Session(arguments, setup, folder, environment)
    try:
        for name in RUN + ODD:
            # The shell itself would take these for something else at the beginning of a word.
            first = ("\\" if name[0] in "~=#" else "") + name[0]
            expect(session, shell, f"prefs get -c 0dd {first}\t", ["get", "-c", "0dd", name])
            expect(session, shell, f"prefs get -c {first}\tkey", ["get", "-c", name, "key"])
        for name in QUOTED:
            for quote in "'\"":
                expect(session, shell, f"prefs get -c 0dd {quote}{name[0]}\t", ["get", "-c", "0dd", name])
        expect(session, shell, "prefs get 0dd/a\t", ["get", "0dd/" + RUN[0]])
        expect(session, shell, "prefs get web@st\t", ["get", "web@staging/host"])
        expect(session, shell, "prefs get time:\t", ["get", "time:zone"])
        # The script of zsh takes this option for the key.
        if shell != "zsh":
            expect(session, shell, "prefs get --collection=0dd B\t", ["get", "--collection=0dd", "B b"])
        expect(session, shell, "prefs set -c 8typed mode \\$\t", ["set", "-c", "8typed", "mode", "$(touch ran-20)"])
        expect(session, shell, "prefs key remove lap\t", ["key", "remove", "lap$(touch ran-21)"])
        expect(session, shell, "prefs import fi\t", ["import", "file"])
        expect(session, shell, "prefs help rest\t", ["help", "restore-store"])
        expect(session, shell, "prefs help fl\t", ["help", "fleet"])
        expect(session, shell, "prefs key rep\t", ["key", "replace"])
        expect(session, shell, "prefs fleet jo\t", ["fleet", "join"])
    finally:
        session.close()


def main():
    root = os.path.abspath(sys.argv[1])
    home = tempfile.mkdtemp()
    folder = os.path.join(home, "folder")
    os.makedirs(os.path.join(folder, "tree"))
    open(os.path.join(folder, "file"), "w").close()
    os.mkdir(os.path.join(home, "bin"))
    environment = {
        "HOME": home, "PATH": f"{home}/bin:/usr/bin:/bin", "TERM": "dumb", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8",
        "XDG_DATA_HOME": f"{home}/data", "XDG_CONFIG_HOME": f"{home}/config", "XDG_STATE_HOME": f"{home}/state",
        "XDG_RUNTIME_DIR": home, "XDG_CACHE_HOME": f"{home}/cache",
    }
    wrapper = os.path.join(home, "bin", "prefs")
    with open(wrapper, "w") as file:
        file.write(
            f"#!/bin/sh\n[ \"$1\" = ---completion ] && exec '{root}/bin/prefs' \"$@\"\n"
            f"printf '%s\\0' \"$@\" >'{home}/calls'\necho CALLED\n")
    os.chmod(wrapper, 0o755)

    def prefs(*arguments, text=""):
        subprocess.run([f"{root}/bin/prefs", *arguments], env=environment, input=text, text=True, check=True,
                       stdout=subprocess.DEVNULL)

    prefs("init", "-q")
    settings = {name: 1 for name in RUN + ODD + HIDDEN}
    import json
    with open(os.path.join(home, "odd.json"), "w") as file:
        json.dump(settings, file)
    prefs("import", "-q", "-c", "0dd", os.path.join(home, "odd.json"))
    for name in RUN + ODD:
        if "@" in name:
            prefs("env", "create", "-q", name)
        prefs("set", "-q", "-c", name, "key", "1")
    prefs("set", "-q", "web/host", "a")
    prefs("env", "create", "-q", "web@staging")
    prefs("set", "-q", "web@staging/host", "b")
    prefs("set", "-q", "time:zone", "c")
    declaration = '[{"name":"mode","collection":"8typed","type":"string","limits":[{"choices":["$(touch ran-20)"]}]}]'
    prefs("schema", "load", "-q", "-", "--application", "8typed", text=declaration)
    prefs("key", "add", "-q", "--label", "lap$(touch ran-21)", "--new-key-file", os.path.join(home, "second"))
    for shell in sys.argv[2:] or ["bash", "zsh", "fish"]:
        test(shell, root, home, folder, environment)
    print("Completion: every name is completed as it is, in all shells.")


main()
