"""Putting tool calls together from the chat dialect's deltas, as servers really send them ("Chat completion chunk",
OpenAI's API reference).

`index` is a key, where it is there at all: it may be missing, start at 1, have gaps, or be 0 for every call. An empty
id or name means "as before". A new id alone is no new call (some servers make one up for every chunk); a new id with a
name is one where there is no index, else where the arguments so far are complete.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from gotato_py import ToolCall, ToolCallDelta

from ._call_arguments import SEEDS, received_arguments
from ._json import Object, clean, dump_text, is_object, obj, text
from ._object_text import ObjectText


@dataclass(slots=True)
class _Call:
    position: int
    id: str = ""
    name: str = ""
    arguments: ObjectText = field(default_factory=ObjectText)
    seed: str = ""
    told: bool = False

    def complete(self) -> bool:
        """Whether the arguments are a whole object."""
        return self.arguments.whole() if self.arguments else self.seed == "{}"


class CallAssembler:
    """The calls of one answer, in the order in which they first appeared."""

    def __init__(self, own_name: Callable[[str], str]) -> None:
        self._own_name = own_name
        self._calls: list[_Call] = []
        self._by_index: dict[int | str, _Call] = {}
        self._by_id: dict[str, _Call] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, entry: Object) -> Iterator[ToolCallDelta]:
        """One element of `delta.tool_calls`."""
        function = obj(entry.get("function"))
        call_id, name = text(entry.get("id")), text(function.get("name"))
        arguments = function.get("arguments")
        fragment = dump_text(arguments) if is_object(arguments) else text(arguments)
        call = self._find(entry.get("index"), call_id, name, fragment)
        if call_id and not call.id:
            call.id, self._by_id[call_id] = call_id, call
        if name and name != call.name and not (call.arguments or call.seed):
            call.name += name
        yield from self._extend(call, fragment)

    def add_legacy(self, function: Object) -> Iterator[ToolCallDelta]:
        """`delta.function_call`, the deprecated form: one call, without id and index.

        Some servers (llama-cpp-python) say each call in both forms; then the other one counts.
        """
        if self._calls and "function_call" not in self._by_index:
            return iter(())
        return self.add({"index": "function_call", "function": function})

    def finish(self, cut: bool) -> Iterator[ToolCall]:
        """The calls. After a `cut` the arguments stay as they came: half of them is nothing to repair."""
        for call in self._calls:
            name = clean(self._own_name(call.name))
            yield ToolCall(
                call.id or f"call_{uuid.uuid4().hex[:24]}",
                name,
                received_arguments(clean(str(call.arguments) or call.seed), cut),
            )

    def _extend(self, call: _Call, fragment: str) -> Iterator[ToolCallDelta]:
        if not call.arguments and fragment.strip() in SEEDS:
            # A placeholder, dropped if more follows; at the end it is all there is.
            call.seed = fragment.strip() or call.seed
            fragment = ""
        elif fragment:
            call.arguments.add(fragment)
        if fragment or not call.told:
            name = "" if call.told else self._own_name(call.name)
            call.told = True
            yield ToolCallDelta(call.position, name, clean(fragment))

    def _find(self, index: object, call_id: str, name: str, fragment: str) -> _Call:
        key = index if isinstance(index, int | str) else None
        call = self._by_index.get(key) if key is not None else self._without_index(call_id)
        if call is None or _begins_another(call, call_id, name, fragment, indexed=key is not None):
            call = _Call(len(self._calls))
            self._calls.append(call)
            if key is not None:
                self._by_index[key] = call
        return call

    def _without_index(self, call_id: str) -> _Call | None:
        return self._by_id.get(call_id) or (self._calls[-1] if self._calls else None)


def _begins_another(call: _Call, call_id: str, name: str, fragment: str, *, indexed: bool) -> bool:
    """Whether an entry that points at `call` is the first of another one."""
    if not name or (call_id and call_id == call.id):
        return False
    if call_id and call.id:
        return not indexed or call.complete() or (name != call.name and not call.arguments)
    if not indexed and name != call.name:
        return True
    return bool(fragment) and call.complete()
