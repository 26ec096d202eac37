"""What the tests of the registry share."""

from __future__ import annotations

import pytest

from gotato_testkit import FakeTool
from gotato_toolregistry import Registry


@pytest.fixture
def abc() -> Registry:
    """A registry of three tools, the middle one inactive."""
    registry = Registry([FakeTool("a")])
    registry.register(FakeTool("b"), active=False)
    registry.register(FakeTool("c"))
    return registry
