"""Text that every encoding, store and provider takes."""

from __future__ import annotations


def well_formed(text: str) -> str:
    """The text as a plain str that UTF-8 can say: a split surrogate pair joined, any lone surrogate as U+FFFD."""
    if type(text) is not str:
        text = str.__str__(text)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
