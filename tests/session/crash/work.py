"""What a process does until it is killed: it opens the session, finishes what was begun, and goes on with new work."""

from __future__ import annotations

from contextlib import suppress
from random import Random

from gotato_py import (
    Approve,
    AssistantMessage,
    Compaction,
    Deny,
    InvalidState,
    RunStatus,
    ToolMessage,
    UserMessage,
)
from gotato_session import Session, StoreBase

from .clerk import DONE, Outside, an_agent

MAIN = "main"


class Worker:
    """Works on the sessions of a place."""

    def __init__(self, store: StoreBase, outside: Outside, rng: Random, *, alone: bool = False) -> None:
        self.store = store
        self.outside = outside
        self.rng = rng
        self.alone = alone

    def work(self, rounds: int) -> None:
        """A day's work."""
        session = self.opened(MAIN)
        self.finish(session)
        for _ in range(rounds):
            session = self.something(session)
        session.close()

    def opened(self, id: str) -> Session:
        """The session; now and then taken over from an owner who lives, who is this very process."""
        session = self.store.open(id, create=True)
        if self.rng.random() < 0.1:
            taken = self.store.open(id, steal=True)
            session.close()
            return taken
        return session

    def something(self, session: Session) -> Session:
        """One thing of many."""
        which = self.rng.random()
        if which < 0.55:
            self.job(session)
        elif which < 0.65:
            self.compact(session)
        elif which < 0.73:
            self.branch(session)
        elif which < 0.83:
            self.fork(session)
        elif which < 0.88:
            self.remove(session)
        elif which < 0.94:
            session.label(self.rng.choice("xyz"), self.rng.choice([None, *session.path, ""]))
        else:
            session.close()
            return self.opened(session.id)
        return session

    def job(self, session: Session) -> None:
        """A new message, to its end."""
        number = session.get("jobs", 0) + 1
        session.set("jobs", number)
        name = f"{session.id}.{number}"
        message = UserMessage(f"Please do job {name} now", id=f"job-{name}")
        self.settled(session, an_agent(session, self.outside, self.rng, alone=self.alone).run(message).status)

    def settled(self, session: Session, status: RunStatus) -> None:
        """Answers what waits, until nothing does; now and then from a process that begins anew."""
        while status == RunStatus.WAITING:
            agent = an_agent(session, self.outside, self.rng, alone=self.alone)
            undecided = [each.key for each in session.waiting if each.decision is None]
            answer = Deny("no") if self.rng.random() < 0.2 else Approve()
            status = (agent.run(answers={undecided[0]: answer}) if undecided else agent.run()).status
        assert status == RunStatus.COMPLETED
        answers = [each for each in session.messages if isinstance(each, AssistantMessage)]
        assert answers[-1].text == DONE  # behind it may be what came of pending calls
        self.complete(session)

    def finish(self, session: Session) -> None:
        """Goes on with what was begun."""
        self.complete(session)
        agent = an_agent(session, self.outside, self.rng, alone=self.alone)
        if agent.status == "waiting":
            self.settled(session, RunStatus.WAITING)
            return
        asked = [each for each in session.messages if isinstance(each, UserMessage) and "job " in each.text]
        if not asked or session.messages[-1].text == DONE:
            return
        mine = asked[-1].id == f"job-{session.id}.{session.get('jobs')}"
        if not mine:  # it was begun elsewhere, or on another branch
            self.job(session)
        elif isinstance(session.messages[-1], AssistantMessage) and not session.messages[-1].tool_calls:
            self.settled(session, agent.run(asked[-1]).status)  # an answer that was cut off: the message comes again
        else:
            self.settled(session, agent.run().status)

    def complete(self, session: Session) -> None:
        """Tells what came of calls that are pending."""
        known = {each.metadata.get("tool_update") for each in session.history}
        for message in session.history:
            result = message.result if isinstance(message, ToolMessage) else None
            if result is None or result.status != "pending" or result.key in known or self.rng.random() < 0.5:
                continue
            with suppress(InvalidState):  # it was completed on another branch
                session.complete_call(result.key, "delivered")

    def compact(self, session: Session) -> None:
        """Puts a summary in the place of everything up to an answer."""
        ends = [each.id for each in session.messages if each.text == DONE]
        if ends:
            summary = UserMessage(f"{len(session.history)} messages, in short")
            session.replace(Compaction(summary, self.rng.choice(ends)))

    def branch(self, session: Session) -> None:
        """Goes back, to the end of a job or into the middle of one, and begins another one there."""
        session.set("jobs", session.get("jobs", 0) + 1)  # whatever stands at the tail then is not gone on with
        session.branch(self.rng.choice(["", *session.tree]))
        if not session.waiting:
            self.job(session)

    def fork(self, session: Session) -> None:
        """A fork, with work of its own."""
        forks = [each.id for each in self.store.list() if each.parent_id]
        if len(forks) > 3:
            self.remove(session)
            return
        at = self.rng.choice([None, None, "", *session.path])
        with session.fork(at) as fork:
            self.job(fork)

    def remove(self, session: Session) -> None:
        """Removes a fork."""
        forks = [each.id for each in self.store.list() if each.parent_id]
        if forks:
            self.store.delete(self.rng.choice(forks))
