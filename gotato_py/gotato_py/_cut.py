"""Results that are too large, cut to a limit: the head, the tail, and a line between them that says what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from json import JSONEncoder

from .parts import AudioPart, FilePart, ImagePart, JSONPart, Part, ReasoningPart, TextPart

MAX_PARTS = 1000
"""More parts than this are too many, however small: texts are joined, and the middle is left out."""

_CHUNK = 1 << 16
_json_text = JSONEncoder(ensure_ascii=False).encode


def bound_parts(parts: tuple[Part, ...], max_bytes: int | None) -> tuple[Part, ...]:
    """The parts, at most `max_bytes` of text and data and `MAX_PARTS` parts; None is no limit.

    What is too large keeps its beginning and its end, cut between characters, and gets a line between them with the
    number of bytes left out; that line counts too. Parts are taken whole but for text. One whose data alone is over
    the limit is replaced by a line that says so. A limit too small for the line holds the beginning alone.
    """
    if max_bytes is None or not parts:
        return parts
    if len(parts) == 1 and type(parts[0]) is TextPart and len(parts[0].text) * 4 <= max_bytes:
        return parts
    if max_bytes == 0:
        return ()
    if len(parts) > MAX_PARTS:
        parts = _joined(parts)
    fitting = [_replaced(part, max_bytes) for part in parts]
    sizes = [_size(part) for part in fitting]
    total = sum(sizes)
    if total <= max_bytes and len(fitting) <= MAX_PARTS:
        return tuple(fitting)
    room = max_bytes - len(_note(total))
    if room < 2:
        return tuple(_take(fitting, sizes, max_bytes, 1))
    head = _take(fitting, sizes, room - room // 2, MAX_PARTS // 2)
    tail = _take_back(fitting, sizes, room // 2, MAX_PARTS // 2 - 1)
    note = TextPart(_note(total - sum([_size(part) for part in head]) - sum([_size(part) for part in tail])))
    return _joined((*head, note, *tail)) if len(fitting) == 1 else (*head, note, *tail)


def bound_text(text: str, max_bytes: int | None) -> str:
    """The text, cut in the same way."""
    bounded = bound_parts((TextPart(text),), max_bytes)
    return "".join([part.text for part in bounded if isinstance(part, TextPart)])


def _note(left_out: int) -> str:
    return f"\n[... {left_out} bytes left out ...]\n"


def _take(parts: Sequence[Part], sizes: Sequence[int], room: int, most: int) -> list[Part]:
    """As much of the beginning as there is room for."""
    taken: list[Part] = []
    for part, size in zip(parts[:most], sizes, strict=False):
        if size > room:
            if type(part) is TextPart and room > 0:
                taken.append(TextPart(_first_bytes(part.text, room)))
            break
        taken.append(part)
        room -= size
    return taken


def _take_back(parts: Sequence[Part], sizes: Sequence[int], room: int, most: int) -> list[Part]:
    """As much of the end as there is room for."""
    taken: list[Part] = []
    for part, size in zip(reversed(parts[-most:]), reversed(sizes), strict=False):
        if size > room:
            if type(part) is TextPart and room > 0:
                taken.append(TextPart(_last_bytes(part.text, room)))
            break
        taken.append(part)
        room -= size
    return taken[::-1]


def _joined(parts: Sequence[Part]) -> tuple[Part, ...]:
    """The parts, texts that stand side by side made one."""
    made: list[Part] = []
    texts: list[str] = []
    for part in parts:
        if type(part) is TextPart:
            texts.append(part.text)
            continue
        if texts:
            made.append(TextPart("".join(texts)))
            texts = []
        made.append(part)
    if texts:
        made.append(TextPart("".join(texts)))
    return tuple(made)


def _replaced(part: Part, max_bytes: int) -> Part:
    """The part, or the text that stands for data that can never fit."""
    if type(part) is TextPart or _size(part) <= max_bytes:
        return part
    if type(part) is JSONPart:
        return TextPart(_json_text(part.value))
    kind = getattr(part, "media_type", "") or type(part).__name__
    return TextPart(f"[{kind} of {_size(part)} bytes left out: the limit is {max_bytes}]")


def _size(part: Part) -> int:
    match part:
        case TextPart():
            return _utf8_size(part.text)
        case ReasoningPart():
            return _utf8_size(part.text) + len(part.signature)
        case ImagePart() | FilePart() | AudioPart():
            url = "" if isinstance(part, AudioPart) else part.url or ""
            return len(part.data or b"") + _utf8_size(url)
        case JSONPart():
            return _utf8_size(_json_text(part.value))


def _utf8_size(text: str) -> int:
    """The bytes of the text in UTF-8, without making them all at once."""
    if text.isascii():
        return len(text)
    return sum([len(text[at : at + _CHUNK].encode()) for at in range(0, len(text), _CHUNK)])


def _first_bytes(text: str, size: int) -> str:
    # No character is less than a byte, so `size` characters hold all the bytes wanted; "ignore" drops a cut one.
    return text[:size].encode()[:size].decode("utf-8", "ignore")


def _last_bytes(text: str, size: int) -> str:
    return text[-size:].encode()[-size:].decode("utf-8", "ignore")
