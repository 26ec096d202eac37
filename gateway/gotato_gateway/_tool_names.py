"""Tool names as every provider takes them, and back.

The common ground: a letter, then at most 63 of `[A-Za-z0-9_-]` (OpenAI's function names; Kimi wants the letter first).
One bad name is a 400 for the whole request.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

_VALID = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_STRAY = re.compile(r"[^A-Za-z0-9_-]+")


def wire_name(name: str) -> str:
    """The name to send: itself where it is valid, else what is left of it and a hash, the same in every request."""
    if _VALID.fullmatch(name):
        return name
    kept = _STRAY.sub("_", name).strip("_")
    if not kept[:1].isalpha():
        kept = f"t_{kept}"
    return f"{kept[:53]}_{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"


def own_names(names: Iterable[str]) -> dict[str, str]:
    """From the names that were sent back to the tools' own."""
    return {wire_name(name): name for name in names}
