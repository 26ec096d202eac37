"""`inspect`: what the model would see now, and how large each part of it is."""

from __future__ import annotations

import json

import pytest

from gotato_modelctx import Section, Window, inspect, with_panel, with_static
from gotato_py import (
    Agent,
    AssistantMessage,
    AudioPart,
    Compaction,
    ContextBuilt,
    InvalidArgument,
    JSONPart,
    MemoryTranscript,
    Message,
    ModelContext,
    ModelOptions,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolSpec,
    TurnView,
    UserMessage,
    full_history,
    tool,
)
from gotato_testkit import EventRecorder, ScriptedModel, call, say


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"Sunny in {city}."


BUILDER = with_panel(
    with_static(Window(7), Section("rules", "Be kind.", {"path": "AGENTS.md"})), Section("todo", "Test.")
)


def talk() -> MemoryTranscript:
    """A question, two calls answered in finish order, and the answer."""
    calls = [ToolCall("c1", "weather", '{"city":"Oslo"}'), ToolCall("c2", "weather", '{"city":"Rome"}')]
    return MemoryTranscript(
        [
            UserMessage("Where is it nice?", id="u1"),
            AssistantMessage("", calls, id="a1"),
            ToolMessage(ToolResult("c2", "ok", "Sunny in Rome.", key="a1:1"), id="r2"),
            ToolMessage(ToolResult("c1", "failed", error="no data", key="a1:0"), id="r1"),
            AssistantMessage("In Rome.", id="a2"),
            UserMessage("Tell me more.", id="u2"),
        ]
    )


def test_each_part_is_measured() -> None:
    """System text and its sections, tools, messages in request order, the panel and its sections; sums are of these."""
    found = inspect(talk(), instructions="Be brief.", tools=[weather], builder=BUILDER)
    assert [(part.kind, part.name, part.detail, part.id, part.within, part.cached) for part in found.parts] == [
        ("system", "system", "", "", "", True),
        ("section", "rules", "path=AGENTS.md", "", "system", True),
        ("tool", "weather", "", "", "", True),
        ("message", "user", "", "u1", "", True),
        ("message", "assistant", "calls weather, weather", "a1", "", True),
        ("message", "tool", "weather failed", "r1", "", True),
        ("message", "tool", "weather ok", "r2", "", True),
        ("message", "assistant", "", "a2", "", True),
        ("message", "user", "", "u2", "", False),
        ("panel", "panel", "", "", "", False),
        ("section", "todo", "", "", "panel", False),
    ]
    top = [part for part in found.parts if not part.within]
    assert found.tokens == sum(part.tokens for part in top)
    assert found.bytes == sum(part.bytes for part in top)
    assert found.cached_tokens == sum(part.tokens for part in top if part.cached)
    assert found.parts[4].bytes == 2 * len('weather{"city":"Oslo"}')
    assert found.parts[5].bytes == len("The tool ran and failed: no data")
    assert found.breakpoints == ("system", "tools", 4)
    assert found.request.messages[-1].text.endswith("<panel>\n<todo>\nTest.\n</todo>\n</panel>")
    assert (found.problems, found.dropped) == ((), ())


def test_it_is_what_an_agent_would_send() -> None:
    """For an agent: its transcript and its tools; the request and the hash are those of its next turn."""
    recorder = EventRecorder()
    model = ScriptedModel([call("weather", city="Oslo"), say("Nice."), say("Yes.")])
    agent = Agent(model, instructions="Be brief.", tools=[weather], context_builder=BUILDER, extensions=[recorder])
    agent.run("Is it nice?")
    agent.transcript.append(UserMessage("Sure?"))
    before = list(agent.transcript.messages)
    found = inspect(agent, instructions="Be brief.", builder=BUILDER)
    assert list(agent.transcript.messages) == before
    agent.run()
    assert found.request == model.requests[-1]
    hashes = [event.prefix_hash for event in recorder.events if isinstance(event, ContextBuilt)]
    assert found.prefix_hash == hashes[-1]


def test_what_is_given_stands_for_what_the_agent_has() -> None:
    """Other instructions, tools and another builder may be tried on an agent."""
    agent = Agent(ScriptedModel([]), instructions="Be brief.")
    assert inspect(agent, instructions="", builder=full_history, tools=[]).parts == ()


def test_a_view_is_taken_as_it_is() -> None:
    """In a hook, the view says what the builder would be shown."""
    messages = (UserMessage("Hi"),)
    found = inspect(TurnView("Be brief.", messages, MemoryTranscript()), builder=BUILDER)
    assert found.request.system.startswith("Be brief.\n\n<rules")
    with pytest.raises(InvalidArgument, match="instructions"):
        inspect(TurnView("Be brief.", messages, MemoryTranscript()), instructions="x")


def test_what_is_left_out_is_told() -> None:
    """By a window, and by a compaction; with how much and why."""
    transcript = MemoryTranscript([UserMessage(f"u{at}", id=f"u{at}") for at in range(12)])
    transcript.replace(Compaction(UserMessage("Summary."), "u1", tokens_before=90, tokens_after=40))
    found = inspect(transcript, builder=Window(4))
    assert [(each.by, each.messages, each.tokens) for each in found.dropped] == [
        ("compaction", None, 50),
        ("Window(max_messages=4, keep=0.5)", 9, 46),
    ]
    assert "1 compaction, the summary" in found.dropped[0].reason


class Kept(MemoryTranscript):
    """A transcript that knows its whole history, as a session does."""

    history = [UserMessage("x")] * 12


def test_a_session_knows_how_much_was_summarised() -> None:
    """Where the whole history is known, so is how many messages the summaries stand for."""
    transcript = Kept([UserMessage(f"u{at}", id=f"u{at}") for at in range(12)])
    transcript.replace(Compaction(UserMessage("One."), "u1"))
    transcript.replace(Compaction(UserMessage("Two."), "u5"))
    (dropped,) = inspect(transcript).dropped
    assert (dropped.messages, dropped.tokens) == (6, None)
    assert "2 compactions" in dropped.reason


def test_what_cannot_be_sent_is_told() -> None:
    """Calls that wait for an answer are problems, not errors."""
    found = inspect(MemoryTranscript([UserMessage("Hi"), AssistantMessage("", [ToolCall("c1", "")], id="a1")]))
    assert [(each.index, each.rule) for each in found.problems] == [(1, 1)]
    assert found.parts[-1].detail == "calls (no name)"
    assert "cannot be sent: message 1: call 0 has no result" in str(found)


def test_the_table_is_readable() -> None:
    """A line for each part with tokens, bytes and name; then the prefix, the breakpoints, what is left out."""
    found = inspect(talk(), instructions="Be brief.", tools=[weather], builder=BUILDER)
    lines = str(found).splitlines()
    assert lines[0] == f"{found.tokens:>9,} tokens, about; {found.bytes:,} bytes"
    assert lines[1] == "       14           53 B  cached  system"
    assert lines[2].endswith("cached    section rules  path=AGENTS.md")
    assert lines[9].endswith("new     message user  u2")
    assert lines[-2].endswith(f"in the cacheable prefix, hash {found.prefix_hash}")
    assert lines[-1] == "breakpoints: system, tools, 4"
    assert str(inspect(MemoryTranscript())).endswith("breakpoints: none")


def test_a_long_history_is_shortened_in_the_table_alone() -> None:
    """Of very many messages, those in the middle are one line; the data has them all."""
    found = inspect(MemoryTranscript([UserMessage(f"u{at}", id=f"u{at}") for at in range(1000)]), builder=Window(900))
    assert len(found.parts) == 549
    lines = str(found).splitlines()
    assert len(lines) == 1 + 41 + 3
    assert "… 509 messages …" in lines[21]
    assert "left out by Window(max_messages=900, keep=0.5): 451 messages, about" in lines[-1]


def test_the_data_is_json_without_content() -> None:
    """`to_dict` goes through JSON unchanged, and neither it nor the table quotes a message."""
    found = inspect(talk(), instructions="Be brief.", tools=[weather], builder=BUILDER)
    told = found.to_dict()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told["parts"][0] == {"kind": "system", "name": "system", "bytes": 53, "tokens": 14, "cached": True}
    assert "Rome" not in json.dumps(told) + str(found)


def test_other_parts_are_measured_by_their_data() -> None:
    """Bytes of sound as they are, JSON as its text."""
    message = UserMessage([AudioPart(b"x" * 800), JSONPart({"a": 1})])
    (part,) = inspect(MemoryTranscript([message])).parts
    assert (part.bytes, part.tokens) == (807, 4 + 2 + 2)


def test_tools_may_come_in_any_form() -> None:
    """A tool, its spec or a function; sorted by name, as in a request. A counter counts all of the texts."""

    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    found = inspect(MemoryTranscript(), tools=[weather, ToolSpec("find"), add], counter=lambda text: 1)
    assert [part.name for part in found.parts] == ["add", "find", "weather"]
    assert [part.tokens for part in found.parts] == [8 + 3, 8 + 2, 8 + 3]
    assert inspect(MemoryTranscript(), options=ModelOptions(max_tokens=7)).request.options.max_tokens == 7


class Broken:
    """A builder that returns something else."""

    def build(self, view: TurnView) -> ModelContext:
        """Not a context."""
        return view  # type: ignore[return-value]  # on purpose


def test_wrong_arguments_are_refused() -> None:
    """What has no messages, what is no tool, a builder that builds something else."""
    wrong: list[object] = [None, "text", [UserMessage("Hi")], Agent]
    for what in wrong:
        with pytest.raises(InvalidArgument, match="inspect"):
            inspect(what)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(InvalidArgument, match=r"tools\[0\]"):
        inspect(MemoryTranscript(), tools=[7])  # type: ignore[list-item]  # on purpose
    with pytest.raises(InvalidArgument, match="TurnView"):
        inspect(MemoryTranscript(), builder=Broken())


def test_results_that_no_key_names_stand_where_they_came() -> None:
    """Results without keys go to the calls that no key names, in order; strays come last."""
    answer = AssistantMessage("", [ToolCall("x", name) for name in "abc"], id="a1")
    texts = [("", "first"), ("a1:0", "zero"), ("", "second"), ("", "stray"), ("other:x", "odd")]
    messages: list[Message] = [answer, *[ToolMessage(ToolResult("x", "ok", text, key=key)) for key, text in texts]]
    found = inspect(MemoryTranscript([UserMessage("Hi"), *messages]))
    assert [each.text for each in found.request.messages[2:]] == ["zero", "first", "second", "stray", "odd"]


def test_an_agent_needs_nothing_else_said() -> None:
    """The system text, the tools and the builder are the agent's own."""

    @tool
    def look() -> str:
        """Looks."""
        return "seen"

    agent = Agent(ScriptedModel([]), instructions="Be brief.", tools=[look], context_builder=Window(max_messages=5))
    transcript = agent.transcript
    transcript.append(UserMessage("hi", id="u1"))
    seen = inspect(agent)
    assert seen.request.system == "Be brief."
    assert [spec.name for spec in seen.request.tools] == ["look"]
    assert [message.id for message in seen.request.messages] == ["u1"]
