"""Faults of model calls that were found once: a model's own bugs, bad events, retries that hid or lost something."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from gotato_py import (
    Agent,
    AgentEnd,
    Done,
    ErrorCode,
    InvalidArgument,
    Limits,
    ModelError,
    ModelEvent,
    ModelProtocolError,
    ModelRequest,
    ModelRetry,
    Overloaded,
    RateLimited,
    RateLimits,
    RetryPolicy,
    RunStatus,
    Scope,
    TextDelta,
    ToolCallDelta,
    UserMessage,
    collect,
)
from gotato_testkit import EventRecorder, ManualClock, Raise, RaiseOnClose, ScriptedModel, Step, say

ONCE = RetryPolicy(max_attempts=1)
REQUEST = ModelRequest("", [UserMessage("hi")])


class Broken:
    """A model with a bug of its own."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.asked = 0

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
        """Raises in the middle of an answer."""
        self.asked += 1
        yield TextDelta("It is")
        raise self.error


class TestBugOfTheModel:
    """What a model raises that is no ModelError."""

    @pytest.mark.parametrize("error", [KeyError("choices"), RuntimeError("bug"), OSError("gone"), TypeError("none")])
    def test_it_is_a_model_failure(self, error: Exception) -> None:
        """The run fails with `model_failure` that names the model's class and keeps the cause; nothing is retried."""
        model = Broken(error)
        result = Agent(model).run("hi", check=False)
        assert (result.status, model.asked) == (RunStatus.FAILED, 1)
        assert type(result.error) is ModelError
        assert (result.error.code, result.error.retryable) == (ErrorCode.MODEL_FAILURE, False)
        assert result.error.cause is result.error.__cause__ is error
        assert str(result.error) == f"{type(error).__name__} raised by Broken.stream"

    def test_collect_says_the_same(self) -> None:
        """`collect` raises it as the same ModelError, after one attempt."""
        model = Broken(KeyError("choices"))
        with pytest.raises(ModelError, match=r"KeyError raised by Broken\.stream"):
            collect(model, REQUEST)
        assert model.asked == 1

    def test_raising_at_once(self) -> None:
        """A `stream` that raises before it returns an iterator is told in the same way."""
        result = Agent(ScriptedModel([Raise(ZeroDivisionError("x"))])).run("hi", check=False)
        assert str(result.error) == "ZeroDivisionError raised by ScriptedModel.stream"


class TestRetryAfter:
    """`retry_after` is checked where the error is made."""

    @pytest.mark.parametrize("given", ["5", b"5", True, [5], object()])
    def test_what_is_no_number_is_refused(self, given: Any) -> None:
        """A str, as in a header, or anything else that is no number is InvalidArgument by name."""
        with pytest.raises(InvalidArgument, match=r"RateLimited\.retry_after"):
            RateLimited(retry_after=given)

    @pytest.mark.parametrize("given", [float("nan"), float("inf"), float("-inf")])
    def test_a_wait_without_end_is_none(self, given: float) -> None:
        """A wait that no clock could keep counts as not said."""
        assert RateLimited(retry_after=given).retry_after is None

    @pytest.mark.parametrize(("given", "kept"), [(-3, 0.0), (-0.5, 0.0), (0, 0.0), (7, 7.0), (2.5, 2.5)])
    def test_it_is_a_float_of_at_least_zero(self, given: float, kept: float) -> None:
        """A negative wait is none at all, and an int becomes a float."""
        found = RateLimited(retry_after=given).retry_after
        assert (found, type(found)) == (kept, float)


class TestBadEvents:
    """Streams and events that no model may give."""

    @pytest.mark.parametrize("reason", ["error", "cancelled"])
    def test_a_failure_is_no_end(self, reason: Any) -> None:
        """A `Done` that says error or cancelled breaks the protocol: a failure is raised, never an answer."""
        model = ScriptedModel([[TextDelta("It is"), Done(reason)]])
        result = Agent(model, retry=ONCE).run("hi", check=False)
        assert result.status is RunStatus.FAILED
        assert isinstance(result.error, ModelProtocolError)
        assert f"Done({reason})" in str(result.error)

    def test_rate_limits_after_done(self) -> None:
        """Nothing comes after `Done`, not even what is no content."""
        model = ScriptedModel([[*say("Hello."), RateLimits(10, 9)]])
        with pytest.raises(ModelProtocolError, match="after Done"):
            collect(model, REQUEST, retry=ONCE)

    @pytest.mark.parametrize("index", [-1, True, 1.0, "0", None])
    def test_the_index_of_a_delta(self, index: Any) -> None:
        """A position below zero, or that is no int, is refused when the delta is made."""
        with pytest.raises(InvalidArgument, match=r"ToolCallDelta\.index"):
            ToolCallDelta(index)


BAD_REQUESTS: list[tuple[str, dict[str, Any]]] = [
    (r"messages\[0\]", {"messages": ["x"]}),
    ("messages", {"messages": "text"}),
    ("messages", {"messages": 5}),
    (r"tools\[0\]", {"tools": ["x"]}),
    ("tools", {"tools": 5}),
    ("options", {"options": 5}),
    ("cache_breakpoints", {"cache_breakpoints": 5}),
    ("cache_breakpoints", {"cache_breakpoints": "system"}),
    (r"cache_breakpoints\[1\]", {"cache_breakpoints": ["system", "panel"]}),
    (r"cache_breakpoints\[0\]", {"cache_breakpoints": [-1]}),
]


@pytest.mark.parametrize(("name", "given"), BAD_REQUESTS)
def test_a_request_holds_what_it_says(name: str, given: dict[str, Any]) -> None:
    """What is no message, tool, options or breakpoint is refused by name when the request is made."""
    with pytest.raises(InvalidArgument, match=rf"ModelRequest\.{name}"):
        ModelRequest("s", **given)


def test_silence_is_announced_as_a_retry() -> None:
    """The second request after silence is told as `model_retry` with `empty_response`, as any other retry."""
    events = EventRecorder()
    model = ScriptedModel([[Done()], say("Hello.")])
    assert Agent(model, extensions=[events]).run("hi").text == "Hello."
    retries = [(told.attempt, told.delay, told.error and told.error.code) for told in events.of(ModelRetry)]
    assert (retries, len(model.requests)) == ([(1, 0.0, ErrorCode.EMPTY_RESPONSE)], 2)


def test_a_wait_beyond_the_deadline_says_what_failed() -> None:
    """Giving up before the next attempt is `deadline_exceeded`, and names the failure that there was to wait for."""
    model = ScriptedModel([Raise(Overloaded("too many cooks", retry_after=60))])
    clock = ManualClock()
    result = Agent(model, clock=clock).run("hi", timeout=5, check=False)
    assert (result.status, clock.waits) == (RunStatus.DEADLINE_EXCEEDED, [])
    assert result.error is not None
    assert isinstance(result.error.cause, Overloaded)
    for said in ("too many cooks", "60 s", "5 s"):
        assert said in str(result.error)


def test_an_attempt_that_takes_too_long_says_its_limit() -> None:
    """An attempt over `model_timeout` is told with the seconds and the limit's name."""
    clock = ManualClock()
    late: Step = [TextDelta("It"), TextDelta(" is"), Done()]

    class Late(ScriptedModel):
        def stream(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
            clock.advance(3)
            return super().stream(request, scope)

    model = Late([late], heed_scope=False)
    result = Agent(model, clock=clock, retry=ONCE, limits=Limits(model_timeout=2)).run("hi", check=False)
    assert result.error is not None
    assert result.error.code == "connection_failed"
    assert "2.0 s (limits.model_timeout)" in str(result.error)


class TestInterruptsAtTheClose:
    """A model's stream whose `close` raises KeyboardInterrupt, each time."""

    def text_of_next(self, agent: Agent) -> str:
        """The answer to the next run, or to the one after it; none of them may take pytest itself down."""
        for _ in range(2):
            with suppress(KeyboardInterrupt):
                return agent.run("go on").text
        return "wedged"

    @pytest.mark.parametrize("listening", [False, True])
    def test_the_agent_is_not_wedged(self, listening: bool) -> None:
        """It comes out of the run, the next entry sets the agent right, and each run has exactly one `agent_end`."""
        events = EventRecorder()
        wedge: Step = [TextDelta("One"), RaiseOnClose(KeyboardInterrupt()), *say(" two.")]
        model = ScriptedModel([wedge, say("Three.")])
        agent = Agent(model, extensions=[events] if listening else [])
        with pytest.raises(KeyboardInterrupt):
            agent.run("count", check=False)
        assert (self.text_of_next(agent), agent.status) == ("Three.", "idle")
        ends = [told.run_id for told in events.of(AgentEnd)]
        assert len(ends) == len(set(ends)) == (2 if listening else 0)

    def test_closing_sets_it_right_too(self) -> None:
        """`close` as the next entry ends the run that was left behind."""
        events = EventRecorder()
        wedge: Step = [TextDelta("One"), RaiseOnClose(KeyboardInterrupt()), *say(" two.")]
        agent = Agent(ScriptedModel([wedge]), extensions=[events])
        with pytest.raises(KeyboardInterrupt):
            agent.run("count", check=False)
        with suppress(KeyboardInterrupt):
            agent.close()
        assert (agent.status, events.kinds.count("agent_end")) == ("closed", 1)
