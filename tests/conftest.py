"""What holds for all tests."""

from hypothesis import settings

# How long an example takes depends on what else the machine does; speed is for benches/.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
