"""What a run announces: one frozen class a kind, a closed union. An event is made only when somebody listens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ._event import ErrorInfo, EventHeader, LazyHash
from ._fields import field, mapping
from ._mapping import EMPTY
from ._value import value
from .messages import AssistantMessage, ToolMessage, UserMessage
from .model import RateLimits
from .parts import NO_USAGE, StopReason, ToolResultStatus, Usage
from .result import RunStatus


@value
class AgentStart(EventHeader):
    """A run begins."""

    kind: ClassVar[str] = "agent_start"


@value
class TurnStart(EventHeader):
    """A turn begins: one model call and the tools that its answer calls."""

    kind: ClassVar[str] = "turn_start"


@value
class ContextBuilt(EventHeader):
    """The request is ready: the hash of its cacheable prefix, how many messages and tools it holds."""

    lazy_hash: LazyHash | str = field(compare=False)
    messages: int
    tools: int
    kind: ClassVar[str] = "context_built"

    @property
    def prefix_hash(self) -> str:
        """The hash of everything but the last message."""
        return self.lazy_hash if isinstance(self.lazy_hash, str) else self.lazy_hash.get()

    def __repr__(self) -> str:
        fields = {name: kept for name, kept in self.to_dict().items() if name != "kind"}
        return f"ContextBuilt({', '.join(f'{name}={kept!r}' for name, kept in fields.items())})"

    def to_dict(self) -> dict[str, Any]:
        """The event as plain JSON types, `kind` first."""
        told = EventHeader.to_dict(self)
        del told["lazy_hash"]
        return {**told, "prefix_hash": self.prefix_hash}

    def __reduce__(self) -> tuple[Any, ...]:
        header = (self.agent_id, self.run_id, self.sequence, self.turn, self.timestamp)
        return type(self), (*header, self.prefix_hash, self.messages, self.tools)


@value
class MessageStart(EventHeader):
    """The first piece of an answer has arrived. Followed by exactly one `message_end` or `message_discarded`."""

    message_id: str
    role: str = "assistant"
    kind: ClassVar[str] = "message_start"


@value
class MessageUpdate(EventHeader):
    """A further piece of the answer's text: the new piece, not the text so far."""

    text: str
    kind: ClassVar[str] = "message_update"


@value
class ReasoningUpdate(EventHeader):
    """A further piece of what the model thinks."""

    text: str
    kind: ClassVar[str] = "reasoning_update"


@value
class ToolCallUpdate(EventHeader):
    """A further piece of a call's arguments; `index` is the call's position in the answer."""

    index: int
    name: str
    fragment: str
    kind: ClassVar[str] = "tool_call_update"


@value
class MessageEnd(EventHeader):
    """A user or assistant message is in the transcript. A user message arrives whole and has no `message_start`."""

    message: UserMessage | AssistantMessage
    kind: ClassVar[str] = "message_end"


@value
class MessageDiscarded(EventHeader):
    """What was shown of an answer is taken back: nothing of it is in the transcript."""

    message_id: str
    error: ErrorInfo | None = None
    kind: ClassVar[str] = "message_discarded"


@value
class ModelRetry(EventHeader):
    """The model is asked again after `delay` seconds; `attempt` is the number of the attempt that failed."""

    attempt: int
    delay: float
    error: ErrorInfo | None = None
    kind: ClassVar[str] = "model_retry"


@value
class RateLimitsUpdate(EventHeader):
    """What is left of the account's limits, as the provider said."""

    limits: RateLimits
    kind: ClassVar[str] = "rate_limits"


@value
class ToolExecutionStart(EventHeader):
    """A tool is about to run; "started" is already recorded."""

    key: str
    name: str
    call_id: str = ""
    arguments: Mapping[str, object] = field(default=EMPTY, check=mapping)
    kind: ClassVar[str] = "tool_execution_start"


@value
class ToolExecutionUpdate(EventHeader):
    """How far a tool has come, in its own words."""

    key: str
    name: str
    text: str = ""
    kind: ClassVar[str] = "tool_execution_update"


@value
class ToolExecutionEnd(EventHeader):
    """A tool has ended: `exception` is the type's name of what it raised, or ""; `elapsed` is in seconds."""

    key: str
    name: str
    status: ToolResultStatus
    executed: bool | None = None
    exception: str = ""
    elapsed: float = 0.0
    call_id: str = ""
    kind: ClassVar[str] = "tool_execution_end"


@value
class ToolResultCommitted(EventHeader):
    """The result of a call is in the transcript."""

    message: ToolMessage
    kind: ClassVar[str] = "tool_result_committed"


@value
class ControlDelivered(EventHeader):
    """A message that was queued during the run is in the transcript; `control` is "steer" or "follow_up"."""

    message_id: str
    control: str
    kind: ClassVar[str] = "control_delivered"


@value
class ExtensionFailed(EventHeader):
    """An extension raised at `point`; `error` holds the type and text of what it raised."""

    extension: str
    point: str
    error: ErrorInfo | None = None
    kind: ClassVar[str] = "extension_failed"


@value
class SessionCompacted(EventHeader):
    """A summary stands for the messages up to `through`."""

    through: str
    tokens_before: int = 0
    tokens_after: int = 0
    kind: ClassVar[str] = "session_compacted"


@value
class TurnEnd(EventHeader):
    """A turn has ended: its tokens, why the model stopped, and how long it took in seconds."""

    usage: Usage = NO_USAGE
    stop_reason: StopReason = StopReason.NONE
    elapsed: float = 0.0
    kind: ClassVar[str] = "turn_end"


@value
class AgentEnd(EventHeader):
    """The run has ended; no event of it follows."""

    status: RunStatus
    error: ErrorInfo | None = None
    usage: Usage = NO_USAGE
    kind: ClassVar[str] = "agent_end"


Event = (
    AgentStart
    | TurnStart
    | ContextBuilt
    | MessageStart
    | MessageUpdate
    | ReasoningUpdate
    | ToolCallUpdate
    | MessageEnd
    | MessageDiscarded
    | ModelRetry
    | RateLimitsUpdate
    | ToolExecutionStart
    | ToolExecutionUpdate
    | ToolExecutionEnd
    | ToolResultCommitted
    | ControlDelivered
    | ExtensionFailed
    | SessionCompacted
    | TurnEnd
    | AgentEnd
)
