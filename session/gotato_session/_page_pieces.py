"""The content of messages as pieces of a page: text as it is, data as code, what is binary as words about it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import assert_never

from gotato_py import AudioPart, FilePart, ImagePart, JSONPart, Part, ReasoningPart, TextPart

from ._page import Code, Line, Name, Note, Piece, Said

MOST = 2000
"""So many characters of a result, of arguments and of data are shown, unless all is asked for."""
_HEAD = 1500


def pieces_of(parts: Sequence[Part]) -> Iterator[Piece]:
    """What was said."""
    for part in parts:
        match part:
            case TextPart():
                if part.text:
                    yield Said(part.text)
            case ReasoningPart():
                yield from _reasoning(part)
            case JSONPart():
                yield Code(_pretty(part.value), "json")
            case ImagePart() | AudioPart() | FilePart():
                yield Note(_placeholder(part))
            case _:
                assert_never(part)


def _reasoning(part: ReasoningPart) -> Iterator[Piece]:
    if part.redacted or not part.text:
        yield Note(("reasoning that cannot be read",))
    else:
        yield Note(("reasoning:",))
        yield Said(part.text)


def results_of(parts: Sequence[Part], *, full: bool) -> Iterator[Piece]:
    """What a tool gave: its text as code."""
    for piece in pieces_of(parts):
        match piece:
            case Note():
                yield piece
            case Said():
                yield from clipped(piece.text, "", full=full)
            case Code():
                yield from clipped(piece.text, piece.language, full=full)
            case _:
                assert_never(piece)


def arguments(text: str, *, full: bool) -> Iterator[Piece]:
    """The arguments of a call: laid out if they are JSON, else as the model sent them."""
    try:
        given = json.loads(text or "{}")
    except (ValueError, RecursionError):
        yield from clipped(text, "", full=full)
        return
    if given != {}:
        yield from clipped(_pretty(given), "json", full=full)


def clipped(text: str, language: str, *, full: bool) -> Iterator[Piece]:
    """The text, or its beginning and its end and a note of how much is left out."""
    left = len(text) - MOST
    if full or left <= 0:
        yield Code(text, language)
        return
    yield Code(text[:_HEAD], language)
    yield Note((f"… {left:,} of {len(text):,} characters are left out here …",))
    yield Code(text[_HEAD + left :], language)


def _placeholder(part: ImagePart | AudioPart | FilePart) -> Line:
    """What a part is that cannot be shown, and how large."""
    kind = {ImagePart: "image", AudioPart: "audio", FilePart: "file"}[type(part)]
    named = [Name(each) for each in (getattr(part, "filename", ""), part.media_type) if each]
    words = [word for name in named for word in (" ", name)]
    if part.data is not None:
        return (f"[{kind}", *words, f", {len(part.data):,} bytes]")
    url = getattr(part, "url", None) or ""
    if url.startswith("data:"):
        return (f"[{kind}", *words, f", a data URL of {len(url):,} characters]")
    return (f"[{kind}", *words, " at ", Name(url), "]")


def _pretty(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, indent=2)
    except RecursionError:
        return "(nested too deep to be shown)"
