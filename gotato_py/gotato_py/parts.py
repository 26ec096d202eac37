"""The parts that messages are made of, tool calls and tool results, and token usage: frozen, shareable values."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from json import JSONDecoder, JSONEncoder
from typing import Any, TypeVar

from ._fields import Text, exactly, extra_field, field, wrong
from ._guards import is_sequence
from ._hashing import hash_of
from ._text import well_formed
from ._value import of_defaults, unchecked, value
from .errors import InvalidArgument

E = TypeVar("E", bound=StrEnum)
_LONGEST_WORD = 24


class StopReason(StrEnum):
    """Why the model stopped."""

    END_TURN = "end_turn"
    STOP_SEQUENCE = "stop_sequence"
    TOOL_CALLS = "tool_calls"
    MAX_TOKENS = "max_tokens"
    CONTENT_FILTER = "content_filter"
    PAUSE = "pause"
    CANCELLED = "cancelled"
    ERROR = "error"
    NONE = "none"


class ToolResultStatus(StrEnum):
    """What became of a tool call; `ToolResult.executed` follows from it."""

    OK = "ok"
    FAILED = "failed"
    NOT_RUN = "not_run"
    BLOCKED = "blocked"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    PENDING = "pending"


def member_of(kind: type[E]) -> Any:
    """A check for a field that holds an enum: a member, or its value as text."""

    members: dict[object, E] = {member.value: member for member in kind}
    said = f"must be one of {', '.join(kind)}"

    def check(where: str, given: Any) -> E:
        if isinstance(given, str) and given in members:
            return members[given]
        raise InvalidArgument(f"{where} {said}, not {_word(given)}")

    return exactly(kind, check)


def _word(given: object) -> str:
    """What was given, if it is a word as the members are; of another text only the length: it may be a prompt."""
    if not isinstance(given, str):
        return type(given).__name__
    is_word = len(given) <= _LONGEST_WORD and given.isidentifier()
    return repr(str(given)) if is_word else f"a str of {len(given)} characters"


def _count(where: str, given: Any) -> int:
    if type(given) is not int or given < 0:
        raise InvalidArgument(f"{where} must be an int of at least 0")
    return given


_encode = JSONEncoder(allow_nan=False, ensure_ascii=False).encode
_decode = JSONDecoder().decode


def _json_value(where: str, given: Any) -> Any:
    """A private copy, in plain types, made by way of text: what cannot be written strictly cannot be sent or stored."""
    try:
        return _decode(well_formed(_encode(given)))
    except (TypeError, ValueError, RecursionError):
        raise wrong(where, "plain, finite JSON data", given) from None


@value
class Usage:
    """Tokens counted by the provider. Input includes cached tokens, output includes reasoning, in every dialect."""

    input_tokens: int = field(default=0, check=_count)
    output_tokens: int = field(default=0, check=_count)
    cache_read_tokens: int = field(default=0, check=_count)
    cache_write_tokens: int = field(default=0, check=_count)
    reasoning_tokens: int = field(default=0, check=_count)
    extra: Mapping[str, object] = extra_field()

    @property
    def total_tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        if not isinstance(other, Usage):
            return NotImplemented
        return _make_usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )


NO_USAGE = of_defaults(Usage)
_make_usage = unchecked(Usage)


@value
class TextPart:
    """Text."""

    text: Text
    extra: Mapping[str, object] = extra_field("kind")


@value
class ReasoningPart:
    """What the model thought. `signature` is opaque; `origin` ("<dialect>:<model family>") says who may replay it."""

    text: Text = ""
    signature: Text = ""
    origin: Text = ""
    redacted: bool = False
    extra: Mapping[str, object] = extra_field("kind")


@value
class ImagePart:
    """A picture, as bytes or by URL. `detail` is the provider's hint for its resolution."""

    data: bytes | None = None
    url: Text | None = None
    media_type: Text = ""
    detail: Text = "auto"
    extra: Mapping[str, object] = extra_field("kind")

    def __check__(self) -> None:
        _one_source(self)


@value
class AudioPart:
    """Sound, as bytes."""

    data: bytes
    media_type: Text = ""
    extra: Mapping[str, object] = extra_field("kind")


@value
class FilePart:
    """A document, as bytes or by URL."""

    data: bytes | None = None
    url: Text | None = None
    media_type: Text = ""
    filename: Text = ""
    extra: Mapping[str, object] = extra_field("kind")

    def __check__(self) -> None:
        _one_source(self)


def _one_source(part: ImagePart | FilePart) -> None:
    if (part.data is None) == (part.url is None):
        raise InvalidArgument(f"{type(part).__name__} takes data or url, exactly one of them")


@value
class JSONPart:
    """A JSON value, for providers and tools that keep data apart from text.

    The part has a private copy of it, in plain types; whoever reads it must not change it.
    """

    value: Any = field(check=_json_value)  # any JSON value
    extra: Mapping[str, object] = extra_field("kind")

    def __hash__(self) -> int:
        return hash_of(self.value)


Part = TextPart | ReasoningPart | ImagePart | AudioPart | FilePart | JSONPart
PART_TYPES = (TextPart, ReasoningPart, ImagePart, AudioPart, FilePart, JSONPart)


_EXACT_PARTS: frozenset[object] = frozenset(PART_TYPES)


def as_parts(where: str, given: Any) -> tuple[Part, ...]:
    """A str, one part or a sequence of them, as a tuple of parts."""
    if isinstance(given, str):
        return (TextPart(given),)
    if given.__class__ in _EXACT_PARTS:
        return (given,)
    if not is_sequence(given):
        if isinstance(given, PART_TYPES):
            return (given,)
        raise wrong(where, "a str, a part or a sequence of parts", given)
    for part in given:
        if part.__class__ not in _EXACT_PARTS:
            break
    else:
        return tuple(given)
    parts: tuple[Any, ...] = tuple(TextPart(part) if isinstance(part, str) else part for part in given)
    for index, part in enumerate(parts):
        if not isinstance(part, PART_TYPES):
            raise wrong(f"{where}[{index}]", "a part", part)
    return parts


@value
class ToolCall:
    """A call that the model asks for. `arguments` is JSON text, as the model sent it; it may be malformed."""

    id: Text
    name: Text
    arguments: Text = "{}"
    signature: Text = ""
    origin: Text = ""
    extra: Mapping[str, object] = extra_field()
