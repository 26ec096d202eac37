"""What an agent knows of its transcript, so that no turn and no run has to read it again from the start."""

from __future__ import annotations

from collections.abc import Sequence
from json import JSONEncoder

from .checks import RequestHistory
from .messages import AssistantMessage, Message, ToolMessage
from .parts import AudioPart, FilePart, ImagePart, Part, ReasoningPart, TextPart
from .transcript import MessageView, Transcript

_encode = JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def size_of(message: Message) -> int:
    """The bytes of a message's content: text as UTF-8, data as it is."""
    size = 0
    for part in message.result.parts if type(message) is ToolMessage else message.parts:
        size += len(part.text) if type(part) is TextPart and part.text.isascii() else _part_size(part)
    if type(message) is AssistantMessage:
        for call in message.tool_calls:
            size += len(call.arguments) if call.arguments.isascii() else _text_size(call.arguments)
    return size


def _text_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _part_size(part: Part) -> int:
    match part:
        case TextPart() | ReasoningPart():
            return _text_size(part.text)
        case ImagePart() | FilePart() | AudioPart():
            return len(part.data or b"")
        case _:
            return _text_size(_encode(part.value))


class Ledger:
    """The messages in request order, what is open among them, and how large they are; kept up as they are committed."""

    __slots__ = ("count", "history", "last", "size")

    def __init__(self) -> None:
        self.history: RequestHistory = RequestHistory()
        self.count: int = 0
        self.size: int = 0
        self.last: Message | None = None

    def add(self, message: Message) -> None:
        """Takes the next message."""
        self.history.add(message)
        self.count += 1
        self.size += size_of(message)
        self.last = message

    def catch_up(self, transcript: Transcript) -> None:
        """Takes what the transcript holds and this does not."""
        self.take(transcript.messages)

    def take(self, messages: Sequence[Message]) -> None:
        """Takes what is behind the known ones."""
        for index in range(self.count, len(messages)):
            self.add(messages[index])

    def is_whole(self) -> bool:
        """Whether no message was taken by half, as an exception that comes from nowhere may leave it."""
        return self.count == len(self.history) == len(self.history.ordered)

    def continues(self, messages: Sequence[Message]) -> bool:
        """Whether these messages begin with the known ones, told by the first of those, which a compaction replaces,
        and the last."""
        if self.last is None:
            return True
        first = self.history.ordered[0]
        return (
            self.count <= len(messages) and messages[self.count - 1].id == self.last.id and messages[0].id == first.id
        )

    def view(self) -> MessageView:
        """The messages in request order, as they are now."""
        return MessageView(self.history.ordered, len(self.history.ordered))
