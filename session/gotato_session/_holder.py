"""Which run has a session."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import RLock
from types import GeneratorType
from typing import cast
from weakref import ref

from gotato_py import RunHold

from ._arguments import a_text

_NO_RUN = "(a branch is being made)"


class Holder:
    """The run that has the session. One that was left behind holds up nobody."""

    __slots__ = ("_holds", "_name", "_turn")

    def __init__(self, name: str) -> None:
        self._name = name
        self._holds: dict[str, RunHold] = {}
        self._turn = RLock()  # of whoever keeps runs away

    def hold(self, run_id: str, since: float) -> RunHold:
        """A run's hold, not taken yet; for a plain id, as of that time in Unix seconds."""
        a_text("Session.begin_run: run_id", run_id)
        return RunHold.of(run_id, since=since)

    def take(self, hold: RunHold, operation: str) -> None:
        """Takes the session for a run. Raises `Busy` while another one has it."""
        hold.take(self._holds, operation, self._name)

    @contextmanager
    def kept_from_runs(self, operation: str, check: Callable[[], object]) -> Generator[None]:
        """No run begins in this block. Raises `Busy` while one has the session, and what `check` raises before it is
        taken from one that was left behind."""
        with self._turn:
            if not self.run_ids:
                check()
            going = cast("GeneratorType[None, None, None]", (None for _ in ()))
            hold = RunHold(_NO_RUN, generator=ref(going))
            try:
                self.take(hold, operation)
                yield
            finally:
                try:
                    hold.let_go()
                finally:
                    going.close()  # whatever has interrupted that, it is left behind now

    def end(self, run_id: str) -> None:
        """Lets the session go, if that run has it and does not do so itself."""
        RunHold.end(self._holds, run_id)

    @property
    def run_ids(self) -> tuple[str, ...]:
        """The id of the run that has the session, if one goes on."""
        return tuple(
            [str(hold) for hold in list(self._holds.values()) if hold != _NO_RUN and not hold.is_left_behind()]
        )
