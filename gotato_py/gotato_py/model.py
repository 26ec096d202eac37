"""The seam to a model: one Protocol, the request it gets, the events it streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, Protocol

from ._fields import Text, field, instance_of, mapping, wrong
from ._guards import is_sequence
from ._mapping import EMPTY
from ._value import of_defaults, value
from .errors import InvalidArgument
from .messages import MESSAGE_TYPES, Message
from .parts import StopReason, ToolCall, Usage, member_of
from .scope import Scope
from .tool_spec import ToolSpec


def _strings(where: str, given: Any) -> tuple[str, ...]:
    if not is_sequence(given) or not all(isinstance(each, str) for each in given):
        raise wrong(where, "a sequence of str", given)
    return tuple(given)


def _optional_mapping(where: str, given: Any) -> Mapping[str, object] | None:
    return None if given is None else mapping(where, given)


def _finite(where: str, given: Any) -> float | None:
    if given is None or (isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given < inf):
        return given
    raise InvalidArgument(f"{where} must be None or a finite number of at least 0")


def _at_least(least: int) -> Any:
    def check(where: str, given: Any) -> int | None:
        if given is not None and (type(given) is not int or given < least):
            raise InvalidArgument(f"{where} must be None or an int of at least {least}")
        return given

    return check


@value
class ModelOptions:
    """What a caller may ask of any model; None leaves the choice to the provider.

    `max_tokens` bounds the answer. `reasoning_effort` is a word ("low", "medium", "high"), `reasoning_budget` a
    number of tokens, `reasoning_summary` a word ("auto", "detailed"). `tool_choice` is "auto", "none", "required" or
    the name of one tool. `response_schema` is a JSON Schema that the answer's text has to fit.
    """

    temperature: float | None = field(default=None, check=_finite)
    top_p: float | None = field(default=None, check=_finite)
    max_tokens: int | None = field(default=None, check=_at_least(1))
    stop: tuple[str, ...] = field(default=(), check=_strings)
    reasoning_effort: str | None = None
    reasoning_budget: int | None = field(default=None, check=_at_least(0))
    reasoning_summary: str | None = None
    tool_choice: str | None = None
    parallel_tool_calls: bool | None = None
    response_schema: Mapping[str, object] | None = field(default=None, check=_optional_mapping)
    metadata: Mapping[str, object] = field(default=EMPTY, check=mapping)


DEFAULT_OPTIONS = of_defaults(ModelOptions)


def _position(where: str, given: Any) -> int:
    if type(given) is not int or given < 0:
        raise InvalidArgument(f"{where} must be an int of at least 0")
    return given


def _sequence(where: str, given: Any) -> Sequence[Any]:
    if not is_sequence(given):
        raise wrong(where, "a sequence", given)
    return given


def _tools(where: str, given: Any) -> tuple[ToolSpec, ...]:
    for index, spec in enumerate(_sequence(where, given)):
        if not isinstance(spec, ToolSpec):
            raise wrong(f"{where}[{index}]", "a ToolSpec", spec)
    return tuple(given)


def _breakpoints(where: str, given: Any) -> tuple[str | int, ...]:
    for index, mark in enumerate(_sequence(where, given)):
        if mark not in ("system", "tools") and (type(mark) is not int or mark < 0):
            raise InvalidArgument(f'{where}[{index}] must be "system", "tools" or an index into messages')
    return tuple(given)


def _messages(where: str, given: Any) -> Sequence[Message]:
    for index, message in enumerate(_sequence(where, given)):
        if not isinstance(message, MESSAGE_TYPES):
            raise wrong(f"{where}[{index}]", "a message", message)
    return given  # type: ignore[no-any-return]  # each of them was looked at


@value
class ModelRequest:
    """One request, in no provider's dialect.

    `cache_breakpoints` names the ends of cacheable prefixes: "system", "tools", or an index into `messages`. Where a
    provider takes fewer of them, "system" and "tools" stay, then the newest.
    """

    system: Text = ""
    messages: Sequence[Message] = field(default=(), check=_messages)
    tools: tuple[ToolSpec, ...] = field(default=(), check=_tools)
    options: ModelOptions = field(default=DEFAULT_OPTIONS, check=instance_of(ModelOptions))
    cache_breakpoints: tuple[str | int, ...] = field(default=(), check=_breakpoints)


@value
class TextDelta:
    """A further piece of the answer's text."""

    text: str


@value
class ReasoningDelta:
    """A further piece of what the model thinks."""

    text: str


@value
class ReasoningDone:
    """Closes one ReasoningPart, whether or not any text of it was shown."""

    signature: str = ""
    origin: str = ""
    redacted: bool = False


@value
class ToolCallDelta:
    """A further piece of a call's arguments. `index` is the call's position in this answer."""

    index: int = field(check=_position)
    name: str = ""
    fragment: str = ""


@value
class ToolCallReady:
    """A call that is complete. Only these are calls: one seen as deltas alone is none."""

    call: ToolCall = field(check=instance_of(ToolCall))


@value
class UsageUpdate:
    """Tokens used so far; replaces what was reported before. `Done.usage` wins over it."""

    usage: Usage = field(check=instance_of(Usage))


@value
class RateLimits:
    """What is left of the account's limits; resets in seconds."""

    limit_requests: int | None = None
    remaining_requests: int | None = None
    reset_requests_s: float | None = None
    limit_tokens: int | None = None
    remaining_tokens: int | None = None
    reset_tokens_s: float | None = None


@value
class Done:
    """The end of an answer: exactly one, and the last event."""

    stop_reason: StopReason = field(default=StopReason.END_TURN, check=member_of(StopReason))
    usage: Usage | None = field(default=None, check=instance_of(Usage, optional=True))
    response_id: Text = ""
    model: Text = ""

    if TYPE_CHECKING:  # stop_reason takes more than the attribute holds

        def __init__(
            self,
            stop_reason: StopReason | str = StopReason.END_TURN,
            usage: Usage | None = None,
            response_id: str = "",
            model: str = "",
        ) -> None: ...


ModelEvent = (
    TextDelta | ReasoningDelta | ReasoningDone | ToolCallDelta | ToolCallReady | UsageUpdate | RateLimits | Done
)


class Model(Protocol):
    """Anything that answers a request with a stream of events.

    Three members are optional and read with a default: `capabilities: frozenset[str]` ("response_schema", "images",
    …), `name: str`, and `cost_of(result: RunResult) -> Decimal | None`, what a run cost in US dollars. It is taken
    from the model when an agent is made and asked when `RunResult.cost` is read; a function of a module, a static
    method too, is pickled with the result, by its name, any other callable is left out then.
    """

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
        """Makes one attempt at an answer. Called in the thread of the run, once per attempt.

        Must yield exactly one `Done`, last; anything else is a `ModelProtocolError`. May raise a `ModelError` (the
        kernel retries the retryable ones); once `scope` has ended, `Cancelled` or `DeadlineExceeded`, and then sends
        nothing. Whatever else it raises fails the run and is not retried. If the iterator has `close`, it is called,
        also early; closing releases the connection.
        """
        ...
