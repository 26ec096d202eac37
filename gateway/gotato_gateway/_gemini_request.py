"""A neutral request as the body of "models.streamGenerateContent" (Gemini API reference).

What the dialect cannot say: more than five `stop` texts are refused, and a `reasoning_effort` that the model has no
measure for. Left out are `metadata` and `cache_breakpoints` (the server finds common beginnings by itself), and
`parallel_tool_calls`: no model here can be kept from several calls, and the kernel runs them one after another anyway.

`reasoning_effort` becomes a `thinkingLevel`, for older models a `thinkingBudget` (the numbers are those of Google's
page on OpenAI compatibility); a `reasoning_budget` replaces it, since only one may be sent. Where thinking cannot be
turned off, "none" is the least level. Thoughts are shown where a `reasoning_summary` is asked for, in whatever word.
Without tools nothing about tools is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from gotato_py import InvalidRequest, ModelOptions, ModelRequest, ToolSpec

from ._answer_schema import answer_schema
from ._gemini_contents import gemini_contents
from ._gemini_schema import wire_schema
from ._json import Object, dump_text, is_array, items
from ._tool_names import wire_name
from .quirks import Quirks

_MOST_STOPS = 5
_LEAST_BUDGET = 128
_BUDGETS = {"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24576}
_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}


def gemini_body(model: str, request: ModelRequest, quirks: Quirks, origin: str) -> bytes:
    """The bytes to send: strict JSON in UTF-8, whatever is in the messages. Raises `InvalidRequest`."""
    body: Object = {}
    if request.system.strip():
        body["systemInstruction"] = {"parts": [{"text": request.system}]}
    try:
        body["contents"] = gemini_contents(request.messages, quirks, origin)
        body.update(_tools(request))
        config = _config(request, quirks)
        if config:
            body["generationConfig"] = config
        return dump_text(_with(body, quirks.extra_body)).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequest(f"the request holds what JSON cannot say: {error}") from None


def _tools(request: ModelRequest) -> Object:
    if not request.tools:
        return {}
    sent: Object = {"tools": [{"functionDeclarations": [_declaration(spec) for spec in request.tools]}]}
    choice = request.options.tool_choice
    if choice is None:
        return sent
    config: Object = {"mode": _MODES.get(choice, "ANY")}
    if choice not in _MODES:
        if choice not in {spec.name for spec in request.tools}:
            raise InvalidRequest(
                "options.tool_choice is neither auto, none or required nor the name of a tool of this request"
            )
        config["allowedFunctionNames"] = [wire_name(choice)]
    sent["toolConfig"] = {"functionCallingConfig": config}
    return sent


def _declaration(spec: ToolSpec) -> Object:
    sent: Object = {"name": wire_name(spec.name)}
    if spec.description.strip():
        sent["description"] = spec.description
    schema = wire_schema(spec.input_schema)
    sent["parametersJsonSchema"] = schema if "$ref" in schema else {"type": "object", "properties": {}, **schema}
    return sent


def _config(request: ModelRequest, quirks: Quirks) -> Object:
    options = request.options
    if len(options.stop) > _MOST_STOPS:
        raise InvalidRequest(f"options.stop: this dialect takes at most {_MOST_STOPS} texts")
    given = {
        "temperature": options.temperature,
        "topP": options.top_p,
        "maxOutputTokens": options.max_tokens,
        "stopSequences": list(options.stop) or None,
        "thinkingConfig": _thinking(options, quirks) or None,
    }
    sent: Object = {name: value for name, value in given.items() if value is not None}
    if (schema := answer_schema(request, quirks)) is not None:
        sent["responseMimeType"] = "application/json"
        sent["responseJsonSchema"] = wire_schema(schema)
    return sent


def _thinking(options: ModelOptions, quirks: Quirks) -> Object:
    sent: Object = {}
    effort = options.reasoning_effort
    if options.reasoning_budget is not None:
        sent["thinkingBudget"] = options.reasoning_budget
    elif effort is not None and quirks.thinking == "level":
        least = "low" if quirks.always_thinks else "minimal"
        sent["thinkingLevel"] = least if effort in ("none", "minimal") else effort
    elif effort is not None:
        if effort not in _BUDGETS:
            known = ", ".join(_BUDGETS)
            raise InvalidRequest(f"options.reasoning_effort: this model knows {known}; or use reasoning_budget")
        sent["thinkingBudget"] = _LEAST_BUDGET if effort == "none" and quirks.always_thinks else _BUDGETS[effort]
    if options.reasoning_summary not in (None, "none"):
        sent["includeThoughts"] = True
    return sent


def _with(body: Object, extra: Mapping[str, Any]) -> Object:
    """The body and what only this server knows: tools are added to the others, objects merged, all else replaced."""
    merged = dict(body)
    for name, value in extra.items():
        known = merged.get(name)
        if is_array(known) and isinstance(value, list | tuple):
            merged[name] = [*items(known), *cast("list[object]", value)]
        elif isinstance(known, dict) and isinstance(value, Mapping):
            merged[name] = _with(cast("Object", known), cast("Mapping[str, object]", value))
        else:
            merged[name] = value
    return merged
