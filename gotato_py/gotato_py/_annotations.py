"""Annotations as JSON Schema, with the converter from a JSON value to a value of the type."""

from __future__ import annotations

import re
from collections import abc
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Final, ForwardRef, Literal, NamedTuple, TypeVar, Union, get_origin

from . import _conversion as conversion
from ._class_types import reader_of
from ._conversion import Convert
from ._definitions import Definitions, Described, JSONSchema
from ._schema_values import json_key
from ._standard_types import STANDARD, key_converter
from .errors import InvalidArgument
from .schema import Validator, compile_schema

Resolve = Callable[[str], object]

_ADDRESS = r" at 0x[0-9a-fA-F]+"
_PLAIN: dict[object, tuple[JSONSchema, Convert | None]] = {
    str: ({"type": "string"}, None),
    int: ({"type": "integer"}, conversion.to_int),
    float: ({"type": "number"}, conversion.to_float),
    bool: ({"type": "boolean"}, None),
    NoneType: ({"type": "null"}, None),
    None: ({"type": "null"}, None),
    Any: ({}, None),
    object: ({}, None),
}
_ARRAYS: dict[object, Convert | None] = {
    list: None,
    abc.Sequence: None,
    abc.MutableSequence: None,
    abc.Collection: None,
    abc.Iterable: None,
    abc.Reversible: None,
    set: set,
    abc.MutableSet: set,
    frozenset: frozenset,
    abc.Set: frozenset,
}
_SETS = (set, frozenset, abc.Set, abc.MutableSet)
_OBJECTS = (dict, abc.Mapping, abc.MutableMapping)
_SCALARS = (str, int, float, bool, NoneType)


class Description(NamedTuple):
    """A type in JSON: its schema (with its own `$defs`), and the converter; None where the JSON value is the value.

    The converter takes a value that fits the schema and may raise `Rejected`.
    """

    schema: JSONSchema
    convert: Convert | None


def describe(annotation: object, where: str, resolve: Resolve | None = None) -> Description:
    """Describes one type. `where` names it in the `InvalidArgument` raised for what JSON cannot describe.

    `resolve` evaluates annotations given as text; without it these are refused.
    """
    describer = Describer(resolve)
    schema, convert = describer.describe(annotation, where)
    definitions = describer.definitions.finish()
    return Description(schema | {"$defs": definitions} if definitions else schema, convert)


class Describer:
    """Describes several types that share their `$defs`: `definitions.finish()` returns these at the end."""

    def __init__(self, resolve: Resolve | None = None) -> None:
        self._resolve = resolve
        self._bindings: Mapping[object, object] = {}
        self.definitions = Definitions()

    def describe(self, annotation: Any, where: str) -> Described:  # Any: annotations have no type of their own
        """The schema of one annotation, and its converter. Raises `InvalidArgument` naming `where`."""
        try:
            plain = _PLAIN.get(annotation)
        except TypeError:  # unhashable: metadata of Annotated, for one
            plain = None
        if plain is not None:
            return dict(plain[0]), plain[1]
        try:
            return self._described(annotation, where)
        except RecursionError:
            raise InvalidArgument(f"{where}: the type refers to itself without end; make it a dataclass") from None

    def _described(self, annotation: Any, where: str) -> Described:
        if isinstance(annotation, str | ForwardRef):
            return self.describe(self._evaluated(annotation, where), where)
        origin = get_origin(annotation)
        arguments: tuple[Any, ...] = getattr(annotation, "__args__", ()) if origin is not None else ()
        if origin is Annotated:
            return self._annotated(annotation, where)
        if origin is Literal:
            return self._literal(arguments, where)
        if origin is Union or origin is UnionType:
            return self._union(arguments, where)
        if origin is Final:
            return self.describe(arguments[0], where)
        if hasattr(annotation, "__supertype__"):  # NewType
            return self.describe(annotation.__supertype__, where)
        if isinstance(annotation, TypeVar):
            return self._variable(annotation, where)
        kind = annotation if origin is None or annotation == tuple[()] else origin
        if type(kind).__name__ == "TypeAliasType":
            return self._alias(kind, arguments, where)
        container = self._container(kind, arguments, where)
        if container is not None:
            return container
        if isinstance(kind, type):
            return self._class(kind, arguments, where)
        raise self._cannot(annotation, where)

    def _cannot(self, annotation: Any, where: str, why: str = "cannot be described in JSON Schema") -> InvalidArgument:
        name = annotation.__qualname__ if isinstance(annotation, type) else repr(annotation)
        return InvalidArgument(f"{where}: the type {re.sub(_ADDRESS, '', name)} {why}")

    def _evaluated(self, annotation: str | ForwardRef, where: str) -> object:
        text = annotation if isinstance(annotation, str) else annotation.__forward_arg__
        if self._resolve is None:
            raise InvalidArgument(f"{where}: the annotation {text!r} is text; give the type itself")
        try:
            return self._resolve(text)
        except Exception as error:
            hint = "name a type that the module of the function defines; a type local to a function is not found"
            raise InvalidArgument(f"{where}: the annotation {text!r} cannot be resolved ({error}): {hint}") from error

    # Constructs of `typing`

    def _annotated(self, annotation: Any, where: str) -> Described:
        schema, convert = self.describe(annotation.__origin__, where)
        for note in annotation.__metadata__:
            text = note if isinstance(note, str) else getattr(note, "description", None)
            if isinstance(text, str):
                schema["description"] = text
                break
        return schema, convert

    def _literal(self, values: Sequence[Any], where: str) -> Described:
        plain = [value.value if isinstance(value, Enum) else value for value in values]
        if not all(type(value) in _SCALARS for value in plain):
            raise self._cannot(Literal[tuple(values)], where, "may only hold str, int, bool, None and enum members")
        return _constants(plain, values)

    def _union(self, alternatives: Sequence[Any], where: str) -> Described:
        described = [self.describe(each, where) for each in alternatives]
        schema: JSONSchema = {"anyOf": [each for each, _ in described]}
        converts = [convert for _, convert in described]
        needed = [convert for convert in converts if convert is not None]
        if not needed:
            return schema, None
        if len(alternatives) == 2 and len(needed) == 1 and NoneType in alternatives:
            return schema, conversion.optional(needed[0])

        def validators() -> list[Validator]:
            return [compile_schema(each | {"$defs": self.definitions.bodies}) for each, _ in described]

        return schema, conversion.union(validators, converts)

    def _variable(self, variable: TypeVar, where: str) -> Described:
        bound = self._bindings.get(variable)
        if bound is None and variable.__constraints__:
            return self._union(variable.__constraints__, where)
        return self.describe(bound or variable.__bound__ or Any, where)

    def _alias(self, alias: Any, arguments: tuple[Any, ...], where: str) -> Described:
        bindings = self._bound(getattr(alias, "__type_params__", ()), arguments)
        return self._named(alias, alias.__name__, bindings, lambda: self.describe(alias.__value__, where))

    # Containers and classes

    def _container(self, kind: Any, arguments: tuple[Any, ...], where: str) -> Described | None:
        if kind is tuple:
            return self._tuple(arguments, where)
        if kind == tuple[()]:
            return {"type": "array", "maxItems": 0}, conversion.items(tuple, None)
        if kind in _OBJECTS:
            return self._object(arguments, where)
        if kind not in _ARRAYS:
            return None
        schema: JSONSchema = {"type": "array"}
        item, convert = self.describe(arguments[0], where) if arguments else ({}, None)
        if item:
            schema["items"] = item
        if kind in _SETS:
            schema["uniqueItems"] = True
        return schema, conversion.items(_ARRAYS[kind], convert)

    def _tuple(self, arguments: tuple[Any, ...], where: str) -> Described:
        if not arguments:
            return {"type": "array"}, conversion.items(tuple, None)
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            item, convert = self.describe(arguments[0], where)
            return {"type": "array", "items": item}, conversion.items(tuple, convert)
        described = [self.describe(each, where) for each in arguments]
        size = len(described)
        schema: JSONSchema = {"type": "array", "prefixItems": [each for each, _ in described]}
        return schema | {"minItems": size, "maxItems": size}, conversion.positions(
            [convert for _, convert in described]
        )

    def _object(self, arguments: tuple[Any, ...], where: str) -> Described:
        if not arguments:
            return {"type": "object"}, None
        key_schema, key = self.describe(arguments[0], f"{where} (its keys)")
        names = key_converter(key_schema, key)
        if names is None:
            raise self._cannot(arguments[0], where, "cannot be the key of an object: keys are text in JSON")
        item, convert = self.describe(arguments[1], where)
        schema: JSONSchema = {"type": "object", "additionalProperties": item} if item else {"type": "object"}
        return schema, conversion.pairs(names[0], convert)

    def _class(self, kind: type[Any], arguments: tuple[Any, ...], where: str) -> Described:
        standard = STANDARD.get((kind.__module__.partition(".")[0], kind.__qualname__))
        if standard is not None:
            return dict(standard.schema), conversion.attempt(standard.reader(kind), standard.expected)
        if issubclass(kind, Enum):
            return self._enum(kind, where)
        read = reader_of(kind)
        if read is None:
            hint = "; a model cannot send bytes, take text" if issubclass(kind, bytes | bytearray) else ""
            raise self._cannot(kind, where, f"cannot be described in JSON Schema{hint}")
        bindings = self._bound(getattr(kind, "__parameters__", ()), arguments)
        name = "_".join([kind.__name__, *[getattr(each, "__name__", "") for each in bindings.values()]])
        return self._named(kind, name, bindings, lambda: read(self, kind, where))

    def _enum(self, kind: type[Enum], where: str) -> Described:
        members = list(kind)
        if not members:
            raise self._cannot(kind, where, "has no members")
        by_value = all(type(member.value) in _SCALARS for member in members)
        plain: list[Any] = [member.value if by_value else member.name for member in members]
        return _constants(plain, members)

    def _bound(self, parameters: Sequence[Any], arguments: Sequence[Any]) -> dict[object, object]:
        """What the type variables of a generic class or alias stand for, those of the class around it resolved."""
        bindings: dict[object, object] = {}
        for parameter, argument in zip(parameters, arguments, strict=False):
            inner: tuple[Any, ...] = getattr(argument, "__parameters__", ())
            if isinstance(argument, TypeVar):
                argument = self._bindings.get(argument, argument.__bound__ or Any)
            elif inner:
                argument = argument[tuple([self._bindings.get(each, Any) for each in inner])]
            bindings[parameter] = argument
        return bindings

    def _named(
        self, kind: object, name: str, bindings: dict[object, object], read: Callable[[], Described]
    ) -> Described:
        """A reference to a definition, read with its own type variables."""

        def build() -> Described:
            around, self._bindings = self._bindings, bindings
            described = read()
            self._bindings = around
            return described

        return self.definitions.refer((kind, tuple(bindings.values())), name, build)


def _constants(plain: Sequence[Any], values: Sequence[Any]) -> Described:
    """An enum schema for the JSON values `plain`, with its type where all are text, and the way back to `values`."""
    schema: JSONSchema = {"enum": list(plain)}
    if all(type(value) is str for value in plain):
        schema = {"type": "string", "enum": list(plain)}
        if all(type(value) is str for value in values):
            return schema, None
    return schema, conversion.constant({json_key(each): value for each, value in zip(plain, values, strict=True)})
