#!/usr/bin/env python3
"""What a person has who installs the clients: their READMEs, the article and the example as they stand.

    test_packages.py --bin DIR      (DIR holds the built prefs; the python3 that runs this has coffer_client and nothing else)
"""

from __future__ import annotations

import http.client
import importlib.util
import os
import pathlib
import shutil
import socket
import subprocess
import sys

from case import NODE_MODULES, PATIENCE, ROOT, TOOLS, ClientsTestCase, main


class ThePackages(ClientsTestCase):
    """The documents as they stand: what they run is what was installed."""

    def setUp(self) -> None:
        super().setUp()
        (self.work / "node_modules").symlink_to(NODE_MODULES)
        module = f"module example\n\ngo 1.19\n\nrequire coffer v0.0.0\n\nreplace coffer => {ROOT}/clients/go\n"
        (self.work / "go.mod").write_text(module)
        self.environment |= {"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOCACHE": os.environ["GOCACHE"]}
        self.runners = {
            "python": f"{sys.executable} block{{}}.py", "py": f"{TOOLS} block{{}}.py", "js": "node block{}.mjs", "go": "go run block{}.go",
        }

    def test_do_what_the_readme_of_python_says(self) -> None:
        """Blocks of `py` use other packages, too."""
        tags = self.run_blocks(ROOT / "clients/python/README.md", self.runners)
        self.assertEqual(tags, ["console", "sh", "python", "text", "python", "text", "py", "text", "py", "text"])
        self.assertLessEqual(len((self.work / "block2.py").read_text().splitlines()), 10)

    def test_do_what_the_readme_of_node_says(self) -> None:
        tags = self.run_blocks(ROOT / "clients/node/README.md", self.runners)
        self.assertEqual(tags, ["console", "sh", "js", "text", "js", "text"])

    def test_do_what_the_readme_of_go_says(self) -> None:
        self.assertEqual(self.run_blocks(ROOT / "clients/go/README.md", self.runners), ["sh", "go", "text"])

    def test_do_what_the_article_says(self) -> None:
        tags = self.run_blocks(ROOT / "Sources/Coffer/Coffer.docc/FromOtherLanguages.md", self.runners)
        self.assertEqual(tags, ["sh", "python", "text", "py", "text", "js", "text", "go", "text", "sh", "text"])

    def test_are_the_installed_ones(self) -> None:
        place = pathlib.Path(importlib.util.find_spec("coffer_client").origin)
        self.assertNotIn(ROOT, place.parents)
        self.assertTrue((place.parent / "py.typed").exists())
        licences = list(place.parent.parent.glob("coffer_client-*.dist-info/licenses/LICENSE"))
        licences += [NODE_MODULES / "coffer-client/LICENSE", ROOT / "clients/go/LICENSE"]
        self.assertEqual([file.read_text() for file in licences], [(ROOT / "LICENSE").read_text()] * 3)


class TheExample(ClientsTestCase):
    """Two replicas of each service of Examples/OtherLanguages, on one store; `make examples` builds the one in Swift."""

    def setUp(self) -> None:
        super().setUp()
        shutil.copytree(ROOT / "Examples/OtherLanguages", self.work, dirs_exist_ok=True)
        (self.work / "node_modules").symlink_to(NODE_MODULES)
        self.prefs("schema", "load", "shop.json", "--application", "shop")
        self.prefs("set", "--secret", "shop/token", "-", text="s3cret")
        self.services = {}
        commands = [("Python", [TOOLS, "service.py"]), ("Node", ["node", "service.mjs"])]
        shop = self.bin / "Shop"
        if shop.exists():
            commands.append(("Swift", [shop, "store", "key"]))
        else:
            print(f"The service in Swift is left out: there is no {shop}.")
        for name, command in commands * 2:
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            process = subprocess.Popen(
                [*command, str(port)], cwd=self.work, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            self.services[port] = name
            self.eventually(lambda: self.ask(port, "GET", "/health")[0] == 204)

    def ask(self, port: int, method: str, path: str, text: str = "", token: str = "") -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        try:
            connection.request(method, path, text.encode(), {"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except OSError:
            return 0, ""
        finally:
            connection.close()

    def all_greet(self, greeting: str) -> None:
        for port, name in self.services.items():
            self.eventually(lambda: self.ask(port, "GET", "/") == (200, f"{greeting} from {name}\n"))

    def test_has_one_greeting_wherever_it_is_changed(self) -> None:
        self.all_greet("Hello")
        self.prefs("set", "shop/greeting", "Hi")
        self.all_greet("Hi")
        for number, port in enumerate(self.services):
            self.assertEqual(self.ask(port, "POST", "/greeting", f"Welcome {number}", "wrong")[0], 401)
            self.assertEqual(self.ask(port, "POST", "/greeting", "small", "s3cret")[0], 422)
            self.assertEqual(self.ask(port, "POST", "/greeting", f"Welcome {number}", "s3cret")[0], 204)
            self.all_greet(f"Welcome {number}")
        self.prefs("set", "--secret", "shop/token", "-", text="another")
        for port in self.services:
            self.assertEqual(self.ask(port, "POST", "/greeting", "Bye", "s3cret")[0], 401)
            self.assertEqual(self.ask(port, "POST", "/greeting", "Bye", "another")[0], 204)


if __name__ == "__main__":
    main()
