"""From the events of the Messages API to neutral ones ("Streaming messages" in Anthropic's documentation).

An answer is over when `message_stop` or a stop reason was seen; a body that ends with neither was cut off, and so was
one that says `[DONE]` behind events of another dialect. Blocks of tools that run on the server (`server_tool_use` and
their results) are no calls of ours and are skipped, the text around them is kept; so is every block and event that
nobody knows yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gotato_py import (
    ConnectionFailed,
    ContextOverflow,
    Done,
    ModelEvent,
    StopReason,
    ToolCallReady,
    Usage,
)

from ._anthropic_blocks import Block, CallBlock, RedactedBlock, TextBlock, ThinkingBlock, call_block
from ._anthropic_usage import UsageCounts
from ._dialect import Hearing
from ._json import Object, is_array, items, obj, text

_WINDOW_FULL = "model_context_window_exceeded"
_WORDS: Mapping[str, StopReason] = {
    "end_turn": StopReason.END_TURN,
    "stop_sequence": StopReason.STOP_SEQUENCE,
    "tool_use": StopReason.TOOL_CALLS,
    "max_tokens": StopReason.MAX_TOKENS,
    _WINDOW_FULL: StopReason.MAX_TOKENS,
    "refusal": StopReason.CONTENT_FILTER,
    "guardrail_intervened": StopReason.CONTENT_FILTER,  # of Bedrock, as the next
    "content_filtered": StopReason.CONTENT_FILTER,
    "pause_turn": StopReason.PAUSE,
    "compaction": StopReason.PAUSE,
}
_OWN_MEANING = (StopReason.MAX_TOKENS, StopReason.CONTENT_FILTER, StopReason.PAUSE)
_UNKNOWN = "unknown"
_BY_DELTA = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "thinking"}
"""The block that a delta belongs to, for servers that forget its start."""


class MessagesDecoder:
    """One answer. `feed` takes one event, `finish` is called at the end of the body or after `message_stop`."""

    def __init__(self, hearing: Hearing) -> None:
        self._hearing = hearing
        self._open: dict[object, Block | None] = {}
        self._calls: list[CallBlock] = []
        self._counts = UsageCounts()
        self._out: list[ModelEvent] = []
        self._word, self._id, self._model = "", "", ""
        self._begun = self._ended = self._said_something = False

    @property
    def begun(self) -> bool:
        """Whether anything of this dialect was heard."""
        return self._begun

    @property
    def ended(self) -> bool:
        """Whether `message_stop` was seen: nothing more is to come."""
        return self._ended

    @property
    def complete(self) -> bool:
        """Whether the answer is over, so that a connection lost now loses nothing."""
        return (self._ended and self._begun) or bool(self._word)

    @property
    def settled(self) -> bool:
        """Whether the answer is over and has all that belongs to it, so that the body has no reason to go on."""
        return bool(self._word) and not self._open

    @property
    def usage(self) -> Usage | None:
        """The tokens counted so far."""
        return self._counts.total()

    def feed(self, data: str, event: str = "") -> list[ModelEvent]:
        """The neutral events in one event of the stream. Raises the error that it is."""
        if data.strip() == "[DONE]":  # from proxies
            self._ended = True
            return []
        said = obj(self._hearing.parsed(data, event))
        if event == "error" or said.get("type") == "error" or said.get("error"):
            raise self._hearing.refuse(said)
        kind = text(said.get("type")) or event
        self._begun = self._begun or kind.startswith(("message_", "content_block_"))
        self._read(kind, said)
        return self._take()

    def feed_whole(self, answer: Object) -> list[ModelEvent] | None:
        """Those in a message that came in one piece; None if this is none."""
        if not is_array(answer.get("content")):
            return None
        self._begin(answer)
        for index, block in enumerate(items(answer["content"])):
            self._start(index, obj(block))
            self._stop(index)
        self._begun = self._ended = True
        return self._take()

    def _take(self) -> list[ModelEvent]:
        out, self._out = self._out, []
        return out

    def _read(self, kind: str, said: Object) -> None:
        if kind == "content_block_delta":
            self._add(said.get("index"), obj(said.get("delta")))
        elif kind == "content_block_start":
            self._start(said.get("index"), obj(said.get("content_block")))
        elif kind == "content_block_stop":
            self._stop(said.get("index"))
        elif kind == "message_start":
            self._begin(obj(said.get("message")))
        elif kind == "message_delta":
            self._counts.add(obj(said.get("usage")))
            self._word = text(obj(said.get("delta")).get("stop_reason")) or self._word
        elif kind == "message_stop":
            self._ended = True

    def _begin(self, message: Object) -> None:
        self._id = text(message.get("id"))
        self._model = text(message.get("model"))
        self._word = text(message.get("stop_reason"))
        self._counts.add(obj(message.get("usage")))

    def _start(self, index: object, start: Object) -> None:
        self._stop(index)
        block = self._block(text(start.get("type")), start)
        self._open[_key(index)] = block
        if block is not None:
            self._give(block.add(start))

    def _block(self, kind: str, start: Object) -> Block | None:
        if kind == "text":
            return TextBlock()
        if kind == "thinking":
            return ThinkingBlock(self._hearing.origin)
        if kind == "redacted_thinking":
            return RedactedBlock(text(start.get("data")), self._hearing.origin)
        if kind == "tool_use":
            self._calls.append(call_block(len(self._calls), start, self._hearing.own_name))
            return self._calls[-1]
        return None

    def _add(self, index: object, delta: Object) -> None:
        key = _key(index)
        if key not in self._open:
            self._start(index, {"type": _BY_DELTA.get(text(delta.get("type")), _UNKNOWN)})
        block = self._open[key]
        if block is not None:
            self._give(block.add(delta))

    def _stop(self, index: object) -> None:
        block = self._open.pop(_key(index), None)
        if block is not None:
            self._give(block.close())

    def _give(self, events: Iterable[ModelEvent]) -> None:
        for event in events:
            self._said_something = True
            self._out.append(event)

    def finish(self) -> list[ModelEvent]:
        """What is left, and the one `Done`; raises the error that the answer is instead of one."""
        provider = self._hearing.provider
        if not self.complete:
            raise ConnectionFailed("the answer was cut off: its stream ended too early", provider=provider)
        for index in list(self._open):
            self._stop(index)
        if self._word == _WINDOW_FULL and not self._said_something:
            raise ContextOverflow("the request is larger than the model's context window", provider=provider)
        reason = self._stop_reason()
        cut = reason in _OWN_MEANING
        self._out += (ToolCallReady(block.call(cut)) for block in self._calls)
        self._out.append(Done(reason, self.usage, self._id, self._model))
        return self._take()

    def _stop_reason(self) -> StopReason:
        reason = _WORDS.get(self._word)
        if reason is None:
            reason = StopReason.END_TURN
            if self._word:
                self._hearing.on_unknown_word(self._word)
        if reason in _OWN_MEANING:
            return reason
        if self._calls:
            return StopReason.TOOL_CALLS
        return StopReason.END_TURN if reason is StopReason.TOOL_CALLS else reason


def _key(index: object) -> object:
    """An index as a key; one that is none stands for the block that is open."""
    return index if isinstance(index, int | str) else None
