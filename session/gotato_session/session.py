"""A session: what happened, in order. A transcript for agents, and an observer that keeps their events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, NoReturn, Self, TypeVar

from gotato_py import (
    Busy,
    Clock,
    Compaction,
    Event,
    Message,
    Problem,
    RunRecord,
    SystemClock,
    Usage,
    WaitingCall,
    check_messages,
)

from . import _rules as rules
from ._json import json_object, json_text, json_value
from ._log import Log
from ._recorder import DEFAULT_MAX_BYTES, Recorder
from ._rules import a_text, with_fields, wrong

M = TypeVar("M", bound=Message)


class Session:
    """What happened, in order: messages, marks of work in progress, compactions, runs, labels, events.

    It is a transcript, `Agent(model, transcript=session)`, for one run at a time: a second one gets `Busy`. As an
    extension, `extensions=[session]`, it keeps the run's events too, up to 1 MiB of JSON; `record` sets other bounds.

    `id` is made where none is given; `metadata` is JSON data, kept as a copy; `clock` says since when a run has the
    session; `ids(kind)` makes ids, kind "session" or "message". Raises `InvalidArgument` for what these cannot be.

    Any thread may read and write, a signal handler too: nothing here waits for anybody. After `close`, and in a forked
    child, it can only be read: every method that writes raises `InvalidState`, or `ForkedProcess`.
    """

    __slots__ = ("__weakref__", "_active", "_clock", "_id", "_ids", "_log", "_recorder")

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
        self._ids = rules.random_ids if ids is None else ids
        self._clock: Clock = SystemClock() if clock is None else clock
        made = self._ids("session") if id is None else id
        self._id = rules.a_session_id("Session.ids: ids('session')" if id is None else "Session.id", made)
        self._log = Log(f"the session {self._id}", json_object("Session.metadata", metadata))
        self._active: dict[str, tuple[str, float]] = {}  # "run": its id, and since when
        self._recorder = Recorder(self._log, None, DEFAULT_MAX_BYTES)

    def __repr__(self) -> str:
        closed = ", closed" if self._log.closed else ""
        return f"Session({self._id!r}, {len(self.history)} messages{closed})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"the session {self._id} cannot be copied or pickled: there is one of it, and one writer")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # ---- what is there

    @property
    def id(self) -> str:
        """The session's id."""
        return self._id

    @property
    def parent_id(self) -> str:
        """The id of the session that this one was forked from, or ""."""
        return ""

    @property
    def read_only(self) -> bool:
        """Whether it was opened for reading alone."""
        return False

    @property
    def messages(self) -> Sequence[Message]:
        """What the model may see now, the last summary and what follows it: an immutable view, O(1)."""
        return self._log.state.context.messages

    @property
    def history(self) -> Sequence[Message]:
        """Every message, those under a summary too: an immutable view, O(1)."""
        return self._log.state.history.messages

    @property
    def started(self) -> Collection[str]:
        """The keys of all calls that were started."""
        return frozenset(self._log.state.started)

    @property
    def waiting(self) -> tuple[WaitingCall, ...]:
        """The calls that wait, answered ones too."""
        return self._log.state.context.waiting

    @property
    def compactions(self) -> tuple[Compaction, ...]:
        """What was replaced by summaries, oldest first."""
        return self._log.state.context.compactions

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        """The runs that have ended, in the order of their ends."""
        return tuple(self._log.state.runs)

    @property
    def usage(self) -> Usage:
        """The tokens of all runs that have ended."""
        return self._log.state.usage

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Everything that was set, as a copy of its own: JSON data by key."""
        return {key: json_value(text) for key, text in dict(self._log.state.values).items()}

    @property
    def labels(self) -> Mapping[str, str]:
        """The id of the entry that each label names; "" is before the first."""
        return dict(self._log.state.labels)

    @property
    def events(self) -> tuple[dict[str, Any], ...]:
        """The events that were kept, oldest first, each as `event.to_dict()` says it, in a copy of its own."""
        return tuple([json_value(text) for text in list(self._log.state.events)])

    def get(self, key: str, default: Any = None) -> Any:  # Any: a JSON value
        """A copy of the value that was set last, or `default`."""
        text = self._log.state.values.get(key)
        return default if text is None else json_value(text)

    def check(self) -> list[Problem]:
        """What is wrong with `messages`: calls that are open and do not wait, answers that say nothing."""
        return self._log.read(lambda state: check_messages(state.context.messages, state.context.waiting))

    # ---- what is written

    def append(self, message: M) -> M:
        """Commits the message and returns it with its id.

        Raises `InvalidArgument` for an id that the session has and for a result without an open call, `InvalidState`
        for any other message while a call is open; nothing is kept then.
        """
        if not isinstance(message, rules.MESSAGE_TYPES):
            raise wrong("Session.append: message", "a message", message)
        kept = message if message.id else with_fields(message, id=self._new_id())
        self._log.commit("Session.append", partial(rules.message_entry, kept))
        return kept

    def mark_started(self, key: str) -> None:
        """Records, before a tool runs, that it is about to."""
        self._log.commit("Session.mark_started", partial(rules.started_entry, a_text("Session.mark_started: key", key)))

    def mark_waiting(self, calls: Sequence[WaitingCall]) -> None:
        """Records all calls that wait in the batch at the tail; replaces the last such record, () clears it."""
        if isinstance(calls, str) or not isinstance(calls, Sequence):
            raise wrong("Session.mark_waiting: calls", "a sequence of WaitingCall", calls)
        for index, call in enumerate(calls):
            if not isinstance(call, WaitingCall):
                raise wrong(f"Session.mark_waiting: calls[{index}]", "a WaitingCall", call)
        self._log.commit("Session.mark_waiting", partial(rules.waiting_entry, tuple(calls)))

    def replace(self, compaction: Compaction) -> bool:
        """Puts a summary in the place of what it covers in `messages`, and returns True; `history` keeps it all.

        The kept summary has the id of the last user message that it covers in `metadata["last_user"]`. Raises
        `InvalidArgument`, and changes nothing, for an empty summary, a `through` that is not in `messages`, a cut
        between a call and its results, a cut after a call that is open, and a summary with an id that is taken.
        """
        if isinstance(compaction, Compaction) and not compaction.summary.id:
            compaction = with_fields(compaction, summary=with_fields(compaction.summary, id=self._new_id()))
        self._log.commit("Session.replace", partial(rules.compaction_entry, compaction))
        return True

    def set(self, key: str, value: object) -> None:
        """Sets a value of the metadata: JSON data, of which it keeps a copy."""
        name, text = a_text("Session.set: key", key), json_text("Session.set: value", value)
        self._log.commit("Session.set", partial(rules.value_entry, name, text))

    def label(self, name: str, entry_id: str | None = None) -> None:
        """Names a place: the entry of a message or summary by its id, the newest one if left out.

        Raises `NotFound` for an id that no entry has. "" is the place before the first entry.
        """
        if entry_id is not None and not isinstance(entry_id, str):
            raise wrong("Session.label: entry_id", "a str or None", entry_id)
        self._log.commit("Session.label", partial(rules.label_entry, a_text("Session.label: name", name), entry_id))

    # ---- runs

    def begin_run(self, run_id: str) -> None:
        """Takes the session for a run. Raises `Busy` while another one has it."""
        mine = (a_text("Session.begin_run: run_id", run_id), self._clock.time())
        self._log.check_writable("Session.begin_run")
        try:  # taking it and knowing who has it are one atomic step, and nothing comes after it
            if (holder := self._active.setdefault("run", mine)) is not mine:
                raise self._busy(holder)
        except BaseException:  # an interrupt, or another has it: the run will not begin
            self._release(mine)
            raise

    def _busy(self, holder: tuple[str, float]) -> Busy:
        run_id, since = holder
        text = f"the session {self._id} is busy with run {run_id}, since {since:.3f} (Unix seconds)"
        return Busy(text, run_id=run_id, since=since, operation="Session.begin_run")

    def end_run(self, record: RunRecord) -> None:
        """Records a run that has ended, once, and lets the session go if that run has it."""
        if not isinstance(record, RunRecord):
            raise wrong("Session.end_run: record", "a RunRecord", record)
        try:
            self._log.commit("Session.end_run", partial(rules.run_entry, record))
        finally:
            holder = self._active.get("run")
            if holder is not None and holder[0] == record.run_id:
                self._release(holder)

    def _release(self, holder: tuple[str, float]) -> None:
        if self._active.get("run") is holder:
            self._active.pop("run", None)

    def observe(self, event: Event) -> None:
        """Keeps an event, while there is room for it."""
        self._recorder.observe(event)

    # ---- its end

    def flush(self) -> None:
        """Returns when everything that was committed is stored; in memory it always is."""

    def close(self) -> None:
        """Ends the writing, for ever; a run that has the session fails at its next commit. Does nothing twice."""
        self._log.closed = True

    def _new_id(self) -> str:
        return a_text("Session.ids: ids('message')", self._ids("message"))
