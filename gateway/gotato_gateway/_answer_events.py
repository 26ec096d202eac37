"""From the body of an answer to its events, and where an answer ends.

It is over when its dialect says so: at its last event, else at the end of the body. A connection that is lost after the
finish word loses nothing, and neither does a body that is cut off there. A body that simply does not end after the
finish word and the usage gets `GRACE_S` for it; content behind a finish word takes that back, since there are servers
that say the word with every chunk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing

from gotato_py import ConnectionFailed, ModelEvent, Scope

from ._body import WholeBody, body_events
from ._dialect import Decoder
from ._errors import Origin, Refuse
from ._exchange import Exchange
from ._json import items, obj, parse_lenient
from ._scrub import scrub

GRACE_S = 5.0
_MEDIA_TYPE = re.compile(r"[\w.+-]{1,40}/[\w.+-]{1,60}")


def answer_events(
    exchange: Exchange, decoder: Decoder, scope: Scope, refuse: Refuse, origin: Origin, grace: float = GRACE_S
) -> Iterator[ModelEvent]:
    """The events of the answer, `Done` last. Raises what it is instead; `refuse` makes the error of a refusal."""
    waits = False
    try:
        with closing(body_events(exchange, scope)) as received:
            for item in received:
                if isinstance(item, WholeBody):
                    yield from _whole_answer(item.data, decoder, refuse, origin)
                else:
                    yield from decoder.feed(item.data, item.event)
                if decoder.ended:
                    break
                if decoder.settled is not waits:
                    waits = not waits
                    exchange.end_within(grace if waits else None)
    except ConnectionFailed:
        if not decoder.complete:
            raise
    else:
        exchange.drain(scope)
    if not (decoder.begun or decoder.complete):
        raise _no_answer(exchange, origin)
    yield from decoder.finish()


def _whole_answer(body: bytes, decoder: Decoder, refuse: Refuse, origin: Origin) -> Iterator[ModelEvent]:
    """An answer in one piece, or as one array of pieces (Gemini without SSE); anything else is a refusal."""
    try:
        said = parse_lenient(body.decode("utf-8", "replace"))
    except ValueError:
        if body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") or b'"error"' in body:
            raise refuse(body) from None
        text = f"the answer of {origin.provider} is JSON that is not whole: it was cut off, or"
        raise ConnectionFailed(f"{text} base_url is that of another API: check it", provider=origin.provider) from None
    for answer in map(obj, items(said) or [said]):
        events = decoder.feed_whole(answer) if answer and not answer.get("error") else None
        if events is None:
            raise refuse(answer or body)
        yield from events


def _no_answer(exchange: Exchange, origin: Origin) -> ConnectionFailed:
    """The error for a body in which nothing of the dialect was found. What it says is not quoted: nobody knows it."""
    kind = exchange.headers.get("content-type", "").partition(";")[0].strip()
    came = scrub(kind, origin.secrets) if _MEDIA_TYPE.fullmatch(kind) else "a body without a Content-Type"
    text = f"{origin.provider} answered {exchange.status} with {came} that holds no answer of this dialect"
    return ConnectionFailed(
        f"{text}: check base_url, and that the server speaks the adapter's dialect",
        status=exchange.status,
        provider=origin.provider,
    )
