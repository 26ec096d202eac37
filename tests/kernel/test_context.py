"""What the model sees: builders, the layout for prompt caches, the prefix hash."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_py import (
    Agent,
    AssistantMessage,
    ContextBuilt,
    Hooks,
    InvalidArgument,
    InvalidState,
    Limits,
    MemoryTranscript,
    Message,
    ModelContext,
    ModelOptions,
    RunStatus,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolSpec,
    TurnView,
    UserMessage,
    assemble_request,
    check_messages,
    full_history,
)
from gotato_testkit import EventRecorder, ScriptedModel, call, say

HISTORY: tuple[Message, ...] = (
    UserMessage("hi", id="u1"),
    AssistantMessage("", [ToolCall("c", "look")], id="a1"),
    ToolMessage(ToolResult("c", "ok", "found", key="a1:0"), id="t1"),
)
LOOK, ADD = ToolSpec("look"), ToolSpec("add")


def look() -> str:
    """Looks."""
    return "found"


@dataclass
class Recent:
    """A builder that shows the last messages from a user message on, and a panel."""

    keep: int = 1
    panel: str = ""
    seen: list[TurnView] = field(default_factory=list)

    def build(self, view: TurnView) -> ModelContext:
        """The last `keep` rounds."""
        self.seen.append(view)
        starts = [at for at, message in enumerate(view.messages) if message.role == "user"]
        return ModelContext("Short memory.", view.messages[starts[-self.keep] :], self.panel)


class TestAssemble:
    """`assemble_request`: system, sorted tools, history, panel; breakpoints; the hash of the prefix."""

    def test_layout(self) -> None:
        """Tools come sorted; breakpoints end the system text, the tools, and the history before its tail."""
        options = ModelOptions(temperature=0.5)
        request, _ = assemble_request(ModelContext("Be brief.", HISTORY), [LOOK, ADD], options)
        assert (request.system, tuple(request.messages), request.options) == ("Be brief.", HISTORY, options)
        assert [spec.name for spec in request.tools] == ["add", "look"]
        assert request.cache_breakpoints == ("system", "tools", 1)
        assert assemble_request(ModelContext())[0].cache_breakpoints == ()

    def test_hash_covers_all_but_the_last_message(self) -> None:
        """It changes with system, tools and every message but the last; not with the last, the panel or ids."""
        _, base = assemble_request(ModelContext("s", HISTORY), [LOOK])
        other_tail = (*HISTORY[:2], ToolMessage(ToolResult("c", "ok", "else", key="a1:0")))
        same = [ModelContext("s", other_tail), ModelContext("s", HISTORY, "a panel")]
        renamed = (UserMessage("hi", id="other"), *HISTORY[1:])
        assert {assemble_request(each, [LOOK])[1] for each in [*same, ModelContext("s", renamed)]} == {base}
        changed = (UserMessage("ho", id="u1"), *HISTORY[1:])
        others = [ModelContext("t", HISTORY), ModelContext("s", changed), ModelContext("s", HISTORY[:2])]
        hashes = {assemble_request(each, [LOOK])[1] for each in others} | {assemble_request(same[0], [ADD])[1]}
        assert base not in hashes
        assert len(hashes) == 4

    @given(st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=6))
    def test_growing_history_keeps_its_prefix(self, texts: list[str]) -> None:
        """Appending a message hashes as if the shorter history had been the prefix all along."""
        messages = [UserMessage(text) for text in texts]
        _, longer = assemble_request(ModelContext("s", [*messages, UserMessage("new")]))
        _, again = assemble_request(ModelContext("s", [*messages, UserMessage("other")]))
        assert longer == again

    def test_panel_goes_on_the_tail(self) -> None:
        """It is a further part of the last user or tool message, else a user message; the history stays as it is."""
        for tail, role in ((HISTORY[0], "user"), (HISTORY[2], "tool"), (AssistantMessage("so"), "user")):
            history = (*HISTORY, tail) if tail is not HISTORY[2] else HISTORY
            request, _ = assemble_request(ModelContext("", history, "It is noon."))
            last = request.messages[-1]
            assert last.role == role
            assert last.text.endswith("<panel>\nIt is noon.\n</panel>")
            kept = len(history) - (0 if tail.role == "assistant" else 1)
            assert tuple(request.messages)[:kept] == history[:kept]
            assert (len(request.messages), request.messages[0]) == (len(list(request.messages)), history[0])
            assert request.messages[0:1] == (history[0],)
            with pytest.raises(IndexError):
                request.messages[len(request.messages)]
        silent = ToolMessage(ToolResult("c", "failed", error="no row", key="a1:0"))
        request, _ = assemble_request(ModelContext("", (*HISTORY[:2], silent), "It is noon."))
        assert request.messages[-1].text.startswith("The tool ran and failed: no row")

    def test_bad_input(self) -> None:
        """What is no context, message or tool is refused by name."""
        bad: list[tuple[Any, str]] = [  # Any: bad on purpose
            (("x",), "context"),
            ((ModelContext("", cast("list[Message]", ["x"])),), r"messages\[0\]"),
            ((ModelContext(), ["x"]), r"tools\[0\]"),
        ]
        for arguments, name in bad:
            with pytest.raises(InvalidArgument, match=name):
                assemble_request(*arguments)
        with pytest.raises(InvalidArgument, match="messages"):
            ModelContext("", "text")  # type: ignore[arg-type]  # bad on purpose


class TestBuilders:
    """A context builder decides what an agent's model sees."""

    def test_a_builder_sees_the_turn(self) -> None:
        """It gets the instructions, the messages so far, the transcript, ids, usage, deps and scope."""
        builder = Recent(panel="It is noon.")
        model = ScriptedModel([call("look"), say("one"), say("two")])
        agent = Agent(model, instructions="Long.", tools=[look], context_builder=builder)
        agent.run("first", deps="mine")
        agent.run("second")
        view = builder.seen[1]
        assert (view.system, view.turn, view.deps, view.transcript) == ("Long.", 2, "mine", agent.transcript)
        assert len(view.messages) == 3
        assert view.scope is not None
        assert view.run_id
        last = model.requests[-1]
        assert [message.role for message in last.messages] == ["user"]
        assert last.system == "Short memory."
        assert "It is noon." in last.messages[0].text
        assert "noon" not in agent.transcript.messages[4].text
        assert not any(check_messages(request.messages) for request in model.requests)

    def test_results_in_finish_order_are_sent_in_call_order(self) -> None:
        """A transcript may hold the results of a batch as they finished; a request never does."""
        history: list[Message] = [
            UserMessage("go", id="u"),
            AssistantMessage("", [ToolCall("x", "look"), ToolCall("y", "look")], id="a"),
            ToolMessage(ToolResult("y", "ok", "second", key="a:1")),
            ToolMessage(ToolResult("x", "ok", "first", key="a:0")),
        ]
        model = ScriptedModel([say("done")])
        Agent(model, tools=[look], transcript=MemoryTranscript(history)).run()
        assert [message.text for message in model.requests[0].messages][2:] == ["first", "second"]

    def test_invalid_output_fails_the_run(self) -> None:
        """What no provider would take is not sent: the run fails and says which rule is broken."""

        @dataclass
        class Orphan:
            """Shows a result without its call."""

            def build(self, view: TurnView) -> ModelContext:
                """Only the last message."""
                return ModelContext(view.system, view.messages[-1:])

        model = ScriptedModel([call("look"), say("never")])
        result = Agent(model, tools=[look], context_builder=Orphan()).run("go", check=False)
        assert result.error is not None
        assert result.error.code == "extension_failure"
        assert "Orphan.build: message 0" in str(result.error)
        assert len(model.requests) == 1

    def test_no_context_fails_the_run(self) -> None:
        """A builder that raises, or returns something else, fails the run as an extension failure."""

        class Wrong:
            """Returns text."""

            def build(self, view: TurnView) -> str:
                """No context."""
                return view.system

        class Raising:
            """Raises."""

            def build(self, view: TurnView) -> ModelContext:
                """Never comes back."""
                raise KeyError("x")

        for builder in (Wrong(), Raising()):
            result = Agent(ScriptedModel([]), context_builder=builder).run("go", check=False)  # type: ignore[arg-type]
            assert result.status is RunStatus.FAILED
            assert result.error is not None
            assert result.error.code == "extension_failure"

    def test_an_unsendable_transcript_is_refused(self) -> None:
        """A history with a hole in its middle is refused before anything changes, and the agent is free again."""
        orphan = ToolMessage(ToolResult("c", "ok", "x", key="a:0"))
        history: list[Message] = [UserMessage("go", id="u"), orphan, UserMessage("so")]
        agent = Agent(ScriptedModel([]), transcript=MemoryTranscript(history))
        with pytest.raises(InvalidState, match="message 1"):
            agent.run("again")
        assert (agent.status, len(agent.transcript.messages)) == ("idle", 3)

    def test_full_history_is_the_default(self) -> None:
        """It shows the instructions and every message, and says so in its repr."""
        view = TurnView("Be brief.", HISTORY, MemoryTranscript(HISTORY))
        assert full_history.build(view) == ModelContext("Be brief.", HISTORY)
        assert repr(full_history) == "full_history"


class TestGoingOn:
    """A partial answer at the tail is sent with a closing user line that is not stored."""

    def test_the_closing_line_is_not_stored(self) -> None:
        """The request ends with a user line, the transcript does not."""
        history: list[Message] = [UserMessage("go", id="u"), AssistantMessage("It is", stop_reason="cancelled", id="a")]
        model = ScriptedModel([say(" there.")])
        agent = Agent(model, transcript=MemoryTranscript(history))
        agent.run()
        assert [message.role for message in model.requests[0].messages] == ["user", "assistant", "user"]
        assert [message.role for message in agent.transcript.messages] == ["user", "assistant", "assistant"]

    def test_wrap_up_asks_once_more_without_tools(self) -> None:
        """After a limit: one request without tools, its instruction not stored; the status stays limited."""
        model = ScriptedModel([call("look"), call("look"), say("So far: found.")])
        agent = Agent(model, tools=[look], limits=Limits(max_turns=2, wrap_up=True), context_builder=Recent())
        result = agent.run("go", check=False)
        assert (result.status, result.text) == (RunStatus.LIMITED, "So far: found.")
        assert model.requests[-1].tools == ()
        assert model.requests[-1].messages[-1].role == "user"
        assert [message.role for message in agent.transcript.messages].count("user") == 1


class TestPrefixHash:
    """`context_built.prefix_hash`: lazy, incremental, and the same as `assemble_request`'s."""

    def test_it_is_the_public_one(self) -> None:
        """For each turn it equals the hash of the request that was sent, also when it is looked at later."""
        model, events = ScriptedModel([call("look"), call("look"), say("done")]), EventRecorder()
        Agent(model, instructions="s", tools=[look], extensions=[events]).run("go")
        built = [event for event in events.events if isinstance(event, ContextBuilt)]
        for event, request in zip(reversed(built), reversed(model.requests), strict=True):
            _, expected = assemble_request(ModelContext("s", request.messages), request.tools)
            assert (event.prefix_hash, event.messages, event.tools) == (expected, len(request.messages), 1)
            assert event.prefix_hash == event.to_dict()["prefix_hash"]

    def test_a_builder_is_hashed_as_it_shows(self) -> None:
        """With a builder of one's own the hash is that of its messages."""
        hashes: list[tuple[str, str]] = []
        model = ScriptedModel([say("one"), say("two")])

        def observe(event: object) -> None:
            if isinstance(event, ContextBuilt):
                hashes.append((event.prefix_hash, event.kind))

        agent = Agent(model, context_builder=Recent(), extensions=[Hooks(observe=observe)])
        agent.run("first")
        agent.run("second")
        assert hashes[0] == hashes[1]  # nothing stands before the one message of each
