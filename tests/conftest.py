"""What every test shares: Hypothesis profiles, the material beside the project, and a watch over threads."""

import gc
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]
GRACE = 10.0
"""Seconds a thread that was told to end may take before it counts as left behind: far more than a machine stalls."""

settings.register_profile("dev", max_examples=30, deadline=None)
settings.register_profile("ci", max_examples=60, deadline=None, derandomize=True, print_blob=True)
settings.register_profile("nightly", max_examples=5_000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="module")
def nothing_old_is_collected() -> None:
    """Show the collector what the tests of this module make, and nothing older.

    What the tests before have left to Hypothesis and pytest is looked at again and again otherwise: that was a quarter
    of the time of all tests.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder `shared` beside the project (the contract, wire cases, recordings); skips where it is absent."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("the folder `shared` is not beside this checkout")
    return folder


@pytest.fixture(autouse=True)
def no_thread_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves a thread behind; the marker `leaves_daemon_threads` excuses daemon threads only."""
    before = set(threading.enumerate())
    yield
    excused = request.node.get_closest_marker("leaves_daemon_threads") is not None
    left = _left_after(GRACE, before, excused=excused)
    assert not left, f"threads left behind: {', '.join(sorted(map(repr, left)))}"


def _left_after(grace: float, before: set[threading.Thread], *, excused: bool) -> set[threading.Thread]:
    """The threads that are new since `before` and still there after `grace` seconds."""
    end = time.monotonic() + grace
    while True:
        left = {each for each in set(threading.enumerate()) - before if not (excused and each.daemon)}
        if not left or time.monotonic() >= end:
            return left
        time.sleep(0.005)
