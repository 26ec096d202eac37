"""Where servers of one dialect differ: a value with one field a difference, chosen by host and model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ._providers import provider_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirks:
    """How one server or model differs from others of its dialect. `quirks=` replaces the choice made by host and model.

    - `think_tags`: the answer's text may begin with `<think>…</think>`, which is reasoning.
    - `max_tokens_field`: the name of the limit on the answer's length.
    - `system_role`: the role of the system prompt; "user" for models that take none.
    - `reasoning_replay`: the field that gives reasoning back to the model that thought it; "" for none.
    - `reasoning_demanded`: every answer of the history has to have that field, an empty one where nothing goes back; in
      Anthropic's dialect, every answer with calls a block of thinking.
    - `reasoning_request`: how effort is asked for, as `reasoning_effort` or as OpenRouter's `reasoning` object.
    - `usage_option`: usage in a stream has to be asked for (`stream_options`).
    - `tool_ids`: "openai" (40 characters), "mistral" (9 letters and digits), "keep" (as they came).
    - `bridge_after_tool`: an assistant's word has to stand between a tool's result and a user message.
    - `tools_for_history`: calls in the history need tools declared, even when none may be called.
    - `null_content`: an answer of calls alone has null for its text; else it has an empty one (llama-cpp-python).
    - `images`: the server takes pictures; else a line of text says that one was left out.
    - `file_urls`: files may be given by URL.
    - `response_schema`, `strict_schema`: it takes a JSON Schema for the answer; it can be held to it strictly.
    - `schema_with_tools`: it takes such a schema also where there are tools.
    - `metadata`, `metadata_if_stored`: it takes `metadata`; in the chat dialect only with `store` in the `extra_body`.
    - `encrypted_reasoning`: in the responses dialect, the model thinks, and its sealed reasoning can be asked for.
    - `priced`: a run costs what the price list says of its models; else it has no price.
    - `key_header`: the header that carries the key, as it is; "" for that of the dialect.
    - `extra_body`: members added to every request's body, for what only this server knows.

    Of Gemini's models:
    - `thinking`: effort is asked for as a level or as a budget of tokens.
    - `always_thinks`: thinking cannot be turned off; the effort "none" is its least measure.
    - `call_signature`: what stands for the signature of a call that has none of its own; "" where none is needed.
    - `result_media`: a tool's result may hold pictures and PDF files; else they follow the results.

    Of the models behind Anthropic's dialect:
    - `thinking_types`: the ways to say `thinking` that it takes ("enabled" is by budget); none for one that never does.
    - `unsigned_thinking`: its thinking comes without a signature, and has to go back so.
    - `thinks_unasked`: it thinks where nothing about it is said.
    - `efforts`: the levels that it takes for effort; where there are none, an effort becomes a budget.
    - `sampling`: it takes `temperature` and `top_p`.
    - `forced_calls`: a call of a tool can be forced.
    - `answer_tokens`: the limit that is sent where the caller gives none, since this dialect demands one.
    - `block_binding`: it refuses thinking whose history has changed; sent so that the server drops that thinking.
    - `extra_headers`: headers added to every request; where the caller has one of them too, both values are sent.
    """

    think_tags: bool = False
    max_tokens_field: str = "max_tokens"
    system_role: Literal["system", "developer", "user"] = "system"
    reasoning_replay: Literal["", "reasoning_content", "reasoning", "reasoning_details"] = ""
    reasoning_demanded: bool = False
    reasoning_request: Literal["reasoning_effort", "reasoning"] = "reasoning_effort"
    usage_option: bool = True
    tool_ids: Literal["openai", "mistral", "keep"] = "keep"
    bridge_after_tool: bool = False
    tools_for_history: bool = False
    null_content: bool = True
    images: bool = True
    file_urls: bool = False
    response_schema: bool = True
    strict_schema: bool = False
    schema_with_tools: bool = True
    metadata: bool = True
    metadata_if_stored: bool = False
    encrypted_reasoning: bool = True
    priced: bool = True
    key_header: str = ""
    extra_body: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    thinking: Literal["level", "budget"] = "budget"
    always_thinks: bool = False
    call_signature: str = ""
    result_media: bool = False
    thinking_types: tuple[str, ...] = ("enabled", "disabled")
    unsigned_thinking: bool = False
    thinks_unasked: bool = False
    efforts: tuple[str, ...] = ()
    sampling: bool = True
    forced_calls: bool = True
    answer_tokens: int = 8192
    block_binding: bool = False
    extra_headers: Mapping[str, str] = field(default_factory=dict[str, str], hash=False, repr=False)


_OPENAI = Quirks(
    max_tokens_field="max_completion_tokens", tool_ids="openai", strict_schema=True, metadata_if_stored=True
)
_THINKS = Quirks(reasoning_replay="reasoning_content", reasoning_demanded=True, response_schema=False, metadata=False)
_BY_NAME: Mapping[str, Quirks] = {
    "openai": _OPENAI,
    "azure": replace(_OPENAI, key_header="api-key"),
    "cerebras": Quirks(max_tokens_field="max_completion_tokens", images=False, metadata=False),
    "dashscope": Quirks(response_schema=False, metadata=False),
    "deepseek": replace(_THINKS, images=False),
    # Groq streams no answer that is held to a schema ("Structured outputs"), and thinks in its text ("Reasoning").
    "groq": Quirks(
        think_tags=True,
        max_tokens_field="max_completion_tokens",
        usage_option=False,
        response_schema=False,
        metadata=False,
    ),
    "lmstudio": Quirks(think_tags=True, priced=False),
    "mistral": Quirks(usage_option=False, tool_ids="mistral", bridge_after_tool=True, metadata=False),
    "moonshot": _THINKS,
    "nvidia": Quirks(think_tags=True),
    "ollama": Quirks(think_tags=True, schema_with_tools=False, priced=False),
    "openrouter": Quirks(reasoning_replay="reasoning_details", reasoning_request="reasoning", file_urls=True),
    "perplexity": Quirks(think_tags=True, metadata=False),
    "together": Quirks(think_tags=True),
    "xai": Quirks(max_tokens_field="max_completion_tokens", metadata=False),
    "zai": replace(_THINKS, reasoning_demanded=False),
}
_GEMINI = re.compile(r"(?:.*/)?gemini-(?:([0-9]+)|[a-z-]+-latest$)", re.IGNORECASE)
_PRO = re.compile(r"-pro\b", re.IGNORECASE)
_NO_SIGNATURE = "skip_thought_signature_validator"  # "Thought signatures" in the Gemini API documentation
_NEVER_THINKS = re.compile(r"(?:.*[/.:])?(?:gpt-[34]|chatgpt-4|gpt-5[.0-9]*-chat)", re.IGNORECASE)
_DEEPSEEK_4 = re.compile(r"deepseek/deepseek-v[4-9]", re.IGNORECASE)
_WITHOUT_SYSTEM_ROLE = re.compile(r"o1-(mini|preview)\b")


def quirks_for(base_url: str, model: str) -> Quirks:
    """The quirks of the server at `base_url`; a proxy is not taken for the service whose model it names."""
    provider = provider_at(base_url)
    name = "" if provider is None else provider.name
    found = _of_gemini(_BY_NAME.get(name, Quirks()), model)
    if _NEVER_THINKS.match(model):  # OpenAI refuses a request for what such a model has not, also behind a proxy
        found = replace(found, encrypted_reasoning=False)
    if name == "openrouter" and _DEEPSEEK_4.match(model):  # which demands it there, too, under its own name
        found = replace(found, reasoning_replay="reasoning_content", reasoning_demanded=True)
    if name in ("azure", "openai") and _WITHOUT_SYSTEM_ROLE.match(model):
        return replace(found, system_role="user")
    return found


def _of_gemini(found: Quirks, model: str) -> Quirks:
    """With what differs between Gemini's generations, whoever serves them: from the third on, and before."""
    named = _GEMINI.match(model)
    if named is None:
        return found
    found = replace(found, always_thinks=_PRO.search(model) is not None)
    if named[1] is not None and int(named[1]) < 3:
        return replace(found, schema_with_tools=False)
    return replace(found, thinking="level", call_signature=_NO_SIGNATURE, result_media=True)
