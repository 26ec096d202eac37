"""The floor: the same work as a bare hand-written loop over dict messages. Nobody writes less than this."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.work import FINAL, Script

Message = dict[str, Any]  # Any: what a provider's JSON holds


class FloorModel:
    """Answers in the form that a provider's JSON has once it is read."""

    def __init__(self, script: Script) -> None:
        self.script = script

    def chat(self, messages: list[Message]) -> Message:
        """One whole answer."""
        step = self.script.step()
        if step is None:
            return {"role": "assistant", "content": FINAL}
        call = {"id": step[0], "type": "function", "function": {"name": "lookup", "arguments": step[1]}}
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    def chat_stream(self, messages: list[Message]) -> Iterator[str]:
        """One answer in pieces."""
        yield from self.script.deltas


class FloorAgent:
    """The loop: ask, call the tool, append, until the model asks for none."""

    def __init__(self, model: FloorModel, tools: list[Callable[..., str]]) -> None:
        self.model = model
        self.tools = {tool.__name__: tool for tool in tools}
        self.messages: list[Message] = []

    def run(self, prompt: str) -> str:
        """A whole run."""
        self.messages.append({"role": "user", "content": prompt})
        while True:
            reply = self.model.chat(self.messages)
            self.messages.append(reply)
            if not reply.get("tool_calls"):
                text: str = reply["content"]
                return text
            for call in reply["tool_calls"]:
                arguments = json.loads(call["function"]["arguments"])
                out = self.tools[call["function"]["name"]](**arguments)
                self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": out})

    def stream(self, prompt: str) -> Iterator[str]:
        """One streamed turn."""
        self.messages.append({"role": "user", "content": prompt})
        pieces: list[str] = []
        for piece in self.model.chat_stream(self.messages):
            pieces.append(piece)
            yield piece
        self.messages.append({"role": "assistant", "content": "".join(pieces)})
