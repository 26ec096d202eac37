"""What all adapters do: check their arguments, send one request, hand its answer to their dialect's decoder."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from typing import ClassVar, NoReturn

import requests

from gotato_py import (
    AssistantMessage,
    InvalidArgument,
    ModelError,
    ModelEvent,
    ModelRequest,
    NotSupported,
    Scope,
    UsageUpdate,
)

from ._answer_events import answer_events
from ._dialect import Dialect, Hearing
from ._endpoint import checked_base_url, checked_seconds, endpoint, shown_url
from ._error_body import read_error_body, read_error_object
from ._errors import Origin, Refuse, refusal
from ._exchange import Exchange
from ._failures import Place, explain_failure
from ._json import obj, parse_lenient
from ._keys import authorization, checked_headers, joined, resolve_key, secrets_in
from ._named import CostOf
from ._providers import provider_at
from ._request_texts import texts_of
from ._retry_after import rate_limits
from ._scrub import scrub
from ._tool_names import own_names
from ._transport import Transport
from .model_list import Listing, ModelInfo, Page
from .prices import cost_of
from .quirks import Quirks

_LOG = logging.getLogger("gotato_gateway")
_ASKED = {"Accept": "application/json"}
_SENT = {"Content-Type": "application/json", "Accept": "text/event-stream, application/json"}
_LONGEST_WORD, _MOST_WORDS = 40, 100
_MOST_PAGES = 100
"""More than any provider has: a server that names the next page for ever does not hold the caller."""


class Adapter:
    """A model behind one dialect, streamed over HTTP. One attempt a `stream`; the kernel retries.

    `base_url` is what the official SDK of the dialect takes; without it, its own service. A key left out comes from
    the usual variable of the service at `base_url`, for any other host from that of the dialect's own service; if that
    is not set either, a `base_url` is asked without a credential. `headers` are added to every request.
    `connect_timeout` covers each connect, `idle_timeout` the headers and every silence; both in seconds. `session` is a
    `requests.Session` to use instead of an own one; `quirks` replaces what is known about the host.

    A key belongs into `api_key` or `headers`: one in the query of `base_url` is sent and shown by nothing here, but the
    path of each request is in what `urllib3` logs at DEBUG.

    Safe to use from several threads. It needs no closing: it holds idle connections only.
    """

    _dialect: ClassVar[Dialect]

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        connect_timeout: float = 10.0,
        idle_timeout: float = 300.0,
        session: requests.Session | None = None,
        quirks: Quirks | None = None,
    ) -> None:
        owner, dialect = type(self).__name__, self._dialect
        if not isinstance(model, str) or not model.strip() or not model.strip().isprintable():
            raise InvalidArgument(f"{owner}: model must be the name of a model")
        if quirks is not None and not isinstance(quirks, Quirks):
            raise InvalidArgument(f"{owner}: quirks must be a Quirks or None")
        if session is not None and not isinstance(session, requests.Session):
            raise InvalidArgument(f"{owner}: session must be a requests.Session or None")
        self._model = model.strip()
        self._path = dialect.path(self._model)
        self._base_url = dialect.home.base_url if base_url is None else checked_base_url(owner, base_url)
        self._quirks = dialect.quirks(self._base_url, self._model) if quirks is None else quirks
        extra = checked_headers(f"{owner}: quirks.extra_headers", self._quirks.extra_headers)
        if not isinstance(self._quirks.extra_body, Mapping):
            raise InvalidArgument(f"{owner}: quirks.extra_body must be a mapping")
        self._headers = joined(checked_headers(owner, headers), extra)
        key = resolve_key(owner, api_key, base_url, dialect.home)
        own = self._quirks.key_header
        carrier, prefix = (own, "") if own else (dialect.key_header, dialect.key_prefix)
        checked_headers(f"{owner}: quirks.key_header", {carrier: ""})
        self._auth = authorization(key, self._headers, self._base_url, carrier, prefix)
        self._secrets = secrets_in(key, self._headers, self._base_url)
        connect_timeout = checked_seconds(f"{owner}: connect_timeout", connect_timeout)
        idle_timeout = checked_seconds(f"{owner}: idle_timeout", idle_timeout)
        self._transport = Transport(connect_timeout=connect_timeout, idle_timeout=idle_timeout, session=session)
        known = provider_at(self._base_url)
        host = shown_url(self._base_url).split("/")[2]
        self._place = Place(host, host if known is None else known.name, connect_timeout, idle_timeout)
        self._origin = f"{dialect.name}:{family(self._model)}"
        self._noted: set[str] = set()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model!r}, base_url={shown_url(self._base_url)!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} holds an API key and is not pickled: make it again in the other process"
        )

    @property
    def name(self) -> str:
        """The service and its model ("groq:llama-3.3-70b"); for a service not known here, its host."""
        return f"{self._place.provider}:{self._model}"

    @property
    def provider(self) -> str:
        """The service that it asks ("groq"); for one not known here, its host."""
        return self._place.provider

    @property
    def cost_of(self) -> CostOf | None:
        """What prices its runs, `gotato_gateway.cost_of`; None for a server that costs nothing (`Quirks.priced`): its
        models are called as others' are that do."""
        return cost_of if self._quirks.priced else None

    @property
    def capabilities(self) -> frozenset[str]:
        """What the server takes beyond text and tools: "images", "response_schema"."""
        quirks = self._quirks
        schema = quirks.response_schema and quirks.schema_with_tools  # a loop mostly has tools
        offered = {"images": quirks.images, "response_schema": schema}
        return frozenset(name for name, there in offered.items() if there)

    @property
    def quirks(self) -> Quirks:
        """How its server differs from others."""
        return self._quirks

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
        """One attempt at an answer, as `gotato_py.Model` promises it. Nothing is sent before the first `next`."""
        scope.check()
        dialect = self._dialect
        body = dialect.body(self._model, request, self._quirks, self._origin)
        exchange = self._exchange(endpoint(self._base_url, self._path, dialect.query), body)
        try:
            exchange.open(scope)
            now = scope.clock.time()
            refuse = self._refuser(exchange, now, lambda: texts_of(request))
            if not 200 <= exchange.status < 300:
                raise refuse(exchange.error_body(scope))
            limits = rate_limits(exchange.headers, now)
            if limits is not None:
                yield limits
            yield from self._answer(exchange, request, scope, refuse)
        finally:
            exchange.close()

    def list_models(self, scope: Scope | None = None) -> list[ModelInfo]:
        """The models that the provider has, in its own order, over one GET a page. Not retried.

        Raises the same typed errors as `stream`, `NotSupported` for a dialect that cannot list, and `Cancelled` or
        `DeadlineExceeded` when the scope ends.
        """
        own = Scope() if scope is None else scope
        listing = self._dialect.listing
        if listing is None:
            raise NotSupported(f"{type(self).__name__}: its dialect cannot list models")
        found: dict[str, ModelInfo] = {}
        query, asked = listing.query, set[str]()
        while query not in asked and len(asked) < _MOST_PAGES:
            asked.add(query)
            page = self._page(endpoint(self._base_url, listing.path, query), listing, own)
            found.update((model.id, model) for model in page.models)
            query = page.next_query or query
        return list(found.values())

    def _page(self, url: str, listing: Listing, scope: Scope) -> Page:
        exchange = self._exchange(url, None)
        try:
            exchange.open(scope)
            refuse = self._refuser(exchange, scope.clock.time(), tuple)
            if not 200 <= exchange.status < 300:
                raise refuse(exchange.error_body(scope))
            with closing(exchange.chunks(scope)) as chunks:
                body = b"".join(chunks)
            page = _parsed_page(body, listing)
            if page is None:
                raise refuse(body)
            return page
        finally:
            exchange.close()

    def _exchange(self, url: str, body: bytes | None) -> Exchange:
        sent = _ASKED if body is None else _SENT
        return self._transport.exchange(
            url,
            body,
            headers={**sent, **self._dialect.headers, **self._headers},
            auth=self._auth,
            explain=lambda raised, answering: explain_failure(raised, answering, self._place),
        )

    def _refuser(self, exchange: Exchange, now: float, texts: Callable[[], Iterable[str]]) -> Refuse:
        """What makes the error of a refusal in this exchange; `now` is Unix time, `texts` what it must not quote."""
        origin = Origin(self._place.provider, self._secrets, texts)

        def refuse(said: object) -> ModelError:
            facts = read_error_body(said) if isinstance(said, bytes) else read_error_object(said)
            return refusal(exchange.status, exchange.headers, facts, origin, now)

        return refuse

    def _answer(self, exchange: Exchange, request: ModelRequest, scope: Scope, refuse: Refuse) -> Iterator[ModelEvent]:
        called = (call.name for m in request.messages if isinstance(m, AssistantMessage) for call in m.tool_calls)
        own = own_names([*called, *(spec.name for spec in request.tools)])
        hearing = Hearing(
            self._quirks,
            self._origin,
            self._place.provider,
            own_name=lambda sent: own.get(sent, sent),
            refuse=refuse,
            on_unknown_word=lambda word: self._note_unknown_word(word, request),
        )
        decoder = self._dialect.decoder(hearing)
        try:
            yield from answer_events(exchange, decoder, scope, refuse, Origin(self._place.provider, self._secrets))
        except ModelError:
            if decoder.usage is not None:  # what was paid for is told even when the answer fails
                yield UsageUpdate(decoder.usage)
            raise

    def _note_unknown_word(self, word: str, request: ModelRequest) -> None:
        word = scrub(word, self._secrets, texts_of(request))[:_LONGEST_WORD]
        if word not in self._noted and len(self._noted) < _MOST_WORDS:
            self._noted.add(word)
            _LOG.warning("%s ended an answer with the unknown word %r; taken as its end", self._place.provider, word)


def _parsed_page(body: bytes, listing: Listing) -> Page | None:
    try:
        answer = parse_lenient(body.decode("utf-8", "replace"))
    except ValueError:
        return None
    return None if obj(answer).get("error") else listing.read(answer)


def family(model: str) -> str:
    """The first word of a model's name: models of one family read each other's reasoning."""
    found = re.match(r"[a-z]+", model.rpartition("/")[2].lower())
    return found[0] if found else model.lower()
