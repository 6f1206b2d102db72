"""Servers that a benchmark brings along: start, reset, snapshot, stop."""
