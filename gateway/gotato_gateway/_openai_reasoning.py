"""Reasoning in a chat delta: which of several fields counts, and what must be kept to give it back.

`reasoning_content` (DeepSeek, Moonshot, z.ai), `reasoning` (Groq, OpenRouter, vLLM), `reasoning_text`; gateways send
the same text in two of them. OpenRouter adds `reasoning_details` ("Preserving reasoning" in its documentation), whose
signatures and encrypted blocks have to come back unchanged.
"""

from __future__ import annotations

from gotato_py import ReasoningDone

from ._json import Object, dump_text, items, obj, text

_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
_IN_PIECES = ("text", "summary", "data")


def reasoning_text(delta: Object) -> str:
    """The new piece of reasoning, from the first field that has one."""
    for name in _FIELDS:
        said = text(delta.get(name))
        if said:
            return said
    if not delta.get("reasoning_details"):
        return ""
    details = map(obj, items(delta["reasoning_details"]))
    return "".join(text(detail.get("text")) or text(detail.get("summary")) for detail in details)


class ReasoningBlock:
    """The reasoning between two pieces of an answer: whether it is open, and what closes it."""

    def __init__(self, origin: str, keep_details: bool) -> None:
        self._origin, self._keep_details = origin, keep_details
        self._details: dict[object, Object] = {}
        self._pieces: dict[tuple[object, str], list[str]] = {}
        self._open = self._shown = False

    def show(self) -> None:
        """Text of it was given out."""
        self._open = self._shown = True

    def add_details(self, delta: Object) -> None:
        """Collects what has to be given back; pieces of one detail have one index and are joined."""
        if not self._keep_details:
            return
        for detail in map(obj, items(delta.get("reasoning_details"))):
            key = (text(detail.get("type")), str(detail.get("index")), text(detail.get("id")))
            known = self._details.setdefault(key, {})
            for name, value in detail.items():
                if name in _IN_PIECES and isinstance(value, str):
                    self._pieces.setdefault((key, name), []).append(value)
                    known[name] = text(known.get(name)) or value  # the whole replaces it at the end
                elif value is not None and value != "":
                    known[name] = value
            self._open = self._open or bool(known.get("signature") or known.get("data"))

    def close(self) -> ReasoningDone | None:
        """The event that ends an open block."""
        if not self._open:
            return None
        for (key, name), pieces in self._pieces.items():
            self._details[key][name] = "".join(pieces)
        details = list(self._details.values())
        sealed = any(detail.get("signature") or detail.get("data") for detail in details)
        done = ReasoningDone(dump_text(details) if sealed else "", self._origin, redacted=sealed and not self._shown)
        self._open = self._shown = False
        self._details, self._pieces = {}, {}
        return done
