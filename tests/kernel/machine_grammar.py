"""The events of a run as one sentence of a grammar, read from the log and from nothing else."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from gotato_py import Event, StopReason, UserMessage

from .machine_words import Entry

FREE = ("extension_failed", "session_compacted", "context_built", "model_retry", "rate_limits")
"""What may come anywhere in a run."""


def torn_runs(log: Sequence[Entry]) -> set[str]:
    """The runs in which an interrupt may have come while an event was made, which is then lost."""
    torn: set[str] = set()
    run_id = ""
    for kind, value, _ in log:
        if kind == "begin_run":
            run_id = value
        elif kind == "interrupt" and value in ("clock", "line"):
            torn.add(run_id)
    return torn


def events(log: Sequence[Entry], known: set[str], *, closed: bool, killed: Collection[str] = ()) -> list[str]:
    """Each run's events are one sentence of the grammar; with `closed`, the last one is finished, too. Runs that were
    found to be so are added to `known`, and not read again."""
    problems: list[str] = []
    runs: dict[str, list[Event]] = {}
    for kind, value, _ in log:
        if kind == "begin_run":
            runs.setdefault(value, [])
        elif kind == "event" and value.run_id not in known:
            runs.setdefault(value.run_id, []).append(value)
            if " at 0x" in json.dumps(value.to_dict(), allow_nan=False):
                problems.append(f"4: a memory address in {value}")
    torn = torn_runs(log)
    last = list(runs)[-1:]
    for run_id, sentence in runs.items():
        if run_id in known:
            continue
        finished = (closed or run_id not in last) and run_id not in killed
        read = torn_sentence if run_id in torn else Grammar().read
        complaints = read(sentence, finished=finished)
        problems += [f"4: {run_id}: {complaint}" for complaint in complaints]
        if finished and not complaints:
            known.add(run_id)
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
        self.user = ""
        self.tools: set[str] = set()

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
        if finished and (self.in_turn or self.message or self.tools):
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
        self.expect(self.in_turn and not self.message and not self.tools and event.elapsed >= 0, event)
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
            self.expect(not self.in_turn, event)
            self.user = event.message.id
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
        resumed = self.turn == 0  # a batch that waited goes on before the first turn
        self.expect((self.in_turn or resumed) and not self.message and event.key not in self.tools, event)
        self.tools.add(event.key)

    def tool_execution_update(self, event: Any) -> None:
        self.expect(event.key in self.tools, event)

    def tool_execution_end(self, event: Any) -> None:
        self.expect(event.key in self.tools and event.elapsed >= 0, event)
        self.tools.discard(event.key)

    def tool_result_committed(self, event: Any) -> None:
        self.expect(not self.message and event.message.result.key not in self.tools, event)

    def control_delivered(self, event: Any) -> None:
        self.expect(not self.in_turn and event.message_id == self.user, event)

    def other(self, event: Event) -> None:
        self.expect(event.kind in ("agent_start", "agent_end", *FREE), event)
