"""Faults at the doors that were found once: bad arguments taken, waiting calls lost, errors that said too little."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import gotato_py
from gotato_py import (
    Agent,
    AgentEnd,
    AssistantMessage,
    Cancelled,
    DeadlineExceeded,
    GotatoError,
    InvalidArgument,
    InvalidState,
    Limits,
    MemoryTranscript,
    Message,
    ModelOptions,
    RateLimited,
    RunResult,
    RunStatus,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
    WaitingCall,
)
from gotato_testkit import Do, EventRecorder, FakeTool, ScriptedModel, Stall, call, say

MODEL = ScriptedModel([])


def not_callable_so(kind: str, more: str) -> str:
    """An id source that cannot be called with a kind alone."""
    return kind + more


class Short:
    """A model and a builder whose methods take too little or too much."""

    def stream(self, request: object) -> list[object]:
        """Takes no scope."""
        return []

    def build(self) -> None:
        """Takes no view."""

    def append(self) -> None:
        """Takes no message."""


class Greedy:
    """A model and a builder whose methods ask for more than they get."""

    def stream(self, request: object, scope: object, *, retries: int) -> list[object]:
        """Asks for more."""
        return []

    def build(self, view: object, more: object) -> None:
        """Asks for more."""


REFUSED: list[tuple[str, dict[str, Any]]] = [
    (r"ids\('agent'\) raised TypeError", {"ids": not_callable_so}),
    (r"ids\('agent'\) returns must be a str", {"ids": lambda kind: 5}),
    (r"ids\('agent'\) returns must be a str", {"ids": lambda kind: None}),
    (r"ids\('agent'\) returns must be a str that is not empty", {"ids": lambda kind: ""}),
    (r"Agent\.model\.stream cannot be called with 2", {"model": Short()}),
    (r"Agent\.model\.stream cannot be called with 2", {"model": Greedy()}),
    (r"Agent\.context_builder\.build cannot be called with 1", {"context_builder": Short()}),
    (r"Agent\.context_builder\.build cannot be called with 1", {"context_builder": Greedy()}),
    (r"Agent\.transcript\.append cannot be called with 1", {"transcript": Short()}),
    (r"Agent\.model .*gotato_gateway\.connect", {"model": "openai:gpt-5"}),
    (r"Agent\.transcript .*MemoryTranscript\(messages\)", {"transcript": []}),
    (r"Agent\.context_builder .*full_history", {"context_builder": "full"}),
]


@pytest.mark.parametrize(("said", "given"), REFUSED)
def test_what_an_agent_could_not_use_is_refused(said: str, given: dict[str, Any]) -> None:
    """It is InvalidArgument when the agent is built, with what was wrong and, for a usual slip, what to do."""
    arguments: dict[str, Any] = {"model": MODEL, **given}
    with pytest.raises(InvalidArgument, match=said):
        Agent(**arguments)


class TestInterrupts:
    """`interrupts=` cannot hold what the kernel's own errors are."""

    @pytest.mark.parametrize(
        "kind",
        [
            BaseException,
            Exception,
            TimeoutError,
            OSError,
            ValueError,
            GotatoError,
            Cancelled,
            DeadlineExceeded,
            RateLimited,
        ],
    )
    def test_a_class_of_ours_is_refused(self, kind: type[BaseException]) -> None:
        """A base of our errors, or one of them, would end runs that nobody interrupted."""
        with pytest.raises(InvalidArgument, match=rf"interrupts\[1\].*{kind.__name__}"):
            Agent(MODEL, interrupts=(SystemExit, kind))

    def test_no_error_has_another_builtin_base(self) -> None:
        """Each built-in class that one of our errors derives from is among those that are refused."""
        ours = [each for each in vars(gotato_py).values() if isinstance(each, type) and issubclass(each, GotatoError)]
        bases = {base for each in ours for base in each.__mro__ if base.__module__ == "builtins"} - {object}
        for base in bases:
            with pytest.raises(InvalidArgument, match="interrupts"):
                Agent(MODEL, interrupts=(base,))


class TestWaiting:
    """A transcript whose calls wait for a person."""

    def agent(self, *steps: Any) -> tuple[Agent, FakeTool]:
        """An agent on a transcript with two open calls, the first of which waits; and their tool."""
        asked = AssistantMessage("", [ToolCall("c", "pay"), ToolCall("d", "pay")], id="a1")
        history: list[Message] = [UserMessage("go", id="u1"), asked]
        transcript, pay = MemoryTranscript(history), FakeTool("pay", "paid")
        transcript.mark_waiting([WaitingCall("a1:0", "c", "pay", {}, "Sure?")])
        return Agent(ScriptedModel(steps), tools=[pay], transcript=transcript), pay

    def test_going_on_is_refused(self) -> None:
        """`run()` is InvalidState, and the calls still wait."""
        agent, pay = self.agent()
        with pytest.raises(InvalidState, match="wait"):
            agent.run(check=False)
        assert (agent.status, len(agent.transcript.messages), pay.uses) == ("waiting", 2, [])
        assert [waiting.key for waiting in agent.transcript.waiting] == ["a1:0"]

    def test_a_new_message_supersedes(self) -> None:
        """What waited is closed as `blocked`, what stood behind it as `not_run`; then the message is committed."""
        agent, pay = self.agent(say("Fine."))
        assert agent.run("never mind").text == "Fine."
        results = [each.result for each in agent.transcript.messages if isinstance(each, ToolMessage)]
        assert [(each.key, each.status.value) for each in results] == [("a1:0", "blocked"), ("a1:1", "not_run")]
        assert "superseded" in results[0].error
        assert results[0].executed is False
        assert (agent.status, len(agent.transcript.waiting), pay.uses) == ("idle", 0, [])
        assert [each.role for each in agent.transcript.messages][2:] == ["tool", "tool", "user", "assistant"]

    def test_closing_leaves_it(self) -> None:
        """`close` changes nothing of what waits."""
        agent, _ = self.agent()
        agent.close()
        assert (len(agent.transcript.messages), len(agent.transcript.waiting)) == (2, 1)


def test_a_key_is_text() -> None:
    """`mark_started` refuses what is no key."""
    transcript = MemoryTranscript()
    with pytest.raises(InvalidArgument, match="mark_started: key"):
        transcript.mark_started(5)  # type: ignore[arg-type]  # wrong on purpose
    assert len(transcript.started) == 0


MAKERS: list[tuple[str, Callable[..., object]]] = [
    ("Limits", Limits),
    ("ToolSpec", lambda **given: ToolSpec("name", **given)),
    ("ModelOptions", ModelOptions),
    ("UserMessage", lambda **given: UserMessage("hi", **given)),
]


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(("name", "make"), MAKERS)
def test_an_unknown_keyword_names_the_class(name: str, make: Callable[..., object], again: bool) -> None:
    """The TypeError says whose argument it is, at the first use of the class as later."""
    if again:
        make()
    with pytest.raises(TypeError, match=rf"{name}.*max_turn_s"):
        make(max_turn_s=1)


def test_the_names_of_the_package() -> None:
    """`dir` shows the public names and the version, and nothing else."""
    assert sorted(dir(gotato_py)) == sorted([*gotato_py.__all__, "__version__"])


class TestResults:
    """What a result shows and holds."""

    def test_its_repr_is_short(self) -> None:
        """However much was said, the repr is a line that tells the outcome."""
        agent = Agent(ScriptedModel([call("look"), say("word " * 2000)]), tools=[FakeTool("look", "x" * 5000)])
        result = agent.run("go " * 1000)
        shown = repr(result)
        assert len(shown) < 500
        for said in (repr(result.run_id), "'completed'", "word word", "turns=2", "new_messages=4"):
            assert said in shown

    def test_a_failed_one_shows_its_error(self) -> None:
        """The repr of a result that did not complete tells why."""
        result = Agent(MODEL, limits=Limits(max_turns=0)).run("go", check=False)
        assert "LimitExceeded" in repr(result)
        assert "'limited'" in repr(result)

    def _ended(self, how: str, *, streamed: bool) -> RunResult[None]:
        def cancel() -> None:
            agent.cancel("enough")

        agent = Agent(ScriptedModel([[Do(cancel), *say("x")] if how == "cancel" else Stall()]))
        timeout = 0.01 if how == "deadline" else None
        if streamed:
            stream = agent.stream("go", timeout=timeout, check=False)
            list(stream)
            return stream.result
        return agent.run("go", timeout=timeout, check=False)

    @pytest.mark.parametrize("streamed", [False, True])
    @pytest.mark.parametrize("how", ["cancel", "deadline"])
    def test_an_ordinary_end_holds_no_frames(self, how: str, streamed: bool) -> None:
        """The error of a cancelled run, or of one whose time has passed, keeps no frame alive."""
        result = self._ended(how, streamed=streamed)
        assert result.status in (RunStatus.CANCELLED, RunStatus.DEADLINE_EXCEEDED)
        assert result.error is not None
        assert (result.error.__traceback__, result.error.__context__) == (None, None)


@pytest.mark.parametrize("turns", [0, 1])
def test_the_status_in_agent_end_is_a_member(turns: int) -> None:
    """`agent_end.status` is a RunStatus; its JSON is the plain word."""
    events = EventRecorder()
    result = Agent(ScriptedModel([say("Hello.")]), extensions=[events], limits=Limits(max_turns=turns)).run(
        "hi", check=False
    )
    (end,) = events.of(AgentEnd)
    assert type(end.status) is RunStatus
    assert (end.status, type(end.to_dict()["status"])) == (result.status, str)
