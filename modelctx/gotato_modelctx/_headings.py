"""Summaries under fixed headings: what is asked for, and how the answer is brought into that form."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gotato_py import ModelProtocolError

_ORNAMENT = " \t#*_:-"
_MARKED = re.compile(r"\s*(#{1,6}\s|\*\*|__)")


def heading_request(headings: Sequence[str]) -> str:
    """What a model is told about the form of its answer."""
    lines = "\n".join(f"## {heading}" for heading in headings)
    return (
        f"Answer in Markdown under exactly these headings, in this order, with nothing before the first:\n{lines}\n"
        'Under a heading for which there is nothing, write "none".'
    )


def under_headings(text: str, headings: Sequence[str]) -> str:
    """The answer under all its headings in their order; "none" under those that it lacks.

    A text before the first heading goes under the first. Raises `ModelProtocolError` for an answer without any of them.
    """
    names = {_bare(heading): heading for heading in headings}
    found: dict[str, list[str]] = {}
    before: list[str] = []
    lines = before
    for line in text.splitlines():
        name = names.get(_bare(line)) if _MARKED.match(line) or line.rstrip().endswith(":") else None
        if name is None:
            lines.append(line)
        else:
            lines = found.setdefault(name, [])
    if not found:
        said = ", ".join(headings)
        raise ModelProtocolError(f"the summary has none of the headings asked for: {said}", retryable=False)
    first = headings[0]
    found[first] = [*before, *found.get(first, [])]
    return "\n\n".join(f"## {each}\n{_section(found.get(each, []))}" for each in headings)


def _bare(line: str) -> str:
    return line.strip(_ORNAMENT).casefold()


def _section(lines: Sequence[str]) -> str:
    return "\n".join(lines).strip() or "none"
