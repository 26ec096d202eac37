"""A summarizer on a script, and conversations to be summarised."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from gotato_py import AssistantMessage, Message, Scope, ToolCall, ToolMessage, ToolResult, UserMessage

Act = str | BaseException | Callable[[], object]


class FakeSummarizer:
    """Returns, raises or does what its script says, and "Summary 1.", "Summary 2.", … when that is at its end."""

    def __init__(self, *script: Act) -> None:
        self._script = deque(script)
        self.asked: list[tuple[Message, ...]] = []

    def summarize(self, messages: Sequence[Message], scope: Scope) -> str:
        """Remembers what it was asked."""
        self.asked.append(tuple(messages))
        act = self._script.popleft() if self._script else f"Summary {len(self.asked)}."
        if isinstance(act, BaseException):
            raise act
        if isinstance(act, str):
            return act
        done: object = act()
        return done  # type: ignore[return-value]  # a test may want to return what is no str


def user(name: str, words: int = 50) -> UserMessage:
    """A user message of some 50 tokens, with its name for an id."""
    return UserMessage(f"{name} " + "word " * words, id=name)


def answer(name: str, words: int = 50) -> AssistantMessage:
    """An answer of the same size."""
    return AssistantMessage(f"{name} " + "word " * words, id=name)


def calls(name: str, *tools: str) -> AssistantMessage:
    """An answer that calls tools; their calls' ids are their names."""
    return AssistantMessage("", [ToolCall(tool, tool) for tool in tools], id=name)


def result(name: str, index: int, words: int = 50, status: str = "ok") -> ToolMessage:
    """The result of one of the calls of the answer `name`."""
    said = ToolResult(f"c{index}", status, "word " * words, key=f"{name}:{index}")
    return ToolMessage(said, id=f"{name}-r{index}")
