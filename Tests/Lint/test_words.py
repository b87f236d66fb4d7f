#!/usr/bin/env python3
"""Whether Scripts/check-words.sh finds phrases and names to avoid, in whatever case, wherever the project has words."""

import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent / "../../Scripts/check-words.sh"


class WordTests(unittest.TestCase):
    def found(self, name, text):
        """Whether the script refuses this file."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True)
            path.write_text(text)
            return name in subprocess.run([SCRIPT, folder], capture_output=True, text=True).stdout

    def test_phrases_are_found_in_any_case_and_in_every_kind_of_file(self):
        for name in ["Sources/M/A.swift", "Sources/M/Page/a.js", "Sources/M/Page/a.css", "Sources/M/Page/a.html", "Tests/T/a.py"]:
            self.assertTrue(self.found(name, "// Whoever reads it\n"), name)
            self.assertTrue(self.found(name, "# // in Clear\n"), name)
        self.assertTrue(self.found("Sources/M/A.swift", "let a = 1  // NOBODY reads it\n"))
        self.assertTrue(self.found("Documentation/A.md", "It is read Anew.\n"))

    def test_names_are_found_by_their_parts(self):
        for line in ["func readAnew() {", "func tell(_ a: Int) {", "let mayGoOn = true", "try await goOn()", "foldLogInSteps()"]:
            self.assertTrue(self.found("Sources/M/A.swift", line + "\n"), line)
        self.assertTrue(self.found("Sources/M/Page/a.js", "const tell = () => {};\n"))

    def test_other_words_and_sample_values_pass(self):
        for line in ['let name = "nobody"', "let intelligence = 1", "func foretell() {}", "// One that asks again is notified."]:
            self.assertFalse(self.found("Sources/M/A.swift", line + "\n"), line)


if __name__ == "__main__":
    unittest.main()
