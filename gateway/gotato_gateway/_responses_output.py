"""The items of an answer in the responses dialect, while they come in ("The response object", OpenAI's API reference).

They may overlap, so each is found by its id or, where a proxy gives an item another id in every event, by its place.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ._json import Object, count, dump_text, is_object, items, obj, text

MESSAGE, CALL, REASONING = "message", "function_call", "reasoning"


@dataclass(slots=True)
class Item:
    """One item. `told` holds the parts of which something was given out.

    `number` is its place among all items, `position` that among the calls, both counted from 0.
    """

    kind: str
    id: str = ""
    number: int = 0
    position: int = 0
    call_id: str = ""
    name: str = ""
    phase: str = ""
    fragments: list[str] = field(default_factory=list[str])
    whole: str = ""
    told: set[tuple[str, int | None]] = field(default_factory=set[tuple[str, int | None]])
    shown: bool = False
    closed: bool = False
    encrypted: str = ""
    summary: list[str] = field(default_factory=list[str])

    @property
    def arguments(self) -> str:
        """The arguments of a call: as its last event has them whole, else its pieces joined."""
        return self.whole or "".join(self.fragments)

    def learn(self, said: Object) -> None:
        """Takes the facts in an item as its events have it; what is there already stays."""
        self.id = self.id or text(said.get("id"))
        self.call_id = self.call_id or text(said.get("call_id"))
        self.name = self.name or text(said.get("name"))
        self.phase = self.phase or text(said.get("phase"))
        self.encrypted = text(said.get("encrypted_content"))  # what `output_item.added` has may be incomplete
        self.summary = texts_in(said.get("summary"))


class Output:
    """All items of an answer, in the order in which they first appeared."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.calls: list[Item] = []
        self._by_id: dict[str, Item] = {}
        self._by_index: dict[int, Item] = {}

    def add(self, event: Object, kind: str, item_id: str) -> Item:
        """A new item."""
        made = Item(kind, item_id, len(self.items))
        if kind == CALL:
            made.position = len(self.calls)
            self.calls.append(made)
        self.items.append(made)
        if item_id:
            self._by_id[item_id] = made
        index = count(event.get("output_index"))
        if index is not None:
            self._by_index[index] = made
        return made

    def find(self, event: Object, kind: str, item_id: str) -> Item | None:
        """The item of an event, if it is of this kind."""
        found = self._by_id.get(item_id)
        if found is None:
            index = count(event.get("output_index"))
            found = None if index is None else self._by_index.get(index)
        return found if found is not None and found.kind == kind else None

    def behind(self, item: Item) -> Item | None:
        """The item that came after this one, if there is one already."""
        return self.items[item.number + 1] if item.number + 1 < len(self.items) else None


def arguments_in(said: Object) -> str:
    """The arguments in an item or event, also where a server writes an object instead of its text."""
    given = said.get("arguments")
    return dump_text(given) if is_object(given) else text(given)


def texts_in(parts: object) -> list[str]:
    """The texts in a list of parts."""
    return [text(obj(part).get("text")) for part in items(parts)]
