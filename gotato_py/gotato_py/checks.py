"""The rules that every history keeps, checked one message at a time, and the order in which a request shows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ._fields import wrong
from ._value import value
from .messages import MESSAGE_TYPES, AssistantMessage, Message, ToolMessage
from .parts import ReasoningPart, TextPart, ToolCall
from .records import WaitingCall

PAIRING = 1
"""`Problem.rule`: a call without its one result directly after its message, or a result without its call."""

EMPTY_ANSWER = 2
"""`Problem.rule`: an assistant message that says nothing: no call, and no part but reasoning or white space."""


@value
class Problem:
    """A rule that a history breaks.

    `index` is the position of the message at fault (for a call without a result, of the message that holds the call),
    `rule` is 1 (pairing) or 2 (empty answer), `text` says what is wrong without quoting any content.
    """

    index: int
    rule: int
    text: str


def call_key(message: AssistantMessage, index: int) -> str:
    """The key of a call: "<id of its message>:<its index>", the same after a restart."""
    return f"{message.id}:{index}"


def is_empty_answer(message: AssistantMessage) -> bool:
    """Whether the answer says nothing: no call, and nothing but reasoning and white space."""
    if message.tool_calls:
        return False
    for part in message.parts:
        if isinstance(part, TextPart):
            if part.text and not part.text.isspace():
                return False
        elif not isinstance(part, ReasoningPart):
            return False
    return True


class RequestHistory:
    """A growing history: what is wrong with it, which calls are open, and its messages in the order of a request.

    `add` costs the same however long the history is. `ordered` holds every message added; the results of one batch
    stand in the order of their calls as soon as none is open. It only ever grows beyond the last message that is no
    result, so a view taken while no call is open stays as it was. A message at fault is kept, and told in `problems`.

    A result belongs to the call that its `key` names; results without a key belong, in their order, to the calls that
    no key names. The provider's id decides nothing: duplicate, blank and reused ids are legal. In a message without an
    id no key is its own, so there only the index in a result's key counts.
    """

    __slots__ = (
        "_count",
        "_expected",
        "_message",
        "_next",
        "_open",
        "_position",
        "_slow",
        "_start",
        "ordered",
        "problems",
    )

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.ordered: list[Message] = []
        self.problems: list[Problem] = []
        self._count = 0
        self._message: AssistantMessage | None = None  # the last message with calls, while only results follow it
        self._position = 0  # its index
        self._start = 0  # where in `ordered` its results begin
        self._next = 0  # how many results have come, while they come in call order
        self._expected = ""  # the key of the next one
        self._slow: _Batch | None = None  # the results of a batch, once one has come out of order
        self._open = 0
        for message in messages:
            self.add(message)

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"RequestHistory({self._count} messages, {self._open} open calls, {len(self.problems)} problems)"

    @property
    def settled(self) -> bool:
        """Whether no call is open: a request can be made of it."""
        return not self._open

    @property
    def open_calls(self) -> list[tuple[str, ToolCall]]:
        """The calls at the tail that have no result, each with its key, in call order."""
        if self._message is None or not self._open:
            return []
        calls, message = self._message.tool_calls, self._message
        return [(call_key(message, at), calls[at]) for at, result in enumerate(self._paired()) if result is None]

    @property
    def open_message(self) -> AssistantMessage | None:
        """The message at the tail that has open calls."""
        return self._message if self._open else None

    def add(self, message: Message) -> None:
        """Takes the next message of the history."""
        if type(message) is ToolMessage:
            self.ordered.append(message)
            if message.result.key == self._expected and self._open and self._slow is None:
                self._advance()
            else:
                self._take_out_of_order(message)
        elif isinstance(message, MESSAGE_TYPES):
            if self._open:
                self.problems.extend(self._missing())
                self._sort_results()
            self._message, self._open, self._slow = None, 0, None
            self.ordered.append(message)
            if isinstance(message, AssistantMessage):
                self._take_answer(message)
        else:
            raise wrong(f"messages[{self._count}]", "a message", message)
        self._count += 1

    def tail_problems(self, waiting: Sequence[WaitingCall] = ()) -> list[Problem]:
        """What is wrong if the history ends here: open calls, unless the first of them is one that waits."""
        if not self._open:
            return []
        opened = self.open_calls
        return [] if any(call.key == opened[0][0] for call in waiting) else self._missing()

    def _take_answer(self, message: AssistantMessage) -> None:
        if message.tool_calls:
            self._message, self._position, self._start = message, self._count, len(self.ordered)
            self._open = len(message.tool_calls)
            self._next, self._expected = 0, message.id + ":0"
        elif is_empty_answer(message):
            self._problem(EMPTY_ANSWER, "the answer is empty, or holds nothing but reasoning and white space")

    def _advance(self) -> None:
        self._open -= 1
        self._next += 1
        if self._open and self._message is not None:
            self._expected = call_key(self._message, self._next)

    def _take_out_of_order(self, message: ToolMessage) -> None:
        if self._message is None:
            self._problem(PAIRING, "a result without its call: no message with calls comes directly before it")
            return
        batch = self._batch()
        key = message.result.key
        index = batch.keys.get(key if self._message.id else ":" + key.rpartition(":")[2])
        if index is None and key and self._message.id:
            self._stray(message, "a result without its call: its key names no call of the message before it")
        elif not self._open or (index is not None and batch.slots[index] is not None):
            self._stray(message, "a second result: the call has one already")
        else:
            if index is None:
                batch.keyless.append(message)
            else:
                batch.slots[index] = message
            self._open -= 1
            if not self._open:
                self._sort_results()

    def _batch(self) -> _Batch:
        """The results so far, each at its call."""
        if self._slow is None:
            came = self.ordered[self._start : self._start + self._next]
            self._slow = _Batch(self._message, [each for each in came if isinstance(each, ToolMessage)])
        return self._slow

    def _stray(self, message: ToolMessage, text: str) -> None:
        self._batch().strays.append(message)
        self._problem(PAIRING, text)

    def _problem(self, rule: int, text: str) -> None:
        self.problems.append(Problem(self._count, rule, text))

    def _paired(self) -> list[ToolMessage | None]:
        """The result of each call of the batch."""
        batch = self._batch()
        keyless = iter(batch.keyless)
        return [next(keyless, None) if result is None else result for result in batch.slots]

    def _sort_results(self) -> None:
        if self._slow is not None:
            results = [result for result in self._paired() if result is not None]
            self.ordered[self._start :] = [*results, *self._slow.strays]

    def _missing(self) -> list[Problem]:
        return [
            Problem(self._position, PAIRING, f"call {index} has no result directly after its message")
            for index, result in enumerate(self._paired())
            if result is None
        ]


class _Batch:
    """The results of one message's calls, when they do not simply come in order."""

    __slots__ = ("keyless", "keys", "slots", "strays")

    def __init__(self, message: AssistantMessage | None, came: list[ToolMessage]) -> None:
        calls = () if message is None else message.tool_calls
        self.keys = {} if message is None else {call_key(message, index): index for index in range(len(calls))}
        self.slots: list[ToolMessage | None] = [*came, *[None] * (len(calls) - len(came))]
        self.keyless: list[ToolMessage] = []
        self.strays: list[ToolMessage] = []


def check_messages(messages: Sequence[Message], waiting: Sequence[WaitingCall] = ()) -> list[Problem]:
    """What is wrong with a history, in its order; an empty list where nothing is.

    Rule 1: every call has exactly one result, after its message and before any other; no result is without its call.
    Only calls at the tail may be open, and only while the first of them is one of `waiting`.
    Rule 2: no assistant message is empty, or holds nothing but reasoning.
    """
    for name, given in (("messages", messages), ("waiting", waiting)):
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise wrong(f"check_messages: {name}", "a sequence", given)
    for index, call in enumerate(waiting):
        if not isinstance(call, WaitingCall):
            raise wrong(f"check_messages: waiting[{index}]", "a WaitingCall", call)
    history = RequestHistory(messages)
    return sorted(history.problems + history.tail_problems(waiting), key=lambda problem: problem.index)
