"""What every Store promises of what a session holds: closed and opened again it is what it was."""

from __future__ import annotations

from collections.abc import Callable

from gotato_py import (
    Approve,
    AssistantMessage,
    Compaction,
    Deny,
    InvalidState,
    Message,
    RunRecord,
    ToolCall,
    ToolMessage,
    ToolResult,
    TurnStart,
    Usage,
    UserMessage,
    WaitingCall,
)
from gotato_session import Session
from gotato_testkit import strategies as gst

from ._histories import batch, every_kind, renewed, settle
from ._store_suite import KEEPS, LETS_GO, OPENS, StoreSuite, differing, new_id, picture, refused
from ._suite import after, require

_REMEDY = "keep every entry as the JSON that append() was given, in its order, and let entries() give all of them back"


class KeepingContract(StoreSuite):
    """Everything that a session holds survives."""

    def survives(self, fill: Callable[[Session], object], promise: str, *, metadata: object = None) -> None:
        """What the session says is the same when it is opened again, read-only and for writing, and once more."""
        with self._place(promise, _REMEDY) as place:
            id = new_id()
            with place.create(id, metadata=metadata) as session:
                fill(session)
                before = picture(session)
            for how in ("read-only", "for writing", "once more"):
                with place.open(id, read_only=how == "read-only") as again:
                    found = differing(before, picture(again))
                require(not found, promise, found=f"opened {how}, it differs in: {found}", remedy=_REMEDY)

    @after(OPENS, LETS_GO)
    def test_messages_are_there_after_reopening(self) -> None:
        """Messages of every kind, with their ids, metadata and unknown members, in their order."""
        promise = "when append() has returned, the message is kept as it is (Session.append)"

        def check(history: list[Message]) -> None:
            self.survives(lambda session: [session.append(each) for each in renewed(history)], promise)

        check(every_kind())
        self.for_all(gst.histories(min_turns=1), check)

    @after(OPENS, KEEPS)
    def test_starts_are_there_after_reopening(self) -> None:
        """The marks of calls that were started, with and without a result."""

        def fill(session: Session) -> None:
            keys = batch(session, 2)
            session.mark_started(keys[1])
            settle(session, keys)
            session.mark_started("elsewhere:0")

        self.survives(fill, "a start is recorded before the tool runs (Session.mark_started)")

    @after(OPENS, KEEPS)
    def test_what_waits_is_there_after_reopening(self) -> None:
        """Calls that wait, with their arguments, questions, times and answers; the last record counts."""

        def fill(session: Session) -> None:
            keys = batch(session, 3)
            session.mark_waiting([WaitingCall(keys[0], "c0", "find")])
            session.mark_waiting(
                [
                    WaitingCall(keys[0], "c0", "find", {"a": [1, None]}, "May it?", 4e9),
                    WaitingCall(keys[1], "c1", "find", {}, "And it?", decision=Approve()),
                    WaitingCall(keys[2], "c2", "find", {}, "This?", decision=Deny("no")),
                ]
            )

        self.survives(fill, "calls that wait are recorded, and go on waiting (Session.mark_waiting)")

    @after(OPENS, KEEPS)
    def test_compactions_are_there_after_reopening(self) -> None:
        """Summaries, one over another, and the history under them."""

        def fill(session: Session) -> None:
            asked = session.append(UserMessage("one"))
            session.append(AssistantMessage("two"))
            usage = Usage(5, 4)
            session.replace(Compaction(UserMessage("so far"), asked.id, reason="test", tokens_before=9, usage=usage))
            session.append(UserMessage("three"))
            session.replace(Compaction(UserMessage("farther"), session.messages[1].id, metadata={"by": "me"}))

        self.survives(fill, "a compaction is kept like a message, and history shows what it covers (Session.replace)")

    @after(OPENS, KEEPS)
    def test_runs_are_there_after_reopening(self) -> None:
        """The records of runs that have ended, in their order, and the sum of their usage."""

        def fill(session: Session) -> None:
            for number, status in enumerate(("completed", "failed", "waiting")):
                session.begin_run(f"run-{number}")
                error = "store_failure" if status == "failed" else ""
                usage = Usage(number, 7, 1, 0, 2)
                session.end_run(RunRecord(f"run-{number}", "a-1", status, error, 1e9 + number, 0.25, 3, 2, usage))

        self.survives(fill, "a run that has ended is recorded, with its usage (Session.end_run)")

    @after(OPENS, KEEPS)
    def test_branches_are_there_after_reopening(self) -> None:
        """The tree, the place where the session stands, and what was said on the branch that was left."""

        def fill(session: Session) -> None:
            first = session.append(UserMessage("one"))
            session.append(AssistantMessage("two"))
            session.branch(first.id)
            other = session.append(AssistantMessage("two, otherwise"))
            session.branch("")
            session.append(UserMessage("anew"))
            session.branch(other.id)

        promise = "where a session stands is stored: reopened it is on the same branch (Session.branch)"
        self.survives(fill, promise)

        def fill_and_go_back(session: Session) -> None:
            fill(session)
            session.branch("")

        self.survives(fill_and_go_back, promise)

    @after(OPENS, KEEPS)
    def test_labels_are_there_after_reopening(self) -> None:
        """The places that they name; a label that moved names its last place."""

        def fill(session: Session) -> None:
            session.label("start")
            first = session.append(UserMessage("one"))
            session.append(AssistantMessage("two"))
            session.label("größer \u2028", first.id)
            session.label("moved", first.id)
            session.label("moved")

        self.survives(fill, "labels are kept (Session.label)")

    @after(OPENS, KEEPS)
    def test_metadata_are_there_after_reopening(self) -> None:
        """What was given at first and what was set since: every kind of JSON value."""

        def fill(session: Session) -> None:
            empty: dict[str, object] = {}
            session.set("set", [True, None, 1.5, 2**60, "\U0001d11e\u2028\x00\x85", {"größer": empty}])
            session.set("given", "later")

        self.survives(fill, "metadata are kept (Session.set)", metadata={"given": "first", "kept": {"a": [1]}})

    @after(OPENS, KEEPS)
    def test_events_are_there_after_reopening(self) -> None:
        """Events that an observer has kept."""

        def fill(session: Session) -> None:
            for number in range(3):
                session.observe(TurnStart("a-1", "run-1", number, 1, 1e9))

        self.survives(fill, "events that were observed are kept (Session.observe)")

    @after(OPENS, KEEPS)
    def test_completions_are_there_after_reopening(self) -> None:
        """What came of a pending call is kept with its place, and completes it once."""
        promise = "complete_call() commits a user message, once (Session.complete_call)"
        with self._place(promise, _REMEDY) as place:
            id = new_id()
            with place.create(id) as session:
                keys = _pending(session, 2)
                session.complete_call(keys[0], "done")
                session.begin_run("run-1")
                held = session.complete_call(keys[1], ToolResult("", "failed", "it broke"))
                during = held.id in [each.id for each in session.messages]
                session.end_run(RunRecord("run-1", "a-1", "completed", "", 1e9, 1.0, 1, 0, Usage()))
                before = picture(session)
            with place.open(id) as again:
                found = differing(before, picture(again))
                shown = held.id in [each.id for each in again.messages]
                refused(
                    lambda: again.complete_call(keys[1], "again"), InvalidState, promise, "a second completion", _REMEDY
                )
        require(not found, promise, found=f"opened again, it differs in: {found}", remedy=_REMEDY)
        require(shown and not during, promise, found="a message that is not where it belongs", remedy=_REMEDY)

    @after(OPENS, KEEPS)
    def test_a_completion_during_a_run_outlives_the_run(self) -> None:
        """The process ended before the run did: the message is there, and takes its place."""
        promise = "during a run a completion is stored at once (Session.complete_call)"
        with self._place(promise, _REMEDY) as place:
            id = new_id()
            with place.create(id) as session:
                keys = _pending(session, 1)
                session.begin_run("run-1")
                told = session.complete_call(keys[0], "done")
            with place.open(id) as again:
                count = [each.id for each in again.messages].count(told.id)
            with place.open(id) as again:
                again.append(AssistantMessage("I see."))
                recount = [each.id for each in again.messages].count(told.id)
        require(
            (count, recount) == (1, 1),
            promise,
            found=f"opened again, the message is there {count} times, and {recount} times later",
            remedy=_REMEDY,
        )


def _pending(session: Session, count: int) -> list[str]:
    """Calls whose tools have answered that work goes on elsewhere; their keys."""
    session.append(UserMessage("Please."))
    calls = [ToolCall(f"c{index}", "find") for index in range(count)]
    answer = session.append(AssistantMessage("", calls))
    keys = [f"{answer.id}:{index}" for index in range(count)]
    for index, key in enumerate(keys):
        session.append(ToolMessage(ToolResult(f"c{index}", "pending", "handle", key=key)))
    session.append(AssistantMessage("It takes a while."))
    return keys
