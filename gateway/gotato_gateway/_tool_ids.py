"""Ids of tool calls as each target takes them, made anew for every request.

OpenAI takes at most 40 characters (64 in its responses dialect, not ending in "_"), Anthropic at most 64, Mistral
exactly nine letters and digits, Kimi wants its own form back unchanged. What has to change is replaced by a hash, so
that different ids stay different; what is used twice gets a number. Both depend on the id and on what stands before it
only, so a longer history begins with the same bytes (prompt caches).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

_OPENAI = re.compile(r"[A-Za-z0-9_-]{1,40}")
_USUAL = re.compile(r"[A-Za-z0-9_.:-]{1,64}")  # Kimi's own form, functions.name:0, among them
_RESPONSES = re.compile(r"[A-Za-z0-9_-]{0,63}[A-Za-z0-9-]")
_ANTHROPIC = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MISTRAL = re.compile(r"[A-Za-z0-9]{9}")


def _digest(call_id: str) -> str:
    return hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()


def _for_openai(call_id: str) -> str:
    return call_id if _OPENAI.fullmatch(call_id) else f"call_{_digest(call_id)[:32]}"


def _for_responses(call_id: str) -> str:
    return call_id if _RESPONSES.fullmatch(call_id) else f"call_{_digest(call_id)[:32]}"


def _for_anthropic(call_id: str) -> str:
    return call_id if _ANTHROPIC.fullmatch(call_id) else f"call_{_digest(call_id)[:32]}"


def _for_mistral(call_id: str) -> str:
    return call_id if _MISTRAL.fullmatch(call_id) else _digest(call_id)[:9]


def _as_it_came(call_id: str) -> str:
    return call_id if _USUAL.fullmatch(call_id) else f"call_{_digest(call_id)[:32]}"


_RULES: dict[str, Callable[[str], str]] = {
    "openai": _for_openai,
    "responses": _for_responses,
    "anthropic": _for_anthropic,
    "mistral": _for_mistral,
    "keep": _as_it_came,
}


class WireIds:
    """Gives each call of one request its id, in the order of the history."""

    def __init__(self, rule: str) -> None:
        self._rule = _RULES[rule]
        self._used: set[str] = set()
        self._again: dict[str, int] = {}

    def take(self, call_id: str) -> str:
        """The id for the next call; no two calls of a request get the same."""
        made = self._rule(call_id)
        while made in self._used:
            number = self._again[call_id] = self._again.get(call_id, 1) + 1
            made = self._rule(f"{call_id}_{number}" if call_id else f"\x00{number}")
        self._used.add(made)
        return made
