"""What each Claude takes, by its name, since that differs from one version to the next: data for `Quirks`.

From Anthropic's pages "Thinking", "Effort", "Structured outputs", "Models overview" and the migration guides of each
model. A line or version that is newer than this table is taken for like the newest. A model of another maker, behind a
server that only speaks the dialect, is taken for one that thinks by budget and has nothing that came later.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from ._providers import provider_at
from .quirks import Quirks, quirks_for

Version = tuple[int, int]
_NEVER = (1000, 0)
_NAME = re.compile(r"claude-(?P<line>[a-z]+)-(?:preview|(?P<major>\d{1,2})(?:[-.](?P<minor>\d))?(?!\d))")
_OLD_NAME = re.compile(r"claude-(?P<major>\d)(?:[-.](?P<minor>\d))?-(?P<line>[a-z]+)")
_NEWEST_LINE = "fable"

_FIRST: Mapping[str, Mapping[str, Version]] = {
    "enabled": {"opus": (4, 0), "sonnet": (3, 7), "haiku": (4, 5), "fable": _NEVER, "mythos": _NEVER},
    "no longer enabled": {"opus": (4, 7), "sonnet": (5, 0), "haiku": (5, 0), "fable": (5, 0), "mythos": (5, 0)},
    "adaptive": {"opus": (4, 6), "sonnet": (4, 6), "haiku": (5, 0), "fable": (5, 0), "mythos": (5, 0)},
    "no longer disabled": {"opus": (5, 5), "sonnet": (5, 5), "haiku": _NEVER, "fable": (5, 0), "mythos": (5, 0)},
    "between_tools": {"opus": _NEVER, "sonnet": (5, 5), "haiku": _NEVER, "fable": _NEVER, "mythos": _NEVER},
    "thinks unasked": {"opus": (5, 0), "sonnet": (5, 0), "haiku": (5, 0), "fable": (5, 0), "mythos": (5, 0)},
    "effort": {"opus": (4, 5), "sonnet": (4, 6), "haiku": (5, 0), "fable": (5, 0), "mythos": (5, 0)},
    "effort max": {"opus": (4, 6), "sonnet": (4, 6), "haiku": (5, 0), "fable": (5, 0), "mythos": (5, 0)},
    "effort xhigh": {"opus": (4, 7), "sonnet": (5, 0), "haiku": (5, 0), "fable": (5, 0), "mythos": (5, 0)},
    "no longer sampling": {"opus": (4, 7), "sonnet": (5, 0), "haiku": (5, 0), "fable": (5, 0), "mythos": (5, 0)},
    "no longer forced": {"opus": (5, 5), "sonnet": (5, 5), "haiku": _NEVER, "fable": (5, 1), "mythos": (5, 1)},
    "schema": {"opus": (4, 5), "sonnet": (4, 5), "haiku": (4, 5), "fable": (5, 0), "mythos": (5, 0)},
    "binding": {"opus": (5, 5), "sonnet": (5, 5), "haiku": _NEVER, "fable": (5, 1), "mythos": _NEVER},
}
"""The first version of each line that has, or has no longer, what the key says."""

_MOST_TOKENS: tuple[tuple[Version, int], ...] = (((3, 5), 4096), ((3, 7), 8192))
"""What the models before a version write at most; all later ones write what is the default here."""

_ANSWER_TOKENS = 32_000
_BINDING_BETA = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}


def claude_quirks(base_url: str, model: str) -> Quirks:
    """The quirks of a model behind the server at `base_url`."""
    server = quirks_for(base_url, model)
    base = Quirks(images=server.images, response_schema=False)
    named = _NAME.search(model.lower()) or _OLD_NAME.search(model.lower())
    if named is None:
        thinks = server.reasoning_demanded  # DeepSeek and Kimi, unless they are told not to
        return replace(base, unsigned_thinking=True, reasoning_demanded=thinks, thinks_unasked=thinks)
    version = (int(named["major"] or 5), int(named["minor"] or 0))
    line = named["line"] if named["line"] in _FIRST["effort"] else _NEWEST_LINE

    def has(what: str) -> bool:
        return version >= _FIRST[what][line]

    there = {
        "enabled": has("enabled") and not has("no longer enabled"),
        "adaptive": has("adaptive"),
        "disabled": has("enabled") and not has("no longer disabled"),
        "between_tools": has("between_tools"),
    }
    provider = provider_at(base_url)
    # The controls of a beta are sent to Anthropic itself only: others may refuse what they do not know.
    binding = has("binding") and provider is not None and provider.name == "anthropic"
    levels = {"low": "effort", "medium": "effort", "high": "effort", "xhigh": "effort xhigh", "max": "effort max"}
    return replace(
        base,
        thinking_types=tuple(name for name, takes in there.items() if takes),
        thinks_unasked=has("thinks unasked"),
        efforts=tuple(level for level, what in levels.items() if has(what)),
        sampling=not has("no longer sampling"),
        forced_calls=not has("no longer forced"),
        response_schema=has("schema"),
        answer_tokens=next((most for before, most in _MOST_TOKENS if version < before), _ANSWER_TOKENS),
        block_binding=binding,
        extra_headers=_BINDING_BETA if binding else {},
    )
