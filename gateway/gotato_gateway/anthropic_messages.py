"""Anthropic's Messages API, and the servers that speak it too."""

from __future__ import annotations

from typing import ClassVar

from ._anthropic_request import messages_body
from ._anthropic_stream import MessagesDecoder
from ._claude_models import claude_quirks
from ._dialect import Dialect
from ._providers import ANTHROPIC
from .adapter import Adapter
from .model_list import ANTHROPIC_LISTING


class AnthropicMessages(Adapter):
    """A Claude behind Anthropic's Messages API, streamed over HTTP. One attempt a `stream`; the kernel retries.

    `base_url` is what the official SDK takes ("https://api.anthropic.com", without `v1`); without it, Anthropic. A key
    left out comes from ANTHROPIC_API_KEY; if that is not set either, a `base_url` is asked without a credential.
    `headers` are added to every request (a token: `{"Authorization": "Bearer …"}`). `connect_timeout` covers each
    connect, `idle_timeout` the headers and every silence; both in seconds. `session` is a `requests.Session` to use
    instead of an own one; `quirks` replaces what is known about the model.

    The dialect demands a limit on the answer: `ModelOptions.max_tokens`, which counts the thinking too, else 32,000
    tokens (4,096 or 8,192 for the models of 2024, 8,192 for models of other makers), more where a thinking budget is
    larger.

    Safe to use from several threads. It needs no closing: it holds idle connections only.
    """

    _dialect: ClassVar[Dialect] = Dialect(
        "anthropic",
        ANTHROPIC,
        path=lambda model: "v1/messages",
        body=messages_body,
        decoder=MessagesDecoder,
        key_header="x-api-key",
        key_prefix="",
        headers={"anthropic-version": "2023-06-01"},
        listing=ANTHROPIC_LISTING,
        quirks=claude_quirks,
    )
