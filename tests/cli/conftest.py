"""What the tests of the command share."""

from collections.abc import Callable, Iterator

import pytest

from .world import Gotato, Provider


@pytest.fixture
def gotato() -> Gotato:
    """The command."""
    return Gotato()


@pytest.fixture
def provider() -> Iterator[Callable[..., Provider]]:
    """Makes a provider from its replies."""
    made: list[Provider] = []

    def make(*replies: bytes) -> Provider:
        made.append(Provider(replies))
        return made[-1]

    yield make
    for each in made:
        each.close()
