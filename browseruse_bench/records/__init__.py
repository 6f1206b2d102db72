"""The nouns of the project, one file each: frozen, checked at every edge, without I/O."""
