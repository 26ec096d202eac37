"""The queue of a subscriber: nothing lost, nothing twice, nobody waiting for ever, whatever interrupts it."""

from __future__ import annotations

import gc
import math
import os
import random
import signal
import sys
import threading
import time
from _thread import allocate_lock
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import chain
from types import FrameType
from typing import Any
from weakref import ref

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gotato_py import (
    AgentEnd,
    Event,
    ForkedProcess,
    InvalidArgument,
    MessageUpdate,
    ReasoningUpdate,
    RunStatus,
    SubscriptionOverflow,
    ToolCallUpdate,
    ToolExecutionUpdate,
    TurnStart,
)
from gotato_py._subscribers import Subscribers
from gotato_py.subscription import EventStream

from ..effort import by_profile
from .interrupts import LineInterrupt, interrupted

END = 10.0
"""Seconds after which something that should have come by itself counts as lost."""


class Teller:
    """Makes events as a run does: numbered, and a second apart."""

    def __init__(self) -> None:
        self.told = 0

    def __call__(self, kind: Callable[..., Event], *fields: Any, run: str = "r-1", turn: int = 1) -> Event:
        self.told += 1
        return kind("a-1", run, self.told, turn, float(self.told), *fields)

    def text(self, text: str, **where: Any) -> Event:
        """A piece of an answer."""
        return self(MessageUpdate, text, **where)

    def turn(self) -> Event:
        """An event that nothing can be joined with."""
        return self(TurnStart)


def opened(maxsize: int = 256) -> EventStream:
    """A stream of nobody's."""
    return EventStream(maxsize, lambda stream: None)


def drained(stream: EventStream) -> list[Event]:
    """All that is queued."""
    return list(iter(lambda: stream.get(0), None))


def numbers(events: list[Event]) -> list[int]:
    """Their sequence numbers."""
    return [event.sequence for event in events]


@contextmanager
def reading(stream: EventStream, count: int = 1) -> Generator[list[Event], None, None]:
    """Threads that read the stream to its end, and already wait for an event; at the end they must have ended."""
    got: list[Event] = []

    threads = [threading.Thread(target=lambda: got.extend(stream), daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    until = time.monotonic() + END
    while len(stream._waiting) < count and time.monotonic() < until:
        time.sleep(0.0005)
    yield got
    for thread in threads:
        thread.join(END)
    assert not any(thread.is_alive() for thread in threads), "a reader waits for ever"


@contextmanager
def on_alarm(handler: Callable[[], object], delay: float) -> Generator[None, None, None]:
    """Calls the handler in the main thread, between two of its bytecodes, after so many seconds."""
    before = signal.signal(signal.SIGALRM, lambda *_: handler())
    signal.setitimer(signal.ITIMER_REAL, delay)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def hurried() -> Generator[None, None, None]:
    """Threads take turns after every few bytecodes."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


# ---- one thread


def test_events_come_in_order() -> None:
    """What is pushed is read in its order, the same objects, and then nothing."""
    tell, stream = Teller(), opened()
    events = [tell.turn(), tell.text("a"), tell.text("b"), tell(AgentEnd, RunStatus.COMPLETED)]
    for event in events:
        stream.push(event)
    got = [stream.get(0), next(stream), stream.get(5), stream.get()]
    assert all(one is other for one, other in zip(got, events, strict=True))
    assert stream.get(0) is None
    assert stream.get(0.001) is None


@pytest.mark.parametrize("maxsize", [0, -1, True, "5", 2.0, None])
def test_a_wrong_size_is_refused(maxsize: Any) -> None:
    """`maxsize` is an int of at least 1."""
    with pytest.raises(InvalidArgument, match="maxsize"):
        EventStream(maxsize, lambda stream: None)
    with pytest.raises(InvalidArgument, match="maxsize"):
        Subscribers().add(maxsize)


@pytest.mark.parametrize("timeout", [-1, float("nan"), "1", True])
def test_a_wrong_timeout_is_refused(timeout: Any) -> None:
    """`timeout` is None or seconds of at least 0, and a wrong one takes no event."""
    stream = opened()
    stream.push(Teller().turn())
    with pytest.raises(InvalidArgument, match=r"EventStream\.get"):
        stream.get(timeout)
    assert len(drained(stream)) == 1


def test_a_finished_stream_ends_when_it_is_read() -> None:
    """Once the agent is closed nothing is added, and iteration ends behind what was queued."""
    tell, stream = Teller(), opened()
    stream.push(tell.turn())
    stream.finish()
    stream.finish()
    stream.push(tell.turn())
    assert numbers(list(stream)) == [1]
    assert stream.get() is None
    assert list(stream) == []


def test_a_closed_stream_is_empty() -> None:
    """`close` drops what is queued, tells it once, and may be called again."""
    told: list[EventStream] = []
    stream = EventStream(4, told.append)
    with stream as entered:
        assert entered is stream
        stream.push(Teller().turn())
    stream.close()
    stream.push(Teller().turn())
    stream.finish()
    assert (stream.get(), list(stream), told, stream.listening) == (None, [], [stream], False)
    told.clear()


def test_a_finished_stream_may_be_closed() -> None:
    """`close` after the agent's end drops the rest."""
    stream = opened()
    stream.push(Teller().turn())
    stream.finish()
    stream.close()
    assert stream.get() is None


def test_reprs_are_made_for_reading() -> None:
    """A stream shows how it stands and how full it is."""
    tell, stream = Teller(), opened(2)
    assert repr(stream) == "EventStream(open, 0 of 2 queued)"
    for _ in range(3):
        stream.push(tell.turn())
    assert repr(stream) == "EventStream(overflowed, 2 of 2 queued)"
    stream.close()
    assert repr(stream) == "EventStream(closed, 0 of 2 queued)"
    finished = opened()
    finished.finish()
    assert repr(finished) == "EventStream(finished, 0 of 256 queued)"


def test_the_same_event_twice_in_a_row_is_one() -> None:
    """Whoever was interrupted in a push pushes again: the event is there once, also when it was read or joined."""
    tell, stream = Teller(), opened(1)
    first, second = tell.text("a"), tell.text("b")
    for event in (first, first, second, second):
        stream.push(event)
    (joined,) = drained(stream)
    stream.push(second)
    assert isinstance(joined, MessageUpdate)
    assert joined.text == "ab"
    assert drained(stream) == []


# ---- a full queue


def whose(event: Event) -> object:
    """What two updates have in common that can be joined; of other events nothing is equal."""
    match event:
        case MessageUpdate() | ReasoningUpdate():
            return (event.kind, event.run_id, event.turn)
        case ToolCallUpdate(index=index):
            return (event.kind, event.run_id, event.turn, index)
        case ToolExecutionUpdate(key=key):
            return (event.kind, event.run_id, event.turn, key)
        case _:
            return event.sequence


def folded(events: list[Event]) -> list[tuple[object, str]]:
    """The events with all neighbours joined that can be: whose each is, and its text."""
    found: list[tuple[object, str]] = []
    for event in events:
        text = event.fragment if isinstance(event, ToolCallUpdate) else getattr(event, "text", "")
        if found and found[-1][0] == whose(event):
            between = "\n" if isinstance(event, ToolExecutionUpdate) else ""
            found[-1] = (whose(event), found[-1][1] + between + text)
        else:
            found.append((whose(event), text))
    return found


KINDS: dict[str, Callable[[Teller, str], Event]] = {
    "text": Teller.text,
    "other run": lambda tell, text: tell.text(text, run="r-2"),
    "reasoning": lambda tell, text: tell(ReasoningUpdate, text),
    "call 0": lambda tell, text: tell(ToolCallUpdate, 0, "", text),
    "call 1": lambda tell, text: tell(ToolCallUpdate, 1, "", text),
    "progress a": lambda tell, text: tell(ToolExecutionUpdate, "k:a", "dig", text),
    "progress b": lambda tell, text: tell(ToolExecutionUpdate, "k:b", "dig", text),
    "other": lambda tell, text: tell.turn(),
}
PUSHED = st.tuples(st.sampled_from(list(KINDS)), st.text("xyz", max_size=5))
STEPS = st.lists(st.one_of(PUSHED, PUSHED, st.integers(1, 4)), max_size=60)


@given(st.integers(1, 6), STEPS)
@example(3, [("other", ""), ("text", "a"), ("text", "b"), ("text", "c"), ("other", ""), 1, ("other", "")])
def test_no_text_is_lost(maxsize: int, steps: list[tuple[str, str] | int]) -> None:
    """Whatever is pushed and read: order and texts stay, no other event is left out, updates are joined only in a queue
    that has been full, and it overflows when, and only when, there is no room with all neighbours joined."""
    tell, stream, told, read = Teller(), opened(maxsize), list[Event](), list[Event]()
    been_full = False
    for step in steps:
        if isinstance(step, int):
            read += [event for _ in range(step) if (event := stream.get(0)) is not None]
            continue
        event = KINDS[step[0]](tell, step[1])
        unread = [each for each in told if not read or each.sequence > read[-1].sequence]
        been_full = been_full or len(unread) >= maxsize
        stream.push(event)
        if len(folded([*unread, event])) > maxsize:
            assert "overflowed" in repr(stream)
            break
        told.append(event)
        assert stream._backlog.size <= maxsize
    rest: list[Event] = []
    while stream._backlog.size:
        rest.append(next(stream))
    assert folded(read + rest) == folded(told)
    at = {event.sequence: event for event in told}
    assert all(event.timestamp == at[event.sequence].timestamp for event in read + rest)
    if not been_full:
        assert all(one is other for one, other in zip(read + rest, told, strict=True))


def test_a_joined_update_is_the_newest_with_all_texts() -> None:
    """Number and time are those of the newest, the text is all texts; a tool's name is the first that was said."""
    tell, stream = Teller(), opened(1)
    for name, fragment in (("", "{"), ("dig", '"n":'), ("", "1}")):
        stream.push(tell(ToolCallUpdate, 0, name, fragment))
    assert drained(stream) == [ToolCallUpdate("a-1", "r-1", 3, 1, 3.0, 0, "dig", '{"n":1}')]
    for text in ("half of it", "nearly"):
        stream.push(tell(ToolExecutionUpdate, "m-1:0", "dig", text))
    assert drained(stream) == [ToolExecutionUpdate("a-1", "r-1", 5, 1, 5.0, "m-1:0", "dig", "half of it\nnearly")]


def test_overflow_is_told_after_the_rest() -> None:
    """What was queued can be read; then each call raises, and says how many were missed and what to do."""
    tell, stream = Teller(), opened(2)
    for _ in range(3):
        stream.push(tell.turn())
    stream.push(tell.text("late"))
    assert numbers([next(stream), next(stream)]) == [1, 2]
    with pytest.raises(SubscriptionOverflow, match=r"queue of 2 events: 2 could not .*larger maxsize") as caught:
        stream.get(0)
    assert caught.value.details == {"maxsize": 2, "missed": 2}
    last = tell.turn()
    stream.push(last)
    stream.push(last)
    stream.finish()
    with pytest.raises(SubscriptionOverflow, match=": 3 could not"):
        next(stream)
    stream.close()
    assert stream.get() is None


def test_a_reader_that_waits_is_told_of_the_overflow() -> None:
    """A second reader does not wait behind the last event of a stream that overflowed."""
    tell, stream = Teller(), opened(1)
    for _ in range(2):
        stream.push(tell.turn())
    assert numbers([next(stream)]) == [1]
    with pytest.raises(SubscriptionOverflow):
        stream.get()


@pytest.mark.parametrize(
    "pair",
    [
        ("text", "other run"),
        ("text", "reasoning"),
        ("call 0", "call 1"),
        ("progress a", "progress b"),
        ("call 0", "other"),
    ],
)
def test_updates_of_different_messages_stay_apart(pair: tuple[str, str]) -> None:
    """Only updates of the same answer, call or tool are joined; with others a full queue overflows."""
    tell, stream = Teller(), opened(1)
    for name in pair:
        stream.push(KINDS[name](tell, "x"))
    assert numbers([next(stream)]) == [1]
    with pytest.raises(SubscriptionOverflow):
        next(stream)


def lines_of(act: Callable[[], object]) -> int:
    """How many lines are executed."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return count


def test_a_push_costs_the_same_in_any_queue() -> None:
    """A queue that is full, and stays so, is not searched for neighbours again and again."""

    def work(maxsize: int) -> float:
        tell, stream = Teller(), opened(maxsize)
        for _ in range(maxsize):
            stream.push(tell.turn())
        rounds = 2 * maxsize

        def act() -> None:
            for _ in range(rounds):
                stream.get(0)
                stream.get(0)
                for event in (tell.text("a"), tell.text("b"), tell.turn()):
                    stream.push(event)

        lines = lines_of(act)
        assert repr(stream) == f"EventStream(open, {maxsize} of {maxsize} queued)"
        return lines / rounds

    assert work(512) < 1.2 * work(32)


def test_a_reader_who_stands_still_costs_little() -> None:
    """A great many pieces are joined to one without being copied each time, and a long queue can be dropped."""
    count = by_profile(dev=20_000, ci=100_000, nightly=100_000)
    tell, stream, long = Teller(), opened(1), opened(1_000_000)
    event: Event = tell.text("0123456789" * 10)
    for _ in range(count):
        event = tell.text("0123456789" * 10)
        stream.push(event)
        long.push(event)
    (joined,) = drained(stream)
    assert isinstance(joined, MessageUpdate)
    assert joined.text == "0123456789" * 10 * count
    assert long.get(0) is not None


# ---- threads


def test_a_push_wakes_a_reader() -> None:
    """A reader waits without polling, and gets the event at once; the end ends it."""
    tell, stream = Teller(), opened()
    with reading(stream) as got:
        for _ in range(3):
            stream.push(tell.turn())
            until = time.monotonic() + END
            while len(got) < tell.told and time.monotonic() < until:
                time.sleep(0.0002)
        stream.finish()
    assert numbers(got) == [1, 2, 3]


@pytest.mark.parametrize("end", [EventStream.close, EventStream.finish])
def test_the_end_wakes_every_reader(end: Callable[[EventStream], None]) -> None:
    """Readers that wait return when another thread closes the stream, or the agent is closed."""
    stream = opened()
    with reading(stream, 4) as got:
        end(stream)
    assert got == []


def test_get_waits_no_longer_than_asked() -> None:
    """`get` returns None when its time has passed, also while other readers take what comes."""
    stream = opened()
    began = time.monotonic()
    assert stream.get(0.02) is None
    assert 0.02 <= time.monotonic() - began < END
    assert not stream._waiting


@pytest.mark.parametrize("timeout", [1e30, math.inf, 10**400])
def test_get_takes_any_time(timeout: float) -> None:
    """A time longer than a lock can wait is as good as none."""
    tell, stream = Teller(), opened()
    threading.Timer(0.005, stream.push, [tell.turn()]).start()
    assert stream.get(timeout) is not None


def test_each_event_goes_to_one_reader() -> None:
    """Many readers share what two threads push: each event is read once, by everyone in its thread's order."""
    stream, kept = opened(100_000), list[list[Event]]()
    tellers = [Teller(), Teller()]

    def read() -> None:
        mine: list[Event] = []
        kept.append(mine)
        mine.extend(stream)

    def push(run: str, tell: Teller) -> None:
        for number in range(500):
            stream.push(tell(TurnStart, run=run) if number % 2 else tell.text("x", run=run))

    with hurried():
        readers = [threading.Thread(target=read) for _ in range(4)]
        pushers = [threading.Thread(target=push, args=(f"r-{n}", tell)) for n, tell in enumerate(tellers)]
        for thread in readers + pushers:
            thread.start()
        for thread in pushers:
            thread.join(END)
        stream.finish()
        for thread in readers:
            thread.join(END)
    for run in ("r-0", "r-1"):
        each = [numbers([event for event in mine if event.run_id == run]) for mine in kept]
        assert sorted(chain(*each)) == list(range(1, 501))
        assert all(mine == sorted(mine) for mine in each)


def test_a_small_queue_under_threads() -> None:
    """While another thread reads, a run's updates are joined or not, but all of the text comes, in order."""
    with hurried():
        for _ in range(5):
            tell, stream = Teller(), opened(3)
            with reading(stream) as got:
                for number in range(1_000):
                    stream.push(tell.text(f"{number},"))
                stream.finish()
            assert "".join(getattr(event, "text", "") for event in got) == "".join(f"{n}," for n in range(1_000))


def test_a_reader_does_not_sleep_over_an_event() -> None:
    """An event that came between the look and the wait ends the wait; a reader that was woken already is no trouble."""
    stream = opened()
    stream._waiting.add(allocate_lock())
    stream.push(Teller().turn())
    began = time.monotonic()
    stream._wait(END)
    assert time.monotonic() - began < END / 2
    assert not stream._waiting


# ---- signals and interrupts


def test_ctrl_c_ends_a_wait() -> None:
    """It is raised out of a `get` that waits, and the stream is as it was."""
    tell, stream = Teller(), opened()
    assert interrupted(stream.get, 0.01) == (1, True)
    assert interrupted(lambda: list(stream), 0.01) == (1, True)
    assert not stream._waiting
    stream.push(tell.turn())
    assert numbers(drained(stream)) == [1]


def test_ctrl_c_loses_no_event() -> None:
    """Wherever a real signal comes while events are read, those that were not handed out are still there."""
    dice, hits = random.Random(5), 0
    for _ in range(120):
        tell, stream, got = Teller(), opened(300), list[Event]()
        for number in range(400):
            stream.push(tell.text(f"{number},") if number >= 280 else tell.turn())
        stream.finish()
        hits += interrupted(lambda stream=stream, got=got: got.extend(stream), dice.uniform(2e-5, 4e-4)).raised  # type: ignore[misc]
        got += drained(stream)
        assert numbers(got) == [*range(1, 300), 400]
        assert "".join(getattr(event, "text", "") for event in got) == "".join(f"{n}," for n in range(280, 400))
    assert hits > 20


def test_ctrl_c_loses_no_push() -> None:
    """Wherever a real signal comes while events are pushed, each is there once if the one that it hit is repeated."""
    dice, hits = random.Random(6), 0
    for _ in range(120):
        tell, stream = Teller(), opened(300)
        left = deque([tell.turn() for _ in range(280)] + [tell.text(f"{number},") for number in range(120)])

        def push(stream: EventStream = stream, left: deque[Event] = left) -> None:
            while left:
                stream.push(left[0])
                left.popleft()

        hits += interrupted(push, dice.uniform(2e-5, 4e-4)).raised
        push()
        got = drained(stream)
        assert numbers(got) == [*range(1, 300), 400]
        assert "".join(getattr(event, "text", "") for event in got) == "".join(f"{n}," for n in range(120))
    assert hits > 20


def test_a_handler_may_do_anything() -> None:
    """Wherever a signal comes in a push or a get, its handler may push and get, and nothing is lost or dead-locks."""
    dice, hits = random.Random(7), 0
    for _ in range(60):
        tell, stream, got, handled = Teller(), opened(1_000), list[Event](), list[Event]()

        def handler(stream: EventStream = stream, handled: list[Event] = handled) -> None:
            stream.push(TurnStart("a-1", "r-2", 1_000, 1, 0.0))
            handled.extend(event for _ in range(3) if (event := stream.get(0)) is not None)

        with on_alarm(handler, dice.uniform(1e-4, 5e-4)):
            for _ in range(150):
                stream.push(tell.text("x"))
                stream.push(tell.turn())
                got.extend(event for _ in range(2) if (event := stream.get(0)) is not None)
        found = sorted(numbers(got + handled + drained(stream)))
        assert found[:300] == list(range(1, 301))
        assert found[300:] in ([], [1_000])
        hits += len(found) - 300
    assert hits > 10


def test_a_handler_may_close() -> None:
    """Wherever a signal comes in a push or a get, its handler may close the stream: then nothing is there any more."""
    dice = random.Random(8)
    for _ in range(60):
        tell, told = Teller(), list[EventStream]()
        stream = EventStream(1_000, told.append)
        with on_alarm(stream.close, dice.uniform(1e-4, 5e-4)):
            until = time.monotonic() + END
            while stream.listening and time.monotonic() < until:
                stream.push(tell.turn())
                stream.get(0)
        assert (told, stream.get(), drained(stream)) == ([stream], None, [])


@pytest.mark.parametrize("act", [EventStream.close, EventStream.finish, lambda stream: stream.push(Teller().turn())])
def test_a_handler_wakes_its_own_thread(act: Callable[[EventStream], None]) -> None:
    """A thread that waits in `get` is woken by what a signal handler does in that very thread."""
    stream = opened()
    began = time.monotonic()
    with on_alarm(lambda: act(stream), 0.01):
        stream.get(END)
    assert time.monotonic() - began < END / 2


def interrupted_lines(make: Callable[[], Any], act: Callable[[Any], object]) -> Iterator[tuple[Any, str]]:
    """What `make` made, after `act` on it was interrupted at each line of the kernel in turn."""
    for number in range(1, 500):
        made, interrupt = make(), LineInterrupt(number)
        if not interrupt(lambda made=made: act(made)):  # type: ignore[misc]
            assert number > 5
            return
        yield made, interrupt.where
    raise AssertionError("no end of lines")


@pytest.mark.parametrize("read", [lambda stream: stream.get(0), next, lambda stream: stream.get()])
@pytest.mark.parametrize("maxsize", [3, 256], ids=["joined", "plain"])
def test_an_interrupt_at_any_line_of_a_read(read: Callable[[EventStream], Event | None], maxsize: int) -> None:
    """The event is read or still there, first as before, whichever line of `get` or `next` is interrupted."""

    def make() -> tuple[EventStream, list[Event | None]]:
        tell, stream = Teller(), opened(maxsize)
        for text in "abcdef":
            stream.push(tell.text(text))
        stream.push(tell.turn())
        return stream, []

    def act(made: tuple[EventStream, list[Event | None]]) -> None:
        made[1].append(read(made[0]))

    for (stream, got), where in interrupted_lines(make, act):
        events = [event for event in got if event is not None] + drained(stream)
        assert "".join(getattr(event, "text", "") for event in events) == "abcdef", where
        assert numbers(events) == sorted(set(numbers(events))), where
        assert events[-1].sequence == 7, where


def test_an_interrupt_between_two_readers() -> None:
    """An event that comes back after the stream was closed is dropped with the rest."""
    tell, stream = Teller(), opened()
    stream.push(tell.turn())
    step = stream._current().taken()
    assert step is not None
    stream.close()
    assert stream._current().given_back(step[1]) is stream._current()
    assert stream.get() is None


def test_an_interrupt_at_any_line_of_a_push() -> None:
    """Pushed again, as whoever is interrupted does, the event is there once, and a reader that waits has it."""
    tell = Teller()
    event = tell.turn()
    for maxsize, before in ((256, 0), (3, 3), (2, 5)):

        def make(maxsize: int = maxsize, before: int = before) -> EventStream:
            stream = opened(maxsize)
            for _ in range(before):
                stream.push(tell.text("x"))
            return stream

        for stream, where in interrupted_lines(make, lambda stream: stream.push(event)):
            stream.push(event)
            events = drained(stream)
            assert events[-1] is event, where
            assert "".join(getattr(each, "text", "") for each in events) == "x" * before, where
            assert sum(each is event for each in events) == 1, where


@pytest.mark.parametrize("end", [EventStream.close, EventStream.finish, lambda stream: stream.push(Teller().turn())])
def test_an_interrupt_leaves_nobody_waiting(end: Callable[[EventStream], None]) -> None:
    """Whichever line of a push or an end is interrupted, either nothing has happened or every reader knows."""

    def make() -> tuple[EventStream, threading.Thread, list[Event | None]]:
        stream, got = opened(), list[Event | None]()
        thread = threading.Thread(target=lambda: got.append(stream.get(6 * END)), daemon=True)
        thread.start()
        while not stream._waiting:
            time.sleep(0.0001)
        return stream, thread, got

    for (stream, thread, got), where in interrupted_lines(make, lambda made: end(made[0])):
        if stream._current().must_wait and not got:
            end(stream)
        thread.join(END)
        assert not thread.is_alive(), where


class Interrupting:
    """A reader whose waking is interrupted once."""

    def __init__(self) -> None:
        self.left = [KeyboardInterrupt()]

    def release(self) -> None:
        """Wakes it."""
        if self.left:
            raise self.left.pop()


def test_an_interrupted_end_is_an_end_for_all() -> None:
    """An interrupt in the middle of waking and ending comes out, and all streams have ended and all readers know."""
    subscribers = Subscribers()
    streams = [subscribers.add(4) for _ in range(3)]
    waiting: set[Any] = streams[0]._waiting
    waiting.add(Interrupting())
    with reading(streams[1], 2), pytest.raises(KeyboardInterrupt):
        subscribers.finish()
    assert [list(stream) for stream in streams] == [[], [], []]


# ---- processes


def test_a_fork_cannot_read() -> None:
    """In a child of the process that subscribed, reading raises in place of waiting; the rest does no harm."""
    tell, subscribers = Teller(), Subscribers()
    stream = subscribers.add(4)
    stream.push(tell.turn())
    (push,) = subscribers.pushes()
    child = os.fork()
    if child == 0:
        found = 1
        try:
            push(tell.turn())
            refused = 0
            reads: list[Callable[[], object]] = [stream.get, lambda: stream.get(0), lambda: next(stream)]
            for read in reads:
                try:
                    read()
                except ForkedProcess as error:
                    refused += error.code == "forked_process" and "subscribe" in str(error)
            fine = refused == 3 and not subscribers and subscribers.pushes() == ()
            stream.close()
            subscribers.finish()
            found = 0 if fine else 2
        finally:
            os._exit(found)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert bool(subscribers)
    assert numbers(drained(stream)) == [1]


# ---- all subscribers of an agent


def test_subscribers_take_events_in_their_order() -> None:
    """`pushes` has one entry for each stream that listens, in the order of subscription."""
    tell, subscribers = Teller(), Subscribers()
    assert (bool(subscribers), subscribers.pushes(), repr(subscribers)) == (False, (), "Subscribers(0 listening)")
    streams = [subscribers.add(4) for _ in range(20)]
    pushes = subscribers.pushes()
    assert (bool(subscribers), len(pushes), repr(subscribers)) == (True, 20, "Subscribers(20 listening)")
    for push in pushes:
        push(tell.turn())
    assert [numbers(drained(stream)) for stream in streams] == [[number] for number in range(1, 21)]


def test_a_closed_stream_takes_nothing() -> None:
    """After `close` a stream is no subscriber, and what would have pushed to it does nothing."""
    tell, subscribers = Teller(), Subscribers()
    stream, other = subscribers.add(4), subscribers.add(4)
    pushes = subscribers.pushes()
    stream.close()
    for push in pushes:
        push(tell.turn())
    assert len(subscribers.pushes()) == 1
    assert (stream.get(), len(drained(other))) == (None, 1)
    other.close()
    assert not subscribers


def test_dropped_streams_leave_nothing() -> None:
    """A stream that nobody holds is gone at once, without the collector; ten thousand of them leave nothing."""
    tell, subscribers = Teller(), Subscribers()
    gc.disable()
    try:
        stream = subscribers.add(4)
        (push,) = subscribers.pushes()
        push(tell.turn())
        alive = ref(stream)
        del stream
        assert alive() is None
        push(tell.turn())
        for _ in range(10_000):
            subscribers.add(4).push(tell.turn())
        assert not subscribers
        assert not subscribers._live
    finally:
        gc.enable()


def test_streams_come_and_go_in_threads() -> None:
    """Streams are made, closed and dropped while a run looks who listens; the one that stays gets everything."""
    tell, subscribers = Teller(), Subscribers()
    kept = subscribers.add(100_000)
    going = True

    def come_and_go() -> None:
        while going:
            subscribers.add(2).push(tell.turn())
            subscribers.add(2).close()

    with hurried():
        threads = [threading.Thread(target=come_and_go) for _ in range(2)]
        for thread in threads:
            thread.start()
        for number in range(300):
            assert subscribers
            for push in subscribers.pushes():
                push(TurnStart("a-1", "r-1", number, 1, 0.0))
        going = False
        for thread in threads:
            thread.join(END)
    assert numbers(drained(kept)) == list(range(300))
    assert len(subscribers.pushes()) == 1


def test_finish_ends_all_streams() -> None:
    """What is queued can be read, and a stream that is made later ends at once."""
    tell, subscribers = Teller(), Subscribers()
    streams = [subscribers.add(4) for _ in range(3)]
    for push in subscribers.pushes():
        push(tell.turn())
    subscribers.finish()
    assert [numbers(list(stream)) for stream in streams] == [[1], [2], [3]]
    assert list(subscribers.add(4)) == []
    assert not subscribers


def test_an_interrupt_at_any_line_of_finish() -> None:
    """No stream is left open by an interrupt, once the first line has been executed."""

    def make() -> tuple[Subscribers, list[EventStream]]:
        subscribers = Subscribers()
        return subscribers, [subscribers.add(4) for _ in range(3)]

    for (subscribers, streams), where in interrupted_lines(make, lambda made: made[0].finish()):
        open_ones = [stream for stream in streams if stream.listening]
        assert not open_ones or (len(open_ones) == 3 and " finish" in where), where
        subscribers.finish()
        assert [list(stream) for stream in streams] == [[], [], []]


def test_a_dropped_agent_ends_its_streams() -> None:
    """Nobody waits for the events of an agent that was dropped without being closed."""
    subscribers = Subscribers()
    with reading(subscribers.add(4)) as got:
        del subscribers
    assert got == []
