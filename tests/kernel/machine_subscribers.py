"""Those who have subscribed to the machine's agents, and what they must have seen of each run."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gotato_py import Event, EventStream, SubscriptionOverflow

UPDATES = ("message_update", "reasoning_update", "tool_call_update", "tool_execution_update")


class Subscriber:
    """One subscription to an agent, made when the log had `since` lines. What it saw is read after each run."""

    def __init__(self, stream: EventStream, agent_id: str, since: int, *, watched: bool, ending: str) -> None:
        self.stream = stream
        self.agent_id = agent_id
        self.since = since
        self.ending = ending  # the run that may not have told its end to subscribers by then
        self.watched = watched  # whether there was an observer to compare with
        self.events: list[Event] = []
        self.overflowed = False

    def read(self) -> None:
        """Takes what is there."""
        try:
            while (event := self.stream.get(timeout=0)) is not None:
                self.events.append(event)
        except SubscriptionOverflow:
            self.overflowed = True

    def problems(self, begun: Collection[str], observed: Sequence[Event], torn: Collection[str]) -> list[str]:
        """What is wrong with what it saw: `begun` are the runs that began since, `observed` is what an observer saw
        since, `torn` the runs in which an interrupt may have come while an event was made."""
        problems: list[str] = []
        ended = {event.run_id for event in observed if event.kind == "agent_end"}
        for run_id in () if self.overflowed else dict.fromkeys([*(event.run_id for event in self.events), *ended]):
            mine = [event for event in self.events if event.run_id == run_id]
            ends = [event for event in mine if event.kind == "agent_end"]
            wanted = {0, 1} if run_id == self.ending else {int(run_id in ended)}
            if len(ends) not in wanted or (ends and mine[-1] is not ends[0]):
                problems.append(f"5: a subscriber saw {len(ends)} agent_end of {run_id}, not {wanted} as its last")
            if mine and run_id not in torn and run_id != self.ending:
                theirs = [event for event in observed if event.run_id == run_id]
                problems += [f"5: a subscriber of {run_id} {each}" for each in _compare(mine, theirs, run_id in begun)]
        return problems


def _compare(mine: Sequence[Event], theirs: Sequence[Event], from_start: bool) -> list[str]:
    """What is wrong with the events of one run; updates may have been joined."""
    problems: list[str] = []
    told = [event for event in theirs if event.sequence >= mine[0].sequence]
    missed = len(theirs) - len(told)
    if missed > (0 if from_start else 1):  # a late one may have come while an event was being told
        problems.append(f"missed its first {missed} events")
    for kind in UPDATES:
        texts = ["".join(getattr(event, "text", "") for event in each if event.kind == kind) for each in (mine, told)]
        if texts[0].replace("\n", "") != texts[1].replace("\n", ""):
            problems.append(f"did not see all of the texts of {kind}")
    mine, told = ([event for event in each if event.kind not in UPDATES] for each in (mine, told))
    if [event.to_dict() for event in mine] != [event.to_dict() for event in told]:
        problems.append("saw other events than the observer")
    return problems
