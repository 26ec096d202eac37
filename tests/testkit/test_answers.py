"""`say`, `call`, `think`, and how they combine."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_py import (
    Agent,
    Done,
    InvalidArgument,
    ModelEvent,
    ReasoningDelta,
    ReasoningDone,
    StopReason,
    TextDelta,
    ToolCallReady,
    Usage,
)
from gotato_testkit import Answer, ScriptedModel, call, say, think


def text_of(events: Answer | tuple[ModelEvent, ...]) -> str:
    """The text pieces, joined."""
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def calls_of(answer: Answer) -> list[tuple[str, str]]:
    """Ids and names of the calls."""
    return [(event.call.id, event.call.name) for event in answer if isinstance(event, ToolCallReady)]


def end_of(answer: Answer) -> Done:
    """The answer's last event."""
    end = answer[-1]
    assert isinstance(end, Done)
    return end


@given(st.text())
def test_say_streams_exactly_its_text(text: str) -> None:
    """The pieces of `say` join to its text, none is empty, there are at most eight, and they are the same each time."""
    answer = say(text)
    pieces = [event.text for event in answer if isinstance(event, TextDelta)]
    assert "".join(pieces) == text
    assert all(pieces)
    assert len(pieces) <= 8
    assert say(text) == answer


def test_say_cuts_where_words_end() -> None:
    """A short text comes word by word."""
    assert list(say("I see  it."))[:-1] == [TextDelta("I "), TextDelta("see  "), TextDelta("it.")]


def test_every_answer_ends_with_one_done() -> None:
    """An answer holds one `Done`, last, however it was combined."""
    for answer in (say(""), say("a b"), call("t"), think("x"), say("a") + call("t") + say("b") + think()):
        assert [isinstance(event, Done) for event in answer] == [False] * (len(answer) - 1) + [True]


def test_the_stop_reason_follows_from_the_calls() -> None:
    """Calls make it `tool_calls`, text alone `end_turn`, and a reason that was given wins."""
    assert end_of(say("a")).stop_reason is StopReason.END_TURN
    assert end_of(say("a") + call("t")).stop_reason is StopReason.TOOL_CALLS
    assert end_of(call("t") + say("", stop_reason="max_tokens")).stop_reason is StopReason.MAX_TOKENS
    assert end_of(say("a", stop_reason="content_filter") + call("t")).stop_reason is StopReason.CONTENT_FILTER


def test_calls_are_numbered_within_one_answer() -> None:
    """Calls without an id are named by their place, again after combining; a given id stays."""
    assert calls_of(call("a")) == [("call_1", "a")]
    combined = (say("x") + call("a")) + (call("b", call_id="mine") + call("c"))
    assert calls_of(combined) == [("call_1", "a"), ("mine", "b"), ("call_3", "c")]


def test_arguments_are_written_as_json() -> None:
    """Keyword arguments become the call's JSON text; `tool` and `self` are free names for them."""
    (ready, _) = call("t", tool="x", self=None, n=[1, 2.5], text="é")
    assert isinstance(ready, ToolCallReady)
    assert json.loads(ready.call.arguments) == {"tool": "x", "self": None, "n": [1, 2.5], "text": "é"}
    assert call("t")[0] == ToolCallReady(ready.call.__class__("call_1", "t", "{}"))


@pytest.mark.parametrize("value", [float("nan"), object(), {1, 2}])
def test_arguments_that_are_no_json_are_refused(value: object) -> None:
    """What JSON cannot say is an `InvalidArgument` that names the tool."""
    with pytest.raises(InvalidArgument, match="'pay'"):
        call("pay", amount=value)


def test_slips_are_refused() -> None:
    """A text that is none, an empty id and an unknown stop reason are told where they are made."""
    with pytest.raises(InvalidArgument, match="say: text must be a str"):
        say(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="call_id"):
        call("t", call_id="")
    with pytest.raises(InvalidArgument, match="stop_reason"):
        say("x", stop_reason="finished")


def test_usage_is_added_and_the_rest_taken_from_the_right() -> None:
    """Combining adds usage; response id, model and reason come from the right operand where it has them."""
    left = say("a", usage=Usage(1, 2), response_id="r1", model="m1")
    both = left + say("b", usage=Usage(10, 20), model="m2")
    assert end_of(both) == Done(StopReason.END_TURN, Usage(11, 22), "r1", "m2")
    assert end_of(left + say("b")).usage == Usage(1, 2)


def test_think_closes_its_thought_unless_told_not_to() -> None:
    """Reasoning comes as deltas and a `ReasoningDone` with its signature; `done=False` leaves that out."""
    assert think("Hm.", signature="s", origin="o:m", redacted=True)[:2] == (
        ReasoningDelta("Hm."),
        ReasoningDone("s", "o:m", True),
    )
    assert think("Hm.", done=False)[:1] == think("Hm.", done=False)[:-1]


def test_a_slice_is_plain_events() -> None:
    """`[:-1]` gives the events without their `Done`, for writing broken answers."""
    assert say("Hel")[:-1] == (TextDelta("Hel"),)


def test_answers_are_values() -> None:
    """Answers compare, hash and print by their events, and refuse to be joined with anything else."""
    assert {say("a"), say("a")} == {say("a")}
    assert say("a") != say("b")
    assert say("a") != (TextDelta("a"),)
    assert repr(say("a")).startswith("Answer([TextDelta(text='a'), Done(")
    with pytest.raises(TypeError):
        say("a") + "b"  # type: ignore[operator]


def test_an_agent_understands_what_they_make() -> None:
    """A run commits exactly what an answer says: thought, text, calls, usage, model."""
    answer = think("Hm.", signature="s") + say("I look.", usage=Usage(3, 4), model="m") + call("nothing", at=1)
    result = Agent(ScriptedModel([answer, say("ok")])).run("Hi")
    message = result.new_messages[1]
    assert message.role == "assistant"
    assert (message.text, message.model, message.usage) == ("I look.", "m", Usage(3, 4))
    assert [call.id for call in message.tool_calls] == ["call_1"]
