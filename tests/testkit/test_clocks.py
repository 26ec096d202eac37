"""Time and ids that a test controls."""

import threading

import pytest

from gotato_py import InvalidArgument, Scope
from gotato_testkit import ManualClock, SequentialIds


def test_time_stands_still_until_it_is_moved() -> None:
    """Both clocks move by `advance` alone, and not backwards."""
    clock = ManualClock(unix=100.0)
    assert (clock.time(), clock.monotonic()) == (100.0, 0.0)
    clock.advance(2.5)
    assert (clock.time(), clock.monotonic()) == (102.5, 2.5)
    with pytest.raises(InvalidArgument, match="at least 0"):
        clock.advance(-1)


def test_the_wall_clock_can_be_set_back() -> None:
    """`set_time` moves the wall clock alone; deadlines do not notice."""
    clock = ManualClock(unix=100.0)
    scope = Scope(10, clock=clock)
    clock.advance(4)
    clock.set_time(50.0)
    assert (clock.time(), clock.monotonic(), scope.remaining()) == (50.0, 4.0, 6.0)
    clock.advance(1)
    assert clock.time() == 51.0


def test_waiting_moves_time_up_to_the_deadline() -> None:
    """`wait` takes no real time: it moves the clock by the seconds, at most to the end of the scope."""
    clock = ManualClock()
    scope = Scope(5, clock=clock)
    assert clock.wait(scope, 2) is False
    assert clock.wait(scope, 3600) is True
    assert (clock.monotonic(), clock.waits) == (5.0, [2, 3600])


def test_waiting_under_an_ended_scope_moves_nothing() -> None:
    """A cancelled scope has no time left to wait."""
    clock = ManualClock()
    scope = Scope(clock=clock)
    scope.cancel()
    assert clock.wait(scope, 10) is True
    assert clock.monotonic() == 0.0


def test_threads_lose_no_time() -> None:
    """Concurrent waits and moves all count."""
    clock = ManualClock()
    scope = Scope(clock=clock)

    def move() -> None:
        for _ in range(500):
            clock.advance(0.5)
            clock.wait(scope, 0.5)

    threads = [threading.Thread(target=move) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clock.monotonic() == 2000.0
    assert repr(clock).startswith("ManualClock(unix=")


def test_ids_count_up_by_kind() -> None:
    """Each kind has a sequence of its own, from 1, and threads never share an id."""
    ids = SequentialIds()
    assert [ids("agent"), ids("run"), ids("run")] == ["agent-1", "run-1", "run-2"]
    made: list[str] = []
    threads = [threading.Thread(target=lambda: made.extend(ids("message") for _ in range(500))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 2000


def test_a_clock_that_does_not_move_itself_waits_for_others() -> None:
    """With `auto=False` a wait blocks until enough time has been given from another thread."""
    clock = ManualClock(auto=False)
    scope = Scope(clock=clock)
    woken: list[bool] = []
    sleeper = threading.Thread(target=lambda: woken.append(scope.wait(10)))
    sleeper.start()
    clock.wait_for_waiting()
    clock.advance(4)
    clock.advance(5.5)
    assert (clock.waiting, woken) == (1, [])
    clock.advance(0.5)
    sleeper.join(5)
    assert (woken, clock.waiting, clock.waits, clock.monotonic()) == ([False], 0, [10], 10.0)


def test_the_end_of_the_scope_ends_such_a_wait() -> None:
    """A cancel, and a deadline that other threads move the clock past, end it early."""
    clock = ManualClock(auto=False)
    for end in ("cancel", "deadline"):
        scope = Scope(60, clock=clock)
        woken: list[bool] = []
        sleeper = threading.Thread(target=lambda scope=scope, woken=woken: woken.append(scope.wait(3600)))
        sleeper.start()
        clock.wait_for_waiting()
        if end == "cancel":
            scope.cancel()
        else:
            clock.advance(60)
        sleeper.join(5)
        assert (woken, scope.timed_out) == ([True], end == "deadline")


def test_a_wait_that_is_over_does_not_block() -> None:
    """No seconds, and an ended scope, are no wait."""
    clock = ManualClock(auto=False)
    scope = Scope(clock=clock)
    assert clock.wait(scope, 0) is False
    scope.cancel()
    assert clock.wait(scope, 5) is True
    assert clock.waits == [0, 5]


def test_waiting_for_a_wait_is_bounded() -> None:
    """Where nobody waits by the clock, that is said after `timeout`."""
    with pytest.raises(TimeoutError, match=r"0 threads wait by the clock after 0\.01 s, not 2"):
        ManualClock(auto=False).wait_for_waiting(2, timeout=0.01)
    ManualClock().wait_for_waiting(0)
