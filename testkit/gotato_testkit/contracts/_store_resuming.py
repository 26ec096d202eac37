"""What every Store promises after a process has ended: calls are closed by what is known, and no effect is repeated."""

from __future__ import annotations

from collections.abc import Sequence

from gotato_py import (
    Agent,
    Allow,
    Approve,
    Ask,
    GotatoError,
    Hooks,
    Message,
    RunStatus,
    ToolContext,
    ToolMessage,
    ToolResult,
    UserMessage,
    WaitingCall,
    check_messages,
)
from gotato_testkit.answers import call, say
from gotato_testkit.fakes import FakeTool
from gotato_testkit.scripted import ScriptedModel
from gotato_testkit.steps import Do

from ._histories import batch, settle
from ._store_suite import KEEPS, LETS_GO, OPENS, StoreSuite, differing, new_id, picture
from ._suite import after, require

_CLOSED = "opened by a writer, an open call gets its result by what is known of it (Store.open)"
_REMEDY = "keep every entry, marks of starts too, and let StoreBase.open close the calls"
_ONCE = "an effect that may have happened is never repeated on its own (Agent.run)"


class Killed(BaseException):
    """In a test: the process ends here, and nothing more of it is stored."""


class ResumingContract(StoreSuite):
    """Open calls on open, and agents that go on."""

    @after(OPENS, KEEPS)
    def test_open_calls_are_closed_by_what_is_known(self) -> None:
        """Started: `cancelled`, effect unknown; never begun: `not_run`; a result that is there stays as it is."""
        with self._place(_CLOSED, _REMEDY) as place:
            id = new_id()
            with place.create(id) as session:
                keys = batch(session, 3)
                settle(session, keys[1:2])
                session.mark_started(keys[0])
                foretold = [problem.text for problem in session.check()]
                before = picture(session)
            with place.open(id, read_only=True) as reader:
                changed, told = differing(before, picture(reader)), [problem.text for problem in reader.check()]
            with place.open(id) as again:
                found = _results(again.history, keys)
                problems = [*again.check(), *check_messages(again.messages)]
                closed = picture(again)
            with place.open(id) as again:
                later = differing(closed, picture(again))
        require(not changed, _CLOSED, found=f"read-only, it differs in: {changed}", remedy="change nothing read-only")
        require(
            len(told) == 2 and told == foretold,
            "check() lists what opening would do (Session.check)",
            found=f"{len(told)} problems where 2 calls are open",
            remedy=_REMEDY,
        )
        expected = [("cancelled", None), ("ok", True), ("not_run", False)]
        require(found == expected and not problems, _CLOSED, found=f"{found}", remedy=_REMEDY)
        require(not later, _CLOSED, found=f"opened again, it differs in: {later}", remedy="store what closed them")

    @after(OPENS, KEEPS)
    def test_calls_that_wait_stay_open(self) -> None:
        """While one of a message waits, those behind it stay open; one that was started is closed all the same."""
        with self._place(_CLOSED, _REMEDY) as place:
            id = new_id()
            with place.create(id) as session:
                keys = batch(session, 4)
                session.mark_waiting([WaitingCall(keys[1], "c1", "find"), WaitingCall(keys[2], "c2", "find")])
                session.mark_started(keys[0])
            with place.open(id) as again:
                found = _results(again.history, keys)
                waits = [each.key for each in again.waiting]
                problems = [*again.check(), *check_messages(again.messages, again.waiting)]
        require(
            found == [("cancelled", None)] and waits == keys[1:3] and not problems,
            _CLOSED,
            found=f"{len(found)} results, {len(waits)} calls that wait, {len(problems)} problems",
            remedy="keep the record of what waits; " + _REMEDY,
        )

    @after(OPENS, KEEPS)
    def test_a_branch_into_a_batch_knows_what_was_answered_elsewhere(self) -> None:
        """An answer that a call has elsewhere in the session comes first, before its mark."""
        with self._place(_CLOSED, _REMEDY) as place:
            id = new_id()
            with place.create(id) as session:
                keys = batch(session, 3)
                tail = session.path[-1]
                session.mark_started(keys[0])
                settle(session, keys[:1])
            with place.open(id) as session:  # closes the other two, which were never begun
                session.mark_started(keys[1])
                session.branch(tail)
                before = picture(session)
                found = _results(session.history, keys)
            with place.open(id) as again:
                differs = differing(before, picture(again))
        expected = [("ok", True), ("not_run", False), ("not_run", False)]
        require(found == expected, _CLOSED, found=f"{found}", remedy=_REMEDY)
        require(not differs, _CLOSED, found=f"opened again, it differs in: {differs}", remedy=_REMEDY)

    @after(OPENS, KEEPS, LETS_GO)
    def test_a_run_goes_on_without_repeating_an_effect(self) -> None:
        """Killed before a tool, in it and behind it: the model is told what is known, and no call runs twice."""
        for moment in ("before", "within", "behind"):
            pay, found, text = self._killed(moment)
            expected = {"before": ("not_run", False), "within": ("cancelled", None), "behind": ("cancelled", None)}
            calls = 0 if moment == "before" else 1
            require(
                found == [expected[moment]] and len(pay.uses) == calls and text == "I see.",
                _ONCE,
                found=f"killed {moment} its tool, a call was run {len(pay.uses)} times and its result is {found}",
                remedy=_REMEDY,
            )

    def _killed(self, moment: str) -> tuple[FakeTool, list[tuple[str, bool | None]], str]:
        """A run that is cut off at that moment, and one that goes on from there."""
        with self._place(_ONCE, _REMEDY) as place:
            id = new_id()
            session = place.create(id)

            def kill() -> None:
                """Nothing of this process is stored from here on: its session is taken from it."""
                place.sessions.append(place.store().open(id, steal=True))
                place.sessions[-1].close()
                raise Killed

            def gate(use: ToolContext[object]) -> Allow:
                if moment == "before":
                    kill()
                return Allow()

            def look(use: ToolContext[object], result: ToolResult) -> ToolResult:
                if moment == "behind":
                    kill()
                return result

            pay = FakeTool("pay", Do(kill) if moment == "within" else "paid", effect="write_external")
            hooks = Hooks(before_tool=gate, after_tool=look)
            model = ScriptedModel([call("pay")])
            agent = Agent(model, tools=[pay], transcript=session, extensions=[hooks], interrupts=(Killed,))
            try:
                agent.run("Pay.")
            except (Killed, GotatoError):
                pass
            with place.open(id) as again:
                later = Agent(ScriptedModel([say("I see.")]), tools=[pay], transcript=again)
                text = later.run().text
                results = [each.result for each in again.history if isinstance(each, ToolMessage)]
        return pay, [(str(each.status), each.executed) for each in results], text or ""

    @after(OPENS, KEEPS, LETS_GO)
    def test_a_run_that_waits_survives_a_restart(self) -> None:
        """The question is there in another process, an answer is stored, and the call runs once."""
        pay = FakeTool("pay", "paid", effect="write_external")
        gate = Hooks(before_tool=lambda use: Ask("Pay?"))
        model = ScriptedModel([call("pay", sum=1) + call("pay", sum=2), say("Paid.")])
        with self._place(_ONCE, _REMEDY) as place:
            id = new_id()
            with place.create(id) as session:
                first = Agent(model, tools=[pay], transcript=session, extensions=[gate]).run("Pay.")
                keys = [each.key for each in first.waiting]
            with place.open(id) as session:
                agent = Agent(model, tools=[pay], transcript=session, extensions=[gate])
                status = agent.status
                second = agent.run(answers={keys[1]: Approve()})
            with place.open(id) as session:
                kept = [each.decision for each in session.waiting]
                third = Agent(model, tools=[pay], transcript=session, extensions=[gate]).run(
                    answers={keys[0]: Approve()}
                )
                problems = session.check()
        statuses = (first.status, second.status, third.status)
        require(
            status == "waiting" and statuses == (RunStatus.WAITING, RunStatus.WAITING, RunStatus.COMPLETED)
            and kept == [None, Approve()] and not problems,
            "what waits, and each answer to it, survives a restart (Session.mark_waiting)",
            found=f"runs that were {', '.join(statuses)}; {len(kept)} calls waited after the first answer",
            remedy=_REMEDY,
        )  # fmt: skip
        sums = [use.arguments["sum"] for use in pay.uses]
        require(sums == [1, 2], _ONCE, found=f"{len(sums)} calls of the tool where 2 were approved", remedy=_REMEDY)

    @after(OPENS, KEEPS)
    def test_a_message_that_comes_again_is_answered_once(self) -> None:
        """A redelivered message costs nothing: its answer is in the session."""
        message = UserMessage("Once, please.", id=f"own-{new_id()}")
        models = [ScriptedModel([say("Done.")]), ScriptedModel([say("Done again.")])]
        texts: list[str | None] = []
        with self._place(_ONCE, _REMEDY) as place:
            id = new_id()
            for model in models:
                with place.open(id, create=True) as session:
                    texts.append(Agent(model, transcript=session).run(message).text)
        require(
            texts == ["Done."] * 2 and not models[1].requests,
            "a message that the session holds is not committed again (Agent.run)",
            found=f"{len(models[1].requests)} requests to the model in a new process",
            remedy="keep messages with their ids",
        )


def _results(history: Sequence[Message], keys: Sequence[str]) -> list[tuple[str, bool | None]]:
    """The outcomes of those calls that have a result, in the order of the calls."""
    known = {each.result.key: each.result for each in history if isinstance(each, ToolMessage)}
    return [(str(known[key].status), known[key].executed) for key in keys if key in known]
