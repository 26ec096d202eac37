"""The three messages and the tool result. Frozen values: safe to share between threads, sessions and forks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ._fields import Text, extra_field, field, instance_of, mapping, wrong
from ._guards import is_sequence
from ._mapping import EMPTY
from ._value import value
from .parts import NO_USAGE, Part, StopReason, TextPart, ToolCall, ToolResultStatus, Usage, as_parts, member_of

PartsLike = str | Part | Sequence[Part | str]
"""What a message takes for its parts: a str, one part, or a sequence of them."""

EXECUTED: Mapping[str, bool | None] = {
    "ok": True,
    "failed": True,
    "not_run": False,
    "blocked": False,
    "cancelled": None,
    "timed_out": None,
    "pending": None,
}

OUTCOME_WORDS: Mapping[ToolResultStatus, str] = {
    ToolResultStatus.OK: "",
    ToolResultStatus.FAILED: "The tool ran and failed: ",
    ToolResultStatus.NOT_RUN: "The tool was not run: ",
    ToolResultStatus.BLOCKED: "The call was blocked and the tool not run: ",
    ToolResultStatus.CANCELLED: "The tool was started and gave no answer, its effect is unknown: ",
    ToolResultStatus.TIMED_OUT: "The tool was started and gave no answer in time, its effect is unknown: ",
    ToolResultStatus.PENDING: "The call was accepted and its work goes on elsewhere: ",
}
"""How each outcome is told to the model: the words decide whether a retry is safe."""


def _metadata() -> Any:
    return field(default=EMPTY, check=mapping, compare=False)


def _message_metadata() -> Any:
    return field(default=EMPTY, check=mapping, compare=False, kw_only=True)


def _identity() -> Any:
    return field(default="", compare=False, kw_only=True)


def text_of(parts: tuple[Part, ...]) -> str:
    """The text parts, joined."""
    if len(parts) == 1 and type(parts[0]) is TextPart:
        return parts[0].text
    return "".join([part.text for part in parts if type(part) is TextPart])


@value
class ToolResult:
    """What became of one call.

    `parts` is what the model is told; where there are none and the tool gave no answer, `.text` says the outcome in
    words. `key` is "<assistant message id>:<index of the call>", set by the kernel, the same after a restart.
    """

    call_id: Text
    status: ToolResultStatus = field(check=member_of(ToolResultStatus))
    parts: tuple[Part, ...] = field(default=(), check=as_parts)
    error: Text = ""
    key: Text = ""
    metadata: Mapping[str, object] = _metadata()
    extra: Mapping[str, object] = extra_field()

    if TYPE_CHECKING:  # parts and status take more than the attributes hold

        def __init__(
            self,
            call_id: str,
            status: ToolResultStatus | str,
            parts: PartsLike = (),
            error: str = "",
            key: str = "",
            metadata: Mapping[str, object] = EMPTY,
            *,
            extra: Mapping[str, object] = EMPTY,
        ) -> None: ...

    @property
    def executed(self) -> bool | None:
        """Whether the tool ran: True, False, or None where nobody can know."""
        return EXECUTED[self.status]

    @property
    def text(self) -> str:
        """The text that the model is told."""
        if self.parts or self.status == "ok":
            return text_of(self.parts)
        return OUTCOME_WORDS[self.status] + (self.error or "no reason given")


@value
class UserMessage:
    """What a user, or the program on its behalf, says."""

    parts: tuple[Part, ...] = field(check=as_parts)
    id: Text = _identity()
    metadata: Mapping[str, object] = _message_metadata()
    extra: Mapping[str, object] = extra_field("role")
    role: ClassVar[Literal["user"]] = "user"

    if TYPE_CHECKING:  # parts takes more than the attribute holds

        def __init__(
            self,
            parts: PartsLike,
            *,
            id: str = "",
            metadata: Mapping[str, object] = EMPTY,
            extra: Mapping[str, object] = EMPTY,
        ) -> None: ...

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return text_of(self.parts)


def _calls(where: str, given: Any) -> tuple[ToolCall, ...]:
    if not is_sequence(given):
        raise wrong(where, "a sequence of ToolCall", given)
    for index, call in enumerate(given):
        if not isinstance(call, ToolCall):
            raise wrong(f"{where}[{index}]", "a ToolCall", call)
    return tuple(given)


@value
class AssistantMessage:
    """What the model answered: parts, then the calls that it asks for."""

    parts: tuple[Part, ...] = field(default=(), check=as_parts)
    tool_calls: tuple[ToolCall, ...] = field(default=(), check=_calls)
    usage: Usage = field(default=NO_USAGE, check=instance_of(Usage), kw_only=True)
    stop_reason: StopReason = field(default=StopReason.NONE, check=member_of(StopReason), kw_only=True)
    model: Text = field(default="", kw_only=True)
    id: Text = _identity()
    metadata: Mapping[str, object] = _message_metadata()
    extra: Mapping[str, object] = extra_field("role")
    role: ClassVar[Literal["assistant"]] = "assistant"

    if TYPE_CHECKING:  # parts, tool_calls and stop_reason take more than the attributes hold

        def __init__(
            self,
            parts: PartsLike = (),
            tool_calls: Sequence[ToolCall] = (),
            *,
            usage: Usage = NO_USAGE,
            stop_reason: StopReason | str = StopReason.NONE,
            model: str = "",
            id: str = "",
            metadata: Mapping[str, object] = EMPTY,
            extra: Mapping[str, object] = EMPTY,
        ) -> None: ...

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return text_of(self.parts)

    @property
    def truncated(self) -> bool:
        """Whether the model was cut off by its token limit."""
        return self.stop_reason is StopReason.MAX_TOKENS


@value
class ToolMessage:
    """The result of one call, as a message of the transcript."""

    result: ToolResult = field(check=instance_of(ToolResult))
    id: Text = _identity()
    metadata: Mapping[str, object] = _message_metadata()
    extra: Mapping[str, object] = extra_field("role")
    role: ClassVar[Literal["tool"]] = "tool"

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the result."""
        return self.result.parts

    @property
    def text(self) -> str:
        """The text that the model is told."""
        return self.result.text


Message = UserMessage | AssistantMessage | ToolMessage
MESSAGE_TYPES = (UserMessage, AssistantMessage, ToolMessage)
