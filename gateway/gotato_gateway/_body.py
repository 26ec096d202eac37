"""The body of a successful answer: a stream of events, or what servers and proxies send instead of one."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import NamedTuple

from gotato_py import Scope

from ._exchange import Exchange
from ._sse import ServerEvent, SSEReader

_BEFORE_A_BODY = b" \t\r\n\xef\xbb\xbf"


class WholeBody(NamedTuple):
    """A body that is no event stream: a JSON answer or error, or an HTML page."""

    data: bytes


def body_events(exchange: Exchange, scope: Scope) -> Generator[ServerEvent | WholeBody]:
    """The events as they come in, or the one body.

    The first character decides, since Content-Type is often wrong: an event stream never begins with `{`, `[` or `<`.
    """
    reader = SSEReader()
    start = b""
    whole: list[bytes] = []
    with closing(exchange.chunks(scope)) as chunks:
        for piece in chunks:
            start = start or piece.lstrip(_BEFORE_A_BODY)[:1]
            if start in (b"{", b"[", b"<"):
                whole.append(piece)
            else:
                yield from reader.feed(piece)
    if whole:
        yield WholeBody(b"".join(whole))
    else:
        yield from reader.finish()
