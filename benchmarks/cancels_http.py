"""The rows on `cancel()` in each state of an HTTP request; they need `gotato_gateway` and what that needs."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager

from benchmarks.cancels import cancel_row
from benchmarks.servers import SAYS, full_backlog, stalling

from gotato_gateway import OpenAIChat
from gotato_py import Model


def _over_http(server: Callable[[], AbstractContextManager[str]]) -> Callable[[], AbstractContextManager[Model]]:
    @contextmanager
    def place() -> Generator[Model, None, None]:
        with server() as url:
            yield OpenAIChat("a-model", api_key="none", base_url=url, connect_timeout=5.0)

    return place


ROWS = (
    cancel_row("connect", "connect, backlog full", _over_http(full_backlog)),
    cancel_row("mute", "accepted, never answered", _over_http(lambda: stalling(SAYS["mute"]))),
    cancel_row("headers", "stalled after the headers", _over_http(lambda: stalling(SAYS["headers"]))),
    cancel_row("body", "stalled in the body", _over_http(lambda: stalling(SAYS["body"]))),
)
