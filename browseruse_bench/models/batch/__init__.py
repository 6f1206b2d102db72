"""Requests that are answered later, together, at half the price or by whatever answers a file."""
