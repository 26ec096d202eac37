"""From the events of the responses dialect to neutral ones ("Streaming events" in OpenAI's API reference).

An answer ends with `response.completed`, `response.incomplete` or `response.failed`; a body without one of them was cut
off. Calls are given out at the end, when it is known whether the answer was cut. Text, reasoning and refusals come as
deltas; where a server sends none, what its later events hold whole is given out instead. Items of tools that the
server runs itself, and events that are not known, are passed over.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

from gotato_py import (
    ConnectionFailed,
    Done,
    ModelEvent,
    Overloaded,
    StopReason,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallReady,
    Usage,
)

from ._call_arguments import received_arguments
from ._dialect import Hearing
from ._halves import Halves
from ._json import Object, clean, count, is_array, items, obj, text
from ._openai_usage import token_usage
from ._responses_output import CALL, MESSAGE, REASONING, Item, Output, arguments_in
from ._responses_thoughts import Thoughts

_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_ERRORS = ("error", "response.error")
_INCOMPLETE = {"max_output_tokens": StopReason.MAX_TOKENS, "content_filter": StopReason.CONTENT_FILTER}


class ResponsesDecoder:
    """One answer. `feed` takes the data of one event, `finish` is called at the end of the body or after its last."""

    def __init__(self, hearing: Hearing) -> None:
        self._hearing, self._provider = hearing, hearing.provider
        self._out: list[ModelEvent] = []
        self._output = Output()
        self._thoughts = Thoughts(hearing.origin, self._output, self._out.append)
        self._halves = Halves()
        self._usage: Usage | None = None
        self._id, self._model, self._status, self._reason = "", "", "", ""
        self._refused = self._begun = self._ended = self._complete = False

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
        return self._complete

    @property
    def settled(self) -> bool:
        """Whether the answer is over and has all that belongs to it, so that the body has no reason to go on."""
        return self._complete

    @property
    def usage(self) -> Usage | None:
        """The tokens counted so far."""
        return self._usage

    def feed(self, data: str, event: str = "") -> list[ModelEvent]:
        """The events in the data of one server-sent event, which may have a name. Raises the error that it is."""
        if data.strip() == "[DONE]":  # the habit of the other dialect, which some servers keep
            self._ended = True
            return []
        said = obj(self._hearing.parsed(data, event))
        kind = text(said.get("type")) or event
        if kind in _ERRORS or event in _ERRORS or (said.get("error") and not text(said.get("type"))):
            plain = {**said, "type": None} if kind in _ERRORS else said  # the type of an event is no code
            raise self._hearing.refuse({"error": said.get("error") or plain})
        self._begun = self._begun or kind.startswith("response.")
        if "response" in said:
            self._note(obj(said["response"]))
        if kind in _ENDS:
            self._end(kind, obj(said.get("response")))
        elif kind in _HANDLERS:
            _HANDLERS[kind](self, said)
        return self._take()

    def feed_whole(self, answer: Object) -> list[ModelEvent] | None:
        """Those in a response that came in one piece; None if this is none, or one that is still being worked on."""
        status = text(answer.get("status")) or "completed"
        if not is_array(answer.get("output")) or f"response.{status}" not in _ENDS:
            return None
        self._note(answer)
        self._end(f"response.{status}", answer)
        return self._take()

    def finish(self) -> list[ModelEvent]:
        """What is left, and the one `Done`."""
        if not self._complete:
            raise ConnectionFailed("the answer was cut off: its stream ended too early", provider=self._provider)
        if half := self._halves.finish():
            self._out.append(TextDelta(half))
        self._thoughts.finish()
        reason = self._stop_reason()
        self._out += [ToolCallReady(self._call(item)) for item in self._output.calls]
        self._out.append(Done(reason, self._usage, self._id, self._model))
        return self._take()

    def _take(self) -> list[ModelEvent]:
        out = list(self._out)
        self._out.clear()
        return out

    def _note(self, response: Object) -> None:
        self._id = self._id or text(response.get("id"))
        self._model = text(response.get("model")) or self._model
        if response.get("usage"):
            self._usage = token_usage(response["usage"]) or self._usage

    def _end(self, kind: str, response: Object) -> None:
        """The last event. One that says otherwise than its name is taken at its word."""
        if self._complete:
            return
        told = {item.kind for item in self._output.items if item.told or item.kind != MESSAGE}
        for index, item in enumerate(map(obj, items(response.get("output")))):
            if text(item.get("type")) not in told:  # from a server that streams no such items, or none at all
                self.item_done({"output_index": index, "item": item})
        status = text(response.get("status"))
        self._status = status if f"response.{status}" in _ENDS else kind.removeprefix("response.")
        self._reason = text(obj(response.get("incomplete_details")).get("reason"))
        if response.get("error"):
            raise self._hearing.refuse({"error": response["error"]})
        if self._status in ("failed", "cancelled"):
            raise Overloaded("the provider broke its answer off and did not say why", provider=self._provider)
        self._ended = self._complete = True

    def _stop_reason(self) -> StopReason:
        if self._status == "incomplete":
            # Whatever the word, something is missing: no call of such an answer may run.
            if self._reason and self._reason not in _INCOMPLETE:
                self._hearing.on_unknown_word(self._reason)
            return _INCOMPLETE.get(self._reason, StopReason.MAX_TOKENS)
        if self._refused:
            return StopReason.CONTENT_FILTER
        return StopReason.TOOL_CALLS if self._output.calls else StopReason.END_TURN

    def _call(self, item: Item) -> ToolCall:
        arguments = received_arguments(clean(item.arguments), self._status == "incomplete")
        call_id = clean(item.call_id) or f"call_{uuid.uuid4().hex[:24]}"
        return ToolCall(call_id, clean(self._hearing.own_name(item.name)), arguments)

    def item_added(self, event: Object) -> None:
        """A new item; of a call, the name is known now."""
        said = obj(event.get("item"))
        if kind := text(said.get("type")):
            item = self._item(event, kind, said)
            if item.kind == CALL:
                self._tell(item, "")

    def item_done(self, event: Object) -> None:
        """An item as a whole: what its deltas left out is made up for."""
        said = obj(event.get("item"))
        item = self._item(event, text(said.get("type")), said)
        item.learn(said)
        if item.kind == MESSAGE and not item.told:
            for index, part in enumerate(map(obj, items(said.get("content")))):
                self._say(item, index, text(part.get("text")))
                self._say(item, index, text(part.get("refusal")), refused=True)
        elif item.kind == CALL:
            self._complete_call(item, arguments_in(said))
        elif item.kind == REASONING:
            self._thoughts.done(item, said)

    def text_delta(self, event: Object) -> None:
        """A piece of text."""
        self._say(self._item(event, MESSAGE), count(event.get("content_index")), text(event.get("delta")))

    def text_done(self, event: Object) -> None:
        """A text as a whole."""
        self._say_rest(event, text(event.get("text")), refused=False)

    def refusal_delta(self, event: Object) -> None:
        """A piece of a refusal, which the user sees as text."""
        item = self._item(event, MESSAGE)
        self._say(item, count(event.get("content_index")), text(event.get("delta")), refused=True)

    def refusal_done(self, event: Object) -> None:
        """A refusal as a whole."""
        self._say_rest(event, text(event.get("refusal")), refused=True)

    def summary_delta(self, event: Object) -> None:
        """A piece of a summary of the reasoning."""
        part = ("summary", count(event.get("summary_index")))
        self._thoughts.add(self._item(event, REASONING), part, text(event.get("delta")))

    def thought_delta(self, event: Object) -> None:
        """A piece of the reasoning itself, which open models show."""
        part = ("content", count(event.get("content_index")))
        self._thoughts.add(self._item(event, REASONING), part, text(event.get("delta")))

    def arguments_delta(self, event: Object) -> None:
        """A piece of a call's arguments."""
        item, fragment = self._item(event, CALL), text(event.get("delta"))
        item.fragments.append(fragment)
        self._tell(item, fragment)

    def arguments_done(self, event: Object) -> None:
        """The arguments of a call as a whole."""
        self._complete_call(self._item(event, CALL), arguments_in(event))

    def _item(self, event: Object, kind: str, said: Object | None = None) -> Item:
        """The item that an event is about; a new one where none was announced."""
        # The id of a call's item is optional, its call_id is not.
        item_id = text(event.get("item_id")) if said is None else text(said.get("id")) or text(said.get("call_id"))
        found = self._output.find(event, kind, item_id)
        if found is None:
            found = self._output.add(event, kind, item_id)
            found.learn(said or {})
            self._thoughts.followed_by(found)
        return found

    def _say(self, item: Item, index: int | None, said: str, *, refused: bool = False) -> None:
        if not said:
            return
        self._thoughts.interrupt()
        self._refused = self._refused or refused
        item.told.add(("refusal" if refused else "text", index))
        if whole := self._halves.feed(said):
            self._out.append(TextDelta(whole))

    def _say_rest(self, event: Object, said: str, *, refused: bool) -> None:
        item, index = self._item(event, MESSAGE), count(event.get("content_index"))
        if ("refusal" if refused else "text", index) not in item.told:
            self._say(item, index, said, refused=refused)

    def _complete_call(self, item: Item, arguments: str) -> None:
        item.whole = arguments or item.whole
        if not any(item.fragments):
            item.fragments.append(arguments)
            self._tell(item, arguments)

    def _tell(self, item: Item, fragment: str) -> None:
        self._thoughts.interrupt()
        name = "" if item.shown else clean(self._hearing.own_name(item.name))
        if name or fragment:
            item.shown = item.shown or bool(name)
            self._out.append(ToolCallDelta(item.position, name, clean(fragment)))


_HANDLERS: dict[str, Callable[[ResponsesDecoder, Object], None]] = {
    "response.output_item.added": ResponsesDecoder.item_added,
    "response.output_item.done": ResponsesDecoder.item_done,
    "response.output_text.delta": ResponsesDecoder.text_delta,
    "response.output_text.done": ResponsesDecoder.text_done,
    "response.refusal.delta": ResponsesDecoder.refusal_delta,
    "response.refusal.done": ResponsesDecoder.refusal_done,
    "response.reasoning_summary_text.delta": ResponsesDecoder.summary_delta,
    "response.reasoning_text.delta": ResponsesDecoder.thought_delta,
    "response.function_call_arguments.delta": ResponsesDecoder.arguments_delta,
    "response.function_call_arguments.done": ResponsesDecoder.arguments_done,
}
