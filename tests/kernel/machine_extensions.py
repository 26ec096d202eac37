"""Extensions that do at each of their points what the plan says, call by call, and then nothing special."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, cast

from gotato_py import (
    Accept,
    Allow,
    Ask,
    AssistantMessage,
    Block,
    Compaction,
    ContextOverflow,
    Event,
    Hooks,
    Message,
    Reject,
    TextPart,
    ToolContext,
    ToolMessage,
    ToolResult,
    ToolResultStatus,
    TurnView,
    UserMessage,
)

from .machine_deeds import RAISES

SAME = "same"
COMMON = (*RAISES, "wrong")
MOODS: dict[str, tuple[str, ...]] = {
    "before_run": ("compact", "compact half", "compact badly", "compact openly"),
    "before_turn": ("compact", "compact half", "compact badly", "compact openly"),
    "transform": ("copy", "add", "rewrite", "drop", "reverse", "empty"),
    "check_answer": ("reject", "reject", "redact"),
    "before_tool": ("block", "block and show", "ask", "ask", "ask", "ask for 5 s", "ask for nothing"),
    "after_tool": ("rewrite", "forge", "huge", "silent"),
    "should_stop": ("stop", "stop", "stop blank"),
    "before_settle": ("veto", "veto", "veto in parts"),
    "on_overflow": ("yes", "compact"),
    "observe": (),
}
"""What an extension may do at a point, beside raising and returning what is wrong there."""
ADVISORY = 1
"""The number of the extension whose failures change nothing."""
COUNT = 3


class Asked(NamedTuple):
    """A line of the log: who was asked at which point about what, and what it did."""

    who: int
    point: str
    subject: object
    does: str

    @property
    def fails(self) -> bool:
        """Whether the extension raised or returned what is wrong there."""
        only_looks = self.point in ("before_run", "before_turn")
        return self.does in RAISES or (self.does in ("wrong", "stop blank") and not only_looks)


class Moody(Protocol):
    """What an extension asks of its world."""

    rewritten: bool
    next_id: Callable[[str], str]

    def note(self, kind: str, value: object) -> None:
        """Writes a line of the log."""
        ...

    def probe(self, at: str) -> None:
        """Called wherever the kernel calls out."""
        ...

    def mood(self, who: int, point: str) -> str:
        """What the plan says that it does now."""
        ...


def extension(world: Moody, who: int, points: Sequence[str]) -> Hooks:
    """The extension of that number, with those points."""
    made = _Scripted(world, who)
    hooks: dict[str, Callable[..., Any]] = {point: getattr(made, point) for point in points}
    return Hooks(**hooks, advisory=who == ADVISORY, name=f"extension {who}")


class _Scripted:
    """Each point notes that it was asked, lets something happen, and does as it is told."""

    def __init__(self, world: Moody, who: int) -> None:
        self._world, self._who = world, who

    def _does(self, point: str, subject: object = "") -> str:
        does = self._world.mood(self._who, point)
        self._world.note("asked", Asked(self._who, point, subject, does))
        self._world.probe("hook")
        if does in RAISES:
            raise RAISES[does]()
        return does

    def before_run(self, view: TurnView) -> object:
        return self._compact(view, self._does("before_run", view.run_id))

    def before_turn(self, view: TurnView) -> object:
        return self._compact(view, self._does("before_turn", (view.run_id, view.turn)))

    def transform(self, view: TurnView, messages: Sequence[Message]) -> Sequence[Message]:
        if self._who == 0:
            self._world.rewritten = False
        does = self._does("transform", (view.run_id, view.turn))
        if does == SAME:
            return messages
        self._world.rewritten = True
        match does:
            case "copy":
                return list(messages)
            case "add":
                return [*messages, UserMessage("and this")]
            case "rewrite":
                return [UserMessage("said otherwise") if isinstance(each, UserMessage) else each for each in messages]
            case "drop":
                return messages[1:]
            case "reverse":
                return list(messages)[::-1]
            case "empty":
                return ()
            case _:
                return cast("Sequence[Message]", object())

    def check_answer(self, view: TurnView, message: AssistantMessage) -> Accept | Reject:
        does = self._does("check_answer", message.id)
        match does:
            case "reject":
                return Reject("not this")
            case "redact":
                return Reject("not a word of this", redact=True)
            case "wrong":
                return cast("Accept", True)
            case _:
                return Accept()

    def before_tool(self, use: ToolContext[Any]) -> Allow | Block | Ask:
        does = self._does("before_tool", use.key)
        match does:
            case "block":
                return Block("not allowed")
            case "block and show":
                return Block("not allowed", result="nothing to see")
            case "ask":
                return Ask("may it?")
            case "ask for 5 s":
                return Ask("may it soon?", expires_in=5)
            case "ask for nothing":
                return Ask("may it at once?", expires_in=0)
            case "wrong":
                return cast("Allow", None)
            case _:
                return Allow()

    def after_tool(self, use: ToolContext[Any], result: ToolResult) -> ToolResult:
        does = self._does("after_tool", use.key)
        match does:
            case "rewrite":
                return ToolResult(result.call_id, result.status, "rewritten", key=result.key)
            case "forge":
                status = ToolResultStatus.NOT_RUN if result.executed else ToolResultStatus.OK
                return ToolResult("forged", status, "forged", key="forged:9")
            case "huge":
                return ToolResult(result.call_id, result.status, "é" * 5000, result.error, result.key)
            case "silent":
                return ToolResult(result.call_id, result.status, (), result.error, result.key)
            case "wrong":
                return cast("ToolResult", "text")
            case _:
                return result

    def should_stop(self, view: TurnView) -> str | None:
        does = self._does("should_stop", (view.run_id, view.turn))
        match does:
            case "stop":
                return f"extension {self._who} has seen enough"
            case "stop blank":
                return ""
            case "wrong":
                return cast("str", True)
            case _:
                return None

    def before_settle(self, view: TurnView) -> UserMessage | None:
        does = self._does("before_settle", (view.run_id, view.turn))
        match does:
            case "veto":
                return UserMessage("not yet")
            case "veto in parts":
                return UserMessage([TextPart("not "), TextPart("yet")], metadata={"why": "not done"})
            case "wrong":
                return cast("UserMessage", "not yet")
            case _:
                return None

    def on_overflow(self, view: TurnView, error: ContextOverflow) -> bool:
        does = self._does("on_overflow", (view.run_id, view.turn))
        match does:
            case "yes":
                return True
            case "compact":
                self._compact(view, "compact half")
                return True
            case "wrong":
                return cast("bool", "yes")
            case _:
                return False

    def observe(self, event: Event) -> None:
        does = self._world.mood(self._who, "observe")
        if does in RAISES:
            raise RAISES[does]()

    def _compact(self, view: TurnView, does: str) -> object:
        """Puts a summary in the place of all, of half, or of what must not be cut."""
        messages = view.transcript.messages
        cuts = safe_cuts(messages)
        replace = cast(Any, view.transcript).replace  # optional in the Protocol
        match does:
            case "compact" | "compact half" if cuts:
                through = messages[cuts[-1 if does == "compact" else len(cuts) // 2]].id
                replace(Compaction(self._summary(), through))
            case "compact badly":
                replace(Compaction(self._summary(), "nobody"))
            case "compact openly" if messages:
                replace(Compaction(self._summary(), messages[-1].id))
            case _:
                pass
        return object() if does == "wrong" else None

    def _summary(self) -> UserMessage:
        return UserMessage("what was said", id=self._world.next_id("summary"))


def safe_cuts(messages: Sequence[Message]) -> list[int]:
    """The positions after which no call is cut from its results."""
    cuts: list[int] = []
    waiting = 0
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            waiting = len(message.tool_calls)
        elif isinstance(message, ToolMessage):
            waiting -= 1
        if waiting == 0:
            cuts.append(index)
    return cuts
