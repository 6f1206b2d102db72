"""The stages of the factory, one file each."""
