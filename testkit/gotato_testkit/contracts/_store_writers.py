"""What every Store promises of who may write: one at a time, known by name, and fenced off once he is replaced."""

from __future__ import annotations

import os
from collections.abc import Callable
from time import time

from gotato_py import (
    Agent,
    InvalidArgument,
    InvalidState,
    LeaseLost,
    RunStatus,
    SessionBusy,
    UserMessage,
)
from gotato_session import Session, SessionSummary, Store
from gotato_testkit.answers import call, say
from gotato_testkit.fakes import FakeTool
from gotato_testkit.scripted import ScriptedModel
from gotato_testkit.steps import Do

from ._store_suite import KEEPS, LETS_GO, ONE_WRITER, OPENS, StoreSuite, differing, new_id, picture, refused
from ._suite import after, require

_BUSY = "a second writer gets SessionBusy(owner, host, pid, since) at once (Store.open)"
_READER = "read_only=True works beside a writer, and writes nothing (Store.open)"
_STEAL = "open(steal=True) takes over from the living, and the old owner gets LeaseLost (Store.open)"


class WritersContract(StoreSuite):
    """Leases: who has one, who gets none, who has lost it."""

    @after(OPENS, LETS_GO)
    def test_a_second_writer_is_refused_at_once(self) -> None:
        """The error says who writes; the writer is not disturbed."""
        remedy = "take a lease in open_journal without waiting, and name its owner in the error"
        with self._place(_BUSY) as place:
            id = new_id()
            with place.create(id, owner="the first") as session:
                ended = self.bounded(lambda: place.open(id))
                require(ended.in_time, _BUSY, found=f"no answer for {self.patience} s", remedy=remedy)
                error = ended.error
                require(isinstance(error, SessionBusy), _BUSY, found=ended.said(), remedy=remedy)
                assert isinstance(error, SessionBusy)
                lease = session.lease
                said = (error.owner, error.host, error.pid, error.since)
                known = None if lease is None else (lease.owner, lease.host, lease.pid, lease.since)
                require(said == known, _BUSY, found="it does not say what the writer's lease says", remedy=remedy)
                sound = error.owner == "the first" and error.pid == os.getpid() and error.host != ""
                in_time = abs(error.since - time()) < 86_400
                require(sound and in_time, _BUSY, found="another owner, host, pid or time", remedy=remedy)
                session.append(UserMessage("one"))
        require(not isinstance(error, LeaseLost), _BUSY, found="LeaseLost", remedy="raise SessionBusy itself")

    @after(OPENS)
    def test_a_session_that_was_closed_is_free(self) -> None:
        """The next one may write, from any process, and has a lease of its own."""
        promise = "close() lets the session go (Session.close)"
        remedy = "give the lease up in Journal.close, at once, and without an error when it is closed again"
        with self._place(promise, remedy) as place:
            id = new_id()
            session = place.create(id, owner="the first")
            session.close()
            session.close()
            again = place.open(id, owner="the second")
            session.close()
            again.append(UserMessage("one"))
            owner = again.lease.owner if again.lease is not None else ""
            refused(
                lambda: session.append(UserMessage("two")),
                InvalidState, "a closed session is not written to (Session.close)", "append() after close()", remedy,
            )  # fmt: skip
        require(owner == "the second", promise, found="the lease has another owner", remedy="note `owner` in the lease")

    @after(OPENS, ONE_WRITER, LETS_GO)
    def test_of_many_that_open_at_once_one_writes(self) -> None:
        """Eight ask at the same time: one gets it, the others are told that it is busy."""
        with self._place(_BUSY) as place:
            id = new_id()
            place.create(id).close()
            stores = [place.store() for _ in range(8)]
            ended = self.together([lambda store=store: store.open(id) for store in stores])  # type: ignore[misc]  # a default
            place.sessions += [each.value for each in ended if each.value is not None]
            got = [each for each in ended if each.value is not None]
            busy = [each for each in ended if isinstance(each.error, SessionBusy)]
        require(
            (len(got), len(busy)) == (1, 7),
            _BUSY,
            found=f"{len(got)} of 8 got the session, {len(busy)} were told that it is busy",
            remedy="decide it by one atomic step",
        )

    @after(OPENS, KEEPS)
    def test_a_reader_beside_a_writer_writes_nothing(self) -> None:
        """It sees what is committed, asks for no lease, refuses to write, and the list says the same as before."""
        remedy = "with read_only take no lease, repair nothing, note nothing"
        with self._place(_READER, remedy) as place:
            id = new_id()
            with place.create(id) as session:
                session.append(UserMessage("one"))
                session.set("a", 1)
                before, listed = picture(session), _listed(place.store(), id)
                with place.open(id, read_only=True) as reader:
                    found = differing(before, picture(reader))
                    free = reader.read_only and reader.lease is None
                    for number, write in enumerate(_writes(reader)):
                        refused(write, InvalidState, _READER, f"write number {number} of a reader", remedy)
                session.append(UserMessage("two"))
                with place.open(id, read_only=True) as reader:
                    count = len(reader.history)
                session.close()
            after_it = _listed(place.store(), id)
            with place.open(id, read_only=True) as reader:
                recount = len(reader.history)
            again = _listed(place.store(), id)
        require(not found, _READER, found=f"the reader's picture differs in: {found}", remedy="read what is committed")
        require(free, _READER, found="a reader that has a lease, or may write", remedy=remedy)
        require((count, recount) == (2, 2), _READER, found=f"{count} messages where 2 were committed", remedy=remedy)
        still = listed is not None and after_it == again
        require(still, _READER, found="the list says something else of it after it was read", remedy=remedy)

    @after(OPENS)
    def test_options_that_write_are_refused_to_a_reader(self) -> None:
        """read_only changes nothing; create, steal and repair do."""
        with self._place(_READER) as place:
            id = new_id()
            place.create(id).close()
            for option in ("create", "steal", "repair"):
                refused(
                    lambda option=option: place.open(id, read_only=True, **{option: True}),  # type: ignore[misc]  # a default
                    InvalidArgument, _READER, f"open(read_only=True, {option}=True)", "raise InvalidArgument",
                )  # fmt: skip

    @after(OPENS, KEEPS, ONE_WRITER)
    def test_who_steals_a_session_has_it(self) -> None:
        """The old owner commits nothing more, and cannot disturb the new one, not even by closing."""
        remedy = "check the lease's token within each commit; let close() give up a lease only if it is still its own"
        with self._place(_STEAL, remedy) as place:
            id = new_id()
            old = place.create(id, owner="the old")
            old.append(UserMessage("one"))
            new = place.open(id, owner="the new", steal=True)
            refused(lambda: old.append(UserMessage("lost")), LeaseLost, _STEAL, "the old owner's append()", remedy)
            new.append(UserMessage("two"))
            error = refused(lambda: old.set("a", 1), LeaseLost, _STEAL, "the old owner's set()", remedy)
            named = isinstance(error, SessionBusy) and error.owner in ("the new", "")
            old.close()
            new.append(UserMessage("three"))
            ended = self.bounded(lambda: place.open(id))
            still = isinstance(ended.error, SessionBusy)
            require(still, _STEAL, found=f"the old one was closed, and the next open(): {ended.said()}", remedy=remedy)
            texts = ([each.text for each in old.history], [each.text for each in new.history])
            new.close()
            with place.open(id) as again:
                kept = [each.text for each in again.history]
        expected = ["one", "two", "three"]
        require(texts == (["one"], expected), _STEAL, found="one of the two shows what it has not", remedy=remedy)
        require(kept == expected, _STEAL, found=f"{len(kept)} messages, or others, where 3 were kept", remedy=remedy)
        require(named, _STEAL, found="LeaseLost names another owner", remedy="name the new owner in it")

    @after(OPENS, KEEPS, ONE_WRITER)
    def test_the_run_of_an_owner_who_was_replaced_fails(self) -> None:
        """It ends at its next commit, nothing of it is stored from there on, and the new owner goes on."""
        with self._place(_STEAL) as place:
            id = new_id()
            old = place.create(id)
            taken: list[Session] = []
            tool = FakeTool("take", Do(lambda: taken.append(place.open(id, steal=True))))
            model = ScriptedModel([call("take") + call("take"), say("Too late."), say("Too late.")])
            result = Agent(model, tools=[tool], transcript=old).run("Go.", check=False)
            code = "" if result.error is None else result.error.code.value
            require(bool(taken), _STEAL, found="open(steal=True) raised", remedy="let it take over from a living owner")
            problems, count = taken[0].check(), len(taken[0].history)
            roles = [each.role for each in taken[0].history]
        require(
            (result.status, code, len(tool.uses), len(model.requests)) == (RunStatus.FAILED, "session_busy", 1, 1),
            _STEAL,
            found=f"the run was {result.status} ({code or 'no error'}) after {len(tool.uses)} tools",
            remedy="raise LeaseLost from Journal.append",
        )
        sound = roles == ["user", "assistant", "tool", "tool"] and not problems
        require(sound, _STEAL, found=f"the new owner sees {count} messages", remedy="let nothing of the old one in")

    @after(OPENS, LETS_GO)
    def test_an_open_session_is_not_removed(self) -> None:
        """SessionBusy while a writer has it; the writer goes on."""
        promise = "delete() of a session that is open is SessionBusy (Store.delete)"
        with self._place(promise) as place:
            id = new_id()
            with place.create(id) as session:
                session.append(UserMessage("one"))
                remedy = "look for a lease, and remove, in one step"
                refused(lambda: place.store().delete(id), SessionBusy, promise, "delete()", remedy)
                session.append(UserMessage("two"))
            with place.open(id, read_only=True) as again:
                count = len(again.history)
            place.store().delete(id)
        require(count == 2, promise, found=f"{count} of 2 messages are left", remedy=remedy)


def _writes(session: Session) -> list[Callable[[], object]]:
    """Calls that write, each on its own."""
    return [
        lambda: session.append(UserMessage("no")),
        lambda: session.mark_started("m:0"),
        lambda: session.set("a", 2),
        lambda: session.label("no"),
        lambda: session.branch(""),
        lambda: session.begin_run("run-1"),
    ]


def _listed(store: Store, id: str) -> SessionSummary | None:
    return next((each for each in store.list() if each.id == id), None)
