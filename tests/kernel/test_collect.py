"""`collect`: a model call outside of any agent."""

from __future__ import annotations

import pickle

import pytest

from gotato_py import (
    Agent,
    Cancelled,
    ConnectionFailed,
    DeadlineExceeded,
    EmptyResponse,
    InvalidArgument,
    InvalidRequest,
    ModelProtocolError,
    ModelRequest,
    Overloaded,
    RateLimited,
    RetryPolicy,
    RunFailed,
    Scope,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
    collect,
)
from gotato_testkit import ManualClock, Raise, ScriptedModel, Stall, say

REQUEST = ModelRequest(messages=(UserMessage("hi"),))


def test_the_whole_answer() -> None:
    """Text, usage and the model's name come as one message with an id."""
    answer = collect(ScriptedModel([say("Hello there.", usage=Usage(3, 2))], name="m"), REQUEST)
    assert (answer.text, answer.usage, answer.model) == ("Hello there.", Usage(3, 2), "m")
    assert answer.id


def test_retries_as_an_agent_does() -> None:
    """A typed retryable error is retried with the policy's delays; nothing of the failed attempt is in the answer."""
    clock = ManualClock()
    model = ScriptedModel([say("lost")[:-1], Raise(ConnectionFailed("cut")), say("found")])
    answer = collect(model, REQUEST, Scope(clock=clock), retry=RetryPolicy(jitter=0))
    assert answer.text == "found"
    assert clock.waits == [0.5, 1.0]


def test_errors_are_raised() -> None:
    """What is not retryable, or fails to the last attempt, is raised as it is."""
    with pytest.raises(InvalidRequest):
        collect(ScriptedModel([Raise(InvalidRequest("no"))]), REQUEST)
    with pytest.raises(ModelProtocolError):
        collect(ScriptedModel([say("x")[:-1]]), REQUEST, retry=RetryPolicy(max_attempts=1))


def test_an_error_after_retries_counts_the_attempts() -> None:
    """The error of the last attempt says how many there were, keeps its facts and cause, and is no model's own object;
    one of the first attempt is raised as it is."""
    cause = ValueError("why")
    error = RateLimited("slow down", retry_after=0.1, status=429, provider="p", cause=cause)
    with pytest.raises(RateLimited) as caught:
        collect(ScriptedModel([Raise(error)] * 3), REQUEST, Scope(clock=ManualClock()))
    told = caught.value
    assert str(told) == "slow down (after 3 attempts)"
    assert (told.retry_after, told.status, told.provider, told.retryable) == (0.1, 429, "p", True)
    assert told.cause is told.__cause__ is cause
    assert str(pickle.loads(pickle.dumps(told))) == str(told)
    assert str(error) == "slow down"
    with pytest.raises(RateLimited) as caught:
        collect(ScriptedModel([Raise(error)]), REQUEST, retry=RetryPolicy(max_attempts=1))
    assert caught.value is error


def test_a_run_that_failed_counts_the_attempts() -> None:
    """A run's error says it too; so does one that is not retried, where others were before it."""
    agent = Agent(ScriptedModel([Raise(Overloaded()), Raise(InvalidRequest("no such model"))]), clock=ManualClock())
    with pytest.raises(RunFailed, match=r"no such model \(after 2 attempts\)"):
        agent.run("Hi")


def test_silence() -> None:
    """Two empty answers in a row are an error; after a tool result an empty answer is one."""
    with pytest.raises(EmptyResponse):
        collect(ScriptedModel([say(""), say("")]), REQUEST)
    result = ToolMessage(ToolResult("c", "ok", "x"))
    assert collect(ScriptedModel([say("")]), ModelRequest(messages=(result,))).text == ""


def test_the_scope_ends_it() -> None:
    """A cancelled scope and one out of time raise what they are, and ask the model nothing."""
    model, scope = ScriptedModel([say("never")]), Scope()
    scope.cancel("enough")
    with pytest.raises(Cancelled, match="enough"):
        collect(model, REQUEST, scope)
    with pytest.raises(DeadlineExceeded):
        collect(ScriptedModel([[Stall()]]), REQUEST, Scope(1, clock=ManualClock()))
    assert model.requests == []


def test_bad_input() -> None:
    """Each argument of the wrong type is named."""
    model = ScriptedModel([])
    for arguments, keywords, name in (
        ((object(), REQUEST), {}, "model"),
        ((model, "hi"), {}, "request"),
        ((model, REQUEST, 3), {}, "scope"),
        ((model, REQUEST), {"retry": 3}, "retry"),
    ):
        with pytest.raises(InvalidArgument, match=name):
            collect(*arguments, **keywords)  # type: ignore[arg-type]  # bad on purpose
