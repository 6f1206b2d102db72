"""browser-use: the library itself, in an environment and a process of its own."""
