"""A run as an iterator of its events."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from threading import get_ident
from types import GeneratorType, TracebackType
from typing import Generic, cast

from ._process import process
from ._run import Run
from ._typing import T_co
from .errors import ForkedProcess, GotatoError, InvalidState
from .events import Event, MessageUpdate
from .result import RunResult

_EXECUTING = "generator already executing"  # what Python says where a generator is entered twice


class RunStream(Generic[T_co]):
    """A run that goes on as it is iterated, in the thread that iterates it.

    Use it in a `with`: leaving that early, like `close()`, cancels the run and closes it before it returns. The agent
    is taken by `__enter__` or the first `next`, not before. With `check=True` the outcome is raised where the iteration
    ends, and by `.result`. A stream that is dropped unfinished only cancels its run; the agent closes it at the next
    entry, and a ResourceWarning tells of it.
    """

    __slots__ = ("__weakref__", "_ahead", "_check", "_events", "_finish", "_refused", "_result", "_run", "_started")

    def __init__(
        self,
        run: Run,
        events: Generator[Event, None, None],
        finish: Callable[[Run], RunResult[T_co]],
        *,
        check: bool,
    ) -> None:
        self._run = run
        self._events = cast("GeneratorType[Event, None, None]", events)  # a type checker knows less of Generator
        self._finish = finish
        self._check = check
        self._started = False
        self._ahead: list[Event] = []
        self._refused: GotatoError | None = None
        self._result: RunResult[T_co] | None = None

    def __repr__(self) -> str:
        state = "not started" if not self._started else "finished" if self._run.ended else "running"
        return f"RunStream({self._run.id}, {state})"

    def __iter__(self) -> RunStream[T_co]:
        return self

    def __next__(self) -> Event:
        self._started = True
        if self._ahead:
            return self._ahead.pop()
        event = self._advance()
        if event is not None:
            return event
        if self._check and self._run.ended and not self._run.given_up:
            self.result.raise_for_status()
        raise StopIteration

    def _advance(self) -> Event | None:
        """The next event, None at the end. A stream that was refused the agent stays refused."""
        if self._refused is not None:
            raise self._refused
        if self._events.gi_running:
            raise _is_being_read()
        run = self._run
        if run.pid != process.id and run.begun and not run.ended:
            text = "this stream belongs to the process that began it, of which this one is a fork"
            raise ForkedProcess(text, operation="RunStream")
        run.thread = get_ident()
        try:
            return next(self._events, None)
        except GotatoError as error:
            self._refused = None if run.begun else error
            raise
        except ValueError as error:
            if str(error) != _EXECUTING:
                raise
            raise _is_being_read() from None

    @property
    def text(self) -> Iterator[str]:
        """The pieces of the answers' text, as they come; iterating them runs the run.

        Nothing stands between two turns; the pieces of an attempt that is taken back (`message_discarded`) came too.
        """
        return (event.text for event in self if isinstance(event, MessageUpdate))

    @property
    def result(self) -> RunResult[T_co]:
        """The outcome. Runs what is left of the run first; raises it, with `check=True`, if it did not complete."""
        if self._result is None:
            self._started = True
            while self._advance() is not None:
                pass
            if not self._run.ended:
                raise InvalidState(
                    "this stream never ran: it was closed before its first event", operation="RunStream.result"
                )
            self._result = self._finish(self._run)
        if self._check:
            self._result.raise_for_status()
        return self._result

    def close(self) -> None:
        """Ends the run if it still goes: it is cancelled and closed before this returns. Raises nothing of its outcome.

        From another thread, or from within the run, it only cancels; the run then ends where it is iterated. In a
        forked child of the process that began the stream it does nothing.
        """
        run = self._run
        if run.pid != process.id and run.begun:
            return
        run.given_up = True
        closer = object()  # one of several, perhaps: each takes back its own
        try:
            run.closing.add(closer)
            self._events.close()
        except ValueError as error:
            if str(error) != _EXECUTING:
                raise
            run.scope.cancel("the stream was closed")
        finally:
            run.closing.discard(closer)  # should it be dropped later, the next entry closes it, not the collector

    def __enter__(self) -> RunStream[T_co]:
        if not self._started or self._refused is not None:
            self._started = True
            first = self._advance()
            if first is None:
                raise InvalidState("this stream was closed before it was entered", operation="RunStream.__enter__")
            self._ahead.append(first)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _is_being_read() -> InvalidState:
    text = "this stream is being read: by another thread, or by this one further up its stack"
    return InvalidState(text, operation="RunStream")
