"""Threats that only other tests try."""

from registry import untried

untried(
    "A forked process repeats nonces",
    "no command of the tool forks with a store open; it is a threat to programs that use the library",
)
