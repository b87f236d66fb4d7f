"""The one report, which the chapters add their attempts to."""

from report import Report

REPORT = Report()
attempt, untried, same = REPORT.attempt, REPORT.untried, REPORT.same
