"""The rows on `cancel()`: how long after it a run returns that was waiting inside a model call."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

from benchmarks.measure import Effort, Goal, Measured, Row, spread

from gotato_py import Agent, Limits, Model, ModelEvent, ModelRequest, RateLimited, RunStatus, Scope

_LOOK_S = 0.001
_SETTLE_S = 0.15
_NEVER_S = 60.0


class StalledModel:
    """Waits for the end of its scope, as an adapter does whose provider is silent."""

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
        """Never an answer."""
        scope.wait(_NEVER_S)
        scope.check()
        yield from ()


class BusyModel:
    """Asks for a long pause before the next attempt, each time."""

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
        """Never an answer."""
        raise RateLimited("later", retry_after=_NEVER_S)
        yield from ()


def cancel_ms(model: Model) -> float:
    """Milliseconds from `cancel()` in this thread to the return of the run in another."""
    agent = Agent(model, limits=Limits(model_timeout=None))
    ended: list[tuple[float, RunStatus]] = []

    def run() -> None:
        status = agent.run("go", check=False).status
        ended.append((time.perf_counter(), status))

    thread = threading.Thread(target=run)
    thread.start()
    while agent.status != "running":
        time.sleep(_LOOK_S)
    time.sleep(_SETTLE_S)
    began = time.perf_counter()
    done = agent.cancel()
    thread.join()
    at, status = ended[0]
    if not done or status is not RunStatus.CANCELLED:
        raise AssertionError(f"the run was not waiting where it should: it ended {status}")
    return (at - began) * 1e3


def cancelled_in(place: Callable[[], AbstractContextManager[Model]]) -> Callable[[Effort], Measured]:
    """Cancels runs that wait in this place."""

    def measure(effort: Effort) -> Measured:
        figures: list[float] = []
        for _ in range(effort.times(9, 1)):
            with place() as model:
                figures.append(cancel_ms(model))
        return Measured(ours=spread(figures))

    return measure


def cancel_row(name: str, where: str, place: Callable[[], AbstractContextManager[Model]]) -> Row:
    """One row."""
    return Row(f"cancel_{name}", f"return after cancel(), {where}", "ms", Goal(200, 50), cancelled_in(place))


ROWS: tuple[Row, ...] = (
    cancel_row("stall", "scripted stall", lambda: nullcontext(StalledModel())),
    cancel_row("backoff", "retry backoff", lambda: nullcontext(BusyModel())),
)
