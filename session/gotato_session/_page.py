"""What a readable transcript is made of, whatever it is written in."""

from __future__ import annotations

from dataclasses import dataclass


class Name(str):
    """A piece of a line that is not ours: an id, a tool's name, a value. It is shown as it is, and marked as such."""

    __slots__ = ()


Line = tuple[str, ...]
"""Words of ours, and `Name`s among them."""


@dataclass(frozen=True, slots=True)
class Said:
    """Text that somebody wrote."""

    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """Text that has its own form: arguments, results, data."""

    text: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """Words about what is or is not there."""

    line: Line


Piece = Said | Code | Note


@dataclass(frozen=True, slots=True)
class Block:
    """One entry of the transcript. `kind` is user, assistant, tool, summary, gap, waiting or problem."""

    kind: str
    heading: Line
    id: str = ""
    labels: tuple[str, ...] = ()
    pieces: tuple[Piece, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """All of it: `facts` at the top, each a name and what there is to say, then the blocks, then a table of runs."""

    title: Line
    facts: tuple[tuple[str, Line], ...]
    blocks: tuple[Block, ...]
    columns: tuple[str, ...]
    runs: tuple[tuple[str, ...], ...]


_LINE_ENDS = {"\r\n": "\n", "\r": "\n"}
_CONTROLS = {
    **dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)), "\N{REPLACEMENT CHARACTER}"),
    ord("\n"): "\n",
    ord("\t"): "\t",
}


def visible(text: str) -> str:
    """The text without characters that a terminal or a browser would not show: they are U+FFFD."""
    for end, plain in _LINE_ENDS.items():
        text = text.replace(end, plain)
    return text.translate(_CONTROLS)


def one_line(text: str) -> str:
    """The text in one line."""
    return " ".join(visible(text).split())
