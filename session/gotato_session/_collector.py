"""The garbage collector, at rest while a session is read."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

_MANY = 50_000
"""New containers from which on it is worth to spare the collector going through them."""


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
            if gc.get_count()[0] > _MANY and not gc.get_freeze_count():
                _count_as_old()
            gc.enable()


def _count_as_old() -> None:
    """Puts every object where those are that have outlived many collections, so that the next one leaves them out.

    Not where objects are frozen, which this would thaw: by the application, or by Python 3.12 itself.
    """
    gc.freeze()
    gc.unfreeze()
