"""Files on disk: whole or not there, never overwritten by accident, and no process left behind."""
