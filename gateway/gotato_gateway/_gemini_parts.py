"""What users and tools say, as Gemini's parts ("Content" and "Part", Gemini API reference).

Pictures, sound and files go as `inlineData`, text files as text. Those given by URL go as `fileData`; which URLs it
takes (of its own Files API, of Cloud Storage, public ones) the server says. Names of files and the hint for a picture's
resolution are left out, since this API has no place for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from gotato_py import AudioPart, FilePart, ImagePart, InvalidRequest, JSONPart, Part, TextPart

from ._common_parts import NO_IMAGES, file_held, file_text, image_held
from ._json import Object, dump_text
from ._media import Media, media
from .quirks import Quirks

_TYPES = {
    "jpg": "image/jpeg", "jpeg": "image/jpeg", "png": "image/png", "gif": "image/gif", "webp": "image/webp",
    "pdf": "application/pdf", "txt": "text/plain", "html": "text/html", "csv": "text/csv", "md": "text/markdown",
    "wav": "audio/wav", "mp3": "audio/mp3", "mp4": "video/mp4", "webm": "video/webm", "mov": "video/quicktime",
}  # fmt: skip


def wire_parts(parts: Iterable[Part], quirks: Quirks) -> list[Object]:
    """The parts to send, without blank texts. Raises `InvalidRequest` for media that no model takes."""
    return [sent for part in parts if (sent := _part(part, quirks)) is not None]


def _part(part: Part, quirks: Quirks) -> Object | None:
    match part:
        case TextPart():
            return {"text": part.text} if part.text.strip() else None
        case JSONPart():
            return {"text": dump_text(part.value)}
        case ImagePart():
            return _image(part, quirks)
        case AudioPart():
            return _inline(_sound(part))
        case FilePart():
            return _file(part)
        case _:
            return None


def _image(part: ImagePart, quirks: Quirks) -> Object:
    if not quirks.images:
        return {"text": NO_IMAGES}
    held = image_held(part)
    return _by_url(part.url or "", part.media_type) if held is None else _inline(held)


def _sound(part: AudioPart) -> Media:
    sound = media(part.data, part.media_type)
    if not sound.media_type.startswith("audio/"):
        raise InvalidRequest(f"audio of type {sound.media_type or 'unknown'} cannot be sent: give its media_type")
    return sound


def _file(part: FilePart) -> Object:
    held = file_held(part)
    if held is None:
        return _by_url(part.url or "", part.media_type)
    words = file_text(part, held)
    return _inline(held) if words is None else {"text": words}


def _inline(held: Media) -> Object:
    return {"inlineData": {"mimeType": held.media_type, "data": held.base64}}


def _by_url(url: str, label: str) -> Object:
    """The server fetches it; its type is told where the label or the end of the path shows it."""
    label = label.split(";", maxsplit=1)[0].strip().lower()
    found = label or _TYPES.get(urlsplit(url).path.rpartition(".")[2].lower(), "")
    return {"fileData": {"fileUri": url, **({"mimeType": found} if found else {})}}
