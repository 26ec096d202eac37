"""Pictures, sound and files: what their bytes are, whatever their label says.

Providers compare the label with the first bytes, and a wrong one is refused in this and every later request.
"""

from __future__ import annotations

import base64
import binascii
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from gotato_py import InvalidRequest

IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
"""The pictures that every provider takes (OpenAI's and Anthropic's documentation on vision)."""

_ALIASES = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/mpeg": "audio/mp3",
}


class Media(NamedTuple):
    """Bytes and what they are."""

    media_type: str
    data: bytes

    @property
    def base64(self) -> str:
        """The bytes as base64 text."""
        return base64.b64encode(self.data).decode("ascii")

    @property
    def data_url(self) -> str:
        """The bytes as a `data:` URL (RFC 2397)."""
        return f"data:{self.media_type};base64,{self.base64}"


def sniff(data: bytes) -> str:
    """The media type that the first bytes show, "" if they show none that is known here."""
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(data[8:12], "")
    if data.startswith(b"ID3") or (data[:1] == b"\xff" and data[1:2] in (b"\xfb", b"\xf3", b"\xf2")):
        return "audio/mp3"
    if data.startswith(b"%PDF-"):
        return "application/pdf"
    return ""


def media(data: bytes, label: str) -> Media:
    """The bytes with their real type: what they show, else what the label says."""
    label = label.split(";", maxsplit=1)[0].strip().lower()
    return Media(sniff(data) or _ALIASES.get(label, label), data)


def image(data: bytes, label: str) -> Media:
    """A picture of a type that providers take. Others are refused before they get into a history that is sent again."""
    found = media(data, label)
    if found.media_type not in IMAGE_TYPES:
        kind, wanted = found.media_type or "unknown", ", ".join(IMAGE_TYPES)
        raise InvalidRequest(f"an image of type {kind} cannot be sent: convert it to one of {wanted}")
    return found


def from_data_url(url: str) -> Media | None:
    """What a `data:` URL holds, also with line breaks in it; None for any other URL."""
    if url[:5].lower() != "data:":
        return None
    head, comma, body = url[5:].partition(",")
    label, *parameters = head.split(";")
    try:
        if not comma:
            raise ValueError("no comma")
        if "base64" in (parameter.strip().lower() for parameter in parameters):
            return media(base64.b64decode("".join(body.split()), validate=True), label)
        return media(unquote_to_bytes(body), label)
    except (ValueError, binascii.Error):
        raise InvalidRequest("a data: URL of a part is malformed") from None
