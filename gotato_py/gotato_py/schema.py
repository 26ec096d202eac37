"""JSON Schema (draft 2020-12), the subset that tools need, compiled once to functions that check at full speed.

The keywords: type, enum, const, properties, required, additionalProperties, minProperties, maxProperties, items,
prefixItems, minItems, maxItems, uniqueItems, minLength, maxLength, pattern (unanchored, Python's `re`), minimum,
maximum, exclusiveMinimum, exclusiveMaximum, multipleOf, anyOf, oneOf, allOf, $defs, and $ref to "#" or into
"#/$defs". Boolean schemas too. format, title, description, default, examples, deprecated, readOnly, writeOnly,
$schema, $id and $comment are notes that check nothing. Everything else is refused, never ignored.

Values are what `json` makes: `True` is neither integer nor number, 5.0 is an integer, NaN and infinity are no numbers,
and enum and const compare as JSON does (`True` is not 1, 1 is 1.0). `multipleOf` is exact in decimal notation: 0.3 is a
multiple of 0.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from . import _schema_shapes as shapes
from ._fields import wrong
from ._schema_values import ARRAY, MAPPING, Check, Malformed, count_of, mapping_of, names_of, nothing
from .errors import GotatoError, InvalidArgument
from .violations import SchemaViolation, too_deep

Validator = Callable[[object], SchemaViolation | None]
"""Checks one JSON value: None if it fits, else what is wrong first. Called from any thread; must not raise."""

SchemaCompiler = Callable[[Mapping[str, object]], Validator]
"""Makes a validator for a schema, or raises `InvalidArgument` for one that it cannot check."""

ANNOTATIONS = frozenset(
    {
        "$comment",
        "$id",
        "$schema",
        "default",
        "deprecated",
        "description",
        "examples",
        "format",
        "readOnly",
        "title",
        "writeOnly",
    }
)


def compile_schema(schema: Mapping[str, object], *, where: str = "") -> Validator:
    """Compiles a schema of the subset to a validator.

    `where` begins the message of an error ("tool 'add'"). Raises `InvalidArgument`, naming the keyword and its place,
    for a keyword outside the subset, a malformed value of one, a bad regular expression, a $ref that leads nowhere and
    one that only leads back to itself.
    """
    if not isinstance(schema, Mapping):
        raise InvalidArgument(f"{_prefix(where)}a JSON Schema must be a mapping, not {type(schema).__name__}")
    try:
        check = _Compiler(schema, where).run()
    except RecursionError:
        raise InvalidArgument(f"{_prefix(where)}the JSON Schema is nested too deeply") from None
    if check is None:
        return _anything
    compiled = check  # a name that the type checkers know is never None

    def validate(value: object) -> SchemaViolation | None:
        try:
            failure = compiled(value)
        except RecursionError:
            return too_deep("checked")
        return None if failure is None else failure.violation()

    return validate


def compiled_by(compiler: SchemaCompiler, schema: Mapping[str, object], where: str) -> Validator:
    """The validator that a user's own compiler makes. Raises `InvalidArgument` where it makes none.

    `where` begins the message ("tool 'add'"): the compiler does not know whose schema it has.
    """
    try:
        validator = compiler(schema)
    except InvalidArgument as error:
        raise InvalidArgument(f"{where}: {error}", cause=error) from error
    except GotatoError:
        raise
    except Exception as error:
        text = f"{where}: Agent.schema_compiler raised {type(error).__name__} on its schema"
        raise InvalidArgument(text, cause=error) from error
    if not callable(validator):
        raise wrong(f"{where}: what Agent.schema_compiler makes of its schema", "a validator", validator)
    return validator


def _anything(value: object) -> None:
    return None


def _unquoted(pointer: str) -> str:
    """A URI fragment without its percent signs (`urllib.parse` would cost the import of this package 3 ms)."""
    if "%" not in pointer:
        return pointer
    raw = pointer.encode("utf-8", "replace")
    return re.sub(rb"%([0-9A-Fa-f]{2})", lambda found: bytes([int(found[1], 16)]), raw).decode("utf-8", "replace")


def _prefix(where: str) -> str:
    return f"{where}: " if where else ""


class _Compiler:
    """One compilation. `owner` is the $ref target whose own value is still the one checked; None once inside it."""

    def __init__(self, root: Mapping[str, object], where: str) -> None:
        self.root = root
        self.where = where
        self.cells: dict[str, list[Check | None]] = {"#": []}
        self.edges: dict[str, set[str]] = {}

    def run(self) -> Check | None:
        """Compiles all of it, unused definitions too."""
        check = self.schema(self.root, "#", "#")
        self.cells["#"].append(check)
        self.refuse_loops()
        return check

    def wrong(self, path: str, problem: str) -> InvalidArgument:
        """The error for one place of the schema."""
        return InvalidArgument(f"{_prefix(self.where)}JSON Schema at {path}: {problem}")

    def schema(self, schema: Any, path: str, owner: str | None) -> Check | None:
        """The check of one schema; None where everything fits."""
        if schema is True:
            return None
        if schema is False:
            return nothing
        if not isinstance(schema, MAPPING):
            raise self.wrong(path, f"a schema must be an object or a boolean, not {type(schema).__name__}")
        for keyword in schema:
            if keyword not in KEYWORDS and keyword not in ANNOTATIONS:
                hint = "it is outside the supported subset; give the agent a schema_compiler= for full JSON Schema"
                raise self.wrong(f"{path}/{keyword}", f"keyword {keyword!r}: {hint}")
        try:
            made: list[Check | None] = [
                build(schema) for keywords, build in shapes.GROUPS if not keywords.isdisjoint(schema)
            ]
            made.append(self.structure(schema, path))
            definitions = mapping_of(schema, "$defs")
        except Malformed as error:
            raise self.wrong(f"{path}/{error.keyword}", f"keyword {error.keyword!r} {error.problem}") from None
        self.define(definitions, path)
        made += [self.array(schema, path), *self.combined(schema, path, owner)]
        return shapes.every([check for check in made if check is not None])

    def define(self, definitions: Mapping[str, object], path: str) -> None:
        """Compiles `$defs`, so that a mistake in an unused one is found too."""
        for name, each in definitions.items():
            if path == "#":
                self.target(f"#/$defs/{name.replace('~', '~0').replace('/', '~1')}", path)
            else:
                self.schema(each, f"{path}/$defs/{name}", None)

    def structure(self, schema: Mapping[str, object], path: str) -> Check | None:
        """The check of an object's properties, and of how many there are."""
        if shapes.OBJECT_KEYWORDS.isdisjoint(schema):
            return None
        given, required = mapping_of(schema, "properties"), names_of(schema, "required")
        least, most = count_of(schema, "minProperties"), count_of(schema, "maxProperties")
        properties = {name: self.schema(each, f"{path}/properties/{name}", None) for name, each in given.items()}
        extra = schema.get("additionalProperties", True)
        if extra is False:
            additional: Check | None = shapes.no_such_property(list(properties))
        else:
            additional = self.schema(extra, f"{path}/additionalProperties", None)
        return shapes.object_check(required, properties, additional, least, most)

    def array(self, schema: Mapping[str, object], path: str) -> Check | None:
        """The check of an array's items; counts and uniqueness are checks of their own."""
        if "items" not in schema and "prefixItems" not in schema:
            return None
        items = schema.get("items", True)
        if isinstance(items, ARRAY):
            raise self.wrong(f"{path}/items", "keyword 'items' must be one schema; for one each, use prefixItems")
        first = self.several(schema, "prefixItems", path, None) if "prefixItems" in schema else []
        return shapes.items_check(first, self.schema(items, f"{path}/items", None))

    def several(self, schema: Mapping[str, object], keyword: str, path: str, owner: str | None) -> list[Check | None]:
        """The checks of a keyword that takes a list of schemas."""
        given: Any = schema[keyword]
        if not isinstance(given, ARRAY) or not given:
            raise self.wrong(f"{path}/{keyword}", f"keyword {keyword!r} must be a list of schemas, not empty")
        return [self.schema(each, f"{path}/{keyword}/{index}", owner) for index, each in enumerate(given)]

    def combined(self, schema: Mapping[str, object], path: str, owner: str | None) -> list[Check | None]:
        """The checks of what applies to the same value: other schemas, and $ref."""
        made: list[Check | None] = []
        if "$ref" in schema:
            made.append(self.ref(schema["$ref"], f"{path}/$ref", owner))
        if "allOf" in schema:
            made += self.several(schema, "allOf", path, owner)
        if "anyOf" in schema:
            made.append(shapes.any_of(self.several(schema, "anyOf", path, owner)))
        if "oneOf" in schema:
            made.append(shapes.one_of(self.several(schema, "oneOf", path, owner)))
        return made

    def ref(self, given: object, path: str, owner: str | None) -> Check | None:
        """The check that a $ref leads to; one that is still being compiled is looked up when it is first needed."""
        if not isinstance(given, str):
            raise self.wrong(path, f"keyword '$ref' must be a string, not {type(given).__name__}")
        pointer = _unquoted(given)
        if pointer != "#" and not pointer.startswith("#/$defs/"):
            raise self.wrong(path, "keyword '$ref' may only lead to '#' or into '#/$defs/' of the same schema")
        if owner is not None:
            self.edges.setdefault(owner, set()).add(pointer)
        cell = self.target(pointer, path)
        return cell[0] if cell else shapes.later(cell)

    def target(self, pointer: str, path: str) -> list[Check | None]:
        """The cell for a pointer's check: empty while that is being compiled."""
        cell = self.cells.get(pointer)
        if cell is None:
            found: Any = self.root
            for step in pointer.split("/")[1:]:
                step = step.replace("~1", "/").replace("~0", "~")
                if isinstance(found, MAPPING) and step in found:
                    found = found[step]
                elif isinstance(found, ARRAY) and step.isdecimal() and int(step) < len(found):
                    found = found[int(step)]
                else:
                    raise self.wrong(path, f"keyword '$ref': there is no {pointer}")
            cell = self.cells[pointer] = []
            cell.append(self.schema(found, pointer, pointer))
        return cell

    def refuse_loops(self) -> None:
        """Refuses targets that lead back to themselves without going into the value: checking would never end."""
        finished: set[str] = set()

        def visit(pointer: str, trail: tuple[str, ...]) -> None:
            if pointer in trail:
                raise self.wrong(f"{pointer}/$ref", "keyword '$ref' only leads back to itself")
            if pointer not in finished:
                for reached in sorted(self.edges.get(pointer, ())):
                    visit(reached, (*trail, pointer))
                finished.add(pointer)

        for pointer in list(self.edges):
            visit(pointer, ())


KEYWORDS = frozenset({"$ref", "$defs", "allOf", "anyOf", "oneOf", "items", "prefixItems"}).union(
    shapes.OBJECT_KEYWORDS, *[keywords for keywords, _ in shapes.GROUPS]
)
