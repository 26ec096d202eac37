"""Recorded streams of real providers, and what the provider's own SDK made of each.

All of them lie beside the project; a few are copied into it, so that the tests mean something without the others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gotato_gateway import Adapter, AnthropicMessages, Gemini, OpenAIChat, OpenAIResponses
from gotato_gateway._dialect import Decoder, Hearing
from gotato_gateway.quirks import quirks_for

from .answers import Answer, ask, local
from .server import Reply, Server, pieces_of

ADAPTERS: Mapping[str, type[Adapter]] = {
    "anthropic": AnthropicMessages,
    "gemini": Gemini,
    "openai-chat": OpenAIChat,
    "openai-responses": OpenAIResponses,
}
DATA = Path(__file__).parent / "data"
SHARED = Path(__file__).parents[3] / "shared" / "recordings"


@dataclass(frozen=True)
class Recording:
    """One stream: its dialect, what is known about it, and the body's bytes."""

    dialect: str
    name: str
    facts: dict[str, Any]
    body: bytes

    def __str__(self) -> str:
        return f"{self.dialect}-{self.name}"

    @property
    def expect(self) -> dict[str, Any] | None:
        """What the SDK made of it; None where it raised an error."""
        expect: dict[str, Any] | None = self.facts["expect"]
        return expect

    @property
    def model(self) -> str:
        """The model that was asked; Gemini's requests do not name it, nor one that takes up an earlier answer."""
        return str((self.facts["request"] or {}).get("model", "gemini-2.5-flash"))

    @property
    def stop_reason(self) -> str:
        """The end of the answer in our words."""
        assert self.expect is not None
        if self.expect["finish"] in ("length", "max_tokens", "MAX_TOKENS"):
            return "max_tokens"
        return "tool_calls" if self.expect["tool_calls"] else "end_turn"

    @property
    def usage(self) -> dict[str, Any]:  # Any: it goes into Usage by name
        """What was counted.

        Of the one stream with a summary that the server made by itself, the SDK's numbers were left open: its reads of
        the cache count, which its last event says are 0, and what the summary cost does not.
        """
        assert self.expect is not None
        counted: dict[str, Any] | None = self.expect["usage"]
        return counted or {"input_tokens": 55277, "output_tokens": 8, "cache_read_tokens": 55096}

    def same_reasoning(self, told: str) -> bool:
        """Whether this is the reasoning that the SDK found.

        The parts of a summary, each of which begins with a heading, are joined by a blank line here, by nothing there.
        """
        assert self.expect is not None
        joined = told.replace("\n\n**", "**") if self.dialect == "openai-responses" else told
        return bool(joined == self.expect["reasoning"])

    def adapter(self, url: str) -> Adapter:
        """An adapter for a server of the tests that has the quirks of the recorded host."""
        quirks = quirks_for(f"https://{self.facts['host']}/v1", self.model)
        return local(url, ADAPTERS[self.dialect], model=self.model, quirks=quirks)

    def decoder(self) -> Decoder:
        """A decoder of its dialect, as that adapter has it."""
        quirks = quirks_for(f"https://{self.facts['host']}/v1", self.model)
        return ADAPTERS[self.dialect]._dialect.decoder(Hearing(quirks, f"{self.dialect}:m"))

    def reply(self, **how: Any) -> Reply:
        """The answer again, in pieces of random sizes."""
        return Reply(pieces_of(self.body, len(self.body)), self.facts["status"], self.facts["headers"], **how)

    def replay(self, **how: Any) -> Answer:
        """What the adapter makes of it."""
        with Server(self.reply(**how)) as server:
            return ask(self.adapter(server.url))


def recorded(path: Path, dialect: str = "") -> Recording:
    """The recording in this file and the one beside it; without a `dialect`, in that of its request."""
    facts: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return Recording(dialect or _dialect(facts["request"]), path.stem, facts, path.with_suffix(".sse").read_bytes())


def _dialect(request: Mapping[str, Any]) -> str:
    """Which dialect a request is in, by the name that it has for the history."""
    names = {"contents": "gemini", "input": "openai-responses"}
    named = next((dialect for name, dialect in names.items() if name in request), None)
    return named or ("anthropic" if isinstance(request.get("max_tokens"), int) else "openai-chat")


COPIED = [each for path in sorted(DATA.glob("*.json")) if (each := recorded(path)).dialect in ADAPTERS]
ALL = [recorded(path, dialect) for dialect in ADAPTERS for path in sorted((SHARED / dialect).glob("*.json"))] or COPIED
