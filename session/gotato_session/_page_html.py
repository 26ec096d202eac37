"""A page in HTML: one file that needs no other, without scripts, and with nothing in it that is not escaped."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import assert_never

from ._page import Block, Code, Line, Name, Note, Page, Piece, Said, visible

_STYLE = """\
:root { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --paper: #fff; --panel: #f3f4f6; --line: #d1d5db;
  --user: #1d4ed8; --assistant: #047857; --tool: #7c3aed; --summary: #57606a; --waiting: #b45309; --problem: #b91c1c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --soft: #9da7b3; --paper: #14171a; --panel: #21262c;
  --line: #3a424c; --user: #7ba7ff; --assistant: #4ccb9b; --tool: #b99bff; --summary: #a6b0bb; --waiting: #f0a94b;
  --problem: #ff8078; } }
body { margin: 2rem auto; max-width: 52rem; padding: 0 1rem; color: var(--ink); background: var(--paper);
  font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; } h2 { font-size: 1rem; margin: 0; } h1, h2 { overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; } dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
article { border-left: 4px solid var(--soft); margin: 1.2rem 0; padding: .1rem 0 .1rem 1rem; }
article.user { border-color: var(--user); } article.assistant { border-color: var(--assistant); }
article.tool { border-color: var(--tool); } article.summary { border-color: var(--summary); border-left-style: dashed; }
article.waiting { border-color: var(--waiting); }
article.gap, article.problem { border-color: var(--problem); border-left-style: dotted; }
.about, .note { color: var(--soft); font-size: .85rem; margin: .2rem 0; overflow-wrap: anywhere; }
.said { white-space: pre-wrap; overflow-wrap: anywhere; margin: .4rem 0; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--panel); padding: .6rem; border-radius: .3rem;
  margin: .4rem 0; } pre, code { font: .85rem/1.4 ui-monospace, monospace; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .85rem; }
th, td { text-align: left; padding: .2rem .6rem; border-bottom: 1px solid var(--line); }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def html(page: Page) -> str:
    """The page, its last line ended."""
    title = "".join(page.title)
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_safe(title)}</title>",
            f"<style>\n{_STYLE}</style>",
            "</head>",
            "<body>",
            f"<h1>{_line(page.title)}</h1>",
            "<dl>",
            *[f"<dt>{_safe(name)}</dt><dd>{_line(line)}</dd>" for name, line in page.facts],
            "</dl>",
            "<main>",
            *[line for block in page.blocks for line in _block(block)],
            "</main>",
            *_runs(page),
            "</body>",
            "</html>",
            "",
        ]
    )


def _block(block: Block) -> Iterator[str]:
    yield f'<article class="{block.kind}">'
    yield f"<h2>{_line(block.heading)}</h2>"
    about = [_line((Name(block.id),))] if block.id else []
    about += [f"label {_line((Name(label),))}" for label in block.labels]
    if about:
        yield f'<p class="about">{", ".join(about)}</p>'
    for piece in block.pieces:
        yield _piece(piece)
    yield "</article>"


def _piece(piece: Piece) -> str:
    match piece:
        case Said():
            return f'<div class="said" dir="auto">{_safe(piece.text)}</div>'
        case Code():
            return f"<pre>\n{_safe(piece.text)}</pre>"  # a browser leaves the first newline out, and no other
        case Note():
            return f'<p class="note">{_line(piece.line)}</p>'
        case _:
            assert_never(piece)


def _runs(page: Page) -> Iterator[str]:
    if not page.runs:
        return
    yield '<h2>Runs</h2>\n<div class="wide"><table>'
    yield f"<tr>{''.join([f'<th>{_safe(each)}</th>' for each in page.columns])}</tr>"
    for row in page.runs:
        yield f"<tr>{''.join([f'<td>{_safe(each)}</td>' for each in row])}</tr>"
    yield "</table></div>"


def _line(line: Line) -> str:
    return "".join([f"<code>{_safe(each)}</code>" if isinstance(each, Name) else _safe(each) for each in line])


def _safe(text: str) -> str:
    return escape(visible(text))
