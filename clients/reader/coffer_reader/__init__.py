"""Reads stores and fleets of Coffer without Coffer."""

from .store import *  # noqa: F403
