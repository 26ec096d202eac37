"""Which run has a transcript in memory, and who may take it over from a run that was left behind."""

from __future__ import annotations

import time
from types import GeneratorType
from typing import Any
from weakref import ref

from ._fields import wrong
from ._process import process
from .errors import Busy

Holds = dict[str, "Hold"]
"""Who has a transcript: at most one hold, at "run"."""


class Hold(str):
    """A run's hold on a transcript: the run's id, and whether the run still goes on. `begin_run` is called with it.

    Taking a transcript and knowing who has it are one atomic step, without a lock that an interrupt or a fork could
    leave behind. A run is alive while its generator is; the hold of one that is not, and of one of another process,
    counts for nothing. What is left of such a run goes to one only, told by `claims`: to the run that takes the
    transcript over, or to the agent that closes what it left behind.
    """

    __slots__ = ("claims", "generator", "pid", "place", "since")

    since: float  # Unix seconds
    pid: int
    generator: ref[GeneratorType[Any, Any, Any]] | None  # of the run; None where nobody can tell whether it goes on
    place: Holds | None  # where it was taken; None in a transcript that leaves holds alone
    claims: dict[int, Hold]  # by process: to whom it goes once its run is left behind

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)  # elsewhere it is the id alone

    def let_go(self) -> None:
        """Lets the transcript go, if it has it."""
        place = self.place
        if place is not None and place.get("run") is self:
            place.pop("run", None)

    def reclaim(self) -> bool:
        """Whether the closing of a run that was left behind may still write; until `give_back` nobody takes it over."""
        place = self.place
        if place is None:
            return True
        return place.get("run") is self and self.claims.setdefault(process.id, self) is self

    def give_back(self) -> None:
        """Ends what `reclaim` began."""
        if self.claims.get(process.id) is self:
            self.claims.pop(process.id, None)

    def is_left_behind(self) -> bool:
        """Whether nothing in this process will go on with its run."""
        if self.pid != process.id:
            return True
        if self.generator is None:
            return False
        generator = self.generator()
        return generator is None or generator.gi_frame is None


def new_hold(run_id: str, since: float, generator: ref[GeneratorType[Any, Any, Any]] | None = None) -> Hold:
    """A hold of a run that began then, in Unix seconds."""
    made = Hold(run_id)
    made.since, made.pid, made.generator = since, process.id, generator
    made.place, made.claims = None, {}
    return made


def take(place: Holds, run_id: str, operation: str) -> None:
    """Takes the transcript for the run. Raises `Busy` while another has it, `InvalidArgument` for what is no id."""
    if isinstance(run_id, Hold):
        mine = run_id
    elif isinstance(run_id, str):
        mine = new_hold(run_id, time.time())
    else:
        raise wrong(f"{operation}: run_id", "a str", run_id)
    try:
        mine.place = place
        while (holder := place.setdefault("run", mine)) is not mine:
            if not (holder.is_left_behind() and _take_over(holder, mine)):
                text = f"the transcript is busy with run {holder}: one run at a time"
                raise Busy(text, run_id=str(holder), since=holder.since, operation=operation)
    except BaseException:  # an interrupt, or another has it: the run will not begin
        mine.let_go()
        raise


def _take_over(holder: Hold, mine: Hold) -> bool:
    """Frees a transcript from a run that was left behind. False where somebody else is about that."""
    claims = holder.claims
    try:
        return claims.setdefault(process.id, mine) is mine
    finally:
        if claims.get(process.id) is mine:
            holder.let_go()
