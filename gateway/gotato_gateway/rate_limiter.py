"""Keeping to a provider's limits: one limiter for many agents and threads."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from gotato_py import (
    ConnectionFailed,
    Done,
    InvalidArgument,
    Model,
    ModelError,
    ModelEvent,
    ModelRequest,
    RateLimited,
    RateLimits,
    Scope,
    Usage,
    UsageUpdate,
)

from ._admission import OPERATION, Admission, Ticket
from ._bucket import Bucket
from ._estimate import estimated_tokens
from ._named import CostOf, capabilities_of, cost_of_model, name_of, provider_of


class RateLimiter:
    """Lets so many requests and tokens a minute through, and so many at a time: `limiter.wrap(model)` is a Model.

    All models that one limiter wraps share it, from any thread, first come, first served. The limits are token
    buckets, as the providers' own: a minute's worth may go at once, then they fill evenly. Tokens are estimated from
    the request's text before (four bytes a token), and corrected by the usage that the answer tells.

    A stream waits inside its scope and raises its end. Where the wait would outlast the scope, it raises `RateLimited`
    at once, with the wait as `retry_after`: a `Failover` moves on, a run without that much time ends. What the provider
    says counts as well: a `RateLimits` event lowers the buckets to what is left, and a `RateLimited` with a
    `retry_after` lets nobody through for that time.

    Time is that of the scopes' clock, one for all that share the limiter. Each process has its own limits. Raises
    `InvalidArgument` for a limit that is not above 0, and where there is none at all.

    >>> from gotato_py import Agent
    >>> from gotato_testkit import EchoModel
    >>> limiter = RateLimiter(requests_per_minute=60, max_concurrent=4)
    >>> Agent(limiter.wrap(EchoModel())).run("Hi").text
    'Hi'
    """

    def __init__(
        self,
        *,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        max_concurrent: int | None = None,
    ) -> None:
        requests = _per_minute("requests_per_minute", requests_per_minute)
        tokens = _per_minute("tokens_per_minute", tokens_per_minute)
        if max_concurrent is not None and (type(max_concurrent) is not int or max_concurrent < 1):
            raise InvalidArgument("RateLimiter: max_concurrent must be None or an int of at least 1")
        if requests is None and tokens is None and max_concurrent is None:
            raise InvalidArgument(
                "RateLimiter: give at least one of requests_per_minute, tokens_per_minute, max_concurrent"
            )
        self._shown = f"requests_per_minute={requests_per_minute}, tokens_per_minute={tokens_per_minute}"
        self._shown += f", max_concurrent={max_concurrent}"
        self._counts_tokens = tokens is not None
        self._admission = Admission(requests, tokens, max_concurrent)

    def __repr__(self) -> str:
        return f"RateLimiter({self._shown})"

    @property
    def waiting(self) -> int:
        """How many streams wait for their turn."""
        return self._admission.waiting

    @property
    def running(self) -> int:
        """How many streams have begun and not ended."""
        return self._admission.running

    def wrap(self, model: Model) -> Model:
        """The model behind this limiter, of the same name and capabilities. Any number of models may be wrapped."""
        if not callable(getattr(model, "stream", None)):
            raise InvalidArgument(f"RateLimiter.wrap: model must be a Model, not {type(model).__name__}")
        if isinstance(model, _Limited) and model.limiter is self:  # its streams would wait for themselves
            return model
        return _Limited(self, self._admission, model, counts_tokens=self._counts_tokens)


def _per_minute(name: str, limit: float | None) -> Bucket | None:
    if limit is None:
        return None
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 < limit < inf:
        raise InvalidArgument(f"RateLimiter: {name} must be None or a number above 0")
    return Bucket(limit)


class _Limited:
    """A model behind a limiter."""

    def __init__(self, limiter: RateLimiter, admission: Admission, model: Model, *, counts_tokens: bool) -> None:
        self.limiter = limiter
        self.name = name_of(model)
        self._admission = admission
        self._model = model
        self._counts_tokens = counts_tokens

    def __repr__(self) -> str:
        return f"{self.limiter!r}.wrap({self._model!r})"

    @property
    def capabilities(self) -> frozenset[str]:
        """What the model can do."""
        return capabilities_of(self._model)

    @property
    def cost_of(self) -> CostOf | None:
        """What prices the model's runs."""
        return cost_of_model(self._model)

    @property
    def provider(self) -> str:
        """The service that the model asks."""
        return provider_of(self._model)

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
        """The model's stream, once it is this request's turn."""
        scope.check()
        ticket = Ticket(scope, estimated_tokens(request) if self._counts_tokens else 0)
        counted, delivered, refused = Usage(), False, False
        stream: Iterator[ModelEvent] | None = None
        try:
            self._admission.enter(ticket)
            stream = self._model.stream(request, scope)
            for event in stream:
                if isinstance(event, RateLimits):
                    self._admission.know(event)
                elif isinstance(event, UsageUpdate | Done):
                    counted = event.usage or counted
                else:
                    delivered = True
                yield event
        except ModelError as error:
            if isinstance(error, RateLimited) and error.retry_after and error.operation != OPERATION:
                self._admission.hold(scope, error.retry_after)
            refused = not delivered and not isinstance(error, ConnectionFailed)
            raise
        finally:
            close = getattr(stream, "close", None)
            try:
                if close is not None:
                    close()
            finally:
                known = counted != Usage() or refused
                self._admission.leave(ticket, counted.total_tokens if known else None)
