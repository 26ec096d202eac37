"""Faults of contexts and requests that were found once: builders that fail, panels, hashes, what a repr shows."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from gotato_py import (
    Agent,
    AgentEnd,
    AssistantMessage,
    ContextBuilt,
    InvalidArgument,
    MemoryTranscript,
    Message,
    ModelContext,
    ModelRequest,
    RunStatus,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    TurnView,
    UserMessage,
    assemble_request,
)
from gotato_testkit import EchoModel, EventRecorder, FakeTool, ScriptedModel, call, say


class Odd:
    """A builder that does what it is told."""

    def __init__(self, act: Callable[[TurnView], Any]) -> None:
        self.act = act

    def build(self, view: TurnView) -> Any:
        """Does it."""
        return self.act(view)


def divide(view: TurnView) -> ModelContext:
    """Raises."""
    return ModelContext(view.system, view.messages[: 1 // 0])


ORPHAN = ToolMessage(ToolResult("c", "ok", "x"))
FAULTS: list[tuple[str, Callable[[TurnView], Any]]] = [
    ("returned a NoneType", lambda view: None),
    (r"messages\[0\]", lambda view: ModelContext("s", ["x"])),  # type: ignore[list-item]  # wrong on purpose
    ("message 0 cannot be sent", lambda view: ModelContext("s", [ORPHAN])),
    ("message 1 cannot be sent", lambda view: ModelContext("s", [*view.messages, AssistantMessage("")])),
    (
        "message 1 cannot be sent",
        lambda view: ModelContext("s", [*view.messages, AssistantMessage("", [ToolCall("c", "look")])]),
    ),
    ("raised ZeroDivisionError", divide),
    ("returned no messages", lambda view: ModelContext("s", [])),
]


class TestBuilderFaults:
    """Mistakes of a context builder fail the run as its own, and nothing is sent."""

    @pytest.mark.parametrize(("said", "act"), FAULTS)
    def test_it_is_an_extension_failure(self, said: str, act: Callable[[TurnView], Any]) -> None:
        """The error is `extension_failure` and names the builder and what was wrong."""
        model = ScriptedModel([say("never")])
        result = Agent(model, context_builder=Odd(act)).run("go", check=False)
        assert (result.status, model.requests) == (RunStatus.FAILED, [])
        assert result.error is not None
        assert result.error.code == "extension_failure"
        with pytest.raises(type(result.error), match=rf"Odd\.build.*{said}"):
            raise result.error

    def test_the_cause_is_kept(self) -> None:
        """What a builder raised is the cause of the error."""
        result = Agent(ScriptedModel([]), context_builder=Odd(divide)).run("go", check=False)
        assert result.error is not None
        assert isinstance(result.error.cause, ZeroDivisionError)

    def test_an_interrupt_passes(self) -> None:
        """KeyboardInterrupt and the agent's own `interrupts` come out of a builder unchanged, the run is closed."""

        class Stop(Exception):
            """As a task queue raises it."""

        for kind in (KeyboardInterrupt, Stop):
            raised = kind()

            def interrupt(view: TurnView, raised: BaseException = raised) -> ModelContext:
                raise raised

            events = EventRecorder()
            agent = Agent(ScriptedModel([]), context_builder=Odd(interrupt), interrupts=(Stop,), extensions=[events])
            with pytest.raises(kind) as caught:
                agent.run("go", check=False)
            assert caught.value is raised
            assert [told.status for told in events.of(AgentEnd)] == [RunStatus.CANCELLED]
            assert agent.status == "idle"

    def test_the_message_is_kept(self) -> None:
        """After a fault the user message is there, and a mended builder goes on from it."""
        faults = [True]
        act: Callable[[TurnView], Any] = lambda view: None if faults else ModelContext("s", view.messages)  # noqa: E731
        agent = Agent(ScriptedModel([say("Fine.")]), context_builder=Odd(act))
        agent.run("go", check=False)
        faults.clear()
        assert agent.run().text == "Fine."


BAD: list[tuple[str, tuple[Any, ...]]] = [
    ("context", (5,)),
    ("tools", (ModelContext(), 5)),
    ("tools", (ModelContext(), "look")),
    (r"tools\[0\]", (ModelContext(), ["look"])),
    ("options", (ModelContext(), (), 5)),
    ("options", (ModelContext(), (), {"temperature": 1})),
]


@pytest.mark.parametrize(("name", "given"), BAD)
def test_assemble_request_names_what_it_refuses(name: str, given: tuple[Any, ...]) -> None:
    """Each bad argument is InvalidArgument by its name."""
    with pytest.raises(InvalidArgument, match=f"assemble_request: {name} must be"):
        assemble_request(*given)


class TestRequests:
    """A request is a value, also with a panel or a closing line on its tail."""

    def made(self, tail: Message, panel: str) -> ModelRequest:
        """A request that ends with that message."""
        asked = AssistantMessage("", [ToolCall("c", "look")], id="a1")
        history: list[Message] = [UserMessage("go", id="u1"), asked, ToolMessage(ToolResult("c", "ok", "x"), id="t1")]
        return assemble_request(ModelContext("s", [*history, tail], panel))[0]

    @pytest.mark.parametrize("panel", ["", "It is noon."])
    @pytest.mark.parametrize("tail", [UserMessage("so?", id="u2"), AssistantMessage("So.", id="a2")])
    def test_it_compares_pickles_and_prints(self, tail: Message, panel: str) -> None:
        """Two of the same are equal, a pickled one comes back as it was, and the repr has no address."""
        first, second = self.made(tail, panel), self.made(tail, panel)
        assert first == second
        assert first != self.made(tail, f"{panel}!")
        again = pickle.loads(pickle.dumps(first))
        assert again == first
        assert list(again.messages) == list(first.messages)
        assert " at 0x" not in repr(first)
        assert panel in repr(first)

    def test_it_equals_its_written_form(self) -> None:
        """A request with a panel equals the one that is written out with plain messages, from either side."""
        request, _ = assemble_request(ModelContext("", [UserMessage("a")], "p"))
        plain = [UserMessage([TextPart("a"), TextPart("<panel>\np\n</panel>")])]
        assert request.messages == plain
        assert plain == request.messages

    def test_a_closing_line(self) -> None:
        """The request that goes on from a partial answer is a value as well."""
        partial = AssistantMessage("It is", stop_reason="cancelled", id="a1")
        seen: list[ModelRequest] = []

        class Keeping(EchoModel):
            def stream(self, request: ModelRequest, scope: Any) -> Any:
                seen.append(request)
                return super().stream(request, scope)

        for _ in range(2):
            history: list[Message] = [UserMessage("go", id="u1"), partial]
            Agent(Keeping(), transcript=MemoryTranscript(history)).run()
        assert seen[0] == seen[1] == pickle.loads(pickle.dumps(seen[0]))
        assert " at 0x" not in repr(seen)


class TestPrefixHash:
    """`context_built.prefix_hash` and what is shown of it."""

    def hashes(self) -> list[str]:
        """The hashes of a run with a tool, in which every id is made anew."""
        events = EventRecorder()
        script = [call("look"), call("look", n=1), say("done")]
        Agent(ScriptedModel(script), tools=[FakeTool("look", "x")], extensions=[events]).run("go")
        return [told.prefix_hash for told in events.of(ContextBuilt)]

    def test_it_does_not_depend_on_ids(self) -> None:
        """Two agents that say the same have the same hashes, results and all: ids are not sent."""
        first, second = self.hashes(), self.hashes()
        assert first == second
        assert len(set(first)) == 3

    def test_no_event_shows_an_address(self) -> None:
        """The repr of every event, that of `context_built` too, has no address, and shows the hash by its name."""
        events = EventRecorder()
        Agent(ScriptedModel([call("look"), say("done")]), tools=[FakeTool("look")], extensions=[events]).run("go")
        assert " at 0x" not in repr(events.events)
        built = events.of(ContextBuilt)[-1]
        assert f"prefix_hash={built.prefix_hash!r}" in repr(built)
        assert pickle.loads(pickle.dumps(built)).prefix_hash == built.prefix_hash
