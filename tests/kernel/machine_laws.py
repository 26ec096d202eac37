"""The six invariants of the contract, read from the log of a `World` and from nothing else."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from gotato_py import (
    AssistantMessage,
    Event,
    Message,
    ReasoningPart,
    StopReason,
    TextPart,
    ToolMessage,
    ToolResultStatus,
    UserMessage,
)

from .machine_world import Entry, World

UNFINISHED = "(unfinished)"
"""Scripts put this into reasoning that nothing closes."""
INCOMPLETE = (StopReason.MAX_TOKENS, StopReason.CANCELLED, StopReason.ERROR)


def check(world: World, *, closed: bool = True) -> None:
    """Asserts everything; with `closed`, also that nothing is left open at the tail or among the events."""
    messages = list(world.kept.messages)
    problems = [entry.value for entry in world.log if entry.kind == "wrong"]
    problems += pairing(messages, open_tail=not closed)
    problems += [problem for message in messages for problem in contents(message)]
    problems += identities(messages)
    problems += [problem for entry in world.log if entry.kind == "request" for problem in request(entry)]
    problems += commits(world.log)
    problems += effects(world.log)
    problems += events(world.log, closed=closed)
    problems += records(world.log, closed=closed)
    if closed and world.model.open:
        problems.append("a stream of the model was left open")
    assert not problems, "\n".join([*problems, "", *outline(world)])


def outline(world: World) -> list[str]:
    """The log in lines, for a failure."""
    lines = []
    for kind, value, size in world.log:
        said: object = value
        if kind == "event":
            said = json.dumps(value.to_dict())
        elif kind == "tool":
            said = f"{value.key} {value.name} {dict(value.arguments)}"
        elif kind == "request":
            said = [f"{each.role} {each.id}" for each in value]
        lines.append(f"{size:3} {kind}: {said}")
    return lines


# 1: pairing


def pairing(messages: Sequence[Message], *, open_tail: bool = False, in_order: bool = False) -> list[str]:
    """Each call has one result, right after its message; `in_order` asks for the order of the calls too."""
    problems: list[str] = []
    index = 0
    while index < len(messages):
        message = messages[index]
        index += 1
        if isinstance(message, ToolMessage):
            problems.append(f"1: the result {message.result.key} has no call before it")
        if not isinstance(message, AssistantMessage):
            continue
        results = []
        while index < len(messages) and isinstance(each := messages[index], ToolMessage):
            results.append(each.result)
            index += 1
        wanted = {f"{message.id}:{place}": call.id for place, call in enumerate(message.tool_calls)}
        got = [result.key for result in results]
        missing = [key for key in wanted if key not in got]
        if missing and not (open_tail and index == len(messages)):
            problems.append(f"1: no result for {missing}")
        problems += [f"1: {key} has {count} results" for key, count in Counter(got).items() if count > 1]
        problems += [f"1: the result {key} answers no call of {message.id}" for key in got if key not in wanted]
        if in_order and got != list(wanted):
            problems.append(f"1: the results {got} are not in the order of the calls")
        problems += [
            f"1: {result.key} names another call id" for result in results if wanted.get(result.key) != result.call_id
        ]
    return problems


def request(entry: Entry) -> list[str]:
    """A request is valid history, as long as the transcript, and ends where a model may answer."""
    messages: tuple[Message, ...] = entry.value
    problems = pairing(messages, in_order=True)
    problems += [problem for message in messages for problem in contents(message)]
    last = messages[-1] if messages else None
    if last is None or (isinstance(last, AssistantMessage) and last.stop_reason is not StopReason.PAUSE):
        problems.append("1: a request ends with an answer, or holds nothing")
    if len(messages) - entry.size not in (0, 1):
        problems.append(f"1: a request of {len(messages)} messages, of a transcript of {entry.size}")
    return problems


# 2: contents


def contents(message: Message) -> list[str]:
    """No answer is empty; a cut one has no calls and no unfinished reasoning."""
    if not isinstance(message, AssistantMessage):
        return []
    problems = []
    said = [part for part in message.parts if not isinstance(part, ReasoningPart)]
    if not message.tool_calls and not any(not isinstance(part, TextPart) or part.text.strip() for part in said):
        problems.append(f"2: {message.id} is empty")
    if message.stop_reason in (StopReason.CANCELLED, StopReason.ERROR):
        if message.tool_calls:
            problems.append(f"2: the interrupted {message.id} has calls")
        if any(UNFINISHED in part.text for part in message.parts if isinstance(part, ReasoningPart)):
            problems.append(f"2: the interrupted {message.id} keeps unfinished reasoning")
    return problems


def identities(messages: Sequence[Message]) -> list[str]:
    """Every committed message has an id of its own."""
    counts = Counter(message.id for message in messages)
    return [f"the id {ident!r} stands {count} times" for ident, count in counts.items() if count > 1 or not ident]


# 3: the order of commits


def commits(log: Sequence[Entry]) -> list[str]:
    """What an event or a tool relies on was committed before it; a result before anything else starts."""
    problems: list[str] = []
    appended: dict[str, Message] = {}
    calls: set[str] = set()
    marked: set[str] = set()
    ran: dict[str, bool] = {}
    results: set[str] = set()
    for kind, value, _ in log:
        if kind == "append":
            appended[value.id] = value
            if isinstance(value, AssistantMessage):
                calls |= {f"{value.id}:{index}" for index in range(len(value.tool_calls))}
            elif isinstance(value, ToolMessage):
                results.add(value.result.key)
        elif kind == "started":
            marked.add(value)
            if value not in calls:
                problems.append(f"3: {value} is marked before its message is there")
        elif kind == "tool":
            if value.key not in calls or value.key not in marked:
                problems.append(f"3: {value.key} ran before its message or its mark was there")
            behind = [key for key in ran if key not in results]
            if behind:
                problems.append(f"3: {value.key} started before the results of {behind}")
            ran[value.key] = True
        elif kind == "event":
            problems += _announced(value, appended, marked)
    return problems


def _announced(event: Any, appended: dict[str, Message], marked: set[str]) -> list[str]:
    if event.kind in ("message_end", "tool_result_committed"):
        kept = appended.get(event.message.id)
        return [] if kept == event.message else [f"3: {event.kind} of {event.message.id} before its commit"]
    if event.kind == "tool_execution_start" and event.key not in marked:
        return [f"3: {event.key} is announced before it is marked"]
    return []


# 6: effects


def effects(log: Sequence[Entry]) -> list[str]:
    """No call runs twice, none of an incomplete message; and no result says what is not so."""
    problems: list[str] = []
    ran = Counter(entry.value.key for entry in log if entry.kind == "tool")
    marked = Counter(entry.value for entry in log if entry.kind == "started")
    problems += [f"6: {key} ran {count} times" for key, count in ran.items() if count > 1]
    problems += [f"6: {key} was marked {count} times" for key, count in marked.items() if count > 1]
    for kind, value, _ in log:
        if kind != "append":
            continue
        if isinstance(value, AssistantMessage) and value.stop_reason in INCOMPLETE:
            keys = [f"{value.id}:{index}" for index in range(len(value.tool_calls))]
            problems += [f"6: {key} of an incomplete message ran" for key in keys if ran[key]]
        if isinstance(value, ToolMessage):
            result = value.result
            if result.executed is True and not ran[result.key]:
                problems.append(f"6: {result.key} is said to have run")
            if result.executed is False and (ran[result.key] or marked[result.key]):
                problems.append(f"6: {result.key} ran or may have run, and is said not to have")
            if result.status in (ToolResultStatus.CANCELLED, ToolResultStatus.TIMED_OUT) and not marked[result.key]:
                problems.append(f"6: {result.key} never started, and its effect is said to be unknown")
            if result.executed is not True and not result.text.strip():
                problems.append(f"6: {result.key} does not say what became of it")
    return problems


# 4: events


def events(log: Sequence[Entry], *, closed: bool) -> list[str]:
    """Each run's events are one sentence of the grammar; with `closed`, a finished one."""
    problems: list[str] = []
    runs: dict[str, list[Event]] = {}
    torn: set[str] = set()
    for kind, value, _ in log:
        if kind == "begin_run":
            runs.setdefault(value, [])
        elif kind == "interrupt":
            if value == "clock" and runs:
                torn.add(list(runs)[-1])
        elif kind == "event":
            runs.setdefault(value.run_id, []).append(value)
            text = json.dumps(value.to_dict(), allow_nan=False)
            if " at 0x" in text:
                problems.append(f"4: a memory address in {text}")
    last = list(runs)[-1:]
    for run_id, sentence in runs.items():
        finished = closed or run_id not in last
        complaints = (
            torn_sentence(sentence, finished=finished)
            if run_id in torn
            else Grammar().read(sentence, finished=finished)
        )
        problems += [f"4: {run_id}: {complaint}" for complaint in complaints]
    return problems


def torn_sentence(sentence: Sequence[Event], *, finished: bool) -> list[str]:
    """What may not happen to a run even where an interrupt came while an event was made, which is then lost."""
    kinds = [event.kind for event in sentence]
    numbers = [event.sequence for event in sentence]
    problems = [
        f"{kind} came {kinds.count(kind)} times" for kind in ("agent_start", "agent_end") if kinds.count(kind) > 1
    ]
    if finished and "agent_start" in kinds and kinds[-1] != "agent_end":
        problems.append("does not end with agent_end")
    if numbers != sorted(set(numbers)):
        problems.append("is numbered backwards")
    return problems


class Grammar:
    """Reads the events of one run."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.turn = 0
        self.in_turn = False
        self.message = ""
        self.text = ""
        self.tool = ""

    def read(self, sentence: Sequence[Event], *, finished: bool) -> list[str]:
        """What is wrong with the sentence."""
        if not sentence:
            return []
        kinds = [event.kind for event in sentence]
        first = sentence[0].sequence
        if kinds[0] != "agent_start" or kinds.count("agent_start") != 1:
            self.problems.append("does not begin with its one agent_start")
        if kinds.count("agent_end") > 1 or "agent_end" in kinds[:-1]:
            self.problems.append("goes on after agent_end")
        if finished and kinds[-1] != "agent_end":
            self.problems.append("has no agent_end")
        if first not in (0, 1) or [event.sequence for event in sentence] != [first + n for n in range(len(sentence))]:
            self.problems.append("is not numbered one by one")
        for event in sentence:
            if event.kind == "turn_start":
                self.turn += 1
            if event.turn != self.turn:
                self.problems.append(f"{event.kind} {event.sequence} is of turn {event.turn}, not {self.turn}")
            getattr(self, event.kind, self.other)(event)
        if finished and (self.in_turn or self.message or self.tool):
            self.problems.append("leaves a turn, a message or a tool open")
        return self.problems

    def expect(self, condition: object, event: Event) -> None:
        """Complains about an event in the wrong place."""
        if not condition:
            self.problems.append(f"{event.kind} {event.sequence} in the wrong place")

    def turn_start(self, event: Any) -> None:
        self.expect(not self.in_turn, event)
        self.in_turn = True

    def turn_end(self, event: Any) -> None:
        self.expect(self.in_turn and not self.message and not self.tool and event.elapsed >= 0, event)
        self.in_turn = False

    def message_start(self, event: Any) -> None:
        self.expect(self.in_turn and not self.message and event.message_id, event)
        self.message, self.text = event.message_id, ""

    def message_update(self, event: Any) -> None:
        self.expect(self.message, event)
        self.text += event.text

    def reasoning_update(self, event: Any) -> None:
        self.expect(self.message, event)

    def tool_call_update(self, event: Any) -> None:
        self.expect(self.message, event)

    def message_end(self, event: Any) -> None:
        if isinstance(event.message, UserMessage):
            self.expect(not self.message and not self.tool, event)
            return
        self.expect(self.message == event.message.id, event)
        behind = event.message.stop_reason is StopReason.CANCELLED and event.message.text.startswith(self.text)
        if event.message.text != self.text and not behind:  # Ctrl-C may come between a piece and its update
            self.problems.append(f"the updates of {self.message} are not its text")
        self.message = ""

    def message_discarded(self, event: Any) -> None:
        self.expect(self.message == event.message_id, event)
        self.message = ""

    def tool_execution_start(self, event: Any) -> None:
        self.expect(self.in_turn and not self.tool and not self.message, event)
        self.tool = event.key

    def tool_execution_update(self, event: Any) -> None:
        self.expect(self.tool == event.key, event)

    def tool_execution_end(self, event: Any) -> None:
        self.expect(self.tool == event.key and event.elapsed >= 0, event)
        self.tool = ""

    def tool_result_committed(self, event: Any) -> None:
        self.expect(not self.message and not self.tool, event)

    def other(self, event: Event) -> None:
        known = ("agent_start", "agent_end", "context_built", "model_retry", "rate_limits", "extension_failed")
        self.expect(event.kind in known, event)


def records(log: Sequence[Entry], *, closed: bool) -> list[str]:
    """The transcript is told of the end of every run that it was told the beginning of, once."""
    begun = [entry.value for entry in log if entry.kind == "begin_run"]
    ended = Counter(entry.value.run_id for entry in log if entry.kind == "end_run")
    problems = []
    if not any(entry.kind == "interrupt" for entry in log):  # one may come just before begin_run or just after end_run
        problems += [f"end_run came {count} times for {run_id}" for run_id, count in ended.items() if count > 1]
        problems += [f"end_run came for {run_id}, which never began" for run_id in ended if run_id not in begun]
    missing = [run_id for run_id in begun if not ended[run_id]]
    return problems + ([f"end_run never came for {missing}"] if missing and (closed or len(missing) > 1) else [])
