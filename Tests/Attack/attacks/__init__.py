"""Attempts, by chapter."""
