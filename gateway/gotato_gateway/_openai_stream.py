"""From the data of the chat dialect's events to neutral ones ("Chat completion chunk" in OpenAI's API reference).

An answer is over when a finish word or `[DONE]` was seen; a body that ends with neither was cut off, and so was one
without a single chunk of this dialect. Calls are given out at the end, when their arguments and the finish word are
known. Usage comes as snapshots; the last one counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gotato_py import (
    ConnectionFailed,
    ContextOverflow,
    Done,
    ModelError,
    ModelEvent,
    Overloaded,
    ReasoningDelta,
    StopReason,
    TextDelta,
    ToolCallReady,
    Usage,
)

from ._dialect import Hearing
from ._halves import Halves
from ._json import Object, clean, items, obj, text
from ._openai_calls import CallAssembler
from ._openai_reasoning import ReasoningBlock, reasoning_text
from ._openai_usage import token_usage
from ._think_tags import Piece, ThinkTags

DONE = "[DONE]"

_WORDS: Mapping[str, StopReason] = {
    word: reason
    for reason, words in {
        StopReason.END_TURN: ("stop", "end", "end_turn", "eos"),
        StopReason.STOP_SEQUENCE: ("stop_sequence",),
        StopReason.TOOL_CALLS: ("tool_calls", "tool_use", "function_call"),
        StopReason.MAX_TOKENS: ("length", "max_tokens", "model_length", "model_context_window_exceeded"),
        StopReason.CONTENT_FILTER: (
            *("content_filter", "sensitive", "refusal", "safety"),
            *("guardrail_intervened", "content_filtered"),  # of Bedrock, which gateways hand on
        ),
        StopReason.PAUSE: ("pause", "pause_turn"),
    }.items()
    for word in words
}
_FAILURES = {"error", "network_error", "insufficient_system_resource", "abort"}
"""Words for a failure of the server: DeepSeek's lack of capacity, z.ai's network, OpenRouter's and vLLM's errors."""

_OWN_MEANING = (StopReason.MAX_TOKENS, StopReason.CONTENT_FILTER, StopReason.PAUSE)


class ChatDecoder:
    """One answer. `feed` takes the data of one event, `finish` is called at the end of the body or after `[DONE]`."""

    def __init__(self, hearing: Hearing) -> None:
        quirks, self._hearing, self._provider = hearing.quirks, hearing, hearing.provider
        self._calls = CallAssembler(hearing.own_name)
        self._tags = ThinkTags() if quirks.think_tags else None
        self._reasoning = ReasoningBlock(hearing.origin, quirks.reasoning_replay == "reasoning_details")
        self._usage: Usage | None = None
        self._out: list[ModelEvent] = []
        self._halves = Halves()
        self._word, self._id, self._model = "", "", ""
        self._refused = self._said_something = self._begun = self._ended = False
        self._settled = self._goes_on = self._streamed = False

    @property
    def begun(self) -> bool:
        """Whether anything of this dialect was heard."""
        return self._begun

    @property
    def ended(self) -> bool:
        """Whether `[DONE]` was seen: nothing more is to come."""
        return self._ended

    @property
    def complete(self) -> bool:
        """Whether the answer is over, so that a connection lost now loses nothing."""
        return (self._ended and self._begun) or bool(self._word)

    @property
    def settled(self) -> bool:
        """Whether the answer is over and has all that belongs to it, so that the body has no reason to go on."""
        return self._settled and not self._goes_on

    @property
    def usage(self) -> Usage | None:
        """The tokens counted so far."""
        return self._usage

    def feed(self, data: str, event: str = "") -> list[ModelEvent]:
        """The events in the data of one server-sent event, which may have a name. Raises the error that it is."""
        if data.strip() == DONE:
            self._ended = True
            return []
        chunk = self._hearing.parsed(data, event)
        if event == "error":
            chunk = {"error": obj(chunk).get("error") or chunk}
        return self.feed_chunk(obj(chunk))

    def feed_whole(self, answer: Object) -> list[ModelEvent] | None:
        """Those in a completion that came in one piece; None if this is none."""
        if not items(answer.get("choices")):
            return None
        self._ended = True
        return self.feed_chunk(answer)

    def feed_chunk(self, chunk: Object) -> list[ModelEvent]:
        """The events in one chunk, or in a whole completion."""
        self._id = self._id or text(chunk.get("id"))
        self._model = text(chunk.get("model")) or self._model
        choice = _first_choice(chunk)
        self._begun = self._begun or "choices" in chunk
        counted = False
        for place in (chunk, choice, obj(chunk.get("x_groq"))):
            if place.get("usage"):
                self._usage = token_usage(place["usage"]) or self._usage
                counted = True
            if place.get("error"):
                raise self._hearing.refuse({"error": place["error"]})
        if chunk.get("object") == "error":
            raise self._hearing.refuse(chunk)
        if delta := obj(choice.get("delta")):
            self._add(delta)
            self._streamed = self._said_something or bool(self._calls)
        elif not self._streamed:  # behind deltas, a whole message says them once more (Perplexity, some proxies)
            self._add(obj(choice.get("message")))
        if self._word and self._out:  # a server that says the word with every chunk
            self._goes_on = True
        self._word = text(choice.get("finish_reason")) or self._word
        if counted and self._word:
            self._settled = True
        return self._take()

    def _take(self) -> list[ModelEvent]:
        out, self._out = self._out, []
        return out

    def _add(self, delta: Object) -> None:
        self._reasoning.add_details(delta)
        self._think(reasoning_text(delta))
        content = delta.get("content")
        self._text(text(content))
        for part in items(content):
            self._part(obj(part))
        if delta.get("refusal"):
            self._refused = True
            self._say(text(delta["refusal"]))
        if delta.get("tool_calls") or delta.get("function_call"):
            self._close_reasoning()
            for entry in items(delta.get("tool_calls")):
                self._out += self._calls.add(obj(entry))
            if obj(delta.get("function_call")):
                self._out += self._calls.add_legacy(obj(delta["function_call"]))

    def _part(self, part: Object) -> None:
        """Content as a list of typed parts ("Reasoning" in Mistral's documentation); unknown types are skipped."""
        if part.get("type") == "text":
            self._text(text(part.get("text")))
        elif part.get("type") == "thinking":
            thinking = part.get("thinking")
            self._think(text(thinking) or "".join(text(obj(each).get("text")) for each in items(thinking)))

    def _text(self, said: str) -> None:
        if self._tags is None:
            self._say(said)
        else:
            self._sort(self._tags.feed(said))

    def _sort(self, pieces: Iterable[Piece]) -> None:
        for reasoning, piece in pieces:
            if reasoning:
                self._think(piece)
            else:
                self._say(piece)

    def _say(self, said: str) -> None:
        if not said:
            return
        self._close_reasoning()
        self._said_something = True
        if whole := self._halves.feed(said):
            self._out.append(TextDelta(whole))

    def _think(self, thought: str) -> None:
        if thought:
            self._reasoning.show()
            self._said_something = True
            self._out.append(ReasoningDelta(clean(thought)))

    def _close_reasoning(self) -> None:
        done = self._reasoning.close()
        if done is not None:
            self._out.append(done)

    def finish(self) -> list[ModelEvent]:
        """What is left, and the one `Done`; raises the error that the answer is instead of one."""
        if not self.complete:
            raise ConnectionFailed("the answer was cut off: its stream ended too early", provider=self._provider)
        failure = self._failure()
        if failure is not None:
            raise failure
        if self._tags is not None:
            self._sort(self._tags.finish())
        if half := self._halves.finish():
            self._out.append(TextDelta(half))
        self._close_reasoning()
        reason = self._stop_reason()
        cut = reason in (StopReason.MAX_TOKENS, StopReason.CONTENT_FILTER)
        self._out += map(ToolCallReady, self._calls.finish(cut))
        self._out.append(Done(reason, self._usage, self._id, self._model))
        return self._take()

    def _failure(self) -> ModelError | None:
        if self._word.lower() in _FAILURES:
            return Overloaded(
                "the provider stopped its answer because of an error on its side", provider=self._provider
            )
        if self._word == "model_context_window_exceeded" and not self._said_something and not self._calls:
            return ContextOverflow("the request is larger than the model's context window", provider=self._provider)
        return None

    def _stop_reason(self) -> StopReason:
        reason = _WORDS.get(self._word.lower())
        if reason is None:
            reason = StopReason.END_TURN
            if self._word:
                self._hearing.on_unknown_word(self._word)
        if reason in _OWN_MEANING:
            return reason
        if self._refused:
            return StopReason.CONTENT_FILTER
        if self._calls:
            return StopReason.TOOL_CALLS
        return StopReason.END_TURN if reason is StopReason.TOOL_CALLS else reason


def _first_choice(chunk: Object) -> Object:
    """The one choice that was asked for; further ones are nobody's."""
    choices = map(obj, items(chunk.get("choices")))
    return next((choice for choice in choices if choice.get("index") in (0, None)), obj(None))
