"""Parts of a message for both of OpenAI's dialects: what they have in common, and what neither can say.

"Create chat completion" and "Create a model response" in OpenAI's API reference.
"""

from __future__ import annotations

from collections.abc import Collection

from gotato_py import AudioPart, ImagePart, InvalidRequest

from ._common_parts import image_held
from ._json import Object
from ._media import media

_AUDIO = {"audio/wav": "wav", "audio/mp3": "mp3"}


def image_url(part: ImagePart) -> str:
    """The URL of a picture; one that is held here becomes a `data:` URL of its real type."""
    held = image_held(part)
    return part.url or "" if held is None else held.data_url


def image_detail(part: ImagePart, words: Collection[str]) -> str:
    """The hint for the resolution, where it is one of the dialect's words; else the choice is the server's."""
    return part.detail if part.detail in words else "auto"


def audio_block(part: AudioPart) -> Object:
    """Sound, in the block that both dialects have for it."""
    sound = media(part.data, part.media_type)
    form = _AUDIO.get(sound.media_type)
    if form is None:
        raise InvalidRequest(f"audio of type {sound.media_type or 'unknown'} cannot be sent: convert it to wav or mp3")
    return {"type": "input_audio", "input_audio": {"data": sound.base64, "format": form}}
