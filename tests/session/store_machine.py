"""Operations on sessions in a store, closed and opened again, beside a simple model of them."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gotato_py import (
    Busy,
    Compaction,
    InvalidArgument,
    InvalidState,
    LeaseLost,
    Message,
    NotFound,
    SessionBusy,
    ToolMessage,
    ToolResult,
    UserMessage,
    WaitingCall,
)
from gotato_session import Session
from gotato_testkit import SequentialIds
from gotato_testkit.contracts._store_suite import differing, picture

from .histories import answer, run_record, user
from .stores import STORES
from .twins import Twin, assert_equal

few = st.integers(0, 30)
run_ids = st.sampled_from([f"r{number}" for number in range(9)])
values = st.none() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)


class Stores(RuleBasedStateMachine):
    """Up to four sessions of a store, each beside its twin. A rule draws numbers, which choose among what there is."""

    store_name = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory(prefix="gotato-")
        self.make = STORES[self.store_name](Path(self.folder.name))
        self.store = self.make()
        self.ids = SequentialIds()
        self.store.ids = self.ids
        self.sessions: list[Session] = []
        self.twins: list[Twin] = []
        self.made = 0

    @initialize()
    def begin(self) -> None:
        """The first session."""
        self.sessions.append(self.store.create("s-0", metadata={"a": 0}))
        self.twins.append(Twin("s-0", metadata={"a": 0}))

    def teardown(self) -> None:
        """Lets go of everything."""
        for session in self.sessions:
            session.close()
        self.folder.cleanup()

    def chosen(self, number: int) -> tuple[Session, Twin]:
        """A session, mostly the first."""
        at = max(0, number - 15) % len(self.sessions)
        return self.sessions[at], self.twins[at]

    def new_id(self) -> str:
        """An id for a message."""
        self.made += 1
        return f"m{self.made}"

    def entry(self, twin: Twin, number: int) -> str:
        """An entry that is there, or one that is not."""
        return ["", "nobody", *twin.nodes][number % (len(twin.nodes) + 2)]

    def expect(self, error: type[Exception] | None) -> Any:
        """The context in which the operation is to raise that error, or none."""
        return pytest.raises(error) if error is not None else nullcontext()

    def closes(self, session: Session, twin: Twin, *, moved: bool = False) -> None:
        """The open calls were closed, by results whose ids are the session's own; where the session has moved, what
        came of pending calls is told again, at once or when it can be."""
        foretold = twin.closing
        fresh = list(session.history)[len(twin.history) :]
        for (key, status), message in zip(foretold, fresh, strict=False):
            assert isinstance(message, ToolMessage)
            assert (message.result.key, str(message.result.status)) == (key, status)
            twin.add(message)
        twin.place()
        for key in twin.untold if moved else ():
            there = [*list(session.history)[len(twin.history) :], *session._log.state.held.values()]
            again = next(each for each in there if each.metadata.get("tool_update") == key)
            assert isinstance(again, UserMessage)
            assert again.id not in twin.nodes
            twin.held.append(again)
        twin.place()

    # ---- messages and marks

    @rule(which=few, kind=st.sampled_from("uuaaar"), calls=st.integers(0, 3), taken=st.integers(0, 9))
    def append(self, which: int, kind: str, calls: int, taken: int) -> None:
        """A message goes to the tail if its id is new and it fits there."""
        session, twin = self.chosen(which)
        message_id = next(iter(twin.nodes), "m0") if taken == 0 else self.new_id()
        made: Message = user(message_id) if kind == "u" else answer(message_id, calls=calls)
        if kind == "r":
            made = ToolMessage(ToolResult("same", "ok", "seen", key=f"{message_id}:0"), id=message_id)
        error: type[Exception] | None = None
        if message_id in twin.nodes or kind == "r":
            error = InvalidArgument
        elif twin.open:
            error = InvalidState
        with self.expect(error):
            session.append(made)
            twin.add(made)

    @rule(which=few, call=few, status=st.sampled_from(["ok", "failed", "pending", "pending"]))
    def answer_open_call(self, which: int, call: int, status: str) -> None:
        """The result of an open call is taken."""
        session, twin = self.chosen(which)
        if twin.open:
            key = twin.open[call % len(twin.open)]
            message = ToolMessage(ToolResult("same", status, "told", key=key), id=self.new_id())
            session.append(message)
            twin.add(message)

    @rule(which=few, count=st.integers(1, 2))
    def calls_that_are_pending(self, which: int, count: int) -> None:
        """A batch whose tools say that work goes on elsewhere."""
        session, twin = self.chosen(which)
        if not twin.open:
            message_id = self.new_id()
            results = [ToolResult("same", "pending", "handle", key=f"{message_id}:{at}") for at in range(count)]
            twin.add(session.append(answer(message_id, calls=count)))
            for each in results:
                twin.add(session.append(ToolMessage(each)))

    @rule(which=few, call=few)
    def mark_started(self, which: int, call: int) -> None:
        """A mark is kept."""
        session, twin = self.chosen(which)
        key = [*twin.open, "elsewhere:0"][call % (len(twin.open) + 1)]
        session.mark_started(key)
        twin.started.add(key)

    @rule(which=few, count=st.integers(0, 2))
    def mark_waiting(self, which: int, count: int) -> None:
        """The record replaces the last one of that batch."""
        session, twin = self.chosen(which)
        waiting = tuple([WaitingCall(key, "same", "look") for key in twin.open[:count]])
        session.mark_waiting(waiting)
        twin.waiting_at[twin.anchor] = waiting

    @rule(which=few, through=few)
    def compact(self, which: int, through: int) -> None:
        """A summary takes the place of what comes before an end that splits nothing."""
        session, twin = self.chosen(which)
        context = twin.context
        if not context:
            return
        at = through % len(context)
        made = Compaction(user(self.new_id(), "so far"), context[at].id)
        splits = at + 1 < len(context) and isinstance(context[at + 1], ToolMessage)
        covers_open = bool(twin.open) and twin.anchor in [each.id for each in context[: at + 1]]
        with self.expect(InvalidArgument if splits or covers_open else None):
            session.replace(made)
            twin.nodes[made.summary.id] = (twin.leaf, session.compactions[-1])
            twin.leaf = made.summary.id

    @rule(which=few, call=few)
    def complete_call(self, which: int, call: int) -> None:
        """A pending call is completed once, in whichever branch its result is."""
        session, twin = self.chosen(which)
        if not twin.results:
            with self.expect(NotFound):
                session.complete_call("nobody:0", "done")
            return
        keys = [key for key, each in twin.results.items() if each.result.status == "pending"] or [*twin.results]
        key = keys[call % len(keys)]
        fits = twin.results[key].result.status == "pending" and key not in twin.settled
        with self.expect(None if fits else InvalidState):
            message = session.complete_call(key, "done")
            twin.settled.add(key)
            if twin.open or twin.running:
                twin.held.append(message)
            else:
                twin.add(message)

    # ---- places and values

    @rule(which=few, to=few)
    def branch(self, which: int, to: int) -> None:
        """The session goes on from an entry; the calls that are open there are closed."""
        session, twin = self.chosen(which)
        entry_id = self.entry(twin, to)
        error: type[Exception] | None = NotFound if entry_id == "nobody" else None
        with self.expect(Busy if twin.running else error):
            session.branch(entry_id)
            twin.leaf = entry_id
            self.closes(session, twin, moved=True)

    @rule(which=few, call=few, forks=st.booleans())
    def back_to_a_pending_call(self, which: int, call: int, forks: bool) -> None:
        """A branch or a fork begins where a call was pending that has been completed since."""
        _, twin = self.chosen(which)
        places = [each.id for each in twin.results.values() if each.result.status == "pending"]
        if places:
            self.complete_call(which, call)  # or it was before
            at = [*twin.nodes].index(places[call % len(places)]) + 2  # as `entry` counts them
            if not forks:
                self.branch(which, at)
            elif len(self.sessions) < 4:
                self.fork(which, at)

    @precondition(lambda self: len(self.sessions) < 4)
    @rule(which=few, at=st.none() | few)
    def fork(self, which: int, at: int | None) -> None:
        """A fork begins there, in a store that others look into, with the open calls closed."""
        session, twin = self.chosen(which)
        entry_id = None if at is None else self.entry(twin, at)
        with self.expect(NotFound if entry_id == "nobody" else None):
            made = session.fork(entry_id, id=f"s-{len(self.sessions)}")
            other = twin.fork(made.id, entry_id)
            self.closes(made, other, moved=True)
            self.sessions.append(made)
            self.twins.append(other)

    @rule(which=few, name=st.sampled_from("xy"), entry=st.none() | few)
    def label(self, which: int, name: str, entry: int | None) -> None:
        """A label names an entry that is there."""
        session, twin = self.chosen(which)
        entry_id = None if entry is None else self.entry(twin, entry)
        with self.expect(NotFound if entry_id == "nobody" else None):
            session.label(name, entry_id)
            twin.labels[name] = twin.leaf if entry_id is None else entry_id

    @rule(which=few, key=st.sampled_from("abc"), value=values)
    def set_value(self, which: int, key: str, value: object) -> None:
        """The last value counts."""
        session, twin = self.chosen(which)
        session.set(key, value)
        twin.metadata[key] = value

    # ---- runs

    @rule(which=few, run_id=run_ids)
    def begin_run(self, which: int, run_id: str) -> None:
        """One run at a time has the session; it begins with every call closed that nobody works on."""
        session, twin = self.chosen(which)
        assume(run_id not in twin.runs)  # ids of runs come once
        with self.expect(Busy if twin.running else None):
            session.begin_run(run_id)
            if twin.open:
                self.closes(session, twin)
            twin.running = run_id

    @rule(which=few, run_id=run_ids, tokens=st.integers(0, 9))
    def end_run(self, which: int, run_id: str, tokens: int) -> None:
        """The first record of a run is kept, and what was held enters, unless another run goes on."""
        session, twin = self.chosen(which)
        session.end_run(run_record(run_id, tokens))
        if run_id not in twin.runs:
            twin.runs[run_id] = run_record(run_id, tokens)
            if twin.running in ("", *twin.runs):
                twin.place()
        if twin.running == run_id:
            twin.running = ""

    # ---- other processes

    @rule(which=few, steal=st.booleans())
    def reopen(self, which: int, steal: bool) -> None:
        """It is closed and opened again, or taken from an owner who then writes nothing more."""
        session, twin = self.chosen(which)
        at = self.sessions.index(session)
        store = self.make()
        store.ids = self.ids
        if not steal:
            with pytest.raises(SessionBusy):
                store.open(twin.id)
            session.close()
        again = self.sessions[at] = store.open(twin.id, steal=steal)
        twin.running = ""
        self.closes(again, twin)
        if steal:
            with pytest.raises(LeaseLost):
                session.set("lost", 1)
            session.close()

    @rule(which=few)
    def look(self, which: int) -> None:
        """Another process reads what is there, and changes nothing."""
        session, twin = self.chosen(which)
        with self.make().open(twin.id, read_only=True) as reader:
            assert differing(picture(session), picture(reader)) == ""
        listed = {each.id: each for each in self.make().list()}
        assert {id: each.parent_id for id, each in listed.items()} == {each.id: each.parent_id for each in self.twins}
        assert all(listed[each.id].metadata in (None, each.metadata) for each in self.twins)

    @invariant()
    def everything_is_as_foretold(self) -> None:
        """All that can be read agrees."""
        for session, twin in zip(self.sessions, self.twins, strict=True):
            assert_equal(session, twin)
