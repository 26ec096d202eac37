"""Any sequence of operations on a session equals a simple model of it."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gotato_py import (
    AssistantMessage,
    Busy,
    Compaction,
    InvalidArgument,
    InvalidState,
    Message,
    NotFound,
    RunRecord,
    ToolMessage,
    TurnStart,
    Usage,
    WaitingCall,
    check_messages,
)
from gotato_session import Session, record

from .histories import answer, result, run_record, user

ids = st.sampled_from([f"m{number}" for number in range(8)])
keys = st.builds("{}:{}".format, ids, st.integers(0, 2)) | st.just("")
values = st.none() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)
EVENT = TurnStart("a", "r", 1, 1, 0.0)
ROOM = 3  # events


class Sessions(RuleBasedStateMachine):
    """A session beside lists and dicts that say what it should hold."""

    def __init__(self) -> None:
        super().__init__()
        self.context: list[Message] = []
        self.history: list[Message] = []
        self.ids: list[str] = []
        self.started: set[str] = set()
        self.waiting: tuple[WaitingCall, ...] = ()
        self.compactions: list[tuple[str, str]] = []
        self.runs: dict[str, RunRecord] = {}
        self.holder = ""
        self.labels: dict[str, str] = {}
        self.events = 0
        self.room = ROOM
        self.closed = False

    @initialize(metadata=st.dictionaries(st.sampled_from("ab"), values, max_size=2))
    def begin(self, metadata: dict[str, object]) -> None:
        """A session with some metadata."""
        self.session = Session("s-1", metadata=metadata)
        self.metadata: dict[str, Any] = dict(metadata)
        size = len(json.dumps(EVENT.to_dict(), separators=(",", ":")))
        self.recorder = record(self.session, max_bytes=ROOM * size)

    def expect(self, error: type[Exception] | None) -> Any:
        """The context in which the operation is to raise that error, or none; a closed session raises its own first."""
        error = InvalidState if self.closed else error
        return pytest.raises(error) if error is not None else nullcontext()

    @property
    def open(self) -> bool:
        """Whether a call is open."""
        return bool(check_messages(self.context))

    @rule(
        kind=st.sampled_from(["user", "answer", "result", "result"]), message_id=ids, key=keys, calls=st.integers(0, 3)
    )
    def append(self, kind: str, message_id: str, key: str, calls: int) -> None:
        """A message goes to the tail if its id is new and it fits there, as `check_messages` sees it."""
        made: Message = user(message_id) if kind == "user" else answer(message_id, calls=calls)
        made = result(message_id, key) if kind == "result" else made
        error: type[Exception] | None = None
        if message_id in self.ids:
            error = InvalidArgument
        elif isinstance(made, ToolMessage):
            stray = [problem for problem in check_messages([*self.context, made]) if "no result" not in problem.text]
            error = InvalidArgument if stray else None
        elif self.open:
            error = InvalidState
        with self.expect(error):
            assert self.session.append(made) is made
            self.context.append(made)
            self.history.append(made)
            self.ids.append(message_id)
            self.waiting = self.waiting if kind == "result" else ()

    @rule(data=st.data())
    def answer_open_call(self, data: st.DataObject) -> None:
        """The result of an open call is taken, so that histories go on."""
        named = {message.result.key for message in self.context if isinstance(message, ToolMessage)}
        last = next((each for each in reversed(self.context) if not isinstance(each, ToolMessage)), None)
        calls = range(len(getattr(last, "tool_calls", ())))
        free = [f"{last.id}:{index}" for index in calls if last is not None and f"{last.id}:{index}" not in named]
        if self.open and free:
            self.append("result", f"t{len(self.ids)}", data.draw(st.sampled_from(free)), 0)

    @rule(key=keys.filter(bool))
    def mark_started(self, key: str) -> None:
        """A mark is kept."""
        with self.expect(None):
            self.session.mark_started(key)
            self.started.add(key)

    @rule(calls=st.lists(keys, max_size=2))
    def mark_waiting(self, calls: list[str]) -> None:
        """The record replaces the last one."""
        with self.expect(None):
            self.session.mark_waiting([WaitingCall(key) for key in calls])
            self.waiting = tuple([WaitingCall(key) for key in calls])

    @rule(position=st.integers(0, 9), through=ids, summary_id=ids, text=st.sampled_from(["so far", "so far", " "]))
    def compact(self, position: int, through: str, summary_id: str, text: str) -> None:
        """A summary replaces the messages up to one where no call is open and no result is cut off."""
        if position < len(self.context):
            through = self.context[position].id
        at = next((index for index, message in enumerate(self.context) if message.id == through), None)
        bad = at is None or summary_id in self.ids or not text.strip() or bool(check_messages(self.context[: at + 1]))
        made = Compaction(user(summary_id, text), through)
        with self.expect(InvalidArgument if bad else None):
            assert self.session.replace(made)
            assert at is not None
            self.context[: at + 1] = [made.summary]
            self.ids.append(summary_id)
            self.compactions.append((summary_id, through))

    @rule(key=st.sampled_from("abc"), value=values)
    def set_value(self, key: str, value: object) -> None:
        """The last value counts."""
        with self.expect(None):
            self.session.set(key, value)
            self.metadata[key] = value

    @rule(name=st.sampled_from("xy"), entry_id=st.none() | st.just("") | ids)
    def label(self, name: str, entry_id: str | None) -> None:
        """A label names an entry that is there."""
        with self.expect(NotFound if entry_id and entry_id not in self.ids else None):
            self.session.label(name, entry_id)
            self.labels[name] = entry_id if entry_id is not None else self.ids[-1] if self.ids else ""

    @rule(run_id=st.sampled_from(["r1", "r2"]))
    def begin_run(self, run_id: str) -> None:
        """One run at a time has the session; it begins with what is open closed, but for what waits."""
        foretold = [] if self.holder or self.closed else self.closings()
        before = len(self.history)
        with self.expect(Busy if self.holder else None):
            self.session.begin_run(run_id)
            self.holder = run_id
        made = self.session.history[before:]
        results = [each.result for each in made if isinstance(each, ToolMessage)]
        assert [(each.key, each.status) for each in results] == foretold
        self.context += made
        self.history += made
        self.ids += [each.id for each in made]

    def left(self) -> list[str]:
        """The keys of the calls at the tail that have no result."""
        at = max((at for at, each in enumerate(self.context) if not isinstance(each, ToolMessage)), default=-1)
        last, behind = self.context[at] if self.context else None, self.context[at + 1 :]
        if not self.open or not isinstance(last, AssistantMessage):
            return []
        given = [each.result.key for each in behind if isinstance(each, ToolMessage)]
        keys = [f"{last.id}:{index}" for index in range(len(last.tool_calls))]
        return [key for key in keys if key not in given][given.count("") :]

    def closings(self) -> list[tuple[str, str]]:
        """The key and the status of each result that the open calls get, where no call of theirs waits."""
        left = self.left()
        waits = any(call.key in left and call.key not in self.started for call in self.waiting)
        statuses = [(key, "cancelled" if key in self.started else "" if waits else "not_run") for key in left]
        return [(key, status) for key, status in statuses if status]

    @rule(run_id=st.sampled_from(["r1", "r2", "r3"]), tokens=st.integers(0, 9))
    def end_run(self, run_id: str, tokens: int) -> None:
        """The first record of a run is kept, whether it began or not."""
        with self.expect(None):
            self.session.end_run(run_record(run_id, tokens))
            self.runs.setdefault(run_id, run_record(run_id, tokens))
        self.holder = "" if self.holder == run_id else self.holder

    @rule()
    def observe(self) -> None:
        """Events are kept while there is room; what does not fit is not even tried."""
        fits = self.room > 0
        self.room -= fits
        with self.expect(None) if fits else nullcontext():
            self.recorder.observe(EVENT)
            self.events += fits

    @rule(really=st.sampled_from([False] * 19 + [True]))
    def close(self, really: bool) -> None:
        """A closed session stays as it is."""
        if really:
            self.session.close()
            self.closed = True

    @invariant()
    def everything_is_as_foretold(self) -> None:
        """All that can be read agrees."""
        if not hasattr(self, "session"):
            return
        session = self.session
        assert session.messages == self.context
        assert [message.id for message in session.messages] == [message.id for message in self.context]
        assert session.history == self.history
        assert set(session.started) == self.started
        assert session.waiting == self.waiting
        assert [(each.summary.id, each.through) for each in session.compactions] == self.compactions
        assert session.runs == tuple(self.runs.values())
        assert session.usage == sum((each.usage for each in self.runs.values()), Usage())
        assert session.metadata == self.metadata
        assert session.labels == self.labels
        assert session.events == (EVENT.to_dict(),) * self.events
        told = [problem.rule for problem in session.check()]
        others = check_messages(self.context, [WaitingCall(key) for key in self.left()])
        assert sorted(told) == sorted([problem.rule for problem in others] + [1] * len(self.closings()))


TestSessions = Sessions.TestCase
