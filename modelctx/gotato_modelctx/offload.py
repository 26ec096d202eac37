"""One tool result that is too large, out of the way: the request shows its ends, the transcript keeps all of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from gotato_py import (
    InvalidArgument,
    JSONPart,
    Message,
    MessageView,
    Part,
    TextPart,
    ToolMessage,
    TurnView,
    replace,
)

from ._arguments import check_count, check_counter
from ._clipping import clip_tokens
from ._growth import Growth
from ._per_transcript import PerTranscript
from .tokens import TokenCounter, message_tokens

_BESIDE = 40
"""Tokens that the note takes, about."""


class Offload:
    """An extension that shows a tool result of more than `max_tokens` tokens by its head, its tail and a note.

    `store(text)` keeps the whole text and returns what the model is to know it by, a name or a path; a tool of the
    application reads it from there. It has to return the same for the same text (a name made from a hash does), also
    in another process: then each request shows the same bytes, and the provider's cache holds. It is called once a
    result, before the first request that shows the note. If it raises, the result goes out whole, and the failure is
    told by an `extension_failed` event.

    Only requests are changed. Pictures, sound and files of a result stay; about `shown_tokens` tokens of its text do.
    Nothing is looked at twice while the history grows. Beside an AutoCompact, that one's `measure` is `offload.tokens`.
    Raises `InvalidArgument` for what these cannot be.
    """

    advisory = True
    """The kernel tells of its failures and sends what is there."""

    def __init__(
        self,
        store: Callable[[str], str],
        *,
        max_tokens: int = 8000,
        shown_tokens: int = 1000,
        counter: TokenCounter | None = None,
        name: str = "Offload",
    ) -> None:
        if not callable(store):
            raise InvalidArgument("Offload.store must be a callable store(text) -> str")
        for field, given in (("max_tokens", max_tokens), ("shown_tokens", shown_tokens)):
            check_count(f"Offload.{field}", given, _BESIDE)
        check_counter("Offload.counter", counter)
        if shown_tokens > max_tokens:
            raise InvalidArgument("Offload.shown_tokens must not be above max_tokens")
        self.name = name
        self._store, self._most, self._shown, self._counter = store, max_tokens, shown_tokens, counter
        self._known = PerTranscript(_Shown)

    def __repr__(self) -> str:
        return f"Offload(max_tokens={self._most}, shown_tokens={self._shown})"

    def transform(self, view: TurnView, messages: Sequence[Message]) -> Sequence[Message]:
        """The messages with what is too large replaced; the same object where nothing is."""
        return self._known.of(view.transcript).follow(messages, self._replaced)

    def tokens(self, message: Message) -> int:
        """An estimate of what a message takes when it is sent."""
        size = message_tokens(message, self._counter)
        if isinstance(message, ToolMessage) and self._large_text(message, size) is not None:
            media = sum(message_tokens(_with(message, [part])) for part in _media(message))
            return min(size, self._shown + _BESIDE + media)
        return size

    def _large_text(self, message: ToolMessage, size: int) -> str | None:
        """The text of a result, if it is too large; None too where what is large in it is no text."""
        if size <= self._most:
            return None
        text = "\n".join(_words(part) for part in message.parts if isinstance(part, TextPart | JSONPart))
        text = text if message.parts else message.text
        return text if message_tokens(_with(message, [TextPart(text)]), self._counter) > self._most else None

    def _replaced(self, message: Message) -> Message:
        if not isinstance(message, ToolMessage):
            return message
        text = self._large_text(message, message_tokens(message, self._counter))
        if text is None:
            return message
        reference = self._store(text)
        if not isinstance(reference, str) or not reference:
            raise InvalidArgument("Offload.store must return a str that is not empty: where the whole text is")

        def note(count: int) -> str:
            return f"\n[… {count} characters left out of the middle; the whole result is stored as {reference} …]\n"

        shown = clip_tokens(text, self._shown, counter=self._counter, note=note) or note(len(text)).strip()
        return _with(message, [TextPart(shown), *_media(message)])


def _words(part: TextPart | JSONPart) -> str:
    return part.text if isinstance(part, TextPart) else json.dumps(part.value, ensure_ascii=False)


def _media(message: ToolMessage) -> list[Part]:
    return [part for part in message.parts if not isinstance(part, TextPart | JSONPart)]


def _with(message: ToolMessage, parts: Sequence[Part]) -> ToolMessage:
    return replace(message, result=replace(message.result, parts=tuple(parts)))


class _Shown:
    """A history that grows, as it is shown: each message is looked at once, and what was shown stays as it was."""

    __slots__ = ("_growth", "_list", "_replaced")

    def __init__(self) -> None:
        self._growth = Growth()
        self._list: list[Message] | None = None  # all of them, once one is shown otherwise
        self._replaced: dict[str, tuple[ToolMessage, Message]] = {}  # by id: what it was, and how it is shown

    def follow(self, messages: Sequence[Message], show: Callable[[Message], Message]) -> Sequence[Message]:
        """The messages as they are shown."""
        known, earlier = self._growth.known(messages), self._replaced
        if not known or (self._list is not None and len(self._list) != known):  # interrupted between the two
            known, self._list, self._replaced = 0, None, {}
        for index in range(known, len(messages)):
            message = messages[index]
            shown = self._look_up(earlier, message) or show(message)
            if shown is not message and isinstance(message, ToolMessage):
                self._replaced[message.id] = (message, shown)
                if self._list is None:
                    self._list = list(messages[:index])
            if self._list is not None:
                self._list.append(shown)
            self._growth.know(messages, index + 1)  # now: the next one may raise
        return messages if self._list is None else MessageView(self._list, len(messages))

    def _look_up(self, earlier: dict[str, tuple[ToolMessage, Message]], message: Message) -> Message | None:
        known = earlier.get(message.id)
        return known[1] if known is not None and known[0] == message else None
