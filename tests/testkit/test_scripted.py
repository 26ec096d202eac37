"""The scripted model: what it streams, what it remembers, and every way in which it can misbehave."""

import itertools
import threading
import time
from collections.abc import Iterator

import pytest

from gotato_py import (
    Agent,
    Cancelled,
    ConnectionFailed,
    DeadlineExceeded,
    Done,
    InvalidArgument,
    InvalidState,
    ModelRequest,
    RateLimited,
    RunStatus,
    Scope,
    TextDelta,
    ToolSpec,
    UserMessage,
)
from gotato_testkit import (
    Do,
    ManualClock,
    Raise,
    RaiseOnClose,
    Return,
    ScriptedModel,
    ScriptExhausted,
    Stall,
    Wait,
    call,
    say,
)

ASK = ModelRequest(messages=(UserMessage("Hi"),))


def play(model: ScriptedModel, scope: Scope | None = None) -> list[object]:
    """Every event of one answer, read and closed as an agent does."""
    stream = model.stream(ASK, Scope() if scope is None else scope)
    try:
        return list(stream)
    finally:
        stream.close()  # type: ignore[attr-defined]


def test_steps_come_in_order() -> None:
    """Each request gets the next step, streamed as it is written."""
    model = ScriptedModel([say("a"), [TextDelta("b"), Done()], call("t")])
    assert [play(model) for _ in range(3)] == [list(say("a")), [TextDelta("b"), Done()], list(call("t"))]


def test_requests_are_kept_as_they_were() -> None:
    """`.requests` holds each request with the messages of that moment, whatever the list behind them does later."""
    messages = [UserMessage("one")]
    model = ScriptedModel([say("a"), say("b")])
    model.stream(ModelRequest("sys", messages, (ToolSpec("t"),)), Scope())
    messages.append(UserMessage("two"))
    model.stream(ModelRequest(messages=messages), Scope())
    assert [request.messages for request in model.requests] == [(UserMessage("one"),), tuple(messages)]
    assert (model.requests[0].system, model.requests[0].tools) == ("sys", (ToolSpec("t"),))
    model.requests.clear()
    assert len(model.requests) == 2


def test_an_exhausted_script_says_so() -> None:
    """One request too many raises an error that tells the number of steps and the request's shape, not its text."""
    model = ScriptedModel([say("a")])
    play(model)
    with pytest.raises(ScriptExhausted) as caught:
        model.stream(ModelRequest(messages=(UserMessage("secret"),), tools=(ToolSpec("weather"),)), Scope())
    assert str(caught.value).startswith("the script has 1 step, and")
    assert "1 messages, the last one from user, tools: weather" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert isinstance(caught.value, InvalidState)
    assert len(model.requests) == 2


def test_an_exhausted_script_fails_the_run_at_once() -> None:
    """An agent does not retry it; the run is `failed` with that error."""
    model = ScriptedModel([])
    result = Agent(model).run("Hi", check=False)
    assert result.status is RunStatus.FAILED
    assert "the script has 0 steps" in str(result.error)
    assert len(model.requests) == 1


def test_a_script_may_be_endless() -> None:
    """`steps` may be any iterable, taken one by one."""
    model = ScriptedModel(itertools.cycle([say("again")]))
    assert [play(model) for _ in range(50)] == [list(say("again"))] * 50


def test_name_and_capabilities_are_what_they_were_set_to() -> None:
    """Both are read from the outside, as an agent does."""
    model = ScriptedModel([say("a")], name="gpt", capabilities=["images"])
    assert (model.name, model.capabilities) == ("gpt", frozenset({"images"}))
    message = Agent(model).run("Hi").message
    assert message is not None
    assert message.model == "gpt"


def test_a_bare_raise_comes_from_the_call_itself() -> None:
    """A bare `Raise` is raised by `stream`; inside a sequence it is raised where the answer is read; classes too."""
    model = ScriptedModel([Raise(RateLimited("slow down")), [TextDelta("a"), Raise(ConnectionFailed)]])
    with pytest.raises(RateLimited, match="slow down"):
        model.stream(ASK, Scope())
    stream = model.stream(ASK, Scope())
    assert next(stream) == TextDelta("a")
    with pytest.raises(ConnectionFailed):
        next(stream)


def test_retryable_errors_are_retried_by_an_agent() -> None:
    """A scripted failure and the answer after it make a completed run of two requests."""
    model = ScriptedModel([Raise(RateLimited(retry_after=7)), [TextDelta("ab"), Raise(ConnectionFailed())], say("ok")])
    clock = ManualClock()
    assert Agent(model, clock=clock).run("Hi").text == "ok"
    assert len(model.requests) == 3
    assert clock.waits[0] >= 7


def test_do_calls_its_function_in_the_reading_thread() -> None:
    """`Do` runs at its place in the stream, and what it raises comes out there."""
    seen: list[object] = []
    step = [TextDelta("a"), Do(lambda: seen.append(threading.get_ident())), Done()]
    model = ScriptedModel([step, [Do(lambda: 1 / 0)], Do(lambda: seen.append("bare"))])
    stream = model.stream(ASK, Scope())
    next(stream)
    assert seen == []
    assert list(stream) == [Done()]
    assert seen == [threading.get_ident()]
    with pytest.raises(ZeroDivisionError):
        play(model)
    assert play(model) == []
    assert seen[1:] == ["bare"]


def test_stall_lasts_until_the_scope_is_cancelled() -> None:
    """`Stall` blocks while the scope lives, without a deadline too, and then raises what `check` raises."""
    scope = Scope()
    canceller = threading.Timer(0.05, lambda: scope.cancel("enough"))
    canceller.start()
    with pytest.raises(Cancelled, match="enough"):
        play(ScriptedModel([Stall()]), scope)
    canceller.join()


def test_stall_lasts_until_the_deadline() -> None:
    """With a deadline it raises `DeadlineExceeded`, by the scope's clock."""
    clock = ManualClock()
    with pytest.raises(DeadlineExceeded):
        play(ScriptedModel([[TextDelta("a"), Stall()]]), Scope(0.3, clock=clock))
    assert clock.monotonic() == pytest.approx(0.3)


def test_stall_blocks_under_a_manual_clock() -> None:
    """Without a deadline even a clock that moves itself does not end the stall: only a cancel does."""
    scope = Scope(clock=ManualClock())
    raised: list[BaseException] = []

    def reading() -> None:
        try:
            play(ScriptedModel([Stall()]), scope)
        except Cancelled as error:
            raised.append(error)

    reader = threading.Thread(target=reading)
    reader.start()
    time.sleep(0.02)
    assert reader.is_alive()
    scope.cancel()
    reader.join(5)
    assert len(raised) == 1


def test_a_stalled_run_can_be_cancelled() -> None:
    """An agent whose model stalls ends `cancelled`, keeps the text, and has closed the stream."""

    def begin_to_cancel() -> None:
        canceller.start()

    model = ScriptedModel([[*say("Hello wor")[:-1], Do(begin_to_cancel), Stall()]])  # not before the text is there
    agent = Agent(model)
    canceller = threading.Timer(0.05, agent.cancel)
    result = agent.run("Hi", check=False)
    canceller.join()
    assert (result.status, result.text) == (RunStatus.CANCELLED, "Hello wor")
    assert model.unclosed == 0


def test_wait_takes_time_by_the_clock() -> None:
    """`Wait` passes seconds of the scope's clock between two events."""
    clock = ManualClock()
    play(ScriptedModel([[TextDelta("a"), Wait(2.5), TextDelta("b"), Done()]]), Scope(clock=clock))
    assert (clock.monotonic(), clock.waits) == (2.5, [2.5])
    result = Agent(ScriptedModel([[*say("a")[:-1], Wait(60), *say("b")]]), clock=ManualClock()).run(
        "Hi", timeout=5, check=False
    )
    assert result.status is RunStatus.DEADLINE_EXCEEDED


def test_an_ended_scope_uses_up_no_step() -> None:
    """As an adapter should, it raises at once under a scope that has ended, and was asked nothing."""
    scope = Scope()
    scope.cancel()
    model = ScriptedModel([say("a")])
    with pytest.raises(Cancelled):
        model.stream(ASK, scope)
    assert model.requests == []
    assert play(model) == list(say("a"))


def test_it_heeds_the_scope_between_events_unless_told_not_to() -> None:
    """A cancel in the middle ends the stream; with `heed_scope=False` it goes on regardless."""
    for heed in (True, False):
        scope = Scope()
        model = ScriptedModel([[TextDelta("a"), Do(scope.cancel), TextDelta("b"), Done()]], heed_scope=heed)
        if heed:
            with pytest.raises(Cancelled):
                play(model, scope)
        else:
            assert play(model, scope) == [TextDelta("a"), TextDelta("b"), Done()]


def test_unclosed_counts_the_streams_that_nobody_closed() -> None:
    """A stream counts until its `close` is called, read to its end or not; after that it gives nothing."""
    model = ScriptedModel([say("a b"), say("c")])
    first, second = model.stream(ASK, Scope()), model.stream(ASK, Scope())
    list(first)
    assert model.unclosed == 2
    first.close()  # type: ignore[attr-defined]
    second.close()  # type: ignore[attr-defined]
    assert model.unclosed == 0
    assert list(second) == []


def test_each_thread_gets_a_step_of_its_own() -> None:
    """Threads that share a model get every step exactly once."""
    model = ScriptedModel([say(str(number)) for number in range(200)])
    texts: list[object] = []

    def ask() -> None:
        texts.extend(play(model)[0] for _ in range(25))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {str(text) for text in texts} == {str(TextDelta(str(number))) for number in range(200)}
    assert len(model.requests) == 200


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (say("a"), "put the one step into a list"),
        ("a", "put the one step into a list"),
        (["a"], r"steps\[0\] is a str"),
        ([say("a"), 3], r"steps\[1\] is a int"),
        ([TextDelta("a")], r"steps\[0\] is a TextDelta"),
        ([[say("a"), Raise(KeyError)]], r"steps\[0\]\[0\] is a whole Answer"),
    ],
)
def test_a_slip_in_a_script_is_told_when_it_is_made(steps: object, words: str) -> None:
    """A step that is none is an `InvalidArgument` naming its place."""
    with pytest.raises(InvalidArgument, match=words):
        ScriptedModel(steps)  # type: ignore[arg-type]


def test_a_slip_in_an_endless_script_is_told_when_it_comes() -> None:
    """What an iterator gives is checked as it is taken."""

    def steps() -> Iterator[str]:
        yield "a"

    with pytest.raises(InvalidArgument, match=r"steps\[0\]"):
        ScriptedModel(steps()).stream(ASK, Scope())


def test_items_check_what_they_are_given() -> None:
    """`Raise` takes exceptions and `Do` callables only."""
    with pytest.raises(InvalidArgument, match=r"Raise\.error"):
        Raise("x")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"Do\.fn"):
        Do(3)  # type: ignore[arg-type]


def test_items_and_models_print_what_they_are() -> None:
    """Their reprs are made for reading."""
    shown = [Raise(KeyError("x")), Stall(), Do(print), Wait(2), Return(None), RaiseOnClose(OSError("y"))]
    assert repr(shown) == (
        "[Raise(KeyError('x')), Stall(), Do(print), Wait(2), Return(None), RaiseOnClose(OSError('y'))]"
    )
    assert repr(ScriptedModel([say("a")])) == "ScriptedModel('scripted', steps taken=0)"
