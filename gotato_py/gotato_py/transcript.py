"""The seam to what happened: an append-only list of messages with marks for work in progress."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar, Protocol, Self, TypeVar, cast, overload

from ._fields import wrong
from ._guards import is_array, is_mapping
from ._hold import RunHold
from ._plain import plain_json
from ._value import replace
from .compaction import compacted
from .errors import InvalidArgument
from .ids import random_ids
from .message_json import JSONObject, message_to_dict
from .messages import MESSAGE_TYPES, Message, ToolMessage
from .record_json import compaction_at, message_at, record_to_dict, waiting_call_at
from .records import Compaction, RunRecord, WaitingCall

__all__ = ["Compaction", "MemoryTranscript", "MessageView", "RunHold", "RunRecord", "Transcript", "WaitingCall"]

M = TypeVar("M", bound=Message)
T = TypeVar("T")


class MessageView(Sequence[Message]):
    """The first `length` messages of a list that only grows: an immutable sequence that costs nothing to make."""

    __slots__ = ("_length", "_list")

    def __init__(self, messages: list[Message], length: int) -> None:
        self._list = messages
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Message]:
        return islice(iter(self._list), self._length)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._length)
            if step > 0:
                return tuple(self._list[start:stop:step])
            return tuple([self._list[position] for position in range(start, stop, step)])
        position = index + self._length if index < 0 else index
        if not 0 <= position < self._length:
            raise IndexError(f"message {index} of {self._length}")
        return self._list[position]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, MessageView) or is_array(other):
            return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))
        return NotImplemented

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # equal to lists, which have no hash either

    def __repr__(self) -> str:
        return f"MessageView({list(self)!r})"

    def __reduce__(self) -> tuple[type[tuple[Message, ...]], tuple[list[Message]]]:
        return tuple, (list(self),)


def _identified(message: M) -> M:
    return message if message.id else replace(message, id=random_ids("message"))


def _write(name: str, kept: Sequence[T], write: Callable[[T], JSONObject]) -> list[JSONObject]:
    written: list[JSONObject] = []
    for index, each in enumerate(kept):
        try:
            written.append(write(each))
        except InvalidArgument as error:
            raise InvalidArgument(f"{name}[{index}].{error.message}") from None
    return written


def _read(data: Mapping[str, Any], name: str, read: Callable[[object, str], T]) -> list[T]:
    given = data.get(name, ())
    if not is_array(given):
        raise wrong(name, "a JSON array (a list)", given)
    return [read(each, f"{name}[{index}]") for index, each in enumerate(given)]


def _key_at(data: object, path: str) -> str:
    if not isinstance(data, str):
        raise wrong(path, "a str", data)
    return data


class Transcript(Protocol):
    """What happened, in order. An agent is the only writer while it runs.

    Optional members, read with a default: `replace(compaction) -> bool`, `compactions`, `begin_run(run_id)`, which
    raises `Busy` and changes nothing while another run has it, and `end_run(record)`, by which that run lets it go. A
    record may also come, later, of a run that has it no more: one that was left behind, and whose place another took.
    Without those two, nothing keeps two agents from writing between each other's calls and results.
    """

    @property
    def messages(self) -> Sequence[Message]:
        """What the model may see now: an immutable view, O(1)."""
        ...

    @property
    def started(self) -> Collection[str]:
        """The keys of the calls that were started."""
        ...

    @property
    def waiting(self) -> Sequence[WaitingCall]:
        """The calls that wait, answered ones too; none once the next user or assistant message is there."""
        ...

    def append(self, message: M) -> M:
        """Commits the message and returns it with its id. When this returns, the message is kept; when it raises
        (`StoreFailure`), nothing is."""
        ...

    def mark_started(self, key: str) -> None:
        """Records, before a tool runs, that it is about to."""
        ...

    def mark_waiting(self, calls: Sequence[WaitingCall]) -> None:
        """Records all calls that wait in the batch at the tail; replaces the last such record."""
        ...


class MemoryTranscript:
    """A transcript in memory, the default. One run at a time has it, whichever agent's; any thread may read.

    A second run gets `Busy` at once, be it from another thread or from a tool of the first. A run that was left behind
    (its stream dropped, or an interrupt where it could not be closed) holds up nobody: the next run, of any agent,
    takes its place; so does one in a forked child. Copies, pickled ones and those by `to_dict`, are nobody's.

    `started` holds the keys of the open batch: once the next user or assistant message is there, they are history.
    """

    __slots__ = ("__weakref__", "_compactions", "_holds", "_list", "_started", "_waiting")

    def __init__(self, messages: Sequence[Message] = ()) -> None:
        if isinstance(messages, str) or not isinstance(messages, Sequence):
            raise wrong("MemoryTranscript.messages", "a sequence of messages", messages)
        self._list: list[Message] = []
        self._started: set[str] | None = None  # a set costs more than all else here, and few transcripts need it
        self._waiting: tuple[WaitingCall, ...] = ()
        self._compactions: tuple[Compaction, ...] = ()
        self._holds: dict[str, RunHold] = {}
        for index, message in enumerate(messages):
            if not isinstance(message, MESSAGE_TYPES):
                raise wrong(f"MemoryTranscript.messages[{index}]", "a message", message)
        self._list.extend(_identified(message) for message in messages)

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Self:
        """The transcript that `to_dict` wrote.

        Raises `InvalidArgument`, naming the path ("waiting[0].key"), for a missing key and a value of the wrong type or
        kind. Messages keep keys that this release does not know; unknown keys beside them are ignored.
        """
        if not is_mapping(data):
            raise wrong("transcript", "a JSON object (a dict)", data)
        if "messages" not in data:
            raise InvalidArgument("messages is missing; a transcript's own to_dict writes it")
        made = cls(_read(data, "messages", message_at))
        made._started = set(_read(data, "started", _key_at)) or None
        made._waiting = tuple(_read(data, "waiting", waiting_call_at))
        made._compactions = tuple(_read(data, "compactions", compaction_at))
        return made

    def to_dict(self) -> JSONObject:
        """All of it as plain JSON data: what carries a run that waits to another process.

        Raises `InvalidArgument`, naming the path, where a message or a record holds what JSON cannot.
        """
        written: JSONObject = {"messages": _write("messages", self.messages, message_to_dict)}
        if self._started:
            written["started"] = plain_json("started", sorted(self._started))
        if self._waiting:
            written["waiting"] = _write("waiting", self._waiting, record_to_dict)
        if self._compactions:
            written["compactions"] = _write("compactions", self._compactions, record_to_dict)
        return written

    def __getstate__(self) -> tuple[object, dict[str, object]]:
        own, slots = cast("tuple[object, dict[str, object]]", super().__getstate__())
        started = None if self._started is None else set(self._started)
        return own, {**slots, "_list": list(self._list), "_started": started, "_holds": {}}

    def __repr__(self) -> str:
        return f"MemoryTranscript({len(self._list)} messages)"

    @property
    def messages(self) -> MessageView:
        """What the model may see now: an immutable view, O(1)."""
        messages = self._list  # once: `replace` puts another list here
        return MessageView(messages, len(messages))

    @property
    def started(self) -> Collection[str]:
        """The keys of the calls of the open batch that were started."""
        return frozenset(self._started or ())

    @property
    def waiting(self) -> tuple[WaitingCall, ...]:
        """The calls that wait, answered ones too."""
        return self._waiting

    @property
    def compactions(self) -> tuple[Compaction, ...]:
        """What was replaced by summaries, oldest first."""
        return self._compactions

    def append(self, message: M) -> M:
        """Keeps the message; gives it an id if it has none."""
        if type(message) is not ToolMessage and not isinstance(message, MESSAGE_TYPES):
            raise wrong("MemoryTranscript.append: message", "a message", message)
        kept = message if message.id else _identified(message)
        self._list.append(kept)
        if type(kept) is not ToolMessage:
            self._waiting = ()
            self._started = None
        return kept

    def mark_started(self, key: str) -> None:
        """Remembers that the call's tool is about to run."""
        if not isinstance(key, str):
            raise wrong("MemoryTranscript.mark_started: key", "a str", key)
        if self._started is None:
            self._started = {key}
        else:
            self._started.add(key)

    def mark_waiting(self, calls: Sequence[WaitingCall]) -> None:
        """Remembers all calls that wait in the batch at the tail."""
        for index, call in enumerate(calls):
            if not isinstance(call, WaitingCall):
                raise wrong(f"MemoryTranscript.mark_waiting: calls[{index}]", "a WaitingCall", call)
        self._waiting = tuple(calls)

    def replace(self, compaction: Compaction) -> bool:
        """Puts the summary in the place of what it covers, and returns True; views taken before stay as they were.

        The kept summary has the id of the last user message that it covers in `metadata["last_user"]`. Raises
        `InvalidArgument`, and changes nothing, for an empty summary, a `through` that is not in `messages`, a cut
        between a call and its results, and a cut after a call that is open.
        """
        kept, self._list = compacted(self._list, compaction)
        self._compactions = (*self._compactions, kept)
        return True

    def begin_run(self, run_id: str) -> None:
        """Takes the transcript for a run. Raises `Busy`, which names the run that has it, while another one does."""
        operation = "MemoryTranscript.begin_run"
        RunHold.of(run_id, operation).take(self._holds, operation)

    def end_run(self, record: RunRecord) -> None:
        """Lets the transcript go, if that run has it. Nothing is kept of it: the result has it all, and a record of
        every run would only grow."""
        RunHold.end(self._holds, record.run_id)
