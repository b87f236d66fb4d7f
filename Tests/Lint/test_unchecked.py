#!/usr/bin/env python3
"""Whether Scripts/check-unchecked.sh finds unchecked code outside of its folders, and files that need no permission any more."""

import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent / "../../Scripts/check-unchecked.sh"


class UncheckedTests(unittest.TestCase):
    def found(self, files, permitted=""):
        with tempfile.TemporaryDirectory() as folder:
            for path, text in files.items():
                file = pathlib.Path(folder, "Sources/Coffer", path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            pathlib.Path(folder, "Scripts").mkdir()
            pathlib.Path(folder, "Scripts/unchecked-files").write_text("# what\n\n" + permitted)
            run = subprocess.run([SCRIPT, folder], capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode != 0, run.stderr != "")
            return run.stderr.splitlines()

    def test_every_kind_is_found_anywhere_in_the_module_with_its_line(self):
        for text, kind in [
            ("let a: Unmanaged<A>", "reference"), ("unsafeBitCast(a, to: B.self)", "cast"), ("final class A: @unchecked Sendable {}", "sendable"),
            ("@exclusivity(unchecked) var a = 1", "exclusivity"), ("a.withUnsafeBytes { $0 }", "bytes"),
            ("nonisolated(unsafe) static var a = 1", "sendable"), ("let a: UnsafeRawBufferPointer", "bytes")]:
            for path in ["A.swift", "Tables/A.swift", "Preferences/Declaring/A.swift"]:
                found = self.found({path: f"// One\n{text}\n"})
                self.assertEqual(len(found), 1, (text, found))
                self.assertTrue(found[0].startswith(f"Sources/Coffer/{path}:2: unchecked means ({kind})"), found[0])

    def test_folders_named_hot_and_comments_are_free(self):
        self.assertEqual(self.found({"Proxy/Hot/A.swift": "let a: Unmanaged<A>", "B.swift": "/// Not `Unmanaged`.\n"}), [])

    def test_a_file_may_use_what_it_is_permitted_and_nothing_else(self):
        files = {"A.swift": "let a: UnsafeRawBufferPointer\nlet b = unsafeBitCast(1, to: C.self)\n"}
        permitted = "Sources/Coffer/A.swift: bytes: for a call\n"
        self.assertEqual(len(self.found(files, permitted)), 1)
        self.assertIn("A.swift:2: unchecked means (cast)", self.found(files, permitted)[0])
        self.assertEqual(self.found(files, permitted.replace("bytes", "bytes,cast")), [])

    def test_a_permission_that_is_not_needed_or_has_no_reason_is_found(self):
        found = self.found({"A.swift": "let a = 1"}, "Sources/Coffer/A.swift: bytes: for a call\n")
        self.assertEqual(len(found), 1)
        self.assertIn("take it out", found[0])
        self.assertIn("has to say why", self.found({"A.swift": "withUnsafeBytes"}, "Sources/Coffer/A.swift: bytes:\n")[0])


if __name__ == "__main__":
    unittest.main()
