"""One model call of a run: attempts, retries, and the one answer that comes of them, told event by event."""

from __future__ import annotations

from collections.abc import Generator

from ._answer import Answer
from ._attempt import attempt, check_silence, delay_before_next, silence_is_answer
from ._event import ErrorInfo, LazyHash, error_info
from ._hooks import on_overflow
from ._overflow import still_too_large
from ._requests import Draft, draft_request, lay_out_draft
from ._run import Ending, Run
from ._text import well_formed
from .errors import ErrorCode, GotatoError, LimitExceeded
from .events import (
    ContextBuilt,
    Event,
    MessageDiscarded,
    MessageStart,
    MessageUpdate,
    ModelRetry,
    RateLimitsUpdate,
    ReasoningUpdate,
    ToolCallUpdate,
)
from .model import Done, ModelEvent, ModelRequest, RateLimits, ReasoningDelta, TextDelta, ToolCallDelta, ToolCallReady
from .model_errors import ContextOverflow, ModelError
from .parts import NO_USAGE
from .result import RunStatus


def ask(run: Run, *, wrap_up: bool = False) -> Generator[Event, None, Answer | None]:
    """The answer to what the transcript holds now; None for silence after a tool result, which is an answer too.

    Raises what the last attempt failed with; `run.answer` then still holds what that attempt delivered.
    """
    draft = draft_request(run, wrap_up=wrap_up)
    request = _request(run, draft)
    number, silences, overflowed = 1, 0, False
    while True:
        if run.outbox:
            yield from run.announcer.drain()
        answer = run.answer = Answer(run.setup.ids("message"))
        try:
            yield from _attempt(run, request, answer)
        except ContextOverflow as error:
            if overflowed:
                raise still_too_large(error, number, request) from error.cause
            if not on_overflow(run, error):
                raise
            overflowed = True
            _take_back(run, number, 0.0, error)
            number += 1
            draft = draft_request(run, wrap_up=wrap_up)
            request = _request(run, draft)
            continue
        except ModelError as error:
            delay = delay_before_next(run.setup.retry, number, error, run.scope)
            _take_back(run, number, delay, error)
            if run.outbox:
                yield from run.announcer.drain()
            run.scope.wait(delay)
            number += 1
        else:
            if not answer.is_empty():
                return answer
            discard(run, None)
            if silence_is_answer(request):
                return None
            silences += 1
            check_silence(answer, silences)
            if run.listening:
                error_told = ErrorInfo(ErrorCode.EMPTY_RESPONSE, "the model answered nothing")
                run.announcer.emit(ModelRetry, number, 0.0, error_told)
        if run.setup.points.transform:
            run.scope.check()
            request = lay_out_draft(run, draft)


def _request(run: Run, draft: Draft) -> ModelRequest:
    """The request of a draft, announced."""
    request = lay_out_draft(run, draft)
    if run.listening:
        told = LazyHash(draft.hasher.hash_before, request.messages)
        run.announcer.emit(ContextBuilt, told, len(request.messages), len(request.tools))
    return request


def _take_back(run: Run, number: int, delay: float, error: ModelError) -> None:
    """Takes back what an attempt has shown, and announces the next."""
    discard(run, error)
    if run.listening:
        run.announcer.emit(ModelRetry, number, delay, error_info(error))


def _attempt(run: Run, request: ModelRequest, answer: Answer) -> Generator[Event, None, None]:
    setup = run.setup
    most = setup.bounds.answer_bytes
    events = attempt(
        setup.model,
        request,
        run.scope,
        setup.limits.model_timeout,
        answer,
        interrupts=setup.interrupts,
        most=most,
        follow=run.listening,
    )
    announcer, outbox = run.announcer, run.outbox
    began = setup.monotonic()
    try:
        for event in events:
            _announce(run, answer, event)
            while outbox:  # as `drain` does it, without a generator for each delta
                told = outbox.popleft()
                try:
                    yield told
                except GeneratorExit:
                    announcer.left = True
                    raise
    finally:
        events.close()
        run.model_s += setup.monotonic() - began
        if answer.usage is not NO_USAGE:
            run.count(answer.usage)
    if answer.size > most:
        error = LimitExceeded("the answer is larger than limits.max_message_bytes", limit="max_message_bytes")
        raise Ending(RunStatus.LIMITED, error)


def _announce(run: Run, answer: Answer, event: ModelEvent) -> None:
    if answer.delivered and "message" not in run.announcer.open:
        run.announcer.emit(MessageStart, answer.id, "assistant")
    if type(event) is TextDelta:
        run.announcer.emit(MessageUpdate, well_formed(event.text))
    elif type(event) is ToolCallReady or type(event) is Done:
        return  # told by other events: what follows need not be asked
    elif isinstance(event, ReasoningDelta):
        run.announcer.emit(ReasoningUpdate, well_formed(event.text))
    elif isinstance(event, ToolCallDelta):
        run.announcer.emit(ToolCallUpdate, event.index, well_formed(event.name), well_formed(event.fragment))
    elif isinstance(event, RateLimits):
        run.announcer.emit(RateLimitsUpdate, event)


def discard(run: Run, error: GotatoError | None) -> None:
    """Takes back what was shown of the answer in the making."""
    run.answer = None
    started = run.announcer.open.get("message")
    if started is not None:
        run.announcer.emit(MessageDiscarded, started.message_id, error_info(error))
