"""The garbage collector, at rest while a session is read."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def collector_at_rest() -> Generator[None, None, None]:
    """Within it no garbage is collected. Reading a long session makes objects by the hundred thousand, all of which
    stay; going through them again and again for garbage would double the time."""
    was_on = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if was_on:
            gc.enable()
