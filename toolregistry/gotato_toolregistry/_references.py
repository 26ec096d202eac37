"""The references of a schema, followed before it is used: what they lead to is there, and is a schema."""

from __future__ import annotations

from collections.abc import Callable
from graphlib import CycleError, TopologicalSorter
from typing import Any

from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012, SchemaRegistry

from gotato_py import InvalidArgument

from ._tidy import IN_PLACE, is_object, parts_of

SPECIFICATIONS: SchemaRegistry = REGISTRY
"""The metaschemas of every draft, which come with `jsonschema`; what is not there is not found."""

_REFERENCES = ("$ref", "$dynamicRef")
_OLD = {
    "$recursiveRef": "$dynamicRef",
    "additionalItems": "prefixItems with items",
    "dependencies": "dependentRequired or dependentSchemas",
}
_LONGEST = 100

Schema = Any  # JSON data: a dict, or a boolean
Resolver = Any  # referencing's own, which it does not export


def check_references(schema: dict[str, Any], check_form: Callable[[object, str], None]) -> None:
    """Follows every reference of a schema, and those of what they lead to.

    `check_form(schema, place)` is called for the schema, and for what a reference finds outside of where schemas are
    expected. Raises `InvalidArgument`, naming the place, for a reference to nothing, to another document, to what is no
    schema, and for references that only lead back to themselves; also for keywords that only older drafts have.
    """
    walk = _Walk(check_form)
    walk.enter(schema, "#", SPECIFICATIONS.resolver_with_root(DRAFT202012.create_resource(schema)))
    while walk.pending:
        walk.follow(*walk.pending.pop(0))
    walk.refuse_loops()


class _Walk:
    """One walk. Schemas are known by their identity; they are all held by the root or by the registry meanwhile."""

    def __init__(self, check_form: Callable[[object, str], None]) -> None:
        self.check_form = check_form
        self.places: dict[int, str] = {}
        self.same_value: dict[int, set[int]] = {}
        self.pending: list[tuple[str, Schema, str, Resolver]] = []

    def enter(self, schema: Schema, place: str, resolver: Resolver) -> None:
        """Checks a schema that no other one holds, and notes the references in it."""
        self.check_form(schema, place)
        self.note(schema, place, resolver)

    def note(self, schema: Schema, place: str, resolver: Resolver) -> None:
        """Notes the references of a well-formed schema and of those inside it."""
        if not is_object(schema):
            return
        self.places[id(schema)] = place
        for keyword, instead in _OLD.items():
            if keyword in schema:
                raise _wrong(f"{place}/{keyword}", f"draft 2020-12 has no keyword {keyword!r}; it has {instead}")
        self.pending += [(key, schema, place, resolver) for key in _REFERENCES if key in schema]
        reached = self.same_value.setdefault(id(schema), set())
        for keyword, step, inner in parts_of(schema):
            if keyword in IN_PLACE:
                reached.add(id(inner))
            self.note(inner, place + step, resolver.in_subresource(DRAFT202012.create_resource(inner)))

    def follow(self, keyword: str, schema: dict[str, Any], place: str, resolver: Resolver) -> None:
        """Follows one reference."""
        target, its_resolver = _target(schema[keyword], resolver, f"{place}/{keyword}")
        self.same_value[id(schema)].add(id(target))
        if id(target) not in self.places:
            self.enter(target, f"{place}/{keyword}", its_resolver)

    def refuse_loops(self) -> None:
        """Refuses schemas that lead back to themselves without going into the value: checking would never end."""
        try:
            TopologicalSorter(self.same_value).prepare()
        except CycleError as error:
            places = [self.places[each] for each in error.args[1]]
            raise _wrong(min(places, key=len), "its references only lead back to itself") from None


def _target(reference: str, resolver: Resolver, place: str) -> tuple[Schema, Resolver]:
    try:
        found = resolver.lookup(reference)
    except (Unresolvable, ValueError, TypeError):  # the last two: from a pointer into a string or a number
        if reference.startswith("#"):
            raise _wrong(place, f"there is no {reference[:_LONGEST]} in the schema") from None
        text = "it leads to another document, and none is ever fetched; put that schema under $defs"
        raise _wrong(place, text) from None
    target: Schema = found.contents
    if not isinstance(target, bool) and not is_object(target):
        raise _wrong(place, f"{reference[:_LONGEST]} is no schema")
    return target, found.resolver


def _wrong(place: str, problem: str) -> InvalidArgument:
    return InvalidArgument(f"JSON Schema at {place}: {problem}")
