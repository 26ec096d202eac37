"""Scripts whose outcome can be foretold, and a second, naive reading of the contract that foretells it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

import gotato_testkit as kit
from gotato_py import (
    AssistantMessage,
    AuthenticationFailed,
    Done,
    ErrorCode,
    Message,
    Overloaded,
    StopReason,
    TextDelta,
    ToolCall,
    ToolCallReady,
    ToolMessage,
    Usage,
)

ATTEMPTS = 3


@dataclass(frozen=True)
class Call:
    """A call, and what its result has to be: a status, and the whole text where that is `ok`, else a part of it."""

    name: str
    arguments: str
    status: str
    text: str


CALLS = (
    Call("add", '{"a": 2, "b": 3}', "ok", "5"),
    Call("add", '{"a": 2.0, "b": 3}', "ok", "5"),
    Call("act", '{"do": "thing"}', "ok", "did thing"),
    Call("act", '{"do": "return False"}', "ok", "false"),
    Call("act", '{"do": "return set"}', "ok", "[1, 2, 3]"),
    Call("act", '{"do": "return nan"}', "ok", "null"),
    Call("act", '{"do": "raise ValueError"}', "failed", "ValueError: no such row"),
    Call("act", '{"do": "raise ToolError"}', "failed", "my own words"),
    Call("act", '{"do": "raise SystemExit"}', "failed", "SystemExit"),
    Call("act", '{"do": "return object"}', "failed", "did run"),
    Call("serch", "{}", "not_run", "act"),
    Call("add", '{"a": 2', "not_run", ""),
    Call("add", "[]", "not_run", ""),
    Call("add", '{"a": true, "b": 3}', "not_run", "a"),
    Call("add", '{"a": "2", "b": 3}', "not_run", "a"),
    Call("act", '{"do": "thing", "more": 1}', "not_run", "more"),
    Call("act", "", "not_run", "do"),
)


@dataclass(frozen=True)
class Answer:
    """One attempt of the model: text, calls, and how it ends."""

    text: str
    calls: tuple[Call, ...]
    end: str
    usage: Usage

    def step(self) -> kit.Step:
        """The events."""
        ready = [
            ToolCallReady(ToolCall(f"c{place % 2}", call.name, call.arguments)) for place, call in enumerate(self.calls)
        ]
        events: list[object] = [TextDelta(piece) for piece in (self.text[:2], self.text[2:]) if piece]
        events += ready
        match self.end:
            case "done":
                return [*events, Done(StopReason.TOOL_CALLS if ready else StopReason.END_TURN, self.usage)]
            case "cut":
                return [*events, Done(StopReason.MAX_TOKENS, self.usage)]
            case "broken":
                return events
            case "late":
                return [*events, Done(), TextDelta("late")]
            case "overloaded":
                return [*events, kit.Raise(Overloaded("busy"))]
            case _:
                return [*events, kit.Raise(AuthenticationFailed("no key"))]


answers = st.builds(
    Answer,
    st.sampled_from(["", "  ", "Hello", "zwölf"]),
    st.lists(st.sampled_from(CALLS), max_size=3).map(tuple),
    st.sampled_from(["done", "done", "done", "done", "cut", "broken", "late", "overloaded", "refused"]),
    st.builds(Usage, st.integers(0, 9), st.integers(0, 9)),
)

CODES = {
    "broken": ErrorCode.MODEL_PROTOCOL_FAILURE,
    "late": ErrorCode.MODEL_PROTOCOL_FAILURE,
    "overloaded": ErrorCode.OVERLOADED,
    "refused": ErrorCode.AUTHENTICATION_FAILED,
}


@dataclass
class Foretold:
    """What a run comes to."""

    messages: list[tuple[object, ...]] = field(default_factory=lambda: [("user", "do it")])
    status: str = ""
    error: str = ""
    text: str = ""
    usage: Usage = field(default_factory=Usage)
    requests: int = 0
    ran: int = 0


def foretell(script: Sequence[Answer]) -> Foretold:
    """Follows the script, and what the model says when it is used up."""
    now = Foretold()
    failures = silences = cuts = 0
    for answer in [*script, Answer("fine", (), "done", Usage(2, 1))]:
        now.requests += 1
        if answer.end in CODES:
            failures += 1
            if answer.end != "refused" and failures < ATTEMPTS:
                continue
            if answer.text.strip():
                now.messages.append(("assistant", answer.text, (), "error"))
                now.text = answer.text
            now.status, now.error = "failed", CODES[answer.end]
            return now
        now.usage = now.usage + answer.usage
        if not answer.calls and not answer.text.strip():
            if now.messages[-1][0] == "tool":
                now.status, now.text = "completed", ""
                return now
            silences += 1
            if silences == 2:
                now.status, now.error = "failed", ErrorCode.EMPTY_RESPONSE
                return now
            continue
        cut = answer.end == "cut"
        stop = "max_tokens" if cut else "tool_calls" if answer.calls else "end_turn"
        now.text = answer.text
        now.messages.append(("assistant", answer.text, tuple(call.name for call in answer.calls), stop))
        for call in answer.calls:
            now.messages.append(("tool", "not_run", "max_tokens") if cut else ("tool", call.status, call.text))
            now.ran += not cut and call.status != "not_run"
        if not answer.calls:
            now.status = "completed"
            return now
        failures = silences = 0
        cuts = cuts + 1 if cut else 0
        if cuts == 2:
            now.status, now.error = "limited", ErrorCode.LIMIT_EXCEEDED
            return now
    raise AssertionError("the last answer is one")


def told(messages: Sequence[Message], expected: Sequence[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """The transcript in the same words; a result that is not `ok` is only asked to hold the expected text."""
    said: list[tuple[object, ...]] = []
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            names = tuple(call.name for call in message.tool_calls)
            said.append(("assistant", message.text, names, str(message.stop_reason)))
        elif isinstance(message, ToolMessage):
            wanted = str(expected[index][2]) if index < len(expected) and len(expected[index]) == 3 else ""
            holds = message.result.status != "ok" and wanted in message.text
            said.append(("tool", str(message.result.status), wanted if holds else message.text))
        else:
            said.append(("user", message.text))
    return said


# Batches with gates and people


@dataclass(frozen=True)
class Gated:
    """A call, what its gate says each time it is asked (the last again and again), and what a person would answer."""

    gate: tuple[str, ...]
    approved: bool


gated = st.builds(
    Gated,
    st.lists(st.sampled_from(["allow", "block", "ask"]), min_size=1, max_size=3).map(tuple),
    st.booleans(),
)


def foretell_batch(calls: Sequence[Gated]) -> tuple[list[list[int]], list[str]]:
    """Which calls wait after each run, until none does, and the statuses of the results then.

    In each run the open calls are looked at in order. One that was denied is blocked; else its gate is asked, where an
    approval stands for a question. The first question ends the run; of those behind it, only who is asked is found out.
    """
    asked = [0] * len(calls)
    answers: dict[int, bool] = {}
    statuses: dict[int, str] = {}
    rounds: list[list[int]] = []
    while not rounds or rounds[-1]:
        waiting: list[int] = []
        for index, call in enumerate(calls):
            if index in statuses or (waiting and index in answers):
                continue
            says = "block"
            if answers.get(index, True):
                says = call.gate[min(asked[index], len(call.gate) - 1)]
                asked[index] += 1
            if says == "ask" and index not in answers:
                waiting.append(index)
            elif not waiting:
                statuses[index] = "blocked" if says == "block" else "ok"
        answers |= {index: calls[index].approved for index in waiting}
        rounds.append(waiting)
    return rounds, [statuses[index] for index in range(len(calls))]
