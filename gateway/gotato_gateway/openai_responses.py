"""OpenAI's responses, without anything that its servers would store."""

from __future__ import annotations

from typing import ClassVar

from ._dialect import Dialect
from ._providers import OPENAI_RESPONSES
from ._responses_request import responses_body
from ._responses_stream import ResponsesDecoder
from .adapter import Adapter
from .model_list import OPENAI_LISTING


class OpenAIResponses(Adapter):
    """A model behind OpenAI's responses dialect, streamed over HTTP. One attempt a `stream`; the kernel retries.

    Every request carries the whole history, and asks the server to store nothing; what the model thought comes back
    encrypted and is sent again with the rest. Only the account that it came from can read it: where a history moves to
    another, quirks with `encrypted_reasoning=False` leave it out.

    `base_url` is what the official SDK takes (".../v1"); without it, OpenAI. A key left out comes from the variable of
    the service at `base_url`, for any other host from OPENAI_API_KEY; if that is not set either, a `base_url` is asked
    without a credential. `headers` are added to every request. `connect_timeout` covers each connect, `idle_timeout`
    the headers and every silence; both in seconds. `session` is a `requests.Session` to use instead of an own one;
    `quirks` replaces what is known about the host and the model.

    Safe to use from several threads. It needs no closing: it holds idle connections only.
    """

    _dialect: ClassVar[Dialect] = Dialect(
        "openai-responses",
        OPENAI_RESPONSES,
        path=lambda model: "responses",
        body=responses_body,
        decoder=ResponsesDecoder,
        listing=OPENAI_LISTING,
    )
