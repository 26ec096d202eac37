"""Cancellation and time: from every thread, from signal handlers, with a clock of one's own."""

from __future__ import annotations

import gc
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_py import Cancelled, DeadlineExceeded, InvalidArgument, Scope, SystemClock


class HandClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def wait(self, scope: Scope, seconds: float) -> bool:
        left = scope.remaining()
        self.now += seconds if left is None else min(seconds, left)
        return scope.cancelled


@pytest.fixture
def on_alarm() -> Iterator[Callable[[Callable[[], object], float], None]]:
    """Sets a handler for SIGALRM and the delay until the signal comes."""
    before = signal.getsignal(signal.SIGALRM)

    def install(handler: Callable[[], object], delay: float) -> None:
        signal.signal(signal.SIGALRM, lambda *_: handler())
        signal.setitimer(signal.ITIMER_REAL, delay)

    yield install
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def in_threads(count: int, work: Callable[[int], object]) -> None:
    """Runs `work(index)` in that many threads at the same moment, and waits for all."""
    gate = threading.Barrier(count)

    def start(index: int) -> None:
        gate.wait()
        work(index)

    threads = [threading.Thread(target=start, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)


# ---- signals


def test_a_signal_handler_cancels_a_wait(on_alarm: Any) -> None:
    """`cancel` in a signal handler ends the wait of the very thread that it interrupts."""
    scope = Scope()
    on_alarm(lambda: scope.cancel("alarm"), 0.01)
    began = time.monotonic()
    assert scope.wait(10)
    assert time.monotonic() - began < 5
    assert scope.reason == "alarm"


def test_a_signal_handler_cancels_a_wait_through_the_parent(on_alarm: Any) -> None:
    """A wait in a child is woken by its grandparent's end."""
    scope = Scope()
    on_alarm(lambda: scope.cancel("alarm"), 0.01)
    assert scope.child(20).child().wait(10)


def test_an_exception_of_a_signal_handler_ends_a_wait(on_alarm: Any) -> None:
    """Ctrl-C during a wait is raised out of it, and leaves nothing registered."""
    scope = Scope()

    def interrupt() -> None:
        if not scope._callbacks:  # the wait has not begun
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            return
        raise KeyboardInterrupt

    def wait() -> None:
        on_alarm(interrupt, 0.01)
        scope.wait(10)

    with pytest.raises(KeyboardInterrupt):
        wait()
    assert not scope._callbacks


METHODS: dict[str, Callable[[Scope], object]] = {
    "cancelled": lambda scope: scope.cancelled,
    "reason": lambda scope: scope.reason,
    "timed_out": lambda scope: scope.timed_out,
    "remaining": lambda scope: scope.remaining(),
    "repr": repr,
    "wait": lambda scope: scope.wait(0.0001),
    "on_end": lambda scope: scope.on_end(int)(),
    "child": lambda scope: scope.child(5).on_end(int)(),
    "child wait": lambda scope: scope.child(5).wait(0.0001),
    "cancel of a child": lambda scope: scope.child().cancel(),
    "check": Scope.check,
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("make", [Scope, lambda: Scope(50).child(), lambda: Scope().child(50)])
def test_a_signal_handler_may_interrupt_every_method(name: str, make: Callable[[], Scope], on_alarm: Any) -> None:
    """Wherever a signal hits, `cancel` in its handler returns and every callback runs once."""
    method = METHODS[name]
    for delay in (0.0005, 0.0007, 0.0011, 0.0013):
        scope, won, ran = make(), list[bool](), list[int]()
        for _ in range(3):
            scope.on_end(lambda ran=ran: ran.append(1))  # type: ignore[misc]
        on_alarm(lambda scope=scope, won=won: won.append(scope.cancel("alarm")), delay)
        until = time.monotonic() + 5
        while not won and time.monotonic() < until:
            try:
                method(scope)
            except Cancelled:
                pass
        assert won == [True]
        assert ran == [1, 1, 1]
        assert scope.reason == "alarm"


def test_a_signal_handler_interrupts_cancel_itself(on_alarm: Any) -> None:
    """A `cancel` inside a `cancel` returns; exactly one of the two ended the scope."""
    for _ in range(20):
        scopes = [Scope() for _ in range(300)]
        won: list[bool] = []
        on_alarm(lambda scopes=scopes, won=won: won.extend([each.cancel("in") for each in scopes]), 0.0002)
        mine = [each.cancel("out") for each in scopes]
        until = time.monotonic() + 5
        while not won and time.monotonic() < until:
            pass
        assert len(won) == len(mine)
        assert all(a != b for a, b in zip(won, mine, strict=True))


def test_an_interrupt_in_a_callback_does_not_stop_the_others() -> None:
    """What an interrupted `cancel` had still to tell is told."""
    scope, ran = Scope(), list[int]()

    def interrupted() -> None:
        raise KeyboardInterrupt

    for callback in (lambda: ran.append(1), interrupted, lambda: ran.append(2)):
        scope.on_end(callback)
    with pytest.raises(KeyboardInterrupt):
        scope.cancel()
    assert ran == [1, 2]
    assert scope.cancelled


# ---- threads


def test_one_of_many_cancels_wins() -> None:
    """Of cancels from eight threads exactly one returns True, and its reason stays."""
    for _ in range(50):
        scope = Scope()
        won: list[int] = []
        in_threads(8, lambda index, scope=scope, won=won: scope.cancel(str(index)) and won.append(index))  # type: ignore[misc]
        assert [str(index) for index in won] == [scope.reason]


def test_every_callback_runs_once_under_races() -> None:
    """Callbacks registered while other threads cancel run once each, in child and parent alike."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(20):
            scope = Scope()
            child = scope.child()
            ran: list[int] = []

            def work(index: int, scope: Scope = scope, child: Scope = child, ran: list[int] = ran) -> None:
                for number in range(50):
                    mine = index * 1000 + number
                    (child if number % 2 else scope).on_end(lambda mine=mine: ran.append(mine))  # type: ignore[misc]
                    if number == 25:
                        scope.cancel()

            in_threads(4, work)
            assert sorted(ran) == sorted(index * 1000 + number for index in range(4) for number in range(50))
            assert not scope._callbacks
            assert not child._callbacks
    finally:
        sys.setswitchinterval(interval)


def test_waits_of_a_shared_child_are_all_woken() -> None:
    """Registrations of other threads come and go; a cancel of the parent still reaches every waiting thread."""
    for _ in range(20):
        parent = Scope()
        child = parent.child()
        woken: list[bool] = []

        def work(index: int, parent: Scope = parent, child: Scope = child, woken: list[bool] = woken) -> None:
            if index == 0:
                time.sleep(0.003)
                parent.cancel()
            elif index % 2:
                while not parent._end:
                    child.on_end(int)()
            else:
                woken.append(child.wait(60))

        in_threads(5, work)
        assert woken == [True, True]


def test_callbacks_run_in_the_thread_that_cancels() -> None:
    """The thread that cancels runs the callbacks, the child's too."""
    scope, seen = Scope(), list[int]()
    scope.child().on_end(lambda: seen.append(threading.get_ident()))
    thread = threading.Thread(target=scope.cancel)
    thread.start()
    thread.join()
    assert seen == [thread.ident]


# ---- callbacks


def test_a_callback_that_raises_is_ignored() -> None:
    """Neither the canceller nor the other callbacks notice."""
    scope, ran = Scope(), list[int]()
    scope.on_end(lambda: 1 / 0)
    scope.on_end(lambda: ran.append(1))
    assert scope.cancel()
    assert ran == [1]


def test_registration_after_the_end_runs_at_once() -> None:
    """`on_end` of an ended scope calls back before it returns, in child and parent alike."""
    scope, ran = Scope(), list[int]()
    child = scope.child()
    scope.cancel()
    scope.on_end(lambda: ran.append(1))()
    child.on_end(lambda: ran.append(2))()
    assert ran == [1, 2]


def test_an_unregistered_callback_never_runs() -> None:
    """The returned function takes the registration back, as often as it is called."""
    scope, ran = Scope(), list[int]()
    unregister = scope.child().on_end(lambda: ran.append(1))
    unregister()
    unregister()
    scope.cancel()
    assert ran == []


def test_equal_callbacks_are_separate_registrations() -> None:
    """The same function registered twice runs twice, and one of the two can be taken back."""
    scope, ran = Scope(), list[int]()

    def callback() -> None:
        ran.append(1)

    scope.on_end(callback)()
    scope.on_end(callback)
    scope.on_end(callback)
    scope.cancel()
    assert ran == [1, 1]


def test_children_leave_nothing_in_their_parent() -> None:
    """A long-lived parent does not grow by children that are unused, unregistered or ended."""
    gc.collect()
    before = sum(isinstance(each, Scope) for each in gc.get_objects())
    parent = Scope()
    for _ in range(3_000):
        parent.child(5).remaining()
        parent.child().on_end(int)()
        ended = parent.child()
        ended.on_end(int)
        ended.cancel()
        late = parent.child(0)
        late.on_end(int)
    assert not parent._callbacks
    gc.collect()
    assert sum(isinstance(each, Scope) for each in gc.get_objects()) < before + 10


def test_a_callback_may_use_the_scope() -> None:
    """Callbacks see the scope ended, and may register, cancel and wait."""
    scope, seen = Scope(), list[Any]()
    scope.on_end(lambda: seen.append((scope.cancelled, scope.reason, scope.cancel("again"), scope.wait(5))))
    scope.on_end(lambda: scope.on_end(lambda: seen.append("late")))
    scope.cancel("first")
    assert sorted(seen, key=str) == [(True, "first", False, True), "late"]


# ---- time


def test_time_passes_by_the_given_clock() -> None:
    """A scope ends when its clock has moved by the timeout, and tells its callbacks when somebody looks."""
    clock = HandClock()
    scope, ran = Scope(5, clock=clock), list[int]()
    scope.on_end(lambda: ran.append(1))
    assert (scope.remaining(), scope.cancelled, scope.reason, scope.clock) == (5.0, False, "", clock)
    clock.now += 4.5
    assert scope.remaining() == 0.5
    clock.now += 0.5
    assert ran == []
    assert scope.cancelled
    assert (scope.timed_out, scope.remaining(), scope.reason, ran) == (True, 0.0, "deadline exceeded", [1])
    assert not scope.cancel("too late")


def test_check_raises_what_ended_the_scope() -> None:
    """`check` tells cancellation and time apart, and does nothing before the end."""
    Scope(50).check()
    scope = Scope()
    scope.cancel("stop")
    with pytest.raises(Cancelled, match=r"^stop$"):
        scope.check()
    with pytest.raises(DeadlineExceeded):
        Scope(0).check()
    with pytest.raises(TimeoutError):
        Scope(0).child().check()
    silent = Scope()
    silent.cancel()
    assert silent.reason == ""
    with pytest.raises(Cancelled, match=r"^cancelled$"):
        silent.check()


@given(st.lists(st.none() | st.integers(0, 20), min_size=1, max_size=4), st.integers(0, 20))
def test_the_nearest_end_wins(timeouts: list[int | None], moved: int) -> None:
    """A chain of scopes has the remaining time of its nearest deadline, whichever of them it is."""
    clock = HandClock()
    scope = Scope(timeouts[0], clock=clock)
    for timeout in timeouts[1:]:
        scope = scope.child(timeout)
    clock.now += moved
    known = [each for each in timeouts if each is not None]
    expected = None if not known else max(0.0, float(min(known) - moved))
    assert scope.remaining() == expected
    assert scope.cancelled == (expected == 0.0)


@pytest.mark.parametrize("cancelled_at", [1, 3])
def test_the_earlier_end_is_told_whenever_somebody_looks(cancelled_at: int) -> None:
    """Looked at late, a child tells what ended it first: its parent's cancellation or its own deadline."""
    clock = HandClock()
    parent = Scope(clock=clock)
    child = parent.child(2)
    clock.now += cancelled_at
    parent.cancel("stop")
    clock.now += 5
    assert (child.timed_out, child.reason) == ((True, "deadline exceeded") if cancelled_at > 2 else (False, "stop"))


def test_a_child_ends_alone() -> None:
    """A child's end leaves its parent and its siblings as they are."""
    parent = Scope()
    child, sibling = parent.child(), parent.child()
    assert child.cancel("mine")
    assert (parent.cancelled, sibling.cancelled) == (False, False)
    assert parent.cancel("all")
    assert (child.reason, sibling.reason) == ("mine", "all")


def test_wait_goes_through_the_clock() -> None:
    """`wait` sleeps by the scope's own clock, at most to the end; an ended scope does not sleep."""
    clock = HandClock()
    scope = Scope(5, clock=clock)
    assert not scope.wait(2)
    assert clock.now == 102.0
    assert scope.wait(10)
    assert clock.now == 105.0
    assert scope.wait(10)
    assert clock.now == 105.0


def test_the_system_clock_waits_and_wakes() -> None:
    """Real waits last their time, end with the scope's time, and return whether the scope has ended."""
    began = time.monotonic()
    assert not Scope(60).wait(0.02)
    assert 0.019 < time.monotonic() - began < 5
    for _ in range(20):
        assert Scope(0.001).wait(5)
    assert Scope(0).wait(math.inf)
    assert not Scope(math.inf).wait(0)
    assert Scope(math.inf).remaining() is None
    clock = SystemClock()
    assert abs(clock.time() - time.time()) < 5
    assert clock.monotonic() <= time.monotonic()


@pytest.mark.parametrize("bad", [-1, -0.001, math.nan, -math.inf, True, False, "5", b"", [], object(), 1j])
def test_bad_times_are_refused(bad: Any) -> None:
    """A negative time, NaN, a bool or no number is an InvalidArgument wherever a time is taken."""
    for call in (Scope, Scope().child, Scope().wait):
        with pytest.raises(InvalidArgument, match="must be"):
            call(bad)


def test_a_wait_needs_a_time() -> None:
    """`wait(None)` would never end and is refused; an int too large for a float is forever."""
    nothing: Any = None
    with pytest.raises(InvalidArgument):
        Scope().wait(nothing)
    assert Scope(10**400).remaining() is None


def test_bad_reasons_and_callbacks_are_refused() -> None:
    """They are told at once, and the scope goes on."""
    scope, wrong = Scope(), object()
    with pytest.raises(InvalidArgument, match="reason must be a str, not object"):
        scope.cancel(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="callback must be callable, not object"):
        scope.on_end(wrong)  # type: ignore[arg-type]
    assert not scope.cancelled


def test_the_repr_is_for_reading() -> None:
    """It says how much time is left, or why the scope ended."""
    scope = Scope(5, clock=HandClock())
    assert repr(scope) == "Scope(remaining=5.0)"
    scope.cancel("stop")
    assert repr(scope) == "Scope(ended, reason='stop')"
