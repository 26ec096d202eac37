"""What a compaction leaves in the context, and when it is refused; the same for every transcript."""

from __future__ import annotations

from collections.abc import Sequence

from ._fields import wrong
from ._value import replace
from .checks import RequestHistory
from .errors import InvalidArgument
from .ids import random_ids
from .messages import Message, ToolMessage, UserMessage
from .parts import TextPart
from .records import Compaction

LAST_USER = "last_user"
"""The key in a summary's `metadata` under which the id of the last user message that it covers is kept."""


def compacted(messages: Sequence[Message], compaction: Compaction) -> tuple[Compaction, list[Message]]:
    """The compaction as it is kept, and the messages that it leaves: its summary and what follows `through`.

    The kept summary has an id, and in `metadata["last_user"]` the id of the last user message that it covers, so that
    a redelivered message is still recognised; an earlier summary hands on its own.

    Raises `InvalidArgument`, and nothing is changed, for an empty summary, a `through` that is not in `messages`, a cut
    between a call and its results, and a cut after a call that is open.
    """
    if not isinstance(compaction, Compaction):
        raise wrong("replace: compaction", "a Compaction", compaction)
    if _says_nothing(compaction.summary):
        raise InvalidArgument("replace: the summary is empty; give it some text", operation="Transcript.replace")
    cut = _end_of_cut(messages, compaction.through)
    covered = messages[:cut]
    if not RequestHistory(_last_batch(covered)).settled:
        said = "cuts between a call and its results" if _goes_on(messages, cut) else "covers a call that is still open"
        raise InvalidArgument(f"replace: through {said}; cut before its message", operation="Transcript.replace")
    summary = compaction.summary
    last_user = _last_user(covered)
    if last_user:
        summary = replace(summary, metadata={**summary.metadata, LAST_USER: last_user})
    if not summary.id:
        summary = replace(summary, id=random_ids("message"))
    kept = compaction if summary is compaction.summary else replace(compaction, summary=summary)
    return kept, [summary, *messages[cut:]]


def _says_nothing(summary: UserMessage) -> bool:
    return all(isinstance(part, TextPart) and not part.text.strip() for part in summary.parts)


def _end_of_cut(messages: Sequence[Message], through: str) -> int:
    if through:
        for index, message in enumerate(messages):
            if message.id == through:
                return index + 1
    raise InvalidArgument("replace: through is the id of no message in `messages`", operation="Transcript.replace")


def _last_batch(messages: Sequence[Message]) -> list[Message]:
    """The last message that is no result, and the results behind it."""
    start = len(messages)
    while start and isinstance(messages[start - 1], ToolMessage):
        start -= 1
    return list(messages[max(0, start - 1) :])


def _goes_on(messages: Sequence[Message], cut: int) -> bool:
    return cut < len(messages) and isinstance(messages[cut], ToolMessage)


def _last_user(messages: Sequence[Message]) -> str:
    for message in reversed(messages):
        if isinstance(message, UserMessage):
            earlier = message.metadata.get(LAST_USER)
            return earlier if isinstance(earlier, str) else message.id
    return ""
