"""What is wrong with what a tool says about itself."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping

from gotato_py import InvalidArgument, ToolSpec

LEGAL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What every provider takes for the name of a tool."""


def problem_of(tool: object, compile_schema: Callable[[Mapping[str, object]], object]) -> str:
    """What keeps a tool from being used, in words; "" where nothing does."""
    if isinstance(tool, type):
        return f"the class {tool.__name__} itself, where an instance of it was due"
    spec = getattr(tool, "spec", None)
    if not isinstance(spec, ToolSpec):
        if inspect.isroutine(tool):
            return f"the function {getattr(tool, '__name__', '')}; wrap it with @tool"
        return f"{type(tool).__name__}.spec is a {type(spec).__name__}, not a ToolSpec"
    if not callable(getattr(tool, "execute", None)):
        return f"{type(tool).__name__} has no method execute(use)"
    if LEGAL_NAME.fullmatch(spec.name) is None:
        return f"the name {spec.name!r}; providers take 1 to 64 ASCII letters, digits, _ and -"
    try:
        compile_schema(spec.input_schema)
    except InvalidArgument as error:
        return f"an input_schema that cannot be checked ({error})"
    kind = spec.input_schema.get("type", "object")
    if kind != "object" and not (isinstance(kind, list | tuple) and "object" in kind):
        return "an input_schema that does not describe an object, which arguments are"
    return ""
