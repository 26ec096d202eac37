"""Token counts of Gemini ("UsageMetadata", Gemini API reference), as one neutral `Usage`.

Every chunk of a stream may have counts: snapshots, from which single ones may be missing, also from the last. So the
last value of each counts. Thoughts and the prompts of server-side tools are counted beside candidates and prompt;
cached tokens are a part of the prompt.
"""

from __future__ import annotations

from gotato_py import Usage

from ._json import count, obj

_FIELDS = (
    "promptTokenCount",
    "toolUsePromptTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
    "cachedContentTokenCount",
)


class Counts:
    """The counts of one answer so far."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def add(self, metadata: object) -> None:
        """Takes a snapshot; what is no snapshot changes nothing."""
        said = obj(metadata)
        for name in _FIELDS:
            number = count(said.get(name))
            if number is not None:
                self._known[name] = number

    @property
    def usage(self) -> Usage | None:
        """The usage, or None where nothing was counted."""
        if not self._known:
            return None
        prompt, tools, candidates, thoughts, cached = (self._known.get(name, 0) for name in _FIELDS)
        read = min(cached, prompt + tools)
        return Usage(prompt + tools, candidates + thoughts, read, 0, thoughts)
