"""Measure and train browser agents: run, judge and compare them; build the environments."""

__version__ = "0.1.0"
