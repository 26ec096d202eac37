"""What the model sees: a context is built each turn, laid out for prompt caches, and becomes a request.

The layout is system, sorted tools, append-only history, and then what changes each turn at the very end: an optional
panel on the tail message that is never committed. Everything before the tail is a prefix that a provider can cache.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar, Protocol, overload

from ._fields import Text, field, mapping, wrong
from ._guards import is_sequence
from ._mapping import EMPTY
from ._value import replace, unchecked, value
from .message_json import message_to_dict
from .messages import MESSAGE_TYPES, AssistantMessage, Message, ToolMessage, ToolResult, UserMessage
from .model import DEFAULT_OPTIONS, ModelOptions, ModelRequest
from .parts import NO_USAGE, StopReason, TextPart, Usage
from .scope import Scope
from .tool_spec import ToolSpec
from .transcript import Transcript


@value
class TurnResult:
    """What a turn came to: the answer (None for silence), the results of its calls, its tokens, why it stopped."""

    message: AssistantMessage | None = None
    results: tuple[ToolMessage, ...] = ()
    usage: Usage = NO_USAGE
    stop_reason: StopReason = StopReason.NONE

    @property
    def text(self) -> str:
        """The text of the answer; "" where there is none."""
        return "" if self.message is None else self.message.text


@value
class TurnView:
    """A run at one of its points, as a context builder, a tool source or an extension sees it.

    `messages` is what the model may see, in the order of a request; `usage` is the run's so far; `message` what a run
    is about to commit (in `before_run`), `result` what the turn came to (in `should_stop` and `before_settle`).
    """

    system: str
    messages: Sequence[Message]
    transcript: Transcript
    run_id: str = ""
    turn: int = 0
    usage: Usage = NO_USAGE
    deps: Any = None
    scope: Scope = field(default=None)  # always there in a run; a view made by hand may leave it out
    result: TurnResult | None = None
    message: UserMessage | None = None


def _messages(where: str, given: Any) -> Sequence[Message]:
    if not is_sequence(given):
        raise wrong(where, "a sequence of messages", given)
    return given


@value
class ModelContext:
    """What the model is to see. `panel` is text for this turn alone, put on the last message and never stored."""

    system: Text = ""
    messages: Sequence[Message] = field(default=(), check=_messages)
    panel: Text = ""
    metadata: Mapping[str, object] = field(default=EMPTY, check=mapping)


class ContextBuilder(Protocol):
    """Decides what the model sees."""

    def build(self, view: TurnView) -> ModelContext:
        """Called before each request, in the thread of the run. Must return messages that `check_messages` accepts;
        what it raises fails the run. Returning `view.messages` itself costs nothing per turn."""
        ...


class FullHistory:
    """The default builder: the instructions and every message, as they are."""

    __slots__ = ()

    def build(self, view: TurnView) -> ModelContext:
        """Everything, unchanged."""
        return ModelContext(view.system, view.messages)

    def __repr__(self) -> str:
        return "full_history"


full_history: FullHistory = FullHistory()


class TailedMessages(Sequence[Message]):
    """A sequence of messages with its last ones replaced, without copying what comes before."""

    __slots__ = ("_kept", "_messages", "_tail")

    def __init__(self, messages: Sequence[Message], kept: int, tail: tuple[Message, ...]) -> None:
        self._messages, self._kept, self._tail = messages, kept, tail

    def __len__(self) -> int:
        return self._kept + len(self._tail)

    def __iter__(self) -> Iterator[Message]:
        for index in range(self._kept):
            yield self._messages[index]
        yield from self._tail

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        if isinstance(index, slice):
            return tuple(self)[index]
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError(f"message {index} of {len(self)}")
        return self._messages[position] if position < self._kept else self._tail[position - self._kept]

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if is_sequence(other) else NotImplemented

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # equal to lists, which have no hash either

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[type[tuple[Message, ...]], tuple[list[Message]]]:
        return tuple, (list(self),)


def with_panel(messages: Sequence[Message], panel: str) -> Sequence[Message]:
    """The messages with `<panel>` text on the last one, or as a user message where the last one cannot carry it."""
    part = TextPart(f"<panel>\n{panel}\n</panel>")
    tail = messages[-1] if messages else None
    if isinstance(tail, UserMessage):
        return TailedMessages(messages, len(messages) - 1, (replace(tail, parts=(*tail.parts, part)),))
    if isinstance(tail, ToolMessage):
        told = tail.result.parts or ((TextPart(tail.result.text),) if tail.result.text else ())
        result: ToolResult = replace(tail.result, parts=(*told, part))
        return TailedMessages(messages, len(messages) - 1, (replace(tail, result=result),))
    return TailedMessages(messages, len(messages), (UserMessage((part,)),))


GO_ON = "Your last answer was interrupted. Go on from where it ended."


def with_closing_line(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages, closed by a user line where a partial answer is the last one; the line is never stored."""
    if messages and isinstance(messages[-1], AssistantMessage) and not messages[-1].tool_calls:
        return TailedMessages(messages, len(messages), (UserMessage(GO_ON),))
    return messages


def sorted_tools(tools: Sequence[ToolSpec]) -> tuple[ToolSpec, ...]:
    """The tools by name: an order that does not change the cacheable prefix from run to run."""
    return tuple(sorted(tools, key=lambda spec: spec.name))


_MARKS: Mapping[tuple[bool, bool], tuple[str | int, ...]] = {
    (False, False): (),
    (True, False): ("system",),
    (False, True): ("tools",),
    (True, True): ("system", "tools"),
}


def breakpoints(system: str, tools: Sequence[ToolSpec], messages: Sequence[Message]) -> tuple[str | int, ...]:
    """Where cacheable prefixes end: after the system text, after the tools, before the tail."""
    count = len(messages)
    tail = (count - 2,) if count > 1 else ()
    return _MARKS[bool(system), bool(tools)] + tail


def _hashlib() -> Any:  # Any: the module is not known before it is imported
    """Imported when the first hash is asked for: it loads OpenSSL, which most programs here never need."""
    return import_module("hashlib")


def _digest(state: str, told: object) -> str:
    text = json.dumps(told, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return str(_hashlib().blake2b((state + text).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest())


class PrefixHasher:
    """Hashes prefixes of one growing history, each message once, and only when somebody asks."""

    __slots__ = ("_states", "_tools", "system")

    def __init__(self, system: str, tools: Sequence[ToolSpec]) -> None:
        self.system: str = system
        self._tools = tools
        self._states: list[str] = []

    def hash_before(self, messages: Sequence[Message], length: int) -> str:
        """The hash of system, tools and the first `length` messages; those hashed before are not looked at again."""
        states = self._states
        if not states:
            specs = [[spec.name, spec.description, spec.input_schema] for spec in self._tools]
            states.append(_digest("", [self.system, specs]))
        for index in range(len(states) - 1, length):
            told = message_to_dict(messages[index])
            told.pop("id", None)
            told.pop("metadata", None)
            for name in ("key", "metadata"):  # as the ids, they are not sent
                told.get("result", {}).pop(name, None)
            states.append(_digest(states[index], told))
        return states[length]


def assemble_request(
    context: ModelContext, tools: Sequence[ToolSpec] = (), options: ModelOptions = DEFAULT_OPTIONS
) -> tuple[ModelRequest, str]:
    """The request for a context, and the hash of its cacheable prefix: everything but the last message.

    Raises `InvalidArgument` if the context is no ModelContext or holds what is no message.
    """
    if not isinstance(context, ModelContext):
        raise wrong("assemble_request: context", "a ModelContext", context)
    if not is_sequence(tools):
        raise wrong("assemble_request: tools", "a sequence of ToolSpec", tools)
    if not isinstance(options, ModelOptions):
        raise wrong("assemble_request: options", "a ModelOptions", options)
    for index, message in enumerate(context.messages):
        if not isinstance(message, MESSAGE_TYPES):
            raise wrong(f"assemble_request: context.messages[{index}]", "a message", message)
    for index, spec in enumerate(tools):
        if not isinstance(spec, ToolSpec):
            raise wrong(f"assemble_request: tools[{index}]", "a ToolSpec", spec)
    request = lay_out(context.system, context.messages, context.panel, sorted_tools(tools), options)
    prefix = max(0, len(context.messages) - 1)
    return request, PrefixHasher(request.system, request.tools).hash_before(context.messages, prefix)


_make_request = unchecked(ModelRequest)


def lay_out(
    system: str, messages: Sequence[Message], panel: str, tools: tuple[ToolSpec, ...], options: ModelOptions
) -> ModelRequest:
    """The request in cache order; `tools` are sorted already."""
    shown = with_panel(messages, panel) if panel else messages
    return _make_request(system, shown, tools, options, breakpoints(system, tools, shown))
