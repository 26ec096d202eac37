"""Texts that are too long: their head, their tail, and a note of what is left out between them."""

from __future__ import annotations

from collections.abc import Callable

from .tokens import TokenCounter, estimate_tokens

Note = Callable[[int], str]
"""What stands where so many characters were left out."""


def left_out(count: int) -> str:
    """The usual note."""
    return f"\n[… {count} characters left out …]\n"


def clip(text: str, most: int, note: Note = left_out) -> str:
    """The text, or, where it has more than `most` characters, as many of its head and tail, with a note between."""
    if len(text) <= most:
        return text
    tail = most // 2
    head = most - tail
    return text[:head] + note(len(text) - most) + text[len(text) - tail :]


def clip_tokens(text: str, most: int, *, counter: TokenCounter | None = None, note: Note = left_out) -> str:
    """The same with a bound in estimated tokens, which the note counts for; "" if the note alone is over it."""
    clipped: str = text
    kept: int = len(text)
    size = estimate_tokens(text, counter=counter)
    while size > most:
        if not kept:
            return ""
        kept = min(kept - 1, kept * most // size)  # the share that may stay; less each time, so this ends
        clipped = clip(text, kept, note)
        size = estimate_tokens(clipped, counter=counter)
    return clipped
