"""What the tests of models share."""

import ssl

import pytest


@pytest.fixture(autouse=True, scope="session")
def one_tls_context():
    """Reading the certificates takes 0.1 s of the processor for each client that is made; here
    hundreds are, and none uses them.
    """
    plain, made = ssl.create_default_context, {}

    def shared(*args, **kwargs):
        key = repr((args, kwargs))
        if key not in made:
            made[key] = plain(*args, **kwargs)
        return made[key]

    ssl.create_default_context = shared
    yield
    ssl.create_default_context = plain
