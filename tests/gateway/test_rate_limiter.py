"""`RateLimiter`: what it lets through, in which order, and how its waits end."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_gateway import Failover, RateLimiter
from gotato_gateway._admission import Admission, Ticket
from gotato_gateway._bucket import Bucket
from gotato_gateway._estimate import estimated_tokens
from gotato_py import (
    Agent,
    AssistantMessage,
    Cancelled,
    ConnectionFailed,
    DeadlineExceeded,
    Done,
    ImagePart,
    InvalidArgument,
    JSONPart,
    Model,
    ModelError,
    ModelEvent,
    ModelRequest,
    Overloaded,
    RateLimited,
    RateLimits,
    ReasoningPart,
    RunStatus,
    Scope,
    TextDelta,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolResultStatus,
    ToolSpec,
    Usage,
    UsageUpdate,
    UserMessage,
)
from gotato_testkit import EchoModel, ManualClock, Raise, ScriptedModel, Step, say
from gotato_testkit.contracts import ModelContract

from .answers import HI, ask

BOUND = 10.0
"""Seconds: more than a slow machine needs, less than any wait here would last if it did not end with its cancel."""


def asked(tokens: int) -> ModelRequest:
    """A request that is estimated at so many tokens."""
    request = ModelRequest(messages=(UserMessage("x" * (4 * tokens - 4)),))
    assert estimated_tokens(request) == tokens
    return request


def used(tokens: int | None) -> Step:
    """An answer that says it took so many tokens."""
    return [TextDelta("Hello"), Done(usage=None if tokens is None else Usage(tokens))]


def wait_until(limiter: RateLimiter, waiting: int) -> None:
    """Until so many streams wait."""
    end = time.monotonic() + BOUND
    while limiter.waiting != waiting:
        assert time.monotonic() < end, f"{limiter.waiting} wait, not {waiting}"
        time.sleep(0.0005)


def test_a_minutes_worth_goes_at_once_then_evenly() -> None:
    """The bucket is full at first and fills at the limit's rate."""
    clock = ManualClock()
    model = RateLimiter(requests_per_minute=30).wrap(EchoModel())
    began = []
    for _ in range(34):
        ask(model, HI, Scope(clock=clock))
        began.append(clock.monotonic())
    assert began == pytest.approx([0.0] * 30 + [2.0, 4.0, 6.0, 8.0])


def test_models_share_a_limiter() -> None:
    """What one wrapped model takes is missing to the other."""
    clock = ManualClock()
    limiter = RateLimiter(requests_per_minute=1)
    ask(limiter.wrap(EchoModel()), HI, Scope(clock=clock))
    ask(limiter.wrap(EchoModel()), HI, Scope(clock=clock))
    assert clock.monotonic() == pytest.approx(60)


@pytest.mark.parametrize(
    ("answer", "waits"),
    [
        (used(300), [0.0, 0.0, 30.0]),  # as estimated: the third finds nothing left, and ten come in a second
        (used(100), [0.0, 0.0, 0.0]),  # less: the rest is given back
        (used(1200), [0.0, 90.0, 120.0]),  # more: the debt is paid first
        (used(None), [0.0, 0.0, 30.0]),  # not told: the estimate stays
        (Raise(Overloaded("busy")), [0.0, 0.0, 0.0]),  # refused: nothing was taken
        (Raise(ConnectionFailed("cut")), [0.0, 0.0, 30.0]),  # perhaps it was
        ([TextDelta("Hel"), Raise(Overloaded("busy"))], [0.0, 0.0, 30.0]),
        ([UsageUpdate(Usage(1200)), Raise(Overloaded("busy"))], [0.0, 90.0, 120.0]),
    ],
)
def test_tokens_are_estimated_then_corrected(answer: Step, waits: list[float]) -> None:
    """Of 600 tokens a minute each request takes its estimate of 300 before, and what it used counts afterwards."""
    clock = ManualClock()
    model = RateLimiter(tokens_per_minute=600).wrap(ScriptedModel([answer] * 3))
    waited: list[float] = []
    for _ in range(3):
        before = clock.monotonic()
        ask(model, asked(300), Scope(clock=clock))
        waited.append(clock.monotonic() - before)
    assert waited == pytest.approx(waits)


def test_a_request_larger_than_a_minute_waits_for_a_full_bucket() -> None:
    """It would never fit; so it takes all there is and owes the rest."""
    clock = ManualClock()
    model = RateLimiter(tokens_per_minute=600).wrap(ScriptedModel([used(None)] * 3))
    began = []
    for _ in range(3):
        ask(model, asked(1200), Scope(clock=clock))
        began.append(clock.monotonic())
    assert began == pytest.approx([0, 120, 240])


def test_what_the_provider_says_is_left_counts() -> None:
    """A `RateLimits` event lowers the bucket to what remains, and never fills it."""
    clock = ManualClock()
    told = [RateLimits(remaining_requests=0), TextDelta("Hello"), Done()]
    model = RateLimiter(requests_per_minute=60).wrap(ScriptedModel([told, say("a"), say("b")]))
    for _ in range(3):
        ask(model, HI, Scope(clock=clock))
    assert clock.monotonic() == pytest.approx(2)
    more = [RateLimits(remaining_requests=1000, remaining_tokens=5), TextDelta("Hello"), Done()]
    model = RateLimiter(requests_per_minute=1).wrap(ScriptedModel([more, say("a")]))
    for _ in range(2):
        ask(model, HI, Scope(clock=clock))
    assert clock.monotonic() == pytest.approx(62)


def test_a_retry_after_holds_everybody() -> None:
    """When the provider asks for a wait, nobody who shares the limiter goes before."""
    clock = ManualClock()
    limiter = RateLimiter(max_concurrent=5)
    refused = ask(
        limiter.wrap(ScriptedModel([Raise(RateLimited("slow down", retry_after=30.0))])), HI, Scope(clock=clock)
    )
    assert type(refused.error) is RateLimited
    ask(limiter.wrap(EchoModel()), HI, Scope(clock=clock))
    assert clock.monotonic() == pytest.approx(30)


def test_a_wait_longer_than_the_time_left_gives_up_at_once() -> None:
    """It is a `RateLimited` with the wait, which takes nothing and holds nobody."""
    clock = ManualClock()
    limiter = RateLimiter(requests_per_minute=1)
    inner = ScriptedModel([say("a"), say("b")])
    model = limiter.wrap(inner)
    ask(model, HI, Scope(clock=clock))
    error = ask(model, HI, Scope(timeout=30, clock=clock)).error
    assert type(error) is RateLimited
    assert error.retry_after == pytest.approx(60)
    assert clock.waits == []
    assert (limiter.waiting, limiter.running, len(inner.requests)) == (0, 0, 1)
    assert ask(model, HI, Scope(timeout=61, clock=clock)).text == "b"


def test_a_run_without_the_time_ends_as_the_kernel_ends_it() -> None:
    """An agent whose timeout is nearer than its turn ends `deadline_exceeded` without waiting."""
    clock = ManualClock()
    agent = Agent(RateLimiter(requests_per_minute=1).wrap(EchoModel()), clock=clock)
    assert agent.run("a").ok
    result = agent.run("b", timeout=10, check=False)
    assert (result.status, clock.monotonic()) == (RunStatus.DEADLINE_EXCEEDED, 0.0)
    said = "the rate limiter has no place in time; the next attempt would have to wait 60 s"
    assert str(result.error) == f"{said}, longer than the 10 s that are left"


def test_a_failover_does_not_wait() -> None:
    """A target that has no place in time is passed over."""
    clock = ManualClock()
    limited = RateLimiter(requests_per_minute=1).wrap(ScriptedModel([say("a")], name="a"))
    model = Failover([limited, ScriptedModel([say("b")], name="b")])
    assert [ask(model, HI, Scope(timeout=9, clock=clock)).done.model for _ in range(2)] == ["a", "b"]


class Gate:
    """A model whose answers wait until they are let go; `order` is who was asked, `most` how many at a time."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.most = 0
        self._now: set[str] = set()
        self._go = threading.Semaphore(0)

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
        """Waits, then answers."""
        name = request.system
        self.order.append(name)
        self._now.add(name)
        self.most = max(self.most, len(self._now))
        assert self._go.acquire(timeout=6 * BOUND)
        self._now.discard(name)
        yield TextDelta("Hello")
        yield Done()

    def let_go(self, number: int) -> None:
        """Lets so many answers end."""
        self._go.release(number)

    def wait_for(self, asked: int) -> None:
        """Until so many have been asked."""
        end = time.monotonic() + BOUND
        while len(self.order) < asked:
            assert time.monotonic() < end, f"{len(self.order)} were asked, not {asked}"
            time.sleep(0.0005)


def start(model: Model, name: str, scope: Scope, errors: dict[str, BaseException] | None = None) -> threading.Thread:
    """Asks in a thread of its own."""

    def work() -> None:
        try:
            ask(model, ModelRequest(name, HI.messages), scope)
        except BaseException as error:
            if errors is None:
                raise
            errors[name] = error

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_first_come_first_served() -> None:
    """Threads go in the order in which they came, not more at a time than allowed."""
    limiter, gate = RateLimiter(max_concurrent=2), Gate()
    model = limiter.wrap(gate)
    threads = []
    for number in range(8):
        threads.append(start(model, str(number), Scope()))
        gate.wait_for(min(2, number + 1))
        wait_until(limiter, max(0, number - 1))
    assert limiter.running == 2
    for number in range(8):
        gate.let_go(1)
        gate.wait_for(min(8, number + 3))
    for thread in threads:
        thread.join(BOUND)
    assert sorted(gate.order[:2]) == ["0", "1"]
    assert gate.order[2:] == [str(number) for number in range(2, 8)]
    assert (gate.most, limiter.waiting, limiter.running) == (2, 0, 0)


def test_first_come_first_served_by_time() -> None:
    """Where time decides, too: a later request does not overtake one that waits, however small it is."""
    clock, gate = ManualClock(auto=False), Gate()
    gate.let_go(10)
    limiter = RateLimiter(tokens_per_minute=600)
    model = limiter.wrap(gate)
    ask(model, ModelRequest("first", asked(600).messages), Scope(clock=clock))
    threads = []
    for number, tokens in enumerate([400, 1, 300]):
        request = ModelRequest(str(number), asked(tokens).messages)
        threads.append(threading.Thread(target=ask, args=(model, request, Scope(clock=clock)), daemon=True))
        threads[-1].start()
        wait_until(limiter, number + 1)
    clock.wait_for_waiting(timeout=BOUND)
    clock.advance(39)
    clock.wait_for_waiting(timeout=BOUND)
    assert (gate.order, limiter.waiting) == (["first"], 3)
    clock.advance(2)
    wait_until(limiter, 1)
    clock.wait_for_waiting(timeout=BOUND)
    gate.wait_for(3)  # both have been let in, and come in the order in which their threads wake
    assert sorted(gate.order[1:]) == ["0", "1"]
    clock.advance(40)
    for thread in threads:
        thread.join(BOUND)
    assert gate.order[3:] == ["2"]


@pytest.mark.parametrize("limits", [{"max_concurrent": 1}, {"requests_per_minute": 1}], ids=str)
@pytest.mark.parametrize("place", [1, 2])
def test_a_cancel_ends_the_wait(limits: dict[str, int], place: int) -> None:
    """The head of the queue and those behind it leave within the bound, and the others go on without them."""
    limiter, gate = RateLimiter(**limits), Gate()
    model = limiter.wrap(gate)
    scopes = [Scope() for _ in range(3)]
    errors: dict[str, BaseException] = {}
    threads = []
    for number, scope in enumerate(scopes):
        threads.append(start(model, str(number), scope, errors))
        gate.wait_for(1)
        wait_until(limiter, number)
    scopes[place].cancel("enough")
    threads[place].join(BOUND)
    assert type(errors[str(place)]) is Cancelled
    assert limiter.waiting == 1
    scopes[3 - place].cancel()
    gate.let_go(1)
    for thread in threads:
        thread.join(BOUND)
    assert (limiter.waiting, limiter.running) == (0, 0)


def test_a_deadline_ends_the_wait() -> None:
    """One that waits for a place that nobody leaves ends with its scope."""
    limiter = RateLimiter(max_concurrent=1)
    model = limiter.wrap(EchoModel())
    holding = model.stream(HI, Scope())
    next(holding)
    began = time.monotonic()
    with pytest.raises(DeadlineExceeded):
        ask(model, HI, Scope(timeout=0.03))
    assert time.monotonic() - began < BOUND
    clock = ManualClock(auto=False)
    errors: dict[str, BaseException] = {}
    thread = start(model, "x", Scope(timeout=5, clock=clock), errors)
    wait_until(limiter, 1)
    clock.advance(5)
    thread.join(BOUND)
    assert type(errors["x"]) is DeadlineExceeded


@contextmanager
def signalled_while_waiting(limiter: RateLimiter) -> Generator[None]:
    """Sends SIGUSR1 to this process once a stream is in the queue."""
    over = threading.Event()

    def work() -> None:
        wait_until(limiter, 1)
        if not over.wait(0.02):  # a moment later, so that it mostly waits by then; before that it has to end as well
            os.kill(os.getpid(), signal.SIGUSR1)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_signal_handler_may_cancel() -> None:
    """A cancel from a signal handler ends a wait in the main thread."""
    limiter = RateLimiter(max_concurrent=1)
    model = limiter.wrap(EchoModel())
    holding = model.stream(HI, Scope())
    next(holding)
    scope = Scope()
    before = signal.signal(signal.SIGUSR1, lambda *_: scope.cancel("signal"))
    try:
        with pytest.raises(Cancelled, match="signal"), signalled_while_waiting(limiter):
            ask(model, HI, scope)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_an_interrupt_leaves_nobody_in_the_queue() -> None:
    """An exception from a signal handler, such as Ctrl-C, ends a wait and leaves no trace of it."""

    class Interrupt(BaseException):
        """What the handler raises."""

    def interrupt(*_: object) -> None:
        raise Interrupt

    limiter = RateLimiter(max_concurrent=1)
    model = limiter.wrap(EchoModel())
    holding = model.stream(HI, Scope())
    next(holding)
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(Interrupt), signalled_while_waiting(limiter):
            ask(model)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert (limiter.waiting, limiter.running) == (0, 1)


def test_an_ended_scope_takes_nothing() -> None:
    """A scope that has ended is raised before anything is counted."""
    scope = Scope()
    scope.cancel()
    limiter = RateLimiter(requests_per_minute=1)
    model = limiter.wrap(ScriptedModel([say("a")]))
    with pytest.raises(Cancelled):
        ask(model, HI, scope)
    assert ask(model).text == "a"


@pytest.mark.parametrize("how", ["close", "drop", "error", "bug", "end"])
def test_a_place_is_given_back(how: str) -> None:
    """However a stream ends, the next one has its place."""
    limiter = RateLimiter(max_concurrent=1)
    inner = ScriptedModel(
        [[TextDelta("a"), Raise(ZeroDivisionError() if how == "bug" else Overloaded("busy"))], say("b")]
        if how in ("bug", "error")
        else [say("a b"), say("b")]
    )
    model = limiter.wrap(inner)
    stream = model.stream(HI, Scope())
    next(stream)
    assert limiter.running == 1
    if how == "close":
        stream.close()  # type: ignore[attr-defined]  # a generator
    elif how in ("error", "bug"):
        with pytest.raises((ModelError, ZeroDivisionError)):
            next(stream)
    elif how == "end":
        assert list(stream)
    del stream
    gc.collect()
    assert (limiter.running, inner.unclosed) == (0, 0)
    assert ask(model, HI, Scope(timeout=BOUND)).text == "b"


def test_an_iterator_that_was_never_used_takes_nothing() -> None:
    """Making the stream takes no place."""
    limiter = RateLimiter(max_concurrent=1)
    model = limiter.wrap(EchoModel())
    unused = [model.stream(HI, Scope()) for _ in range(3)]
    assert limiter.running == 0
    assert ask(model, HI, Scope(timeout=BOUND)).error is None
    del unused


def test_a_limiter_wraps_a_model_once() -> None:
    """Wrapped twice by one limiter, a stream would wait for itself."""
    limiter = RateLimiter(max_concurrent=1)
    model = limiter.wrap(EchoModel())
    assert limiter.wrap(model) is model
    assert ask(RateLimiter(max_concurrent=1).wrap(model), HI, Scope(timeout=BOUND)).error is None


def test_a_child_process_has_its_own_queue() -> None:
    """Those who ran in the parent hold no place in a forked child."""
    limiter = RateLimiter(max_concurrent=1)
    model = limiter.wrap(EchoModel())
    holding = model.stream(HI, Scope())
    next(holding)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if ask(model, HI, Scope(timeout=BOUND)).error is None else 1
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_another_clock_begins_anew() -> None:
    """A limiter outlives a clock: the next one's time counts from when it was first seen."""
    limiter = RateLimiter(requests_per_minute=60)
    model = limiter.wrap(EchoModel())
    late, early = ManualClock(), ManualClock()
    late.advance(1e6)
    for _ in range(60):
        ask(model, HI, Scope(clock=late))
    for _ in range(3):
        ask(model, HI, Scope(clock=early))
    assert early.monotonic() == pytest.approx(3)


@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"requests_per_minute": 0},
        {"requests_per_minute": -1},
        {"tokens_per_minute": float("inf")},
        {"tokens_per_minute": float("nan")},
        {"tokens_per_minute": "1"},
        {"tokens_per_minute": True},
        {"max_concurrent": 0},
        {"max_concurrent": 1.5},
        {"max_concurrent": True},
    ],
    ids=str,
)
def test_limits_are_checked(limits: dict[str, int]) -> None:
    """A limit is a number above 0, and there is at least one."""
    with pytest.raises(InvalidArgument, match="RateLimiter"):
        RateLimiter(**limits)


def test_only_models_are_wrapped() -> None:
    """What has no `stream` is refused."""
    with pytest.raises(InvalidArgument, match="model"):
        RateLimiter(max_concurrent=1).wrap("openai:gpt-5")  # type: ignore[arg-type]  # on purpose


def test_what_a_wrapped_model_says_of_itself() -> None:
    """Name and capabilities are the model's own."""
    limiter = RateLimiter(requests_per_minute=60, max_concurrent=4)
    model = limiter.wrap(ScriptedModel([], name="a", capabilities={"images"}))
    assert (getattr(model, "name", ""), getattr(model, "capabilities", None)) == ("a", {"images"})
    assert repr(limiter) == "RateLimiter(requests_per_minute=60, tokens_per_minute=None, max_concurrent=4)"
    assert repr(model).startswith("RateLimiter(")


def test_everything_in_a_request_is_estimated() -> None:
    """Texts by their bytes, media by a flat number: each part of a request makes the estimate larger."""
    call = ToolCall("c", "weather", '{"city":"Oslo"}')
    result = ToolResult("c", ToolResultStatus.FAILED, (TextPart("nothing"),), error="no such city")
    requests = [
        ModelRequest(),
        ModelRequest("Be very brief."),
        ModelRequest(messages=(UserMessage("Is it nice in Oslo?"),)),
        ModelRequest(messages=(AssistantMessage((ReasoningPart("Let me think"),), (call,)), ToolMessage(result))),
        ModelRequest(messages=(UserMessage((JSONPart({"a": [1, 2, 3, 4, 5, 6]}),)),)),
        ModelRequest(tools=(ToolSpec("weather", "The weather in a city."),)),
        ModelRequest(messages=(UserMessage((ImagePart(b"x" * 10_000_000, media_type="image/png"),)),)),
    ]
    estimates = [estimated_tokens(request) for request in requests]
    assert estimates == [1, 4, 5, 14, 7, 12, 1001]
    assert estimated_tokens(ModelRequest("ü" * 400)) == 201


# Laws, whatever comes in which order.


class Told(Bucket):
    """A bucket that writes down when what was taken, by its own time."""

    def __init__(self, per_minute: float) -> None:
        super().__init__(per_minute)
        self.time = 0.0
        self.taken: list[tuple[float, float]] = []

    def refill(self, seconds: float) -> None:
        """Time passes."""
        assert seconds > 0
        self.time += seconds
        super().refill(seconds)

    def take(self, amount: float) -> None:
        """Something is taken."""
        self.taken.append((self.time, amount))
        super().take(amount)


def keeps_its_law(bucket: Told) -> bool:
    """In any stretch of time no more went than a full bucket and what came in; the last of it may have made a debt."""
    before = [0.0, *accumulate(amount for _, amount in bucket.taken)]
    return all(
        before[last] - before[first] + min(amount, bucket.capacity)
        <= bucket.capacity + (end - begin) * bucket.capacity / 60 + 1e-3
        for first, (begin, _) in enumerate(bucket.taken)
        for last, (end, amount) in enumerate(bucket.taken)
        if last >= first
    )


@given(
    per_minute=st.tuples(st.integers(1, 120), st.integers(100, 5000)),
    places=st.none() | st.integers(1, 4),
    work=st.lists(st.lists(st.integers(0, 3000), min_size=1, max_size=6), min_size=1, max_size=6),
)
def test_threads_never_take_more_than_is_there(
    per_minute: tuple[int, int], places: int | None, work: list[list[int]]
) -> None:
    """Under any number of threads the buckets keep their law, and everybody gets through."""
    clock = ManualClock()
    requests, tokens = Told(per_minute[0]), Told(per_minute[1])
    admission = Admission(requests, tokens, places)
    inside: set[Ticket] = set()
    most: list[int] = []

    def go(sizes: list[int]) -> None:
        for size in sizes:
            ticket = Ticket(Scope(clock=clock), size)
            admission.enter(ticket)
            inside.add(ticket)
            most.append(len(inside))
            inside.discard(ticket)
            admission.leave(ticket)

    threads = [threading.Thread(target=go, args=(sizes,)) for sizes in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * BOUND)
    total = sum(map(len, work))
    assert (len(requests.taken), len(most)) == (total, total)
    assert keeps_its_law(requests)
    assert keeps_its_law(tokens)
    assert max(most) <= (places or total)
    assert (admission.waiting, admission.running) == (0, 0)
    assert clock.monotonic() >= (total - per_minute[0]) * 60 / per_minute[0] - 1e-3


class Visit:
    """One stream of the next test."""

    def __init__(self, admission: Admission, clock: ManualClock, number: int, size: int) -> None:
        self.scope = Scope(clock=clock)
        self.ticket = Ticket(self.scope, size)
        self.number = number
        self.order: list[int] = []
        self._admission = admission
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self._admission.enter(self.ticket)
        except Cancelled:
            pass


@given(
    sizes=st.lists(st.integers(1, 900), min_size=1, max_size=8),
    cancelled=st.sets(st.integers(0, 7)),
    places=st.none() | st.integers(1, 3),
)
def test_the_queue_goes_in_order_also_when_some_leave(
    sizes: list[int], cancelled: set[int], places: int | None
) -> None:
    """Those who stay go in the order in which they came; those who were cancelled leave nothing behind."""
    clock = ManualClock(auto=False)
    bucket = Told(600)
    admission = Admission(None, bucket, places)
    admission.enter(first := Ticket(Scope(clock=clock), 600))
    admission.leave(first)
    visits = [Visit(admission, clock, number, size) for number, size in enumerate(sizes)]
    for number, visit in enumerate(visits):
        visit.thread.start()
        end = time.monotonic() + BOUND
        while admission.waiting <= number:
            assert time.monotonic() < end
    for visit in visits:
        if visit.number in cancelled:
            visit.scope.cancel()
            visit.thread.join(BOUND)
    staying = [visit for visit in visits if visit.number not in cancelled]
    for visit in staying:
        end = time.monotonic() + BOUND
        while visit.thread.is_alive():
            assert time.monotonic() < end
            clock.advance(20)
            visit.thread.join(0.0005)
        admission.leave(visit.ticket)
    assert [amount for _, amount in bucket.taken] == [600.0, *(float(visit.ticket.tokens) for visit in staying)]
    assert keeps_its_law(bucket)
    assert (admission.waiting, admission.running) == (0, 0)


def test_a_stream_that_is_closed_meanwhile_gives_its_place_back() -> None:
    """The garbage collector may close a stream of the same thread in the midst of an admission: nothing is lost."""
    places = 2

    class Collects(Bucket):
        """A bucket in which a dropped stream is found, at the worst moment."""

        def take(self, amount: float) -> None:
            """Takes, and another stream leaves."""
            super().take(amount)
            if dropped:
                admission.leave(dropped.pop())

    dropped: list[Ticket] = []
    admission = Admission(Collects(600), None, places)
    first, second, third = (Ticket(Scope(timeout=BOUND), 0) for _ in range(3))
    admission.enter(first)
    dropped.append(first)
    admission.enter(second)
    assert admission.running == 1
    admission.enter(third)
    assert admission.running == places


class TestContract(ModelContract):
    """A limited model is a Model like any other."""

    def make(self) -> Model:
        """One that limits nothing that the suite does."""
        return RateLimiter(requests_per_minute=6000, tokens_per_minute=1e6, max_concurrent=2).wrap(EchoModel())
