"""Which run has a session."""

from __future__ import annotations

from gotato_py import Busy


class Holder:
    """The run that has the session. Taking it and knowing who has it are one atomic step."""

    __slots__ = ("_name", "_runs")

    def __init__(self, name: str) -> None:
        self._name = name
        self._runs: dict[str, tuple[str, float]] = {}  # "run": its id, and since when

    def take(self, mine: tuple[str, float]) -> None:
        """Takes the session for a run: its id, and since when. Raises `Busy` while another one has it."""
        if (holder := self._runs.setdefault("run", mine)) is not mine:
            raise self._busy(holder, "Session.begin_run")

    def check_free(self, operation: str) -> None:
        """Raises `Busy` while a run has the session."""
        if (holder := self._runs.get("run")) is not None:
            raise self._busy(holder, operation)

    def let_go(self, mine: tuple[str, float]) -> None:
        """Lets the session go, if it was taken with this very value."""
        if self._runs.get("run") is mine:
            self._runs.pop("run", None)

    def end(self, run_id: str) -> None:
        """Lets the session go, if that run has it."""
        holder = self._runs.get("run")
        if holder is not None and holder[0] == run_id:
            self.let_go(holder)

    @property
    def run_ids(self) -> tuple[str, ...]:
        """The id of the run that has the session, if one has."""
        return tuple([run_id for run_id, _ in list(self._runs.values())])

    def _busy(self, holder: tuple[str, float], operation: str) -> Busy:
        run_id, since = holder
        text = f"{self._name} is busy with run {run_id}, since {since:.3f} (Unix seconds)"
        return Busy(text, run_id=run_id, since=since, operation=operation)
