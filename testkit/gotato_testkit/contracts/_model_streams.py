"""What a Model promises of its streams, and what the suites for models share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from gotato_py import (
    Done,
    EmptyResponse,
    GotatoError,
    Model,
    ModelError,
    ModelEvent,
    ModelProtocolError,
    ModelRequest,
    RetryPolicy,
    Scope,
    StopReason,
    UserMessage,
    collect,
)

from ._suite import BrokenPromise, Suite, after, require, shaped

ANSWERED = "test_a_request_is_answered"
ONE_DONE = "test_a_stream_ends_with_exactly_one_done"
_NONE = frozenset[str]()
_AN_ITERATOR = "stream(request, scope) returns an iterator of events (Model.stream)"
_ONE_DONE = "a stream has exactly one Done, and it is the last event (Model.stream)"


class ModelSuite(Suite):
    """What the suites for models share: what is tested, and what a subclass may tell of it."""

    def make(self) -> Model:
        """The model, ready to answer `request()` any number of times."""
        raise NotImplementedError("a ModelContract needs make(), which returns the model to test")

    def request(self) -> ModelRequest:
        """A request that the model answers."""
        return ModelRequest("Be brief.", (UserMessage("Say hello to the whole world, please."),))

    def stalled(self) -> Model | None:
        """A model whose answer to `request()` begins and then never goes on; None where there is no such thing."""
        return None

    def failures(self) -> Iterable[tuple[Model, type[ModelError]]]:
        """Models that cannot answer, each with the error that says why: a wrong key, a rate limit, a cut connection."""
        return ()

    def sent(self, model: Model) -> int | None:
        """How many requests the model has sent so far; None where nobody counts them."""
        return None

    def unclosed(self, model: Model) -> int | None:
        """How many streams of the model still hold a connection; None where nobody counts them."""
        return None

    def _events(self, model: Model, request: ModelRequest | None = None) -> list[ModelEvent]:
        """A whole stream."""
        try:
            return list(model.stream(self.request() if request is None else request, Scope()))
        except GotatoError:
            raise
        except Exception as error:
            raise BrokenPromise(
                "a model raises ModelErrors, Cancelled and DeadlineExceeded (Model.stream)",
                f"a {type(error).__name__} for a request that it should answer",
                "mend it, or translate it into a ModelError",
            ) from error


class StreamsContract(ModelSuite):
    """What is streamed, the same for every request and from every thread."""

    def test_a_request_is_answered(self) -> None:
        """`stream(request, scope)` returns an iterator, which can be read to its end. The other tests build upon it."""
        model = shaped(self.make(), "stream")
        try:
            stream: object = model.stream(self.request(), Scope())
            found = "" if isinstance(stream, Iterator) else f"{_a(stream)}, which is no iterator"
            remedy = "yield the events one after another, from a `def` and not an `async def`"
            if isinstance(stream, Iterator):
                for _ in cast("Iterator[object]", stream):
                    pass
        except GotatoError as error:
            found = f"{_a(error)} for `request()`"
            remedy = "let make() return a model that can answer, or override request() with one that it answers"
        except Exception as error:
            found = f"{_a(error)} for a request that it should answer"
            remedy = "take (request, scope); mend what it raises, or translate it into a ModelError"
        require(not found, _AN_ITERATOR, found=found, remedy=remedy)

    @after(ANSWERED)
    def test_a_stream_ends_with_exactly_one_done(self) -> None:
        """One `Done`, and nothing after it."""
        events = self._events(shaped(self.make(), "stream"))
        places = [index for index, event in enumerate(events) if isinstance(event, Done)]
        require(
            places == [len(events) - 1],
            _ONE_DONE,
            found=f"{len(events)} events, Done at {places or 'none of them'}",
            remedy="yield Done when the provider has said that the answer is complete, then return; raise "
            "ConnectionFailed where the answer was cut off",
        )

    @after(ANSWERED)
    def test_every_event_is_a_model_event(self) -> None:
        """Nothing else is streamed."""
        strange = sorted(
            {
                type(event).__name__
                for event in self._events(shaped(self.make(), "stream"))
                if not isinstance(event, ModelEvent)
            }
        )
        require(
            not strange,
            "a stream yields ModelEvents (Model.stream)",
            found=f"objects of type {', '.join(strange)}",
            remedy="translate what the provider sends into the events of gotato_py, and leave out what has no event",
        )

    @after(ANSWERED)
    def test_done_says_how_the_model_stopped(self) -> None:
        """`cancelled` and `error` are what the kernel says of an answer, never what a model says."""
        ends = [event.stop_reason for event in self._events(shaped(self.make(), "stream")) if isinstance(event, Done)]
        require(
            not {StopReason.CANCELLED, StopReason.ERROR}.intersection(ends),
            "Done.stop_reason says why the model stopped; a failure is raised",
            found=f"Done({ends[-1]})" if ends else "no Done",
            remedy="raise a ModelError for a failed call, and let Cancelled and DeadlineExceeded out",
        )

    @after(ANSWERED, ONE_DONE)
    def test_an_answer_says_something(self) -> None:
        """`collect` makes a message of the answer."""
        try:
            collect(shaped(self.make(), "stream"), self.request(), retry=RetryPolicy(max_attempts=1))
        except ModelProtocolError:
            pass  # the tests of the stream say more about it
        except EmptyResponse:
            raise BrokenPromise(
                "an answer has text, a call or another visible part",
                "an answer without any",
                "stream what the provider says as TextDelta and ToolCallReady; override request() if it said nothing",
            ) from None

    @after(ANSWERED)
    def test_the_request_is_left_as_it_was(self) -> None:
        """A request is the caller's, and so is the list of its messages."""
        asked = self.request()
        messages = list(asked.messages)
        request = ModelRequest(asked.system, messages, asked.tools, asked.options, asked.cache_breakpoints)
        self._events(shaped(self.make(), "stream"), request)
        require(
            messages == list(asked.messages),
            "a request belongs to its caller and stays as it is (ModelRequest)",
            found=f"{len(messages)} messages after the call, {len(asked.messages)} before, or others",
            remedy="build the provider's own request from copies",
        )

    @after(ANSWERED, ONE_DONE)
    def test_the_same_request_may_be_sent_again(self) -> None:
        """Each call of `stream` is an attempt of its own: the kernel makes another after a failure."""
        model = shaped(self.make(), "stream")
        self._events(model)
        again = self._events(model)
        require(
            len(again) > 0 and isinstance(again[-1], Done),
            "every call of stream is a new attempt (Model.stream)",
            found=f"the second stream has {len(again)} events and no Done at its end",
            remedy="keep what belongs to one answer in its iterator, not in the model",
        )

    def test_optional_attributes_are_of_their_types(self) -> None:
        """`capabilities` is a frozenset of str and `name` a str, if they are there."""
        model = shaped(self.make(), "stream")
        capabilities: object = getattr(model, "capabilities", _NONE)
        name: object = getattr(model, "name", "")
        require(
            _is_set_of_words(capabilities) and isinstance(name, str),
            "capabilities is a frozenset[str] and name a str (Model)",
            found=f"capabilities is a {_kind(capabilities)}, name a {_kind(name)}",
            remedy="correct them, or leave them out: both have a default",
        )

    @after(ANSWERED, ONE_DONE)
    def test_threads_may_share_the_model(self) -> None:
        """Several streams at a time are each a whole answer."""
        model = shaped(self.make(), "stream")
        for ended in self.together([lambda: self._events(model)] * 4):
            events = ended.value or []
            require(
                ended.in_time and len(events) > 0 and isinstance(events[-1], Done),
                "one model may be asked by several threads at a time (Model)",
                found=f"one of four streams at a time: {ended.said()}, with {len(events)} events",
                remedy="share nothing between streams, or guard it by a lock",
            )


def _is_set_of_words(given: object) -> bool:
    return isinstance(given, frozenset) and all(isinstance(each, str) for each in cast("frozenset[object]", given))


def _kind(given: object) -> str:
    return type(given).__name__


def _a(given: object) -> str:
    kind = _kind(given)
    return f"{'an' if kind[0] in 'aeioAEIO' else 'a'} {kind}"
