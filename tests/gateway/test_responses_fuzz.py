"""The decoder of the responses dialect against events that nobody would send."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ..effort import costly
from .responses_events import Event, decoded, end, event, text

KINDS = [
    *("output_item.added", "output_item.done", "output_text.delta", "output_text.done", "refusal.delta"),
    *("reasoning_summary_text.delta", "reasoning_text.delta", "function_call_arguments.delta", "completed"),
    *("function_call_arguments.done", "refusal.done", "incomplete", "failed", "created", "unknown"),
]
NAMES = [
    *("item_id", "output_index", "content_index", "summary_index", "delta", "text", "refusal", "arguments", "item"),
    *("response", "id", "type", "name", "call_id", "summary", "content", "encrypted_content", "status", "usage"),
    *("output", "error", "incomplete_details", "reason", "model", "phase", "code", "message"),
]
TYPES = ["message", "function_call", "reasoning", "web_search_call", "output_text"]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(TYPES),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=6,
)
any_events = st.builds(
    lambda kind, members: {**members, "type": f"response.{kind}"},
    st.sampled_from(KINDS),
    st.dictionaries(st.sampled_from(NAMES), json_values, max_size=6),
)


@costly(2)
@given(events=st.lists(any_events | json_values, max_size=6), ended=st.booleans())
def test_no_json_breaks_the_decoder(events: list[Any], ended: bool) -> None:
    """Whatever a server sends, the answer ends in one Done or in a typed error."""
    answer = decoded(*events, *([end()] if ended else []))
    assert answer.error is not None or answer.done.stop_reason


@given(pieces=st.lists(st.tuples(st.sampled_from("tsc"), st.integers(0, 2), st.text(max_size=4)), max_size=12))
def test_any_interleaving_keeps_the_words(pieces: list[tuple[str, int, str]]) -> None:
    """Text, reasoning and arguments of several items, in any order, are each whole in the end."""
    events: list[Event] = []
    for kind, place, said in pieces:
        index = "tsc".index(kind) * 3 + place
        if kind == "t":
            events.append(text(said, index))
        elif kind == "s":
            events.append(event("reasoning_summary_text.delta", index, summary_index=0, delta=said))
        else:
            events.append(event("function_call_arguments.delta", index, delta=said))
    answer = decoded(*events, end("incomplete"))

    def joined(kind: str) -> str:
        return "".join(said for each, _, said in pieces if each == kind)

    assert (answer.text, answer.reasoning) == (joined("t"), joined("s"))
    for call in answer.calls:
        assert call.arguments in {"".join(s for k, p, s in pieces if k == "c" and p == place) for place in range(3)}
