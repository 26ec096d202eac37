"""Parts of a message that dialects say alike: what a picture or a file holds, and the words for what is left out."""

from __future__ import annotations

from collections.abc import Sequence

from gotato_py import FilePart, ImagePart, InvalidRequest, JSONPart, Part, ReasoningPart, TextPart, ToolMessage

from ._json import dump_text
from ._media import Media, from_data_url, image, media
from ._turns import NO_TEXT

NO_IMAGES = "(an image was left out: this model takes none)"


def image_held(part: ImagePart) -> Media | None:
    """The picture, of a type that providers take; None for one that is given by URL alone."""
    if part.data is not None:
        return image(part.data, part.media_type)
    held = from_data_url(checked_url(part.url, "an image"))
    return None if held is None else image(held.data, held.media_type)


def file_held(part: FilePart) -> Media | None:
    """What a file holds; None for one that is given by URL alone."""
    if part.data is not None:
        held: Media | None = media(part.data, part.media_type)
    else:
        held = from_data_url(checked_url(part.url, "a file"))
    if held is not None and not held.media_type:
        raise InvalidRequest("a file of unknown type cannot be sent: give its media_type")
    return held


def checked_url(url: str | None, what: str) -> str:
    """The URL of a part; an empty one is refused, since no server takes it."""
    if url is None or not url.strip():
        raise InvalidRequest(f"{what} has an empty URL: give its data or where it is")
    return url


def file_text(part: FilePart, held: Media) -> str | None:
    """The words of a text file, which goes as text since every model reads that; None for any other."""
    if not held.media_type.startswith("text/") and held.media_type != "application/json":
        return None
    title = f"{part.filename}:\n" if part.filename else ""
    return title + (held.data.decode("utf-8", "replace") or NO_TEXT)


def answer_text(part: Part) -> str:
    """A part of an answer as text, which is all that an answer can be; reasoning is none of it."""
    if isinstance(part, TextPart):
        return part.text
    if isinstance(part, JSONPart):
        return dump_text(part.value)
    return "" if isinstance(part, ReasoningPart) else "(an attachment was left out)"


def result_text(message: ToolMessage, texts: Sequence[str]) -> str:
    """The words of a result, from the `texts` of its parts: pieces of one text are joined, texts among others lines."""
    if all(isinstance(part, TextPart) for part in message.parts):
        return message.text
    return "\n".join(texts)
