"""A loopback endpoint that forwards an agent's own calls to its model, and holds them to account."""
