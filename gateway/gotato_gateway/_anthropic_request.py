"""A neutral request as the body of "Create a message" (Anthropic's API reference).

What the dialect cannot say: of `metadata` only `user_id` is sent, the rest is left out. Models that take no
`temperature` and `top_p`, and those that refuse a forced call, get an `InvalidRequest` here, before anything is sent.
Where calls are in the history, their tools are declared even if none may be called now, since the server demands it.
Without tools, `tool_choice` and `parallel_tool_calls` are not sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gotato_py import AssistantMessage, InvalidRequest, ModelOptions, ModelRequest

from ._anthropic_cache import mark
from ._anthropic_messages import THINKING, History, history
from ._anthropic_parts import text_block
from ._anthropic_schema import schema_instruction, wire_schema
from ._anthropic_thinking import thinking
from ._json import Object, dump_text
from ._tool_names import wire_name
from .quirks import Quirks

_CHOICES = {"auto": "auto", "none": "none", "required": "any"}


def messages_body(model: str, request: ModelRequest, quirks: Quirks, origin: str) -> bytes:
    """The bytes to send: strict JSON in UTF-8, whatever is in the messages. Raises `InvalidRequest`."""
    try:
        return dump_text(_body(model, request, quirks, origin)).encode()
    except (TypeError, ValueError) as error:
        raise InvalidRequest(f"the request holds what JSON cannot say: {error}") from None


def _body(model: str, request: ModelRequest, quirks: Quirks, origin: str) -> Object:
    options = request.options
    tools, choice = _tools(request), _tool_choice(request)
    forced = choice.get("type") in ("any", "tool")
    if forced and not quirks.forced_calls:
        raise InvalidRequest("options.tool_choice: this model refuses a forced call; ask for it in the instructions")
    members = _options(options, quirks)
    asked = thinking(options, quirks, forced=forced)
    said = history(request.messages, quirks, "" if asked.off else origin)
    config, instruction = _output_config(options, quirks, asked.effort)
    system = [text_block(each) for each in (request.system, instruction) if each.strip()]
    mark(request.cache_breakpoints, system, tools, said.ends)
    body: Object = {"model": model, "max_tokens": asked.max_tokens, "messages": said.messages, "stream": True}
    if system:
        plain = len(system) == 1 and "cache_control" not in system[0]
        body["system"] = system[0]["text"] if plain else system
    if asked.thinking and not (asked.thinking["type"] == "enabled" and _loop_without_thinking(said)):
        _check_sampling_with(asked.thinking, options)
        body["thinking"] = asked.thinking
    members.update(output_config=config, tools=tools, tool_choice=choice)
    body.update({key: value for key, value in members.items() if value not in ({}, [], None)})
    body.update(quirks.extra_body)
    return body


def _loop_without_thinking(said: History) -> bool:
    """Whether results are at the end whose calls were made without thinking: until they are done, none may begin."""
    if len(said.messages) < 2 or said.messages[-1]["content"][0]["type"] != "tool_result":
        return False
    return said.messages[-2]["content"][0]["type"] not in THINKING


def _tools(request: ModelRequest) -> list[Object]:
    if request.tools:
        return [_tool(spec.name, spec.description, spec.input_schema) for spec in request.tools]
    called = (call.name for m in request.messages if isinstance(m, AssistantMessage) for call in m.tool_calls)
    return [_tool(name, "", {}) for name in dict.fromkeys(called)]


def _tool(name: str, description: str, schema: Mapping[str, Any]) -> Object:
    described = {"description": description} if description.strip() else {}
    return {"name": wire_name(name), **described, "input_schema": {"type": "object", **schema}}


def _tool_choice(request: ModelRequest) -> Object:
    options = request.options
    if not request.tools:
        return {"type": "none"} if _tools(request) else {}
    single = {"disable_parallel_tool_use": True} if options.parallel_tool_calls is False else {}
    choice = options.tool_choice
    if choice is None:
        return {"type": "auto", **single} if single else {}
    if choice == "none":
        return {"type": "none"}
    if choice in _CHOICES:
        return {"type": _CHOICES[choice], **single}
    if choice not in {spec.name for spec in request.tools}:
        raise InvalidRequest(
            "options.tool_choice is neither auto, none or required nor the name of a tool of this request"
        )
    return {"type": "tool", "name": wire_name(choice), **single}


def _output_config(options: ModelOptions, quirks: Quirks, effort: str) -> tuple[Object, str]:
    """The configuration, and what of it has to be said in the system prompt."""
    config: Object = {"effort": effort} if effort else {}
    if options.response_schema is None:
        return config, ""
    if not quirks.response_schema:
        raise InvalidRequest("options.response_schema: this model takes no JSON Schema for its answer")
    schema = wire_schema(options.response_schema)
    if schema is None:
        return config, schema_instruction(options.response_schema)
    return {**config, "format": {"type": "json_schema", "schema": schema}}, ""


def _options(options: ModelOptions, quirks: Quirks) -> Object:
    sampling = {"temperature": options.temperature, "top_p": options.top_p}
    given = {name: value for name, value in sampling.items() if value is not None}
    if given and not quirks.sampling:
        raise InvalidRequest(
            f"this model takes no {' and no '.join(given)}: leave out options.{', options.'.join(given)}"
        )
    if any(not each.strip() for each in options.stop):
        raise InvalidRequest("options.stop: this dialect takes no stop sequence of white space alone")
    return {**given, "stop_sequences": list(options.stop), "metadata": _metadata(options.metadata)}


def _metadata(metadata: Mapping[str, object]) -> Object:
    user = metadata.get("user_id")
    if user is None:
        return {}
    return {"user_id": user if isinstance(user, str) else dump_text(user)}


def _check_sampling_with(thinking: Object, options: ModelOptions) -> None:
    if thinking["type"] in ("enabled", "adaptive") and options.temperature not in (None, 1):
        raise InvalidRequest("options.temperature cannot be set for a model that thinks: leave out one of the two")
