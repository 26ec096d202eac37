"""`Failover`: who is asked, who answers, and what is raised when nobody does."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_gateway import Failover, OpenAIChat, RateLimiter, another_may_answer
from gotato_py import (
    Agent,
    AuthenticationFailed,
    Cancelled,
    ConnectionFailed,
    ContentFiltered,
    ContextOverflow,
    Done,
    GotatoError,
    InvalidArgument,
    InvalidRequest,
    Model,
    ModelError,
    ModelEvent,
    ModelProtocolError,
    ModelRequest,
    Overloaded,
    QuotaExhausted,
    RateLimited,
    RateLimits,
    ReasoningDelta,
    RetryPolicy,
    Scope,
    TextDelta,
    Usage,
    UsageUpdate,
)
from gotato_testkit import Do, ManualClock, Raise, ScriptedModel, Step, say
from gotato_testkit.contracts import ModelContract

from .answers import HI, ask, local
from .server import HELLO, Reply, Server


def model(name: str, *steps: Step) -> ScriptedModel:
    """A target with a script."""
    return ScriptedModel(steps, name=name)


def failing(name: str, error: GotatoError) -> ScriptedModel:
    """A target that only fails."""
    return model(name, Raise(error))


def test_the_first_that_works_answers() -> None:
    """The targets are asked in order, and none behind the one that answers."""
    first, second, third = failing("a", Overloaded("busy")), model("b", say("Hello")), model("c", say("never"))
    answer = ask(Failover([first, second, third]))
    assert (answer.text, answer.done.model) == ("Hello", "b")
    assert [len(each.requests) for each in (first, second, third)] == [1, 1, 0]
    assert (first.unclosed, second.unclosed) == (0, 0)


@pytest.mark.parametrize(
    "error",
    [
        RateLimited("x"),
        Overloaded("x"),
        ConnectionFailed("x"),
        ConnectionFailed("untrusted", retryable=False),
        ModelProtocolError("x"),
        AuthenticationFailed("x"),
        QuotaExhausted("x"),
        ModelError("x"),
        InvalidRequest("this dialect takes no sound"),
        InvalidRequest("no such model", status=404),
        InvalidRequest("a redirect", status=302),
        InvalidRequest("larger than a minute's tokens", status=429),
        InvalidRequest("larger than a minute's tokens", status=413),
    ],
    ids=repr,
)
def test_what_is_the_targets_own_moves_on(error: ModelError) -> None:
    """Errors that say something about the target lead to the next one."""
    assert ask(Failover([failing("a", error), model("b", say("Hello"))])).text == "Hello"


@pytest.mark.parametrize(
    "error", [ContextOverflow("x"), ContentFiltered("x"), InvalidRequest("x", status=400)], ids=repr
)
def test_what_is_the_requests_own_is_raised(error: ModelError) -> None:
    """Errors that every target would repeat are raised at once, as they are."""
    second = model("b", say("never"))
    assert ask(Failover([failing("a", error), second])).error is error
    assert second.requests == []


def test_the_choice_can_be_replaced() -> None:
    """A predicate decides, and may build on the usual one."""

    def moves_on(error: ModelError) -> bool:
        return another_may_answer(error) or isinstance(error, ContextOverflow)

    targets = [failing("small", ContextOverflow("too long")), model("large", say("Hello"))]
    assert ask(Failover(targets, moves_on=moves_on)).text == "Hello"
    last = ask(Failover([failing("a", Overloaded("busy")), model("b", say("never"))], moves_on=lambda error: False))
    assert type(last.error) is Overloaded


@pytest.mark.parametrize("event", [TextDelta("Hel"), ReasoningDelta("Well")], ids=repr)
def test_after_something_was_delivered_nobody_else_is_asked(event: ModelEvent) -> None:
    """An answer that was begun is not continued by another target: its error is raised as it is."""
    error = ConnectionFailed("cut off")
    second = model("b", say("never"))
    answer = ask(Failover([model("a", [event, Raise(error)]), second]))
    assert (answer.events, answer.error) == ([event], error)
    assert second.requests == []


def test_limits_and_usage_deliver_nothing() -> None:
    """What is told of limits is passed on; tokens of a target that failed are not taken for those of the answer."""
    limits = RateLimits(remaining_requests=0)
    first = model("a", [limits, UsageUpdate(Usage(100, 1)), Raise(Overloaded("busy"))])
    second = model("b", [UsageUpdate(Usage(5)), TextDelta("Hello"), Done(usage=Usage(5, 2))])
    answer = ask(Failover([first, second]))
    assert answer.events == [
        limits,
        UsageUpdate(Usage(5)),
        TextDelta("Hello"),
        Done(usage=Usage(5, 2), model="b"),
    ]


def test_usage_is_told_when_all_fail() -> None:
    """What was paid for is told before the error, of all targets together."""
    targets = [model(each, [UsageUpdate(Usage(100, 1)), Raise(Overloaded("busy"))]) for each in "ab"]
    answer = ask(Failover(targets))
    assert answer.events == [UsageUpdate(Usage(200, 2))]
    assert type(answer.error) is Overloaded


def test_all_errors_are_told() -> None:
    """The error raised keeps its type and facts, and its message names every target and what it said."""
    first = RateLimited("slow down", retry_after=20.0, status=429, provider="groq", request_id="r1", details={"a": 1})
    targets: list[Model] = [failing("groq:m", first), failing("openai:m", AuthenticationFailed("wrong key"))]
    error = ask(Failover(targets)).error
    assert type(error) is RateLimited
    assert str(error) == (
        "no target answered: groq:m: RateLimited: slow down; openai:m: AuthenticationFailed: wrong key"
    )
    assert (error.retryable, error.retry_after, error.status, error.request_id) == (True, 20.0, 429, "r1")
    assert dict(error.details) == {"a": 1}
    assert error.__cause__ is error.cause is first
    assert str(first) == "slow down"
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.retry_after) == (str(error), 20.0)


def test_the_shortest_wait_counts() -> None:
    """Of errors that can be retried, the one that can be soonest is raised, whatever comes last."""
    waits = [30.0, 5.0, 60.0]
    targets: list[Model] = [failing(str(wait), RateLimited("slow", retry_after=wait)) for wait in waits]
    error = ask(Failover([*targets, failing("d", QuotaExhausted("no money"))])).error
    assert error is not None
    assert (type(error), error.retry_after) == (RateLimited, 5.0)


def test_a_last_error_of_the_requests_own_wins() -> None:
    """An overflow at the last target is raised as such, so that it can be cured by compaction."""
    error = ask(Failover([failing("a", RateLimited("slow")), failing("b", ContextOverflow("too long"))])).error
    assert type(error) is ContextOverflow
    assert "RateLimited: slow" in str(error)


def test_the_kernel_retries_from_the_first() -> None:
    """The retry waits the shortest wait and asks the first target again."""
    clock = ManualClock()
    first = model("a", Raise(RateLimited("slow", retry_after=7.0)), say("Hello"))
    second = model("b", Raise(RateLimited("slow", retry_after=90.0)))
    result = Agent(Failover([first, second]), clock=clock, retry=RetryPolicy()).run("hi")
    assert result.message is not None
    assert (result.text, result.message.model, clock.waits) == ("Hello", "a", [7.0])


def test_the_end_of_the_scope_is_raised_at_once() -> None:
    """A cancel while a target is asked ends the attempt, whatever the target raises."""
    scope = Scope()
    second = model("b", say("never"))
    first = model("a", [Do(lambda: scope.cancel("enough")), Raise(ConnectionFailed("cut"))])
    first.heed_scope = False
    with pytest.raises(Cancelled, match="enough"):
        ask(Failover([first, second]), scope=scope)
    assert second.requests == []


def test_a_stream_without_done_is_a_failure() -> None:
    """A target that ends without having said anything has failed."""
    assert ask(Failover([model("a", []), model("b", say("Hello"))])).text == "Hello"


def test_a_bug_is_raised() -> None:
    """What is no ModelError is no reason to ask another target."""
    second = model("b", say("never"))
    with pytest.raises(ZeroDivisionError):
        ask(Failover([model("a", Raise(ZeroDivisionError())), second]))
    assert second.requests == []


def test_closing_early_closes_the_target() -> None:
    """A caller that leaves closes the stream of the target that is answering."""
    target = model("a", say("Hello"))
    stream = Failover([target]).stream(HI, Scope())
    next(stream)
    stream.close()  # type: ignore[attr-defined]  # a generator
    assert target.unclosed == 0


def test_which_service_answered_is_told() -> None:
    """Two servers of one model are told apart by the message's model, a dated name is kept behind its service."""
    with Server(Reply((), 503, {}, "length")) as broken, Server(Reply(HELLO)) as working:
        targets = [local(broken.url), local(working.url)]
        assert ask(Failover(targets)).done.model == f"127.0.0.1:{working.port}:m"
        named = [local(working.url, model="m-latest")]
        assert ask(Failover(named)).done.model == f"127.0.0.1:{working.port}:m"
        assert ask(Failover([RateLimiter(max_concurrent=1).wrap(named[0])])).done.model.endswith(":m")


def test_a_failover_may_be_a_target() -> None:
    """Groups nest, and the one that answered in the end is told."""
    inner = Failover([failing("a", Overloaded("busy")), model("b", say("Hello"))])
    answer = ask(Failover([failing("c", Overloaded("busy")), inner]))
    assert (answer.text, answer.done.model) == ("Hello", "b")


def test_what_a_failover_says_of_itself() -> None:
    """Its capabilities are those that all have; its name is given or made of theirs."""
    targets = [
        ScriptedModel([], name="a", capabilities={"images", "response_schema"}),
        ScriptedModel([], name="b", capabilities={"images"}),
    ]
    assert Failover(targets).capabilities == {"images"}
    assert (Failover(targets).name, Failover(targets, name="safe").name) == ("failover(a, b)", "safe")
    assert "ScriptedModel('a'" in repr(Failover(targets))
    key = "sk-0123456789abcdef"
    assert key not in repr(Failover([OpenAIChat("m", api_key=key)]))


@pytest.mark.parametrize("models", [[], "openai:m", None, [3], [say("x")]])
def test_targets_are_checked(models: object) -> None:
    """What is no sequence of models is refused when it is made."""
    with pytest.raises(InvalidArgument, match="models"):
        Failover(models)  # type: ignore[arg-type]  # on purpose


def test_other_arguments_are_checked() -> None:
    """The predicate is callable and the name a str."""
    with pytest.raises(InvalidArgument, match="moves_on"):
        Failover([model("a")], moves_on=RateLimited("x"))  # type: ignore[arg-type]  # on purpose
    with pytest.raises(InvalidArgument, match="name"):
        Failover([model("a")], name=None)  # type: ignore[arg-type]  # on purpose


ERRORS: Sequence[ModelError] = (
    RateLimited("a", retry_after=3.0),
    RateLimited("b", retry_after=8.0),
    Overloaded("c"),
    AuthenticationFailed("d"),
    ContextOverflow("e"),
    InvalidRequest("f", status=400),
)
OUTCOMES = st.lists(st.one_of(st.none(), st.tuples(st.sampled_from(ERRORS), st.booleans())), min_size=1, max_size=6)


@given(OUTCOMES)
def test_any_outcomes(outcomes: list[tuple[ModelError, bool] | None]) -> None:
    """For every row of targets: those up to the first answer, or the first error that ends it, are asked, each once."""

    def script(outcome: tuple[ModelError, bool] | None) -> Step:
        if outcome is None:
            return say("Hello")
        error, delivers = outcome
        return [TextDelta("Hel"), Raise(error)] if delivers else Raise(error)

    targets = [model(f"t{place}", script(outcome)) for place, outcome in enumerate(outcomes)]
    answer = ask(Failover(targets))

    def ends(outcome: tuple[ModelError, bool] | None) -> bool:
        return outcome is None or outcome[1] or not another_may_answer(outcome[0])

    last = next((place for place, outcome in enumerate(outcomes) if ends(outcome)), len(outcomes) - 1)
    assert [len(each.requests) for each in targets] == [1] * (last + 1) + [0] * (len(targets) - last - 1)
    assert all(each.unclosed == 0 for each in targets)
    ending = outcomes[last]
    if ending is None:
        assert (answer.error, answer.text, answer.done.model) == (None, "Hello", f"t{last}")
        return
    assert answer.error is not None
    assert answer.text == ("Hel" if ending[1] else "")
    failed = [outcome[0] for outcome in outcomes[: last + 1] if outcome is not None]
    if ends(ending):
        assert type(answer.error) is type(ending[0])
    elif retryable := [error for error in failed if error.retryable]:
        assert answer.error.retryable
        assert (answer.error.retry_after or 0) == min(error.retry_after or 0 for error in retryable)
    if not ending[1] and len(failed) > 1:
        assert all(str(error) in str(answer.error) for error in failed)


class Silent:
    """A model that has neither a name nor a close."""

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
        """An answer."""
        return iter([TextDelta("Hello"), Done()])


def test_a_plain_model_may_be_a_target() -> None:
    """A model without optional members is called by its type."""
    failover = Failover([Silent(), Silent()])
    assert (failover.name, failover.capabilities) == ("failover(Silent, Silent)", frozenset())
    assert ask(failover).done.model == "Silent"


class TestContract(ModelContract):
    """A Failover is a Model like any other."""

    def make(self) -> Failover:
        """One whose first target always fails."""

        class Broken:
            def stream(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
                scope.check()
                raise Overloaded("busy")

        class Works:
            def stream(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
                for piece in ("Hel", "lo"):
                    scope.check()
                    yield TextDelta(piece)
                scope.check()
                yield Done()

        return Failover([Broken(), Works()])
