"""A neutral request as the body of "Create a model response" (OpenAI's API reference), stateless: nothing is stored.

What the dialect cannot say: `stop` and `reasoning_budget` are refused (OpenRouter takes the latter), since an answer
without such a bound is another one, or costs more; `cache_breakpoints` are left out, since the answer is the same
without them. Where a server takes no `metadata` it is left out as well; else it has to fit the dialect's bounds.
Without tools, `tool_choice` and `parallel_tool_calls` are not sent: servers refuse them then. Tools are not strict
unless they are said to be, though the dialect's own default is another: their schemas need not fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gotato_py import InvalidRequest, ModelOptions, ModelRequest

from ._answer_schema import answer_schema
from ._json import Object, dump_text
from ._openai_request import function_tools, metadata_texts
from ._responses_items import input_items
from ._strict_schema import fits_strict, schema_name
from .quirks import Quirks

_MOST_METADATA, _LONGEST_KEY, _LONGEST_VALUE = 16, 64, 512


def responses_body(model: str, request: ModelRequest, quirks: Quirks, origin: str) -> bytes:
    """The bytes to send: strict JSON in UTF-8, whatever is in the messages. Raises `InvalidRequest`."""
    try:
        return dump_text(_body(model, request, quirks, origin)).encode()
    except (TypeError, ValueError) as error:
        raise InvalidRequest(f"the request holds what JSON cannot say: {error}") from None


def _body(model: str, request: ModelRequest, quirks: Quirks, origin: str) -> Object:
    body: Object = {"model": model}
    if request.system.strip():
        body["instructions"] = request.system
    body["input"] = input_items(request.messages, quirks, origin)
    body["stream"] = True
    body["store"] = False
    if quirks.encrypted_reasoning:
        body["include"] = ["reasoning.encrypted_content"]
    body.update(_tools(request, quirks))
    body.update(_options(request.options, quirks))
    if (schema := answer_schema(request, quirks)) is not None:
        body["text"] = {"format": _format(schema, quirks)}
    body.update(quirks.extra_body)
    return body


def _tools(request: ModelRequest, quirks: Quirks) -> Object:
    """The tools, flat: this dialect has no object around a function."""
    sent = function_tools(request, quirks)
    if "tools" in sent:
        sent["tools"] = [{"type": "function", **tool["function"], "strict": False} for tool in sent["tools"]]
    choice = sent.get("tool_choice")
    if isinstance(choice, dict):
        sent["tool_choice"] = {"type": "function", "name": choice["function"]["name"]}
    return sent


def _options(options: ModelOptions, quirks: Quirks) -> Object:
    if options.stop:
        raise InvalidRequest("options.stop cannot be said in this dialect: leave it out, or use OpenAIChat")
    sent: Object = {}
    if options.temperature is not None:
        sent["temperature"] = options.temperature
    if options.top_p is not None:
        sent["top_p"] = options.top_p
    if options.max_tokens is not None:
        sent["max_output_tokens"] = options.max_tokens
    if options.metadata and quirks.metadata:
        sent["metadata"] = _metadata(options)
    if reasoning := _reasoning(options, quirks):
        sent["reasoning"] = reasoning
    return sent


def _metadata(options: ModelOptions) -> dict[str, str]:
    texts = metadata_texts(options)
    if len(texts) > _MOST_METADATA:
        raise InvalidRequest(f"options.metadata: the dialect takes {_MOST_METADATA} entries, not {len(texts)}")
    for number, (key, value) in enumerate(texts.items(), 1):
        for what, said, most in (("key", key, _LONGEST_KEY), ("value", value, _LONGEST_VALUE)):
            if len(said) > most:
                told = f"the {what} of entry {number} has {len(said)} characters, the dialect takes {most}"
                raise InvalidRequest(f"options.metadata: {told}")
    return texts


def _reasoning(options: ModelOptions, quirks: Quirks) -> Object:
    if options.reasoning_budget is not None and quirks.reasoning_request != "reasoning":
        raise InvalidRequest("options.reasoning_budget cannot be said in this dialect: use reasoning_effort")
    asked = {
        "effort": options.reasoning_effort
        if options.reasoning_budget is None
        else None,  # OpenRouter takes one of both
        "summary": options.reasoning_summary,
        "max_tokens": options.reasoning_budget,
    }
    return {name: value for name, value in asked.items() if value is not None}


def _format(schema: Mapping[str, Any], quirks: Quirks) -> Object:
    form: Object = {"type": "json_schema", "name": schema_name(schema), "schema": dict(schema)}
    if quirks.strict_schema and fits_strict(schema):
        form["strict"] = True
    return form
