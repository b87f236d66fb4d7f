#!/usr/bin/env python3
"""Whether the report fails when it must: for what is not allowed, for what crashes, and for a threat without attempts."""

from __future__ import annotations

import sys
import unittest

sys.dont_write_bytecode = True

from report import NotAllowed, Report, Skip  # noqa: E402

TEXT = """
## What is covered

| threat | what Coffer does | shown by |
| --- | --- | --- |
| **Bits are flipped** | an error | A suite: "one", "another"; `Tests/Page/test_x.py` |
| A name \\| with a bar | the same | "one" |

| place | what vouches for it |
| --- | --- |
| the envelope | a MAC |

### Who may do what

| who has | reads |
| --- | --- |
| **nothing** | nothing |

## What is not covered

- **One page**, put back.
- Another.

## Reporting
"""


class ReportTests(unittest.TestCase):
    def setUp(self) -> None:
        self.report = Report(TEXT)

    def tried(self, function) -> list:
        self.report.run(self.report.threat("Bits"), function)
        return [tried.verdict for tried in self.report.threat("Bits").tries]

    def test_finds_the_threats_and_the_limits_and_no_other_rows(self) -> None:
        self.assertEqual([threat.name for threat in self.report.threats], ["Bits are flipped", "A name \\| with a bar", "nothing"])
        self.assertEqual([threat.tests for threat in self.report.threats], [3, 1, 0])
        self.assertEqual([limit.name for limit in self.report.limits], ["One page, put back.", "Another."])

    def test_a_threat_needs_attempts_or_a_reason_and_not_both(self) -> None:
        self.assertEqual(len(self.report.missing()), 3)
        self.report.attempt("Bits")(lambda threat: None)
        self.report.untried("A name", "there is no name")
        self.report.same("nothing", "Bits")
        self.assertEqual(self.report.missing(), [])
        self.report.untried("Bits", "it is tried")
        self.assertEqual(self.report.missing(), ["Bits are flipped"])

    def test_no_attempt_is_for_a_threat_that_there_is_not(self) -> None:
        for beginning in ("None", "", "A"):
            with self.assertRaises(ValueError):
                self.report.attempt(beginning)(print)

    def test_what_happened_decides(self) -> None:
        self.assertEqual(self.tried(lambda threat: threat.tried("a", "b")), ["held"])
        self.assertEqual(self.report.failed, [])
        self.assertEqual(self.tried(lambda threat: threat.tried("a", "b", False)), ["held", "failed"])
        self.assertEqual(len(self.report.failed), 1)
        self.assertTrue(any("FAILED  a: b" in line for line in self.report.lines()))

    def test_an_attempt_that_fails_itself_or_tries_nothing_is_no_success(self) -> None:
        def not_allowed(threat):
            raise NotAllowed("it opened")

        def broken(threat):
            raise KeyError("x")

        def lacking(threat):
            raise Skip("there is no shell")

        self.assertEqual(self.tried(not_allowed), ["failed"])
        self.assertEqual(self.tried(broken)[1:], ["failed"])
        self.assertEqual(self.tried(lambda threat: None)[2:], ["failed"])
        self.assertEqual(self.tried(lacking)[3:], ["skipped"])


class JudgeTests(unittest.TestCase):
    """Programs that do what must never pass."""

    def judge(self, script: str, **options):
        import workshop

        return workshop.run(["sh", "-c", script], **options)

    def test_a_crash_an_endless_program_and_words_for_programmers_are_not_allowed(self) -> None:
        for script in ("kill -SEGV $$", "kill -ABRT $$", "echo 'Fatal error: index out of range' >&2", "echo 'Error(code: 5)'"):
            with self.assertRaises(NotAllowed, msg=script):
                self.judge(script)
        with self.assertRaises(NotAllowed):
            self.judge("sleep 5", patience=0.2)

    def test_other_exit_codes_than_expected_are_not_allowed(self) -> None:
        self.assertEqual(self.judge("exit 7").check(5, 7).code, 7)
        with self.assertRaises(NotAllowed):
            self.judge("exit 0").check(5, 7)

    @classmethod
    def tearDownClass(cls) -> None:
        import workshop

        workshop.clean_up()


if __name__ == "__main__":
    unittest.main()
