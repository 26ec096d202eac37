"""Google's Gemini models, over the Gemini API."""

from __future__ import annotations

from typing import ClassVar
from urllib.parse import quote

from gotato_py import InvalidArgument

from ._dialect import Dialect
from ._gemini_request import gemini_body
from ._gemini_stream import GeminiDecoder
from ._providers import GEMINI
from .adapter import Adapter
from .model_list import GEMINI_LISTING

_ON_VERTEX = ("publishers/", "projects/")
_RESOURCES = ("models/", "tunedModels/", *_ON_VERTEX)


def _path(model: str) -> str:
    """`model` is a name ("gemini-2.5-flash") or a whole resource name ("models/…", "tunedModels/…").

    Those of Vertex AI ("publishers/google/models/…") are found under its own version, also with a key ("express mode").
    """
    if any(step in ("", ".", "..") for step in model.split("/")):  # they would lead to another operation
        raise InvalidArgument("Gemini: model must be a name or a resource name, without steps that are empty or dots")
    version = "v1beta1" if model.startswith(_ON_VERTEX) else "v1beta"
    name = model if model.startswith(_RESOURCES) else f"models/{model}"
    return f"{version}/{quote(name, safe='/@:~')}:streamGenerateContent"


class Gemini(Adapter):
    """A model behind the Gemini API, streamed over HTTP. One attempt a `stream`; the kernel retries.

    `model` is its name, with or without "models/". `base_url` is what the official SDK takes, without a version;
    without it, Google's. A key left out comes from GOOGLE_API_KEY, else from GEMINI_API_KEY; if neither is set, a
    `base_url` is asked without a credential. The key travels in a header, never in a URL. `headers` are added to every
    request. `connect_timeout` covers each connect, `idle_timeout` the headers and every silence; both in seconds.
    `session` is a `requests.Session` to use instead of an own one; `quirks` replaces what is known about the model.

    Safe to use from several threads. It needs no closing: it holds idle connections only.
    """

    _dialect: ClassVar[Dialect] = Dialect(
        "gemini",
        GEMINI,
        path=_path,
        body=gemini_body,
        decoder=GeminiDecoder,
        query="alt=sse",
        key_header="x-goog-api-key",
        key_prefix="",
        listing=GEMINI_LISTING,
    )
