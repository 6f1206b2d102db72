"""Files on disk: whole or not there, never overwritten by accident, free of secrets."""
