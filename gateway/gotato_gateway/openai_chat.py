"""OpenAI's chat completions, and the many servers that speak them too."""

from __future__ import annotations

from typing import ClassVar

from ._dialect import Dialect
from ._openai_request import chat_body
from ._openai_stream import ChatDecoder
from ._providers import OPENAI
from .adapter import Adapter
from .model_list import OPENAI_LISTING


class OpenAIChat(Adapter):
    """A model behind OpenAI's chat dialect, streamed over HTTP. One attempt a `stream`; the kernel retries.

    `base_url` is what the official SDK takes (".../v1"); without it, OpenAI. A key left out comes from the variable of
    the service at `base_url` (GROQ_API_KEY, …), for any other host from OPENAI_API_KEY; if that is not set either, a
    `base_url` is asked without a credential. `headers` are added to every request. `connect_timeout` covers each
    connect, `idle_timeout` the headers and every silence. `session` is a `requests.Session` to use instead of an own
    one; `quirks` replaces what is known about the host.

    Safe to use from several threads. It needs no closing: it holds idle connections only.
    """

    _dialect: ClassVar[Dialect] = Dialect(
        "openai-chat",
        OPENAI,
        path=lambda model: "chat/completions",
        body=chat_body,
        decoder=ChatDecoder,
        listing=OPENAI_LISTING,
    )
