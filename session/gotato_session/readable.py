"""A session as a transcript for people, in Markdown or HTML."""

from __future__ import annotations

from ._arguments import wrong
from ._page_html import html
from ._page_making import page_of
from ._page_markdown import markdown
from .session import Session


def to_markdown(session: Session, *, full: bool = False) -> str:
    """The current branch in Markdown: what was said, calls with their arguments, what became of them in words,
    summaries, gaps, labels, what waits, and the runs with their tokens.

    Long results and arguments are cut, with a note of how much is left out, unless `full`. What messages say stands in
    quotes, as it was written: Markdown and HTML in it are the reader's to judge; `to_html` escapes everything.
    """
    return markdown(page_of(_checked("to_markdown", session), full=full))


def to_html(session: Session, *, full: bool = False) -> str:
    """The same as a page of HTML that needs no other file, holds no script, and follows the reader's light or dark
    theme. Everything in it that is not the page's own is escaped."""
    return html(page_of(_checked("to_html", session), full=full))


def _checked(where: str, session: Session) -> Session:
    if not isinstance(session, Session):
        raise wrong(f"{where}: session", "a Session", session)
    return session
