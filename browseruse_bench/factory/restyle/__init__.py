"""A task in the words of a personal request: what must survive, and how that is checked."""
