"""Which run has a session."""

from __future__ import annotations

from types import GeneratorType
from typing import cast
from weakref import ref

from gotato_py import RunHold

from ._arguments import a_text


class Holder:
    """The run that has the session. One that was left behind holds up nobody."""

    __slots__ = ("_holds", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._holds: dict[str, RunHold] = {}

    def hold(self, run_id: str, since: float) -> RunHold:
        """A run's hold, not taken yet; for a plain id, as of that time in Unix seconds."""
        a_text("Session.begin_run: run_id", run_id)
        return RunHold.of(run_id, since=since)

    def take(self, hold: RunHold, operation: str) -> None:
        """Takes the session for a run. Raises `Busy` while another one has it."""
        hold.take(self._holds, operation, self._name)

    def check_free(self, operation: str) -> None:
        """Raises `Busy` while a run has the session; from one that was left behind it is taken away."""
        going = cast("GeneratorType[None, None, None]", (None for _ in ()))
        try:
            self.take(RunHold(operation, generator=ref(going)), operation)
        finally:
            going.close()  # now that is left behind as well

    def end(self, run_id: str) -> None:
        """Lets the session go, if that run has it and does not do so itself."""
        RunHold.end(self._holds, run_id)

    @property
    def run_ids(self) -> tuple[str, ...]:
        """The id of the run that has the session, if one goes on."""
        return tuple([str(hold) for hold in list(self._holds.values()) if not hold.is_left_behind()])
