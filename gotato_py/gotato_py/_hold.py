"""Which run has a transcript, and who may take it over from a run that was left behind."""

from __future__ import annotations

import time
from types import GeneratorType
from typing import Any, TypeAlias
from weakref import ref

from ._fields import wrong
from ._process import process
from .errors import Busy

Going: TypeAlias = "ref[GeneratorType[Any, Any, Any]]"
"""What a hold goes by: the generator of the run, or of a closing. It is over when that is gone or finished."""

_RUN = "run"


class RunHold(str):
    """A run's hold on a transcript: the run's id, and whether the run still goes on. `begin_run` is called with it.

    For the author of a transcript that lets one run at a time write: keep a dict, empty at first, and call
    `RunHold.of(run_id).take(that dict, "MyTranscript.begin_run")` in `begin_run`, `RunHold.end(that dict,
    record.run_id)` in `end_run`. A run that was left behind (its stream was dropped, an interrupt cut it off, its
    process was forked) holds up nobody. `since` is when the run began, in Unix seconds.
    """

    # Taking a transcript and knowing who has it are one atomic step, without a lock that an interrupt or a fork could
    # leave behind. What is left of a run goes to one only, told by `claims`: to the run that takes the transcript
    # over, or to the closing of what was left behind. Who claimed and was cut off has left that behind as well: the
    # next one claims it of him.

    __slots__ = ("_claims", "_generator", "_pid", "_places", "since")

    since: float
    _pid: int
    _generator: Going | None  # None where nobody can tell whether the run goes on
    _places: tuple[dict[str, RunHold], ...]  # where it was taken; none in a transcript that leaves holds alone
    _claims: dict[int, RunHold]  # by process: to whom what is left of the run goes

    def __new__(cls, run_id: str, since: float | None = None, generator: Going | None = None) -> RunHold:
        made = super().__new__(cls, run_id)
        made.since = time.time() if since is None else since
        made._pid, made._generator = process.id, generator
        made._places, made._claims = (), {}
        return made

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)  # elsewhere it is the id alone

    @classmethod
    def of(cls, run_id: object, operation: str = "begin_run", since: float | None = None) -> RunHold:
        """The hold that `begin_run` was called with; made, with `since` or as of now, for a plain id.

        Raises `InvalidArgument` for what is no id.
        """
        if isinstance(run_id, RunHold):
            return run_id
        if not isinstance(run_id, str):
            raise wrong(f"{operation}: run_id", "a str", run_id)
        return cls(run_id, since)

    @staticmethod
    def end(place: dict[str, RunHold], run_id: str) -> None:
        """Lets the transcript go, if a run with this id has it that does not do so itself, as an agent's does: two
        agents may give their runs the same id."""
        holder = place.get(_RUN)
        if isinstance(holder, RunHold) and holder._generator is None and holder == run_id:
            holder.let_go()
            holder._pid = 0  # nothing else tells that it is over, should it have claimed what another has left

    def take(self, place: dict[str, RunHold], operation: str, name: str = "the transcript") -> None:
        """Takes the transcript for the run, over from one that was left behind. Raises `Busy` while another goes on."""
        try:
            if all(each is not place for each in self._places):
                self._places = (*self._places, place)
            while (holder := place.setdefault(_RUN, self)) is not self:
                if self._may_follow(holder):
                    _free(place, holder)
                elif place.get(_RUN) is holder:
                    text = f"{name} is busy with run {holder}: one run at a time"
                    raise Busy(text, run_id=str(holder), since=holder.since, operation=operation)
        except BaseException as error:  # an interrupt, or another has it: the run will not begin
            self.let_go()  # before it counts as left behind: from then on others may take its place
            if not isinstance(error, Busy):  # who was refused may ask again
                self._pid = 0  # of no process: left behind, whatever it has claimed
            raise

    def _may_follow(self, holder: RunHold) -> bool:
        """Claims the place of a hold that was left behind. In a copy of a place that a run had is a str: nobody's."""
        return not isinstance(holder, RunHold) or (holder.is_left_behind() and holder._goes_to(self))

    def let_go(self) -> None:
        """Lets go of what it has."""
        for place in self._places:
            _free(place, self)

    def is_left_behind(self) -> bool:
        """Whether nothing in this process will go on with its run."""
        if self._pid != process.id:
            return True
        if self._generator is None:
            return False
        generator = self._generator()
        return generator is None or generator.gi_frame is None

    def reclaim(self, closing: Going) -> bool:
        """Whether the closing of its run, which was left behind, may still write; nobody takes it over meanwhile."""
        if not self._places:
            return True
        if not self._goes_to(RunHold(self, self.since, closing)):
            return False
        return all(place.get(_RUN) is self for place in self._places)  # behind the claim: it stays so

    def _goes_to(self, mine: RunHold) -> bool:
        """Claims what is left of its run. False where somebody else is about that."""
        last = self
        while (claimer := last._claims.setdefault(process.id, mine)) is not mine:
            if not claimer.is_left_behind():
                return False
            last = claimer
        return True


def _free(place: dict[str, RunHold], holder: RunHold) -> None:
    """Takes a hold from its place: its own run does, or whoever claims what that has left."""
    if place.get(_RUN) is holder:
        place.pop(_RUN, None)
