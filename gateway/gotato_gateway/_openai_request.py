"""A neutral request as the body of "Create chat completion" (OpenAI's API reference).

What the dialect cannot say: `reasoning_budget` is refused (OpenRouter takes it, instead of an effort), since a bound
that is not kept costs money; `reasoning_summary` and `cache_breakpoints` are left out, since the answer is the same
without them. Where a server takes no `metadata` it is left out as well, and OpenAI takes it only for answers that it
stores, which nothing here asks for (`extra_body` may: `{"store": True}`). Without tools, `tool_choice` and
`parallel_tool_calls` are not sent: servers refuse them then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gotato_py import AssistantMessage, InvalidRequest, ModelOptions, ModelRequest

from ._answer_schema import answer_schema
from ._json import Object, dump_text
from ._openai_messages import chat_messages
from ._strict_schema import fits_strict, schema_name
from ._tool_names import wire_name
from .quirks import Quirks


def chat_body(model: str, request: ModelRequest, quirks: Quirks, origin: str) -> bytes:
    """The bytes to send: strict JSON in UTF-8, whatever is in the messages. Raises `InvalidRequest`."""
    try:
        return dump_text(_body(model, request, quirks, origin)).encode()
    except (TypeError, ValueError) as error:
        raise InvalidRequest(f"the request holds what JSON cannot say: {error}") from None


def _body(model: str, request: ModelRequest, quirks: Quirks, origin: str) -> Object:
    body: Object = {
        "model": model,
        "messages": chat_messages(request.system, request.messages, quirks, origin),
        "stream": True,
    }
    if quirks.usage_option:
        body["stream_options"] = {"include_usage": True}
    body.update(function_tools(request, quirks))
    body.update(_options(request.options, quirks))
    if (schema := answer_schema(request, quirks)) is not None:
        body["response_format"] = _response_format(schema, quirks)
    body.update(quirks.extra_body)
    return body


def function_tools(request: ModelRequest, quirks: Quirks) -> Object:
    """The members of a body that are about tools; none where there are none."""
    options = request.options
    if not request.tools:
        names = dict.fromkeys(
            call.name for m in request.messages if isinstance(m, AssistantMessage) for call in m.tool_calls
        )
        if not names or not quirks.tools_for_history:
            return {}
        return {"tools": [_function(name, "", {"type": "object"}) for name in names], "tool_choice": "none"}
    sent: Object = {"tools": [_function(spec.name, spec.description, spec.input_schema) for spec in request.tools]}
    choice = options.tool_choice
    if choice in ("auto", "none", "required"):
        sent["tool_choice"] = choice
    elif choice is not None:
        if choice not in {spec.name for spec in request.tools}:
            raise InvalidRequest(
                "options.tool_choice is neither auto, none or required nor the name of a tool of this request"
            )
        sent["tool_choice"] = {"type": "function", "function": {"name": wire_name(choice)}}
    if options.parallel_tool_calls is not None:
        sent["parallel_tool_calls"] = options.parallel_tool_calls
    return sent


def _function(name: str, description: str, schema: Mapping[str, Any]) -> Object:
    function: Object = {"name": wire_name(name)}
    if description.strip():
        function["description"] = description
    # OpenAI refuses a schema that does not say it is an object's, and an object's without "properties".
    function["parameters"] = {"type": "object", "properties": {}, **schema}
    return {"type": "function", "function": function}


def _options(options: ModelOptions, quirks: Quirks) -> Object:
    sent: Object = {}
    if options.temperature is not None:
        sent["temperature"] = options.temperature
    if options.top_p is not None:
        sent["top_p"] = options.top_p
    if options.max_tokens is not None:
        sent[quirks.max_tokens_field] = options.max_tokens
    if options.stop:
        sent["stop"] = list(options.stop)
    if options.metadata and quirks.metadata and (quirks.extra_body.get("store") or not quirks.metadata_if_stored):
        sent["metadata"] = metadata_texts(options)
    sent.update(_reasoning(options, quirks))
    return sent


def metadata_texts(options: ModelOptions) -> dict[str, str]:
    """The metadata as texts, which is all that the dialect takes: other values as JSON."""
    return {key: value if isinstance(value, str) else dump_text(value) for key, value in options.metadata.items()}


def _reasoning(options: ModelOptions, quirks: Quirks) -> Object:
    effort, budget = options.reasoning_effort, options.reasoning_budget
    if quirks.reasoning_request == "reasoning" and budget is not None:
        return {"reasoning": {"max_tokens": budget}}
    if budget is not None:
        raise InvalidRequest("options.reasoning_budget cannot be said in this dialect: use reasoning_effort")
    if effort is None:
        return {}
    return (
        {"reasoning": {"effort": effort}} if quirks.reasoning_request == "reasoning" else {"reasoning_effort": effort}
    )


def _response_format(schema: Mapping[str, Any], quirks: Quirks) -> Object:
    form: Object = {"name": schema_name(schema), "schema": dict(schema)}
    if quirks.strict_schema and fits_strict(schema):
        form["strict"] = True
    return {"type": "json_schema", "json_schema": form}
