"""What the adapters differ in: a dialect is how a request is said and how an answer is read; all else is shared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from gotato_py import ModelError, ModelEvent, ModelProtocolError, ModelRequest, Overloaded, Usage

from ._json import Object, parse_lenient
from ._providers import Provider
from .model_list import Listing
from .quirks import Quirks, quirks_for


@dataclass(frozen=True, slots=True)
class Hearing:
    """What a decoder has to know beyond the bytes, and whom it asks.

    `own_name` gives a tool's name from the one that was sent; `refuse` makes the error of an error object inside the
    answer; `on_unknown_word` is told a word for the end of an answer that nobody knows.
    """

    quirks: Quirks
    origin: str
    provider: str = ""
    own_name: Callable[[str], str] = str
    refuse: Callable[[object], ModelError] = lambda said: Overloaded("the provider reported an error")
    on_unknown_word: Callable[[str], None] = lambda word: None

    def parsed(self, data: str, event: str) -> Any:  # Any: JSON of any form
        """The JSON in the data of an event. Raises the error that it is where it is none."""
        try:
            return parse_lenient(data)
        except ValueError:
            if event == "error":
                raise self.refuse({"error": data}) from None
            raise ModelProtocolError("an event of the answer is no JSON", provider=self.provider) from None


class Decoder(Protocol):
    """Reads one answer: `feed` for each server-sent event, then `finish` once."""

    @property
    def begun(self) -> bool:
        """Whether anything of this dialect was heard."""
        ...

    @property
    def ended(self) -> bool:
        """Whether nothing more is to come, though the body may go on."""
        ...

    @property
    def complete(self) -> bool:
        """Whether the answer is over, so that a connection lost now loses nothing."""
        ...

    @property
    def settled(self) -> bool:
        """Whether the answer is over and has all that belongs to it, so that the body has no reason to go on."""
        ...

    @property
    def usage(self) -> Usage | None:
        """The tokens counted so far."""
        ...

    def feed(self, data: str, event: str = "") -> list[ModelEvent]:
        """The neutral events in the data of one server-sent event. Raises the error that it is."""
        ...

    def feed_whole(self, answer: Object) -> list[ModelEvent] | None:
        """Those in an answer that came in one piece; None if this is no answer."""
        ...

    def finish(self) -> list[ModelEvent]:
        """What is left, and the one `Done`, after the last event. Raises the error that the answer is instead."""
        ...


@dataclass(frozen=True, slots=True)
class Dialect:
    """One way to talk to a model.

    `name` is the first half of a reasoning part's origin. `home` is whom the adapter asks without a `base_url`.
    `path` is the path of the operation, behind the base URL, for a model; `query` is added to it. `key_header` carries
    the key, behind the `key_prefix`. `body` makes the bytes of a request, for a model, its server and the origin whose
    reasoning may go back. `listing` is how the provider's models are listed, where it can be asked. `quirks` are
    those of the server at a base URL, for a model.
    """

    name: str
    home: Provider
    path: Callable[[str], str]
    body: Callable[[str, ModelRequest, Quirks, str], bytes]
    decoder: Callable[[Hearing], Decoder]
    query: str = ""
    key_header: str = "Authorization"
    key_prefix: str = "Bearer "
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    listing: Listing | None = None
    quirks: Callable[[str, str], Quirks] = quirks_for
