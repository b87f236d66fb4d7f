#!/usr/bin/env python3
"""Whether Scripts/check-floors finds the uses of types that point up, and no others."""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SCRIPT = pathlib.Path(__file__).resolve().parent / "../../Scripts/check-floors"
loader = importlib.machinery.SourceFileLoader("check_floors", str(SCRIPT))
lint = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_floors", loader))
loader.exec_module(lint)

FLOORS = [["Low", "Root.swift"], ["Middle"], ["High"]]


class FloorTests(unittest.TestCase):
    def found(self, files):
        module = lint.Module([lint.File(path, text) for path, text in files.items()])
        return list(lint.problems("M", module, FLOORS))

    def uses(self, files):
        """The uses that point up, as `file:line: type`."""
        return [problem.removeprefix("Sources/M/").split(" is of ")[0] for problem in self.found(files)]

    def test_a_use_of_a_higher_type_is_found_with_line_type_and_floors(self):
        found = self.found({"Low/A.swift": "struct A {\n  let b: B\n}\n", "High/B.swift": "struct B {}\n"})
        self.assertEqual(len(found), 1)
        self.assertTrue(found[0].startswith("Sources/M/Low/A.swift:2: B is of High, a floor above Low "), found[0])

    def test_uses_downward_and_on_one_floor_are_none(self):
        files = {"Low/A.swift": "struct A {}", "Root.swift": "let a: A", "High/B.swift": "struct B { let a: A; let c: C }"}
        self.assertEqual(self.uses(files | {"High/C.swift": "struct C { let b: B }"}), [])

    def test_every_kind_of_type_counts(self):
        for declaration in ["struct B {}", "final class B {}", "indirect enum B {}", "actor B {}", "protocol B {}", "typealias B = Int"]:
            self.assertEqual(self.uses({"Low/A.swift": "let b: B", "High/B.swift": declaration}), ["Low/A.swift:1: B"], declaration)

    def test_comments_and_strings_do_not_count(self):
        text = '\n'.join([
            '// B', '/* B /* B */ B */ let a = "B \\" B"', '/// ``B``', 'let b = #"B \\(B) "B" "#', 'let c = """', '  B "" B', '  """',
            'let d = "\\(e["B"]) \\("B")"'])
        self.assertEqual(self.uses({"Low/A.swift": text, "High/B.swift": "struct B {}"}), [])

    def test_code_in_a_string_counts(self):
        text = 'let a = "B \\(B.name) B"\nlet b = #"\\#(B.name)"#\nlet c = "\\(f("x", (1))) \\(B.self)"\n'
        self.assertEqual(
            self.uses({"Low/A.swift": text, "High/B.swift": "struct B {}"}), [f"Low/A.swift:{line}: B" for line in (1, 2, 3)])

    def test_an_extension_does_not_declare_but_uses(self):
        files = {"Low/A.swift": "struct A {}\nlet b = A()", "High/A+More.swift": "extension A { var more: Int { 1 } }"}
        self.assertEqual(self.uses(files), [])
        self.assertEqual(
            self.uses({"Low/B+More.swift": "extension B {}", "High/B.swift": "struct B {}"}), ["Low/B+More.swift:1: B"])

    def test_a_nested_type_is_found_where_it_is_declared(self):
        files = {"Low/A.swift": "struct A {}", "High/A+Kind.swift": "extension A {\n  enum Kind {}\n}"}
        self.assertEqual(self.uses(files | {"Low/C.swift": "let kind: A.Kind"}), ["Low/C.swift:1: A.Kind"])
        self.assertEqual(self.uses(files | {"Low/C.swift": "extension A {\n  var kind: Kind {}\n}"}), ["Low/C.swift:2: A.Kind"])
        # Elsewhere the name means something else.
        self.assertEqual(self.uses(files | {"Low/C.swift": "let kind: Kind; struct D { enum Kind {}; let kind: Kind }"}), [])

    def test_a_nested_name_hides_one_further_out(self):
        files = {"Low/A.swift": "struct A {\n  enum B {}\n  let b: B\n}\nlet b: B", "High/B.swift": "struct B {}"}
        self.assertEqual(self.uses(files), ["Low/A.swift:5: B"])

    def test_a_generic_parameter_is_no_type(self):
        for text in [
            "struct A<B> { let b: B }", "func a<B: Equatable>(_ b: B) -> [B] { let c: B = b }", "protocol A { associatedtype B; var b: B { get } }",
            "struct A<C, B> {}\nextension A { func b() -> B {} }", "init<B>(b: B) {}", "extension Dictionary where Key == String {}",
        ]:
            self.assertEqual(self.uses({"Low/A.swift": text, "High/B.swift": "struct B {}; struct Key {}"}), [], text)
        # Outside of the function the name is the type again.
        text = "func a<B>(_ b: B) {}\nlet b: B"
        self.assertEqual(self.uses({"Low/A.swift": text, "High/B.swift": "struct B {}"}), ["Low/A.swift:2: B"])

    def test_a_member_of_the_same_name_is_no_type(self):
        files = {"Low/A.swift": "let a = Other.B, b = x.B()", "High/B.swift": "struct B {}"}
        self.assertEqual(self.uses(files), [])

    def test_a_private_type_is_not_seen_from_other_files(self):
        files = {"Low/A.swift": "private struct B {}\nlet b: B", "High/B.swift": "private struct B {}; fileprivate enum C {}"}
        self.assertEqual(self.uses(files | {"Low/C.swift": "let b: B, c: C"}), [])

    def test_a_file_without_a_floor_is_reported(self):
        self.assertEqual(self.found({"Cellar/A.swift": ""}), ["Sources/M/Cellar/A.swift: has no floor; give it one in Scripts/check-floors"])

    def test_the_longest_name_gives_the_floor(self):
        self.assertEqual(lint.floor_of("High/Deep/A.swift", [["High/Deep"], ["High"]]), (0, "High/Deep"))
        self.assertEqual(lint.floor_of("Higher/A.swift", [["High"]]), None)

    def test_the_figures_count_circles_uses_functions_and_large_files(self):
        files = {
            "Low/A.swift": "struct A { let b: B }\n", "Middle/B.swift": "struct B { let c: C }\n", "High/C.swift": "struct C { let a: A }\n",
            "High/D.swift": "func d() {\n" + "\n" * 401 + "}\nstruct D { init() {} }\n"}
        module = lint.Module([lint.File(path, text) for path, text in files.items()])
        self.assertEqual(" ".join(lint.figures("M", module, FLOORS).split()), " ".join(
            "M 4 files, largest circle 3, upward uses 2 of 2 types, longest function 403 lines (d), 1 files over 400 lines".split()))

    def test_a_violation_fails_the_lint(self):
        name, floors = next(iter(lint.FLOORS.items()))
        with tempfile.TemporaryDirectory() as folder:
            for other in lint.FLOORS:
                os.makedirs(f"{folder}/Sources/{other}")
            for path, text in [(floors[0][0], "let b: B"), (floors[-1][0], "struct B {}")]:
                file = pathlib.Path(folder, "Sources", name, path, "File.swift")
                file.parent.mkdir(parents=True)
                file.write_text(text)
            here = os.getcwd()
            try:
                with self.assertRaises(SystemExit) as exit, contextlib.redirect_stdout(io.StringIO()):
                    lint.main([folder])
            finally:
                os.chdir(here)
        self.assertIn(f"Sources/{name}/{floors[0][0]}/File.swift:1: B is of {floors[-1][0]}", str(exit.exception.code))


if __name__ == "__main__":
    unittest.main()
