"""Parts of a message as content blocks of the Messages API ("Vision", "PDF support" in Anthropic's documentation).

Sound cannot be said and is refused, and so is a file that is neither a text, a PDF nor a picture. The hint for the
resolution of a picture (`ImagePart.detail`) is left out: there is no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gotato_py import AudioPart, FilePart, ImagePart, InvalidRequest, JSONPart, Part, TextPart

from ._common_parts import NO_IMAGES, file_held, image_held
from ._json import Object, dump_text
from ._media import IMAGE_TYPES, Media, media
from ._turns import NO_TEXT
from .quirks import Quirks

_PDF = "application/pdf"


def text_block(said: str) -> Object:
    """Words; blank ones are refused by the server."""
    return {"type": "text", "text": said}


def blocks_of(parts: Iterable[Part], quirks: Quirks) -> list[Object]:
    """The blocks of a user's message or of a tool's result; blank texts are left out."""
    return [block for part in parts for block in _block(part, quirks)]


def _block(part: Part, quirks: Quirks) -> Iterator[Object]:
    if isinstance(part, TextPart):
        if part.text.strip():
            yield text_block(part.text)
    elif isinstance(part, JSONPart):
        yield text_block(dump_text(part.value))
    elif isinstance(part, ImagePart):
        yield _image_block(image_held(part) if quirks.images else None, part.url, quirks)
    elif isinstance(part, FilePart):
        yield _file_block(part, quirks)
    elif isinstance(part, AudioPart):
        raise InvalidRequest("audio cannot be sent in this dialect: send its transcript as text")


def _image_block(held: Media | None, url: str | None, quirks: Quirks) -> Object:
    if not quirks.images:
        return text_block(NO_IMAGES)
    return {"type": "image", "source": {"type": "url", "url": url} if held is None else _base64(held)}


def _file_block(part: FilePart, quirks: Quirks) -> Object:
    held = file_held(part)
    kind = media(b"", part.media_type).media_type if held is None else held.media_type
    if kind in IMAGE_TYPES:
        return _image_block(held, part.url, quirks)
    title = {"title": part.filename} if part.filename.strip() else {}
    return {"type": "document", "source": _document(held, kind, part.url), **title}


def _document(held: Media | None, kind: str, url: str | None) -> Object:
    if held is None:
        if kind not in ("", _PDF):
            raise InvalidRequest(f"a file of type {kind} cannot be sent by URL in this dialect: pass its data")
        return {"type": "url", "url": url}
    if kind == _PDF:
        return _base64(held)
    if kind.startswith("text/") or kind == "application/json":
        words = held.data.decode("utf-8", "replace")
        return {"type": "text", "media_type": "text/plain", "data": words if words.strip() else NO_TEXT}
    raise InvalidRequest(f"a file of type {kind} cannot be sent in this dialect: convert it to PDF or text")


def _base64(held: Media) -> Object:
    return {"type": "base64", "media_type": held.media_type, "data": held.base64}
