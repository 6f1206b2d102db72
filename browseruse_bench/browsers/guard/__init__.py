"""The network guard: what an attempt's browser and worker may reach, and how that is held."""
