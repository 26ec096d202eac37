"""`output=`: what a run is asked to come to, as a schema for the model and as a way back from what the model says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from json import JSONDecodeError, loads
from typing import Any, get_origin

from ._annotations import describe
from ._conversion import Convert, Rejected
from ._guards import is_mapping
from ._mapping import FrozenMapping
from ._output_schema import VALUE, as_object
from ._plain import plain_json
from ._schema_shapes import no_such_property, object_check
from ._value import replace, value
from .arguments import parse_arguments
from .errors import ExtensionFailure, InvalidArgument
from .schema import SchemaCompiler, Validator, compile_schema, compiled_by
from .tool_spec import ToolEffect, ToolSpec
from .violations import SchemaViolation, described, too_deep

FINAL_ANSWER = "final_answer"

_DESCRIPTION = (
    "Gives the final answer. Call this tool once, when the work is done and nothing else is left to call: "
    "its arguments are the answer, in full, and no text is needed beside it."
)
_ACCEPTED = "a type (a class, list[T], A | B, Literal[...]) or a JSON Schema (a mapping)"
_MOST_KEPT = 32  # classes whose plans are kept: a program asks for few, one that makes classes as it runs for many
_FENCED = r"```(?:json(?![0-9a-z]))?(.*)```"

Interrupts = tuple[type[BaseException], ...]


@value
class Read:
    """What was read: `value`, of the type that was asked for. It may be None."""

    value: Any  # Any: of the type that `output` says

    def __hash__(self) -> int:
        return hash(Read)  # the value may have none


class OutputPlan:
    """One output, read once: `schema` is what the model is asked for, always an object.

    A type that is none in JSON is wrapped: the model says {"value": …}, and what is read is the value in it. Reading
    raises nothing that the text could cause. A constructor that raises is a violation; one that raises one of
    `interrupts` raises it. A validator of `schema_compiler` that raises is an `ExtensionFailure`.
    """

    __slots__ = ("_convert", "_spec", "_validate", "schema", "wrapped")

    def __init__(self, schema: dict[str, Any], validate: Validator, convert: Convert | None) -> None:
        made, wrapped = as_object(schema)
        self.wrapped: bool = wrapped
        self.schema: Mapping[str, object] = FrozenMapping(made)
        self._validate = validate
        self._convert = convert
        self._spec = ToolSpec(FINAL_ANSWER, _DESCRIPTION, self.schema, effect=ToolEffect.READ)

    def spec(self) -> ToolSpec:
        """The tool by which a model without native structured output gives its answer."""
        return self._spec

    def read_text(self, text: str, interrupts: Interrupts = ()) -> Read | SchemaViolation:
        """Reads an answer's text: one JSON value, in white space and at most one Markdown code fence.

        Where the plan wraps, the bare value is taken too; an object that has a `value` is always the wrapper, for a
        type that ignores names it does not know would take it as well, and lose what is in it.
        """
        given = _json_of(text)
        if isinstance(given, SchemaViolation):
            return given
        if self.wrapped and given.__class__ is dict and VALUE in given:
            return self._read_wrapped(given, interrupts)
        return self._read(given, interrupts)

    def read_arguments(self, arguments: str, interrupts: Interrupts = ()) -> Read | SchemaViolation:
        """Reads the arguments of a call of the tool."""
        given = parse_arguments(arguments)
        if isinstance(given, SchemaViolation):
            return given
        return self._read_wrapped(given, interrupts) if self.wrapped else self._read(given, interrupts)

    def _read_wrapped(self, given: dict[str, Any], interrupts: Interrupts) -> Read | SchemaViolation:
        failure = _check_wrapper(given)
        if failure is not None:
            return failure.violation()
        inner = self._read(given[VALUE], interrupts)
        if isinstance(inner, Read):
            return inner
        return replace(inner, path=f"$.{VALUE}{inner.path.removeprefix('$')}")

    def _read(self, given: Any, interrupts: Interrupts) -> Read | SchemaViolation:
        try:
            violation = self._validate(given)
        except interrupts:
            raise
        except Exception as error:
            text = f"the validator that schema_compiler made for the output raised {type(error).__name__}"
            raise ExtensionFailure(text, cause=error) from error
        if violation is not None:
            return violation
        try:
            return Read(given if self._convert is None else self._convert(given))
        except Rejected as rejected:
            if isinstance(rejected.__cause__, interrupts):
                raise rejected.__cause__ from None
            return rejected.failure.violation()
        except RecursionError:
            return too_deep("converted")


def read_output(output: object, compiler: SchemaCompiler | None) -> OutputPlan:
    """The plan of an output: a type that a tool's parameter could have, or a JSON Schema for the JSON value itself.

    `compiler` is the agent's own, where it has one. Raises `InvalidArgument` for a type that JSON Schema cannot say, a
    schema that is not JSON or does not compile, and for what is neither: a name, an instance, a function.
    """
    if not _is_type(output):
        if not is_mapping(output):
            text = f"output must be {_ACCEPTED}, not an instance of {type(output).__name__}"
            raise InvalidArgument(f"{text}: give the class itself, no name and no instance of it")
        return _plan(plain_json("output", output), None, compiler)
    if compiler is not None or not isinstance(output, type):
        return _plan_of_type(output, compiler)
    known = _plans.get(id(output))
    if known is not None:
        return known[1]
    plan = _plan_of_type(output, None)
    if len(_plans) >= _MOST_KEPT:
        _plans.clear()
    _plans[id(output)] = output, plan
    return plan


# A plan holds its class, so a weak table would never let go of one. While it is here, its id is no other's.
_plans: dict[int, tuple[type[Any], OutputPlan]] = {}


def _is_type(output: object) -> bool:
    """Whether it is a class or a form of `typing`; those that are wrong are told apart by `describe`."""
    if isinstance(output, type) or get_origin(output) is not None:
        return True
    return type(output).__module__ in ("typing", "typing_extensions")


def _plan_of_type(output: object, compiler: SchemaCompiler | None) -> OutputPlan:
    made = describe(output, "output")
    return _plan(made.schema, made.convert, compiler)


def _plan(schema: dict[str, Any], convert: Convert | None, compiler: SchemaCompiler | None) -> OutputPlan:
    validate = compile_schema(schema, where="output") if compiler is None else compiled_by(compiler, schema, "output")
    try:
        return OutputPlan(schema, validate, convert)
    except RecursionError:
        raise InvalidArgument("output: the JSON Schema is nested too deeply") from None


def _json_of(text: str) -> Any:  # Any: a JSON value, or a SchemaViolation, which is none
    """The one JSON value that the text says, as strictly as arguments are read."""
    text = text.strip()
    fenced = re.fullmatch(_FENCED, text, re.DOTALL | re.IGNORECASE)
    if fenced is not None:
        text = fenced[1].strip()
    if text[:1] == "{":
        return parse_arguments(text)
    try:
        loads(text)
    except JSONDecodeError as error:
        got = f"text that is not valid JSON ({error.msg} at character {error.pos})" if text else described("")
        return SchemaViolation("$", "a JSON value", got)
    except (ValueError, RecursionError):
        return SchemaViolation("$", "a JSON value", "an integer of too many digits, or nesting too deep to read")
    # It is one value, so it stays one inside an object, and what is not strict in it is seen there.
    read = parse_arguments(f'{{"{VALUE}":{text}}}')
    return replace(read, expected="a JSON value") if isinstance(read, SchemaViolation) else read[VALUE]


_check_wrapper = object_check([VALUE], {VALUE: None}, no_such_property([VALUE]), None, None)
