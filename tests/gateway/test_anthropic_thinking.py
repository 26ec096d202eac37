"""How thinking is asked for, which differs from one Claude to the next."""

from __future__ import annotations

from typing import Any

import pytest

from gotato_gateway import Quirks
from gotato_gateway._claude_models import claude_quirks
from gotato_py import AssistantMessage, InvalidRequest, ReasoningPart, TextPart, UserMessage

from .answers import tools
from .test_anthropic_request import CALL, HOME, ORIGIN, RESULT, conversation, optioned

PROXY = "http://llm.internal"
DROP = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
ALL_EFFORTS = ("low", "medium", "high", "xhigh", "max")


def of(model: str, base_url: str = PROXY) -> Quirks:
    """What is known about a model."""
    return claude_quirks(base_url, model)


@pytest.mark.parametrize(
    ("model", "types", "efforts", "sampling", "forced"),
    [
        ("claude-3-5-haiku-20241022", (), (), True, True),
        ("claude-3-7-sonnet-latest", ("enabled", "disabled"), (), True, True),
        ("claude-sonnet-4-20250514", ("enabled", "disabled"), (), True, True),
        ("claude-opus-4-1-20250805", ("enabled", "disabled"), (), True, True),
        ("claude-haiku-4-5", ("enabled", "disabled"), (), True, True),
        ("claude-opus-4-5-20251101", ("enabled", "disabled"), ("low", "medium", "high"), True, True),
        ("claude-sonnet-4-6", ("enabled", "adaptive", "disabled"), ("low", "medium", "high", "max"), True, True),
        ("anthropic.claude-opus-4-7", ("adaptive", "disabled"), ALL_EFFORTS, False, True),
        ("anthropic/claude-opus-4.8", ("adaptive", "disabled"), ALL_EFFORTS, False, True),
        ("claude-sonnet-5", ("adaptive", "disabled"), ALL_EFFORTS, False, True),
        ("claude-haiku-5-5", ("adaptive", "disabled"), ALL_EFFORTS, False, True),
        ("claude-sonnet-5-5", ("adaptive", "between_tools"), ALL_EFFORTS, False, False),
        ("claude-opus-5-5", ("adaptive",), ALL_EFFORTS, False, False),
        ("claude-fable-5", ("adaptive",), ALL_EFFORTS, False, True),
        ("claude-mythos-preview", ("adaptive",), ALL_EFFORTS, False, True),
        ("claude-opus-9", ("adaptive",), ALL_EFFORTS, False, False),
        ("claude-nova-7", ("adaptive",), ALL_EFFORTS, False, False),
        ("minimax-m3", ("enabled", "disabled"), (), True, True),
    ],
)
def test_models_by_name(
    model: str, types: tuple[str, ...], efforts: tuple[str, ...], sampling: bool, forced: bool
) -> None:
    """A model is known by its name on every platform; a newer one counts as the newest, another maker's as plain."""
    quirks = of(model)
    assert quirks.thinking_types == types
    assert (quirks.efforts, quirks.sampling, quirks.forced_calls) == (efforts, sampling, forced)


def test_native_schemas_begin_with_4_5() -> None:
    """Older models, and those of other makers, have no format for their answer, so the kernel falls back."""
    having = [of(name).response_schema for name in ("claude-opus-4-1", "claude-sonnet-4-5", "claude-fable-5", "glm-5")]
    assert having == [False, True, True, False]


@pytest.mark.parametrize(
    ("model", "options", "thinking", "effort", "limit"),
    [
        ("claude-sonnet-4-5", {}, None, None, 32_000),
        ("claude-sonnet-4-5", {"reasoning_budget": 2000}, {"type": "enabled", "budget_tokens": 2000}, None, 32_000),
        ("claude-sonnet-4-5", {"reasoning_budget": 40_000}, {"type": "enabled", "budget_tokens": 40_000}, None, 44_096),
        ("claude-sonnet-4-5", {"reasoning_effort": "high"}, {"type": "enabled", "budget_tokens": 16_384}, None, 32_000),
        (
            "claude-sonnet-4-5",
            {"reasoning_effort": "high", "max_tokens": 5000},
            {"type": "enabled", "budget_tokens": 3976},
            None,
            5000,
        ),
        ("claude-sonnet-4-5", {"reasoning_effort": "high", "max_tokens": 2000}, None, None, 2000),
        ("claude-sonnet-4-5", {"reasoning_effort": "none"}, None, None, 32_000),
        ("claude-sonnet-4-5", {"reasoning_summary": "auto"}, None, None, 32_000),
        ("claude-opus-4-5", {"reasoning_effort": "low"}, {"type": "enabled", "budget_tokens": 2048}, "low", 32_000),
        ("claude-opus-4-6", {"reasoning_effort": "max"}, {"type": "adaptive"}, "max", 32_000),
        (
            "claude-opus-4-6",
            {"reasoning_effort": "low", "reasoning_budget": 1024, "reasoning_summary": "auto"},
            {"type": "enabled", "budget_tokens": 1024, "display": "summarized"},
            "low",
            32_000,
        ),
        ("claude-opus-4-8", {"reasoning_summary": "auto"}, None, None, 32_000),
        (
            "claude-opus-4-8",
            {"reasoning_effort": "minimal", "reasoning_summary": "none"},
            {"type": "adaptive", "display": "omitted"},
            "low",
            32_000,
        ),
        (
            "claude-opus-5",
            {"reasoning_summary": "detailed"},
            {"type": "adaptive", "display": "summarized"},
            None,
            32_000,
        ),
        ("claude-opus-5", {"reasoning_effort": "none"}, {"type": "disabled"}, None, 32_000),
        ("claude-opus-5", {"reasoning_budget": 0}, {"type": "disabled"}, None, 32_000),
        ("claude-sonnet-5-5", {"reasoning_effort": "none"}, {"type": "between_tools"}, None, 32_000),
        ("kimi-k2", {"reasoning_effort": "medium"}, {"type": "enabled", "budget_tokens": 8192}, None, 12_288),
    ],
)
def test_what_is_asked(model: str, options: dict[str, Any], thinking: object, effort: str | None, limit: int) -> None:
    """Budgets, levels and the display are said as the model takes them."""
    body = optioned(of(model), **options)
    assert body.get("thinking") == thinking
    assert body.get("output_config", {}).get("effort") == effort
    assert body["max_tokens"] == limit


@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        ("claude-opus-5-5", {"reasoning_budget": 2000}, "use reasoning_effort"),
        ("claude-opus-5-5", {"reasoning_effort": "none"}, "always thinks"),
        ("claude-opus-5-5", {"reasoning_effort": "enormous"}, "low, medium"),
        ("claude-opus-4-6", {"reasoning_effort": "xhigh"}, "low, medium, high, max"),
        ("claude-sonnet-4-5", {"reasoning_budget": 100}, "at least 1024"),
        ("claude-sonnet-4-5", {"reasoning_budget": 2000, "max_tokens": 2000}, "below max_tokens"),
        ("claude-sonnet-4-5", {"reasoning_effort": "enormous"}, "minimal, low"),
        ("claude-sonnet-4-5", {"reasoning_budget": 2000, "temperature": 0.2}, "leave out one"),
        ("claude-opus-4-6", {"reasoning_effort": "low", "temperature": 0.2}, "leave out one"),
        ("claude-3-5-haiku-latest", {"reasoning_budget": 2000}, "cannot think"),
        ("claude-3-5-haiku-latest", {"reasoning_effort": "low"}, "cannot think"),
    ],
)
def test_what_cannot_be_asked(model: str, options: dict[str, Any], said: str) -> None:
    """What the model refuses is refused here, with what to do instead."""
    with pytest.raises(InvalidRequest, match=said):
        optioned(of(model), **options)


def test_a_forced_call_and_thinking() -> None:
    """A forced call goes without the thinking that an effort only wished for; with a budget it is an error."""
    quirks = of("claude-sonnet-4-5")
    assert "thinking" not in optioned(quirks, tools("f"), tool_choice="f", reasoning_effort="high")
    with pytest.raises(InvalidRequest, match="forced"):
        optioned(quirks, tools("f"), tool_choice="f", reasoning_budget=2000)


def test_a_budget_waits_for_the_end_of_a_loop_without_thinking() -> None:
    """Results of calls that were made without thinking go without a budget, since the server refuses one there."""
    own = AssistantMessage((ReasoningPart("hm", "s", ORIGIN),), CALL.tool_calls)
    asked: dict[str, Any] = {"quirks": of("claude-sonnet-4-5"), "reasoning_budget": 2000}
    assert "thinking" not in conversation(UserMessage("x"), CALL, RESULT, **asked)
    assert "thinking" in conversation(UserMessage("x"), own, RESULT, **asked)
    done = (UserMessage("x"), CALL, RESULT, AssistantMessage("y"), UserMessage("z"))
    assert "thinking" in conversation(*done, **asked)


def test_thinking_goes_back_only_while_thinking_is_on() -> None:
    """Where thinking was turned off, earlier thinking stays at home."""
    messages = (UserMessage("x"), AssistantMessage((ReasoningPart("hm", "s", ORIGIN), TextPart("y"))), UserMessage("z"))
    for effort, kinds in (("high", ["thinking", "text"]), ("none", ["text"])):
        body = conversation(*messages, quirks=of("claude-opus-5"), reasoning_effort=effort)
        assert [block["type"] for block in body["messages"][1]["content"]] == kinds


def test_bound_thinking_is_dropped_rather_than_refused() -> None:
    """A model that ties thinking to its history is asked to drop what does not fit, at Anthropic itself only."""
    quirks = of("claude-opus-5-5", HOME)
    assert optioned(quirks)["thinking"] == {"type": "adaptive", **DROP}
    assert optioned(quirks, reasoning_summary="auto")["thinking"] == {
        "type": "adaptive",
        "display": "summarized",
        **DROP,
    }
    assert quirks.extra_headers == {"anthropic-beta": "thinking-binding-controls-2026-08-01"}
    assert "thinking" not in optioned(of("claude-opus-5-5"))
    assert of("claude-opus-5-5").extra_headers == of("claude-opus-5", HOME).extra_headers == {}
