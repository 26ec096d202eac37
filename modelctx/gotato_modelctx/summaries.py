"""What a summary is in a transcript: a user message that stands for what came before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from gotato_py import Message, Usage, UserMessage

MARK = "summary"
"""The key in the `metadata` of a message that `compact` has put in the place of others."""

FRAME = "Summary of the conversation so far; the messages that it stands for are not shown:\n\n"
"""What the summarizers of this package write above their summary: the model sees it as a user's words."""


class Summary(str):
    """A summary as its summarizer returns it: its text, and the tokens that it took to make."""

    __slots__ = ("usage",)

    usage: Usage

    def __new__(cls, text: str, usage: Usage = Usage()) -> Self:  # noqa: B008  # a frozen value
        """`usage` is that of every model call that was made for it."""
        made = super().__new__(cls, text)
        made.usage = usage
        return made


def summary_message(text: str) -> UserMessage:
    """The message that shows a summary, marked as one; its transcript gives it an id."""
    return UserMessage(str(text), metadata={MARK: True})


def is_summary(message: Message) -> bool:
    """Whether `compact` has put it in the place of others."""
    return isinstance(message, UserMessage) and message.metadata.get(MARK) is True


def split_summary(messages: Sequence[Message]) -> tuple[str, Sequence[Message]]:
    """The text of the summary that the messages begin with, without its frame ("" where there is none); the others."""
    if messages and is_summary(messages[0]):
        return messages[0].text.removeprefix(FRAME), messages[1:]
    return "", messages
