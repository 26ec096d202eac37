"""The `$defs` of a schema that is made from types, with the converters that belong to them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ._conversion import Convert

JSONSchema = dict[str, Any]  # Any: a JSON document, built and rewritten here
Described = tuple[JSONSchema, Convert | None]


class Definitions:
    """Definitions by name. `bodies` is complete after `finish`, `hoisted` names those taken from other schemas."""

    def __init__(self) -> None:
        self.bodies: dict[str, JSONSchema] = {}
        self.hoisted: dict[tuple[str, str], str] = {}
        self._names: dict[object, str] = {}
        self._refs: dict[str, list[JSONSchema]] = {}
        self._cells: dict[str, list[Convert | None]] = {}

    def refer(self, key: object, name: str, build: Callable[[], Described]) -> Described:
        """A $ref to the definition under `key`, built at its first use: a type may need itself."""
        known = self._names.get(key)
        if known is None:
            known = self._names[key] = self.free_name(name)
            self._refs[known], self._cells[known] = [], []
            self.bodies[known], convert = build()
            self._cells[known].append(convert)
        ref: JSONSchema = {"$ref": f"#/$defs/{known}"}
        self._refs[known].append(ref)
        cell = self._cells[known]
        return ref, (cell[0] if cell else _later(cell))

    def finish(self) -> dict[str, JSONSchema]:
        """The definitions that are needed: one with a single use takes the place of its $ref instead."""
        for name in reversed(self._refs):  # the inner ones first: they may be all that an outer one consists of
            refs = self._refs[name]
            if len(refs) == 1:
                notes = {keyword: note for keyword, note in refs[0].items() if keyword != "$ref"}
                refs[0].clear()
                refs[0].update(self.bodies.pop(name) | notes)
        return self.bodies

    def free_name(self, name: str) -> str:
        """A name for a definition that none has yet."""
        plain = re.sub(r"[^A-Za-z0-9_.-]", "_", name) or "type"
        number, free = 1, plain
        while free in self.bodies or free in self._refs:
            number += 1
            free = f"{plain}_{number}"
        return free


def _later(cell: Sequence[Convert | None]) -> Convert:
    """The converter of a type that is still being described."""

    def convert(value: Any) -> Any:  # Any: as for every converter
        found = cell[0]
        return value if found is None else found(value)

    return convert
