"""From Gemini's chunks to neutral events ("GenerateContentResponse", Gemini API reference).

An answer is over when a finish word or a blocked prompt was seen; the end of the body follows, since some servers send
a finish word with every chunk. Calls come whole, most without an id: one is made up.

A thought signature may sit on any part. On a call it is the call's; on a thought it ends it; on text it follows the
text, as a `ReasoningDone` without reasoning. One on a part of which nothing is shown is `redacted`: its signature alone
for an empty text, the whole part as JSON for what the server did by itself (code, searches), which is never a call.
Pictures and sound in an answer are skipped: no neutral event holds them.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping

from gotato_py import (
    AuthenticationFailed,
    ConnectionFailed,
    Done,
    InvalidRequest,
    ModelError,
    ModelEvent,
    ModelProtocolError,
    ReasoningDelta,
    ReasoningDone,
    StopReason,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallReady,
    Usage,
)

from ._call_arguments import received_arguments
from ._dialect import Hearing
from ._gemini_usage import Counts
from ._json import Object, clean, is_array, is_object, items, obj, text

_DONE = "[DONE]"  # of proxies; Google sends none
_ANSWER = frozenset({"candidates", "promptFeedback", "usageMetadata"})

_WORDS: Mapping[str, StopReason] = {
    word: reason
    for reason, words in {
        StopReason.END_TURN: ("STOP",),
        StopReason.MAX_TOKENS: ("MAX_TOKENS", "CONTINUATION"),
        StopReason.CONTENT_FILTER: (
            *("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR"),
            *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "ESCALATION"),
        ),
    }.items()
    for word in words
}
_FAILURES: Mapping[str, type[ModelError]] = {
    "MALFORMED_FUNCTION_CALL": ModelProtocolError,
    "UNEXPECTED_TOOL_CALL": ModelProtocolError,
    "TOO_MANY_TOOL_CALLS": ModelProtocolError,
    "MALFORMED_RESPONSE": ModelProtocolError,
    "OTHER": ModelProtocolError,
    "IMAGE_OTHER": ModelProtocolError,
    "NO_IMAGE": ModelProtocolError,
    "MISSING_THOUGHT_SIGNATURE": InvalidRequest,
    "PUP_LIMITED_DISABLED": AuthenticationFailed,
}
"""Words for an answer that is none; what a model did wrong it may do right when it is asked again."""


class GeminiDecoder:
    """One answer. `feed` takes the data of one event, `finish` is called at the end of the body."""

    def __init__(self, hearing: Hearing) -> None:
        self._hearing = hearing
        self._counts = Counts()
        self._out: list[ModelEvent] = []
        self._word, self._blocked, self._id, self._model = "", "", "", ""
        self._thinking = self._begun = self._ended = self._settled = self._goes_on = False
        self._calls = 0

    @property
    def begun(self) -> bool:
        """Whether anything of this dialect was heard."""
        return self._begun

    @property
    def ended(self) -> bool:
        """Whether nothing more is to come."""
        return self._ended

    @property
    def complete(self) -> bool:
        """Whether the answer is over, so that a connection lost now loses nothing."""
        return bool(self._word or self._blocked)

    @property
    def settled(self) -> bool:
        """Whether the answer is over and has all that belongs to it, so that the body has no reason to go on."""
        return self._settled and not self._goes_on

    @property
    def usage(self) -> Usage | None:
        """The tokens counted so far."""
        return self._counts.usage

    def feed(self, data: str, event: str = "") -> list[ModelEvent]:
        """The events in the data of one server-sent event. Raises the error that it is."""
        if data.strip() == _DONE:
            self._ended = True
            return []
        said = self._hearing.parsed(data, event)
        if event == "error":
            raise self._hearing.refuse(said)
        for chunk in items(said) if is_array(said) else [said]:
            self._add(obj(chunk))
        return self._take()

    def feed_whole(self, answer: Object) -> list[ModelEvent] | None:
        """Those in an answer that came in one piece, or in one element of an array; None if this is none."""
        if _ANSWER.isdisjoint(answer):
            return None
        self._add(answer)
        return self._take()

    def _take(self) -> list[ModelEvent]:
        out, self._out = self._out, []
        return out

    def _add(self, chunk: Object) -> None:
        if chunk.get("error"):
            raise self._hearing.refuse(chunk)
        self._counts.add(chunk.get("usageMetadata"))
        self._id = self._id or text(chunk.get("responseId"))
        self._model = text(chunk.get("modelVersion")) or self._model
        self._blocked = text(obj(chunk.get("promptFeedback")).get("blockReason")) or self._blocked
        candidate = _first_candidate(chunk)
        for part in items(obj(candidate.get("content")).get("parts")):
            self._part(obj(part))
        if self._word and self._out:  # a server that says the word with every chunk
            self._goes_on = True
        self._word = text(candidate.get("finishReason")) or self._word
        if not self._begun:
            self._begun = not _ANSWER.isdisjoint(chunk)
        if (self._word or self._blocked) and chunk.get("usageMetadata"):
            self._settled = True

    def _part(self, part: Object) -> None:
        signature = clean(text(part.get("thoughtSignature")))
        if is_object(part.get("functionCall")):
            self._call(obj(part["functionCall"]), signature)
        elif part.keys() <= {"text", "thought", "thoughtSignature", "partMetadata"}:
            if part.get("thought") is True:
                self._think(text(part.get("text")), signature)
            else:
                self._say(text(part.get("text")), signature)
        elif signature:
            self._sign(clean(json.dumps(part, ensure_ascii=False)), redacted=True)

    def _think(self, thought: str, signature: str) -> None:
        if thought:
            self._thinking = True
            self._out.append(ReasoningDelta(clean(thought)))
        if signature:
            self._out.append(ReasoningDone(signature, self._hearing.origin, redacted=not self._thinking))
            self._thinking = False

    def _say(self, said: str, signature: str) -> None:
        if said:
            self._close_reasoning()
            self._out.append(TextDelta(clean(said)))
        if signature:
            self._sign(signature, redacted=not said)

    def _sign(self, signature: str, *, redacted: bool) -> None:
        self._close_reasoning()
        self._out.append(ReasoningDone(signature, self._hearing.origin, redacted))

    def _close_reasoning(self) -> None:
        if self._thinking:
            self._thinking = False
            self._out.append(ReasoningDone("", self._hearing.origin))

    def _call(self, said: Object, signature: str) -> None:
        self._close_reasoning()
        name = clean(self._hearing.own_name(text(said.get("name"))))
        args = said.get("args")
        written = args if isinstance(args, str) else json.dumps(args, ensure_ascii=False)
        arguments = received_arguments(clean(written), cut=False)
        call_id = clean(text(said.get("id"))) or f"call_{uuid.uuid4().hex[:24]}"
        self._out.append(ToolCallDelta(self._calls, name, arguments))
        self._out.append(
            ToolCallReady(ToolCall(call_id, name, arguments, signature, self._hearing.origin if signature else ""))
        )
        self._calls += 1

    def finish(self) -> list[ModelEvent]:
        """What is left, and the one `Done`; raises the error that the answer is instead of one."""
        provider = self._hearing.provider
        if not self.complete:
            raise ConnectionFailed("the answer was cut off: its stream ended too early", provider=provider)
        failure = _FAILURES.get(self._word)
        if failure is not None:
            said = f"{provider or 'the provider'} gave no usable answer and ended it with {self._word}"
            raise failure(said, provider=provider, details={"codes": (self._word.lower(),)})
        self._close_reasoning()
        self._out.append(Done(self._stop_reason(), self.usage, self._id, self._model))
        return self._take()

    def _stop_reason(self) -> StopReason:
        if not self._word:
            return StopReason.CONTENT_FILTER  # the prompt was blocked
        reason = _WORDS.get(self._word)
        if reason is None:
            reason = StopReason.END_TURN
            self._hearing.on_unknown_word(self._word)
        return StopReason.TOOL_CALLS if self._calls and reason is StopReason.END_TURN else reason


def _first_candidate(chunk: Object) -> Object:
    """The one candidate that was asked for; further ones are nobody's."""
    candidates = map(obj, items(chunk.get("candidates")))
    return next((each for each in candidates if each.get("index") in (0, None)), obj(None))
