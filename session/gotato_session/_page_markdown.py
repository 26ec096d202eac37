"""A page in Markdown. What is not ours stands in quotes or code: it cannot be taken for a part of the page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import assert_never

from ._page import Block, Code, Line, Name, Note, Page, Piece, Said, one_line, visible

_TICKS = re.compile("`+")


def markdown(page: Page) -> str:
    """The page, its last line ended."""
    facts = "\n".join([f"- {name}: {_line(line)}" for name, line in page.facts])
    paragraphs = [f"# {_line(page.title)}", facts]
    for block in page.blocks:
        paragraphs += _block(block)
    if page.runs:
        paragraphs += ["## Runs", "\n".join(_table(page))]
    return "\n\n".join(paragraphs) + "\n"


def _block(block: Block) -> Iterator[str]:
    yield f"## {_line(block.heading)}"
    about = [_code(block.id)] if block.id else []
    about += [f"label {_code(label)}" for label in block.labels]
    if about:
        yield ", ".join(about)
    for piece in block.pieces:
        yield _piece(piece)


def _piece(piece: Piece) -> str:
    match piece:
        case Said():
            return "\n".join([f"> {line}".rstrip() for line in visible(piece.text).split("\n")])
        case Code():
            text = visible(piece.text)
            fence = "`" * max(3, _longest(text) + 1)
            return f"{fence}{piece.language}\n{text}\n{fence}"
        case Note():
            return f"*{_line(piece.line)}*"
        case _:
            assert_never(piece)


def _table(page: Page) -> Iterator[str]:
    yield f"| {' | '.join(page.columns)} |"
    yield f"|{' --- |' * len(page.columns)}"
    for row in page.runs:
        yield f"| {' | '.join([_cell(each) for each in row])} |"


def _cell(text: str) -> str:
    return one_line(text).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "\\`")


def _line(line: Line) -> str:
    return "".join([_code(each) if isinstance(each, Name) else each for each in line])


def _code(text: str) -> str:
    """The text between backticks, as many as it needs."""
    shown = one_line(text)
    ticks = "`" * (_longest(shown) + 1)
    space = " " if not shown or shown.startswith("`") or shown.endswith("`") else ""
    return f"{ticks}{space}{shown}{space}{ticks}"


def _longest(text: str) -> int:
    """The length of the longest row of backticks."""
    return max(map(len, _TICKS.findall(text)), default=0)
