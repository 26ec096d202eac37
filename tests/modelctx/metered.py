"""A model whose provider counts exactly: the messages by their estimate, and so much beside them."""

from __future__ import annotations

from collections.abc import Iterator

from gotato_modelctx.tokens import estimate_tokens, message_tokens
from gotato_py import AssistantMessage, Done, ModelEvent, ModelRequest, Scope, TextDelta, Usage


class Metered:
    """Says the same to everything. `beside` is what each request takes beside its messages: tools and the like."""

    def __init__(self, beside: int, said: str = "Ok.") -> None:
        self.beside = beside
        self._said = said
        self.sizes: list[int] = []

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
        """Answers, and reports the size of the request; the half of it was in the cache."""
        size = self.beside + estimate_tokens(request.messages)
        self.sizes.append(size)
        yield TextDelta(self._said)
        yield Done(usage=Usage(size, message_tokens(AssistantMessage(self._said)), cache_read_tokens=size // 2))
