"""The page's modules that need no browser, under node; and their types, where TypeScript is there."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
MODULES = HERE.parents[1] / "Sources/PrefsPage/Page"


@unittest.skipUnless(shutil.which("node"), "there is no node")
class ModuleTests(unittest.TestCase):
    def test_the_modules_do_what_their_tests_say(self):
        with tempfile.TemporaryDirectory(prefix="prefs-modules-") as folder:
            folder = pathlib.Path(folder)
            for path in MODULES.glob("*.js"):
                shutil.copy(path, folder)
            shutil.copytree(HERE / "Modules", folder / "Modules")
            (folder / "package.json").write_text('{"type": "module"}')
            run = subprocess.run(["node", "--test", *sorted(map(str, (folder / "Modules").glob("*.test.js")))],
                                 cwd=folder, capture_output=True, text=True, timeout=120)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    @unittest.skipUnless(shutil.which("tsc"), "there is no TypeScript")
    def test_names_and_arguments_fit_their_types(self):
        run = subprocess.run(
            ["tsc", "--allowJs", "--checkJs", "--noEmit", "--target", "es2022", "--module", "es2022",
             "--lib", "es2022,dom,dom.iterable", *sorted(map(str, MODULES.glob("*.js")))],
            cwd=MODULES, capture_output=True, text=True, timeout=120)
        self.assertEqual(run.returncode, 0, run.stdout)


if __name__ == "__main__":
    unittest.main()
