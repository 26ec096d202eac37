"""Classes with named fields as JSON objects: dataclasses, TypedDicts, named tuples, and pydantic's models."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from json import dumps
from typing import Any, Protocol, get_origin, get_type_hints

from . import _conversion as conversion
from ._conversion import Convert, Rejected
from ._definitions import Definitions, Described, JSONSchema
from ._docstrings import parse_docstring
from ._returned import to_json
from ._schema_values import ARRAY, MAPPING
from .errors import InvalidArgument
from .schema import ANNOTATIONS, KEYWORDS
from .violations import Failure


class Describing(Protocol):
    """What describes the types of a class' fields: the describer that the class is part of."""

    definitions: Definitions

    def describe(self, annotation: Any, where: str) -> Described:  # Any: annotations have no type of their own
        """The schema and the converter of one annotation."""
        ...


_DICT: Any = dict  # Any: else pyright narrows what is tested to type[dict[Unknown, Unknown]]
_TUPLE: Any = tuple

Reader = Callable[[Describing, Any, str], Described]  # Any: the class, seen through what makes it one of its kind


def reader_of(kind: type[Any]) -> Reader | None:
    """What describes classes of this kind; None for a class that says nothing about its fields."""
    if callable(getattr(kind, "model_json_schema", None)) and callable(getattr(kind, "model_validate", None)):
        return _model
    if hasattr(kind, "__dataclass_fields__"):
        return _dataclass
    if issubclass(kind, _DICT) and hasattr(kind, "__required_keys__"):
        return _typed_dict
    if issubclass(kind, _TUPLE) and hasattr(kind, "_fields"):
        return _named_tuple
    return None


class ObjectSchema:
    """The schema of an object with known names, built field by field; the parameters of a function are one too."""

    def __init__(self, describing: Describing, descriptions: Mapping[str, str]) -> None:
        self._describing = describing
        self._descriptions = descriptions
        self.properties: dict[str, JSONSchema] = {}
        self.required: list[str] = []
        self.converts: dict[str, Convert | None] = {}

    def add(self, name: str, annotation: Any, where: str, *, required: bool, default: object = ...) -> None:
        """Adds a field; `default` goes into the schema where JSON can say it and the field may have it."""
        schema, self.converts[name] = self._describing.describe(annotation, where)
        if name in self._descriptions:
            schema.setdefault("description", self._descriptions[name])
        if required:
            self.required.append(name)
        elif default is not ...:
            said = _said(default)
            if said is not ... and (said is not None or _nullable(schema)):
                schema["default"] = said
        self.properties[name] = schema

    def finish(self, description: str = "") -> JSONSchema:
        """The schema; no other names are allowed."""
        schema: JSONSchema = {"type": "object"}
        if description:
            schema["description"] = description
        schema["properties"] = self.properties
        if self.required:
            schema["required"] = self.required
        schema["additionalProperties"] = False
        return schema


def _said(default: object) -> Any:
    try:
        return to_json(default)
    except Exception:  # a default of any type, and with any code: it is left out of the schema
        return ...


def _nullable(schema: JSONSchema) -> bool:
    return (
        not schema.keys() - ANNOTATIONS or schema.get("type") == "null" or {"type": "null"} in schema.get("anyOf", ())
    )


def _hints(kind: type, where: str) -> Mapping[str, Any]:
    try:
        return get_type_hints(kind, localns={kind.__name__: kind}, include_extras=True)
    except Exception as error:
        raise InvalidArgument(
            f"{where}: the annotations of {kind.__qualname__} cannot be resolved ({error}); "
            "they may only name types that its module defines"
        ) from error


def _documented(kind: type) -> tuple[str, Mapping[str, str]]:
    """The description of the class and of its fields; not the text that dataclasses and named tuples make up."""
    text = kind.__dict__.get("__doc__") or ""
    if not isinstance(text, str) or text.startswith(f"{kind.__name__}("):
        return "", {}
    return parse_docstring(text)


def _dataclass(describing: Describing, kind: Any, where: str) -> Described:
    hints = _hints(kind, where)
    description, fields = _documented(kind)
    built = ObjectSchema(describing, fields)
    for name, field in kind.__dataclass_fields__.items():
        # `dataclasses` has these names for what is not a field, and for no default; it need not be imported here.
        if not field.init or field._field_type.name == "_FIELD_CLASSVAR":
            continue
        annotation = hints.get(name, Any)
        if type(annotation).__name__ == "InitVar":
            annotation = annotation.type
        plain = type(field.default).__name__ != "_MISSING_TYPE"
        made = type(field.default_factory).__name__ != "_MISSING_TYPE"
        default = field.default if plain else ...
        built.add(
            name, annotation, f"{where}: {kind.__name__}.{name}", required=not plain and not made, default=default
        )
    return built.finish(description), conversion.fields(built.converts, kind, kind.__name__)


def _named_tuple(describing: Describing, kind: Any, where: str) -> Described:
    hints = _hints(kind, where)
    description, fields = _documented(kind)
    built = ObjectSchema(describing, fields)
    for name in kind._fields:
        default = kind._field_defaults.get(name, ...)
        place = f"{where}: {kind.__name__}.{name}"
        built.add(name, hints.get(name, Any), place, required=name not in kind._field_defaults, default=default)
    return built.finish(description), conversion.fields(built.converts, kind, kind.__name__)


def _typed_dict(describing: Describing, kind: Any, where: str) -> Described:
    description, fields = _documented(kind)
    built = ObjectSchema(describing, fields)
    for name, annotation in _hints(kind, where).items():
        required = name in kind.__required_keys__
        # Where annotations are text, Python 3.11 does not see these when it makes `__required_keys__`.
        while (mark := getattr(get_origin(annotation), "_name", None)) in ("Required", "NotRequired", "ReadOnly"):
            required = required if mark == "ReadOnly" else mark == "Required"
            annotation = annotation.__args__[0]
        built.add(name, annotation, f"{where}: {kind.__name__}[{name!r}]", required=required)
    return built.finish(description), conversion.fields(built.converts, None, kind.__name__)


# pydantic's models: their own schema, their own validation


def _model(describing: Describing, kind: Any, where: str) -> Described:
    try:
        given: Any = kind.model_json_schema()
    except Exception as error:
        raise InvalidArgument(f"{where}: {kind.__qualname__}.model_json_schema() failed ({error})") from error
    if not isinstance(given, MAPPING):
        raise InvalidArgument(f"{where}: {kind.__qualname__}.model_json_schema() must return a mapping")
    bodies: Mapping[str, Any] = given.get("$defs", {})
    renamed: dict[str, str] = {}

    def refer(pointer: Any) -> Any:
        if pointer == "#":
            return describing.describe(kind, where)[0]["$ref"]  # the definition that is being made right now
        name = str(pointer).removeprefix("#/$defs/")
        return f"#/$defs/{renamed[name]}" if name in renamed else pointer

    hoist = describing.definitions
    fresh: list[str] = []
    for name, body in bodies.items():
        content = (name, dumps(body, sort_keys=True, default=str))
        if content not in hoist.hoisted:  # the same model inside two others is one definition
            hoist.hoisted[content] = hoist.free_name(name)
            hoist.bodies[hoist.hoisted[content]] = {}
            fresh.append(name)
        renamed[name] = hoist.hoisted[content]
    for name in fresh:
        hoist.bodies[renamed[name]] = rewritten(bodies[name], refer)
    schema = rewritten({keyword: each for keyword, each in given.items() if keyword != "$defs"}, refer)
    return schema, _model_reader(kind)


def rewritten(schema: Any, refer: Callable[[Any], Any]) -> Any:
    """A copy with other references, and without the keywords that the kernel does not check: `model_validate` does."""
    if not isinstance(schema, MAPPING):
        return schema
    made: JSONSchema = {}
    for keyword, each in schema.items():
        if keyword == "$ref":
            made[keyword] = refer(each)
        elif keyword in ("properties", "$defs") and isinstance(each, MAPPING):
            made[keyword] = {name: rewritten(inner, refer) for name, inner in each.items()}
        elif keyword in ("anyOf", "oneOf", "allOf", "prefixItems") and isinstance(each, ARRAY):
            made[keyword] = [rewritten(inner, refer) for inner in each]
        elif keyword in ("items", "additionalProperties"):
            made[keyword] = rewritten(each, refer)
        elif keyword in ANNOTATIONS or (keyword in KEYWORDS and (keyword != "pattern" or _is_pattern(each))):
            made[keyword] = each
    return made


def _is_pattern(given: Any) -> bool:
    try:
        re.compile(given)
    except (re.error, TypeError):
        return False
    return True


def _model_reader(kind: Any) -> Convert:
    expected = f"a valid {kind.__name__}"

    def convert(value: Any) -> Any:
        try:
            return kind.model_validate(value)
        except Exception as error:
            raise Rejected(_model_failure(error, expected)) from error

    return convert


def _model_failure(error: Any, expected: str) -> Failure:
    """The first of the errors that a pydantic ValidationError lists; for other exceptions their text."""
    try:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        return Failure(expected, str(first["msg"]), *reversed(first["loc"]))
    except Exception:  # no such list: by duck type anything may be raised
        return Failure(expected, conversion.reason(error))
