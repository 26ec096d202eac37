"""One turn: a request, its answer, the tools that the answer calls."""

from __future__ import annotations

from collections.abc import Generator

from ._answer import Answer
from ._ask import ask, discard
from ._batch import run_batch
from ._bounds import check_turn, limited
from ._closing import announce_answer, close_calls, close_turn
from ._event import LazyHash
from ._ledger import size_of
from ._requests import next_request
from ._run import Run
from .errors import GotatoError
from .events import ContextBuilt, Event, TurnStart
from .messages import AssistantMessage
from .model import ModelRequest
from .parts import NO_USAGE, StopReason


def take_turn(run: Run) -> Generator[Event, None, bool]:
    """Takes one turn. Returns whether the run is complete."""
    if run.scope.cancelled:
        run.scope.check()
    check_turn(run)
    _open_turn(run)
    request = next_request(run)
    if run.listening:
        _announce_context(run, request)
        if run.outbox:
            yield from run.announcer.drain()
    answer = yield from ask(run, request)
    finished = True
    if answer is not None:
        message = commit_answer(run, answer)
        if message.tool_calls:
            yield from run_batch(run, message)
        finished = not message.tool_calls and message.stop_reason is not StopReason.PAUSE
    else:
        run.message = None
    close_turn(run)
    if run.outbox:
        yield from run.announcer.drain()
    return finished


def wrap_up(run: Run, why: GotatoError | None) -> Generator[Event, None, None]:
    """After a limit: one more request without tools, for an answer from what there is. Its failure changes nothing."""
    close_calls(run, why)
    close_turn(run)
    _open_turn(run)
    request = next_request(run, wrap_up=True)
    if run.listening:
        _announce_context(run, request)
        yield from run.announcer.drain()
    answer = yield from ask(run, request)
    if answer is not None:
        answer.calls.clear()
        if answer.is_empty():
            discard(run, None)
        else:
            commit_answer(run, answer)
    close_turn(run)


def _open_turn(run: Run) -> None:
    run.turn += 1
    run.announcer.turn = run.turn
    run.turn_usage = NO_USAGE
    run.stop_reason = StopReason.NONE
    run.turn_started = run.setup.monotonic()
    if run.listening:
        run.announcer.emit(TurnStart)


def _announce_context(run: Run, request: ModelRequest) -> None:
    hasher = run.hasher
    told: LazyHash | str = "" if hasher is None else LazyHash(hasher.hash_before, request.messages)
    run.announcer.emit(ContextBuilt, told, len(request.messages), len(request.tools))


def commit_answer(run: Run, answer: Answer) -> AssistantMessage:
    """Commits a complete answer, before any of its tools starts, and announces it."""
    message = answer.message(run.setup.model_name)
    most = run.setup.bounds.answer_bytes
    if answer.size * 4 > most and size_of(message) > most:
        raise limited("max_message_bytes", "the answer is too large to be kept")
    kept = run.commit(message)
    run.answer = None
    run.message = kept
    run.stop_reason = kept.stop_reason
    if run.listening:
        announce_answer(run, kept)
    return kept
