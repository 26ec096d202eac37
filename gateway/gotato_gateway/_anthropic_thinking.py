"""How a request asks for thinking ("Thinking" and "Effort" in Anthropic's documentation).

`reasoning_budget` is the number of tokens of "enabled"; 0, like the effort "none", turns thinking off, and what was
thought before is not sent back then. `reasoning_effort` is a level of `output_config`, and thinking "adaptive"; a model
without levels gets a budget instead, and none where `max_tokens` leaves no room for one or a call is forced, since an
effort is a wish. "minimal" means "low". `reasoning_summary` shows the thinking ("none" hides it) of a model that itself
decides how much it thinks; elsewhere it is shown anyway. It is left out where nothing makes the model think.
"""

from __future__ import annotations

from typing import NamedTuple

from gotato_py import InvalidRequest, ModelOptions

from ._json import Object
from .quirks import Quirks

LEAST_BUDGET = 1024
_ROOM = 4096
"""Tokens for the answer itself, where a budget would leave nothing of the default limit."""

_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16_384, "xhigh": 24_576, "max": 32_768}
_HIDDEN = ("none", "omitted")


class Thinking(NamedTuple):
    """The members of the request that have to do with thinking; `off` says that it was turned off."""

    max_tokens: int
    thinking: Object
    effort: str
    off: bool


def thinking(options: ModelOptions, quirks: Quirks, *, forced: bool) -> Thinking:
    """What the options ask of a model. `forced` says that a call is forced. Raises `InvalidRequest`."""
    effort, budget = options.reasoning_effort, options.reasoning_budget
    off = effort == "none" or budget == 0
    if off:
        return Thinking(options.max_tokens or quirks.answer_tokens, _off(quirks), "", off=True)
    level = _level(effort, quirks)
    budget = _budget(options, quirks, forced=forced)
    sent: Object = {}
    if budget is not None:
        sent = {"type": "enabled", "budget_tokens": budget}
    elif level and "adaptive" in quirks.thinking_types:
        sent = {"type": "adaptive"}
    asked_to_show = options.reasoning_summary is not None and "adaptive" in quirks.thinking_types
    if asked_to_show and (sent or quirks.thinks_unasked):
        sent = {"type": "adaptive", **sent, "display": _display(options)}
    if quirks.block_binding:
        sent = {"type": "adaptive", **sent, "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    limit = options.max_tokens or max(quirks.answer_tokens, (budget or 0) + _ROOM)
    return Thinking(limit, sent, level, off=False)


def _off(quirks: Quirks) -> Object:
    for kind in ("disabled", "between_tools"):
        if kind in quirks.thinking_types:
            return {"type": kind} if quirks.thinks_unasked else {}
    if quirks.thinking_types:
        raise InvalidRequest("this model always thinks: set options.reasoning_effort to its lowest level instead")
    return {}


def _level(effort: str | None, quirks: Quirks) -> str:
    if effort is None or not quirks.efforts:
        return ""
    level = "low" if effort == "minimal" else effort
    if level not in quirks.efforts:
        raise InvalidRequest(f"options.reasoning_effort is none of this model's: {', '.join(quirks.efforts)}")
    return level


def _budget(options: ModelOptions, quirks: Quirks, *, forced: bool) -> int | None:
    budget, effort = options.reasoning_budget, options.reasoning_effort
    if budget is not None:
        _check_budget(budget, options, quirks, forced=forced)
        return budget
    if effort is None or "adaptive" in quirks.thinking_types:
        return None
    if "enabled" not in quirks.thinking_types:
        raise InvalidRequest("options.reasoning_effort: this model cannot think; leave it out")
    if effort not in _BUDGETS:
        raise InvalidRequest(f"options.reasoning_effort is none of: none, {', '.join(_BUDGETS)}")
    most = options.max_tokens - LEAST_BUDGET if options.max_tokens else _BUDGETS[effort]
    budget = min(_BUDGETS[effort], most)
    return None if forced or budget < LEAST_BUDGET else budget


def _check_budget(budget: int, options: ModelOptions, quirks: Quirks, *, forced: bool) -> None:
    if "enabled" not in quirks.thinking_types:
        instead = "use reasoning_effort" if quirks.efforts else "it cannot think"
        raise InvalidRequest(f"options.reasoning_budget: this model takes no budget; {instead}")
    if budget < LEAST_BUDGET:
        raise InvalidRequest(f"options.reasoning_budget must be 0 or at least {LEAST_BUDGET} tokens")
    if options.max_tokens is not None and budget >= options.max_tokens:
        raise InvalidRequest("options.reasoning_budget must be below max_tokens, which counts the thinking too")
    if forced:
        raise InvalidRequest("options.tool_choice: a call cannot be forced together with a reasoning_budget")


def _display(options: ModelOptions) -> str:
    return "omitted" if options.reasoning_summary in _HIDDEN else "summarized"
