"""A session: what happened, in order. A transcript for agents, and an observer that keeps their events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import NoReturn, Protocol, Self, TypeVar

from gotato_py import (
    Clock,
    Compaction,
    Event,
    Message,
    RunRecord,
    StoreFailure,
    SystemClock,
    ToolMessage,
    ToolResult,
    UserMessage,
    WaitingCall,
)

from . import _rules as rules
from ._arguments import MESSAGE_TYPES, a_text, new_session_id, random_ids, time_of, with_fields, wrong
from ._closing import ELSEWHERE, LOST, closing_entries
from ._head import fork_head
from ._holder import Holder
from ._json import json_object, shallow_text
from ._log import Build, Log
from ._reading import SessionView
from ._recorder import DEFAULT_MAX_BYTES, Recorder
from ._settlements import settled_message
from ._state import State
from .journal import Journal, JSONObject

M = TypeVar("M", bound=Message)


class Home(Protocol):
    """Where a session's forks are kept beside it."""

    def keep(self, head: JSONObject, owner: str | None, source: Journal | None = None) -> Journal:
        """A new journal that holds the head alone, open for writing, of what this `source` has read."""
        ...


class Session(SessionView):
    """What happened, in order: messages, marks of work in progress, compactions, runs, branches, labels, events.

    It is a transcript, `Agent(model, transcript=session)`, for one run at a time: a second one gets `Busy`. As an
    extension, `extensions=[session]`, it keeps the run's events too, up to 1 MiB of JSON; `record` sets other bounds.
    Made like this it is kept in memory; a store (`FileStore`, `SQLiteStore`, …) makes and opens those that last. `id`
    is made where none is given; `metadata` is JSON data, kept as a copy; `clock` says when things happened; `ids(kind)`
    makes ids, kind "session" or "message". Raises `InvalidArgument` for what these cannot be.

    Any thread may read and write. Reading waits for nobody; writing to a store takes turns, and a signal handler that
    comes into the middle of a commit of its own thread cannot write. After `close`, read-only and in a forked child,
    writing raises `InvalidState` or `ForkedProcess`. A commit that fails is a `StoreFailure` and changes nothing.
    """

    __slots__ = ("_clock", "_holder", "_home", "_ids", "_recorder", "_unsaved")

    def __init__(
        self,
        id: str | None = None,
        *,
        metadata: Mapping[str, object] | None = None,
        clock: Clock | None = None,
        ids: Callable[[str], str] | None = None,
    ) -> None:
        if ids is not None and not callable(ids):
            raise wrong("Session.ids", "a callable ids(kind) -> str", ids)
        if clock is not None and not callable(getattr(clock, "time", None)):
            raise wrong("Session.clock", "a Clock", clock)
        ids, clock = ids or random_ids, clock or SystemClock()
        made = new_session_id("Session", id, ids)
        values = json_object("Session.metadata", metadata, shallow_text)
        self._begin(made, "", Log(f"the session {made}", partial(State, values), clock), clock, ids, None)

    def _begin(
        self, id: str, parent_id: str, log: Log, clock: Clock, ids: Callable[[str], str], home: Home | None
    ) -> None:
        self._id, self._parent_id, self._log, self._clock, self._ids, self._home = id, parent_id, log, clock, ids, home
        self._holder = Holder(f"the session {id}")
        self._unsaved: dict[str, Build] = {}  # results of tools that did run, and ends of runs, that were not stored
        self._recorder = Recorder(log, None, DEFAULT_MAX_BYTES)

    @classmethod
    def _of(
        cls, id: str, parent_id: str, log: Log, clock: Clock, ids: Callable[[str], str], home: Home | None
    ) -> Session:
        """A session of a log that there is already."""
        made = cls.__new__(cls)
        made._begin(id, parent_id, log, clock, ids, home)
        return made

    def __repr__(self) -> str:
        said = ", closed" if self._log.closed else ", read-only" if self.read_only else ""
        return f"Session({self._id!r}, {len(self.history)} messages{said})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"the session {self._id} cannot be copied or pickled: there is one of it, and one writer")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # ---- messages and marks

    def append(self, message: M) -> M:
        """Commits the message and returns it with its id.

        Raises `InvalidArgument` for an id that the session has and for a result without an open call, `InvalidState`
        for any other message while a call is open. After a `StoreFailure` the result of a tool that did run is stored
        before the next commit, or by `flush`; all else is not kept.
        """
        if not isinstance(message, MESSAGE_TYPES):
            raise wrong("Session.append: message", "a message", message)
        kept = message if message.id else with_fields(message, id=self._new_id())
        if isinstance(kept, ToolMessage) and kept.result.key:
            self._append_result(kept)
        else:
            self._commit("Session.append", partial(rules.message_entry, kept))
        return kept

    def _append_result(self, message: ToolMessage) -> None:
        key = message.result.key
        unsaved = self._unsaved.get(key)  # the same result, which could not be stored then
        try:
            self._unsaved.pop(key, None)
            self._commit("Session.append", partial(rules.message_entry, message))
        except BaseException as error:
            if isinstance(error, StoreFailure) and message.result.executed:
                unsaved = partial(rules.late_result, message)
            self._unsaved.update({key: unsaved} if unsaved else {})
            raise

    def mark_started(self, key: str) -> None:
        """Records, before a tool runs, that it is about to."""
        self._commit("Session.mark_started", partial(rules.started_entry, a_text("Session.mark_started: key", key)))

    def mark_waiting(self, calls: Sequence[WaitingCall]) -> None:
        """Records all calls that wait in the batch at the tail; replaces the last such record, () clears it."""
        if isinstance(calls, str) or not isinstance(calls, Sequence):
            raise wrong("Session.mark_waiting: calls", "a sequence of WaitingCall", calls)
        for index, call in enumerate(calls):
            if not isinstance(call, WaitingCall):
                raise wrong(f"Session.mark_waiting: calls[{index}]", "a WaitingCall", call)
        self._commit("Session.mark_waiting", partial(rules.waiting_entry, tuple(calls)))

    def replace(self, compaction: Compaction) -> bool:
        """Puts a summary in the place of what it covers in `messages`, and returns True; `history` keeps it all.

        The kept summary has the id of the last user message that it covers in `metadata["last_user"]`. Raises
        `InvalidArgument`, and changes nothing, for an empty summary, a `through` that is not in `messages`, a cut
        between a call and its results, a cut after a call that is open, and a summary with an id that is taken.
        """
        if isinstance(compaction, Compaction) and not compaction.summary.id:
            compaction = with_fields(compaction, summary=with_fields(compaction.summary, id=self._new_id()))
        self._commit("Session.replace", partial(rules.compaction_entry, compaction))
        return True

    def complete_call(self, key: str, result: ToolResult | str) -> UserMessage:
        """Tells what came of a call whose tool answered `pending`, once, and returns the user message that says it.

        The pending result stays. While a run has the session, or a call is open, the message is stored at once
        and enters `messages` at the run's end. Raises `NotFound` for a call without a result, `InvalidState` for one
        that is not pending or was completed before.
        """
        told = settled_message(self._log.state, a_text("Session.complete_call: key", key), result)
        message = with_fields(told, id=self._new_id())
        self._commit("Session.complete_call", partial(rules.settlement_entries, key, message, self._holder))
        return message

    # ---- places and values

    def branch(self, entry_id: str) -> None:
        """Goes on from that entry: what came after it stays in the tree, and `branch` leads back to it.

        "" is before the first entry. Calls that are open there get the answers that they have elsewhere in the session;
        what was started without one is *effect unknown*, what never began `not_run`; a batch that still waits goes on
        waiting. What came of its pending calls is told there too. Raises `NotFound` for an unknown id, `Busy` in a run.
        """
        self._log.check_writable("Session.branch")
        check = partial(rules.check_place, entry_id, self._log.state, "Session.branch")
        with self._holder.kept_from_runs("Session.branch", check):
            self._commit("Session.branch", partial(self._branch_entries, entry_id))

    def _branch_entries(self, entry_id: str, state: State, time: float) -> rules.Entries:
        rules.check_place(entry_id, state, "Session.branch")
        return closing_entries(state, time, self._new_id, branch=entry_id, moved=True)

    def fork(self, at: str | None = None, *, id: str | None = None, owner: str | None = None) -> Session:
        """A new session that begins with everything that is committed here, and goes on apart, from the entry `at`
        (where this one stands, if left out). It is kept where this one is; `owner` is its writer's name.

        Calls that are open there are closed in the fork only, and nothing waits there. Its runs, usage and events are
        its own; what is common is shared. Works during a run and in a session that is read-only. Raises `NotFound` for
        an entry that is not there, and where the session itself was removed; `InvalidState` for an id that is taken.
        """
        made = new_session_id("Session.fork", id, self._ids)
        if at is not None and not isinstance(at, str):
            raise wrong("Session.fork: at", "a str or None", at)
        state, anew = self._log.prefix(at)
        if not self.read_only:
            self._log.sync("Session.fork")  # what is common has to last as long as the fork
        head = fork_head(made, self._id, time_of(self._clock), at, state)
        journal = None if self._home is None else self._home.keep(head, owner, self._log.source)
        log = Log(f"the session {made}", anew, self._clock, journal, state=state)
        forked = Session._of(made, self._id, log, self._clock, self._ids, self._home)
        try:
            forked._close_calls(ELSEWHERE, moved=True)
        except BaseException:
            forked.close()
            raise
        return forked

    def set(self, key: str, value: object) -> None:
        """Sets a value of the metadata: JSON data, at most 200 levels deep, of which it keeps a copy."""
        name, text = a_text("Session.set: key", key), shallow_text("Session.set: value", value)
        self._commit("Session.set", partial(rules.metadata_entry, name, text))

    def label(self, name: str, entry_id: str | None = None) -> None:
        """Names a place: the entry of a message or summary by its id, the newest one of the branch if left out.

        Raises `NotFound` for an id that no entry has. "" is the place before the first entry.
        """
        if entry_id is not None and not isinstance(entry_id, str):
            raise wrong("Session.label: entry_id", "a str or None", entry_id)
        self._commit("Session.label", partial(rules.label_entry, a_text("Session.label: name", name), entry_id))

    # ---- runs

    def begin_run(self, run_id: str) -> None:
        """Takes the session for a run; calls that nobody works on are closed. Raises `Busy` while another has it."""
        hold = self._holder.hold(run_id, self._clock.time())
        self._log.check_writable("Session.begin_run")
        try:
            self._holder.take(hold, "Session.begin_run")
            if self._unsaved or self._log.state.path.open or self._log.state.held:
                self._close_calls()
        except BaseException:  # an interrupt, or another has it: the run will not begin
            hold.let_go()
            raise

    def end_run(self, record: RunRecord) -> None:
        """Records a run that has ended, once, and lets the session go if that run has it."""
        if not isinstance(record, RunRecord):
            raise wrong("Session.end_run: record", "a RunRecord", record)
        ended = partial(rules.run_entries, record, self._holder)
        try:
            self._commit("Session.end_run", ended)
            self._log.sync("Session.end_run")
        except StoreFailure:
            self._unsaved[f"run {record.run_id}"] = ended  # what it cost is told later
            raise
        finally:
            self._holder.end(record.run_id)

    def observe(self, event: Event) -> None:
        """Keeps an event, while there is room for it."""
        self._recorder.observe(event)

    # ---- its end

    def flush(self) -> None:
        """Stores what could not be, and makes all durable as far as the store promises. Raises `StoreFailure`."""
        self._store_unsaved()
        self._log.sync("Session.flush")

    def close(self) -> None:
        """Ends the writing and lets the session go; a run that has it fails at its next commit. Does nothing twice.
        Raises `StoreFailure` if the result of a tool could not be stored even now; it is closed all the same."""
        try:
            if self._unsaved and not self._log.closed:
                self._store_unsaved()
        finally:
            self._log.close()

    def _close_calls(self, why: str = LOST, *, moved: bool = False) -> None:
        """Closes the open calls that nobody works on."""
        self._commit("Session", lambda state, time: closing_entries(state, time, self._new_id, moved=moved, why=why))

    def _store_unsaved(self) -> None:
        for key, build in list(self._unsaved.items()):
            self._log.commit("Session.flush", build)
            self._unsaved.pop(key, None)

    def _commit(self, operation: str, build: Build) -> None:
        if self._unsaved:
            self._store_unsaved()
        self._log.commit(operation, build)

    def _new_id(self) -> str:
        return a_text("Session.ids: ids('message')", self._ids("message"))
