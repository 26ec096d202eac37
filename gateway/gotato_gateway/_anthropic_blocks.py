"""The blocks of an answer of the Messages API, each from its start to its stop.

Text and thinking may also be given whole in the start, by servers that only look like Anthropic's; a call's `input`
there is a placeholder, which counts only if nothing follows it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from gotato_py import ModelEvent, ReasoningDelta, ReasoningDone, TextDelta, ToolCall, ToolCallDelta

from ._call_arguments import received_arguments
from ._halves import Halves
from ._json import Object, clean, dump_text, is_object, text


class Block(Protocol):
    """One block while it is coming in."""

    def add(self, delta: Object) -> Iterator[ModelEvent]:
        """What one delta says."""
        ...

    def close(self) -> Iterator[ModelEvent]:
        """What is left when the block is over."""
        ...


class TextBlock:
    """Words for the user."""

    def __init__(self) -> None:
        self._halves = Halves()

    def add(self, delta: Object) -> Iterator[ModelEvent]:
        """`text_delta`; citations are left out."""
        if said := self._halves.feed(text(delta.get("text"))):
            yield TextDelta(said)

    def close(self) -> Iterator[ModelEvent]:
        """Half a character whose other half never came."""
        if said := self._halves.finish():
            yield TextDelta(said)


class ThinkingBlock:
    """Thinking, which may be a signature without words: it is kept all the same, since it has to go back."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._halves = Halves()
        self._signature: list[str] = []
        self._thought = False

    def add(self, delta: Object) -> Iterator[ModelEvent]:
        """`thinking_delta` and `signature_delta`, whose pieces belong together."""
        self._signature.append(text(delta.get("signature")))
        yield from self._say(self._halves.feed(text(delta.get("thinking"))))

    def close(self) -> Iterator[ModelEvent]:
        """The end of the reasoning, if there was any."""
        yield from self._say(self._halves.finish())
        signature = clean("".join(self._signature))
        if signature or self._thought:
            yield ReasoningDone(signature, self._origin)

    def _say(self, thought: str) -> Iterator[ModelEvent]:
        if thought:
            self._thought = True
            yield ReasoningDelta(thought)


class RedactedBlock:
    """Thinking that nobody may read: its data is all there is."""

    def __init__(self, data: str, origin: str) -> None:
        self._data, self._origin = data, origin

    def add(self, delta: Object) -> Iterator[ModelEvent]:
        """There is no delta of it."""
        return iter(())

    def close(self) -> Iterator[ModelEvent]:
        """The whole of it."""
        if self._data:
            yield ReasoningDone(clean(self._data), self._origin, redacted=True)


@dataclass(slots=True)
class CallBlock:
    """A call of a tool of ours. `position` counts the calls of the answer; `name` is the tool's own."""

    position: int
    id: str
    name: str
    seed: str
    fragments: list[str] = field(default_factory=list[str])
    told: bool = False

    def add(self, delta: Object) -> Iterator[ModelEvent]:
        """`input_json_delta`: a piece of JSON text, which may end anywhere."""
        fragment = text(delta.get("partial_json"))
        if fragment:
            self.fragments.append(fragment)
        if fragment or not self.told:
            name = "" if self.told else self.name
            self.told = True
            yield ToolCallDelta(self.position, name, clean(fragment))

    def close(self) -> Iterator[ModelEvent]:
        """Nothing: calls are given out at the end, when it is known whether the answer was cut."""
        return iter(())

    def call(self, cut: bool) -> ToolCall:
        """The call, as far as it came."""
        raw = clean("".join(self.fragments) or self.seed)
        return ToolCall(self.id or f"toolu_{uuid.uuid4().hex[:24]}", self.name, received_arguments(raw, cut))


def call_block(position: int, start: Object, own_name: Callable[[str], str]) -> CallBlock:
    """The call that a `tool_use` block begins."""
    given = start.get("input")
    seed = dump_text(given) if is_object(given) else text(given)
    return CallBlock(position, clean(text(start.get("id"))), clean(own_name(text(start.get("name")))), seed)
