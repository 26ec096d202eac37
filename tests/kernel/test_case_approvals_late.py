"""Cases of answers that never come, come late, come twice, or are none; and of who may go on instead."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Barrier, Thread
from typing import Any, cast

import pytest

from gotato_py import (
    Agent,
    AgentClosed,
    Approve,
    Busy,
    Deny,
    GotatoError,
    Hooks,
    InvalidArgument,
    InvalidState,
    RunResult,
    RunStatus,
    UserMessage,
)
from gotato_testkit import ManualClock, ScriptedModel, call, say

from .laws_of_waiting import NO, YES, answers, asks, assert_laws, paying, ran, results_of, waits_for
from .stage import Stage

LATE = 61.0
"""Seconds after which an approval that is asked for with 60 seconds has expired."""


class Asked:
    """A stage whose run waits for an approval of `pay` and one of `mail`, and what its tools have written down."""

    def __init__(self, *, expires_in: float | None = None, extensions: tuple[Hooks, ...] = ()) -> None:
        self.log: list[str] = []
        self.clock = ManualClock()
        self.stage = Stage(
            call("pay", amount=5) + call("mail", to="Kari"), say("Done."),
            tools=paying(self.log), extensions=[asks("pay", "mail", expires_in=expires_in), *extensions],
            clock=self.clock,
        )  # fmt: skip
        self.message = UserMessage("do it", id="task-1")
        self.result: RunResult[Any] = self.stage.run(self.message)
        assert waits_for(self.result) == ["pay", "mail"]

    def answer(self, **decisions: Any) -> RunResult[Any]:
        """Goes on with these answers to the first questions."""
        return self.stage.run(None, answers=answers(self.result, **decisions))

    def assert_unchanged(self) -> None:
        """Nothing has run, nothing is committed, both still wait."""
        assert (self.log, self.stage.history) == ([], ["U do it", "A  [pay, mail] tool_calls"])
        assert [each.decision for each in self.stage.transcript.waiting] == [None, None]
        assert (self.stage.agent.status, len(self.stage.asked)) == ("waiting", 1)


class TestC57Expiry:
    """A question may expire; that is looked at when somebody looks."""

    def test_c57_expires_at(self) -> None:
        """The time is Unix seconds, from when the gate was asked, and shown with the question."""
        asked = Asked(expires_in=60)
        assert [each.expires_at for each in asked.result.waiting] == [asked.clock.time() + 60] * 2
        assert_laws(asked.stage)

    @pytest.mark.parametrize("forever", [None, float("inf")])
    def test_c57_never(self, forever: float | None) -> None:
        """Without a time, or with an endless one, a question waits for ever."""
        asked = Asked(expires_in=forever)
        asked.clock.advance(1e9)
        assert asked.result.waiting[0].expires_at is None
        assert asked.answer(pay=YES, mail=YES).text == "Done."
        assert asked.log == ["pay 5", "mail Kari None"]
        assert_laws(asked.stage)

    @pytest.mark.parametrize("move", ["advance", "set_time"])
    def test_c57_an_answer_after_it(self, move: str) -> None:
        """An answer that comes late is none: the call is blocked, and the run goes on."""
        asked = Asked(expires_in=60)
        asked.clock.advance(LATE) if move == "advance" else asked.clock.set_time(asked.clock.time() + LATE)
        assert asked.answer(pay=YES, mail=YES).text == "Done."
        assert (asked.log, ran(asked.stage)) == ([], ["pay blocked", "mail blocked"])
        assert "approval expired" in results_of(asked.stage, "pay")[0].text
        assert_laws(asked.stage)

    def test_c57_an_answer_in_time(self) -> None:
        """An answer that was recorded in time counts, however late the other one comes."""
        asked = Asked(expires_in=60)
        assert waits_for(asked.answer(pay=YES)) == ["mail"]
        asked.clock.advance(LATE)
        assert asked.stage.run(None).text == "Done."
        assert (asked.log, ran(asked.stage)) == (["pay 5"], ["pay ok", "mail blocked"])
        assert_laws(asked.stage)

    def test_c57_all_expired(self) -> None:
        """Once every question has expired, `run()` goes on; before that it is refused."""
        asked = Asked(expires_in=60)
        asked.clock.advance(59.9)
        with pytest.raises(InvalidState):
            asked.stage.run(None)
        asked.assert_unchanged()
        asked.clock.advance(0.1)
        assert asked.stage.run(None).text == "Done."
        assert ran(asked.stage) == ["pay blocked", "mail blocked"]
        assert_laws(asked.stage)

    def test_c57_at_once(self) -> None:
        """A question with no time at all has expired when it is asked: nobody can answer it, and the run says so."""
        asked = Asked(expires_in=0)
        assert asked.answer(pay=YES).text == "Done."
        assert asked.log == []
        assert_laws(asked.stage)

    def test_c57_recorded_and_answered_again(self) -> None:
        """A late answer is none also where the expiry was recorded before, in this process or in another."""
        asked = Asked(expires_in=60)
        mail = next(each for each in asked.result.waiting if each.name == "mail")
        asked.clock.advance(LATE)
        asked.stage.transcript.mark_waiting(
            [each if each.name == "mail" else without_time(each) for each in asked.stage.transcript.waiting]
        )
        assert waits_for(asked.answer(mail=YES)) == ["pay"]
        assert waits_for(asked.stage.run(None, answers={mail.key: YES})) == ["pay"]
        assert asked.answer(pay=YES, mail=YES).text == "Done."
        assert (asked.log, ran(asked.stage)) == (["pay 5"], ["pay ok", "mail blocked"])
        assert_laws(asked.stage)


def without_time(waiting: Any) -> Any:
    """The same question without an end."""
    return type(waiting)(waiting.key, waiting.call_id, waiting.name, waiting.arguments, waiting.question)


class TestC57Twice:
    """Answers come twice, or from two sides."""

    def test_c57_the_same_again(self) -> None:
        """The same answer again is fine, another one is refused and changes nothing; the first one counts."""
        asked = Asked()
        assert waits_for(asked.answer(pay=YES)) == ["mail"]
        assert waits_for(asked.answer(pay=YES)) == ["mail"]
        with pytest.raises(InvalidArgument, match="answered before"):
            asked.answer(pay=NO, mail=YES)
        assert [each.decision for each in asked.stage.transcript.waiting] == [YES, None]
        assert asked.answer(pay=YES, mail=NO).text == "Done."
        assert asked.log == ["pay 5"]
        assert_laws(asked.stage)

    def test_c57_after_the_batch(self) -> None:
        """Answers that come again when the batch is done answer nothing, and nothing runs twice."""
        asked = Asked()
        assert asked.answer(pay=YES, mail=YES).text == "Done."
        before = asked.stage.history
        with pytest.raises(InvalidArgument, match="no call"):
            asked.answer(pay=YES, mail=YES)
        assert (asked.stage.history, asked.log) == (before, ["pay 5", "mail Kari None"])
        assert_laws(asked.stage)

    def test_c57_from_two_threads(self) -> None:
        """Of two threads that answer at once the first wins; the other is told that the agent is busy, or too late."""
        for _ in range(20):
            asked = Asked()
            start = Barrier(2)
            came: list[object] = []

            def answer(decision: Any, asked: Asked = asked, start: Any = start, came: list[object] = came) -> None:
                start.wait()
                try:
                    came.append(asked.answer(pay=decision, mail=decision))
                except GotatoError as error:
                    came.append(error)

            threads = [Thread(target=answer, args=(decision,)) for decision in (YES, NO)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            refused = [each for each in came if isinstance(each, Busy | InvalidArgument)]
            done = [each for each in came if isinstance(each, RunResult)]
            assert (len(refused), [each.text for each in done]) == (1, ["Done."])
            assert asked.log in (["pay 5", "mail Kari None"], [])
            assert_laws(asked.stage)

    def test_c57_after_a_cancel(self) -> None:
        """What a cancelled run closed does not wait any more: an answer runs nothing."""
        asked = Asked(extensions=(Hooks(after_tool=lambda use, result: cancel() or result),))

        def cancel() -> None:
            asked.stage.cancel()

        assert asked.answer(pay=YES, mail=YES).status is RunStatus.CANCELLED
        assert (asked.log, ran(asked.stage)) == (["pay 5"], ["pay ok", "mail not_run"])
        with pytest.raises(InvalidArgument):
            asked.answer(pay=YES, mail=YES)
        assert asked.log == ["pay 5"]
        assert_laws(asked.stage)


class TestC57Misuse:
    """What is no answer is refused, and nothing changes."""

    @pytest.mark.parametrize(
        "wrong",
        [
            {"m-1:0": YES},
            {"": NO},
            {5: YES},
            {"pay": True},
            {"pay": "approve"},
            {"pay": Approve},
            {"pay": None},
            ["pay"],
            "pay",
            True,
        ],
        ids=repr,
    )
    def test_c57_what_is_no_answer(self, wrong: object) -> None:
        """An unknown key, a wrong value and a wrong type are told, the right ones beside them count for nothing."""
        asked = Asked()
        keys = {each.name: each.key for each in asked.result.waiting}
        given: Any = wrong
        if isinstance(wrong, Mapping):
            given = {keys["mail"]: YES} | {keys.get(key, key): value for key, value in wrong.items()}
        with pytest.raises(InvalidArgument, match="answers"):
            asked.stage.run(None, answers=given)
        with pytest.raises(InvalidArgument, match="answers"):
            asked.stage.agent.stream(answers=given).result  # noqa: B018  # the property runs it
        asked.assert_unchanged()
        assert_laws(asked.stage)

    def test_c57_a_message_beside_them(self) -> None:
        """A message together with answers is refused: one goes on, the other drops what waits."""
        asked = Asked()
        with pytest.raises(InvalidArgument, match="without a message"):
            asked.stage.agent.run("do", answers=answers(asked.result, pay=YES))
        asked.assert_unchanged()
        assert_laws(asked.stage)

    def test_c57_where_nothing_waits(self) -> None:
        """Answers to an agent that waits for nothing are refused, on an empty transcript too."""
        stage = Stage(say("Done."))
        for given in ({}, {"m-1:0": YES}):
            with pytest.raises(InvalidArgument, match="no call"):
                stage.run(None, answers=given)
        stage.run()
        with pytest.raises(InvalidArgument, match="no call"):
            stage.run(None, answers={"m-1:0": Deny()})
        assert_laws(stage)

    def test_c57_no_answers_at_all(self) -> None:
        """`run()` while calls wait is refused; empty answers settle waiting again."""
        asked = Asked()
        with pytest.raises(InvalidState, match="wait for an answer"):
            asked.stage.run(None)
        asked.assert_unchanged()
        assert waits_for(asked.stage.run(None, answers={})) == ["pay", "mail"]
        asked.assert_unchanged()
        assert_laws(asked.stage)

    def test_c57_in_an_ended_scope(self) -> None:
        """A run that is over before it begins records the answers and starts nothing; the next one goes on."""
        asked = Asked()
        done = asked.stage.run(None, answers=answers(asked.result, pay=YES, mail=YES), timeout=0)
        assert (done.status, asked.log, asked.stage.agent.status) == (RunStatus.DEADLINE_EXCEEDED, [], "waiting")
        assert asked.stage.run(None).text == "Done."
        assert asked.log == ["pay 5", "mail Kari None"]
        assert_laws(asked.stage)


class TestC57WhoGoesOnInstead:
    """The message comes again, the agent is closed, another agent takes the transcript."""

    def test_c57_the_message_comes_again(self) -> None:
        """A redelivered task settles waiting again: nothing is superseded, nothing is committed, nothing is asked."""
        asked = Asked()
        again = asked.stage.run(asked.message)
        assert (waits_for(again), again.new_messages) == (["pay", "mail"], ())
        asked.assert_unchanged()
        assert asked.answer(pay=YES, mail=YES).text == "Done."
        assert asked.stage.run(asked.message).text == "Done."
        assert len(asked.stage.asked) == 2
        assert_laws(asked.stage)

    def test_c57_the_message_comes_again_when_all_is_answered(self) -> None:
        """A redelivered task goes on where every question has its answer, or has expired."""
        asked = Asked(expires_in=60)
        asked.clock.advance(LATE)
        assert asked.stage.run(asked.message).text == "Done."
        assert ran(asked.stage) == ["pay blocked", "mail blocked"]
        assert_laws(asked.stage)

    def test_c57_an_earlier_message_comes_again(self) -> None:
        """A task that was answered before gets its answer, and what waits for another one goes on waiting."""
        log: list[str] = []
        first = UserMessage("hello", id="task-0")
        stage = Stage(say("Hi."), call("pay"), say("Done."), tools=paying(log), extensions=[asks("pay")])
        assert stage.run(first).text == "Hi."
        waiting = stage.run()
        again = stage.run(first)
        assert (again.status, again.text, again.waiting) == (RunStatus.COMPLETED, "Hi.", ())
        with pytest.raises(InvalidState, match="output"):
            stage.run(first, output=int)
        assert stage.agent.status == "waiting"
        assert stage.run(None, answers=answers(waiting, pay=YES)).text == "Done."
        assert_laws(stage)

    def test_c57_closing_leaves_it(self) -> None:
        """`close()` leaves what waits; another agent on the transcript waits from its first moment, and goes on."""
        asked = Asked()
        asked.stage.agent.close()
        assert asked.stage.agent.status == "closed"
        with pytest.raises(AgentClosed):
            asked.answer(pay=YES)
        other = Stage(say("Done."), tools=paying(asked.log), transcript=asked.stage.transcript)
        assert other.agent.status == "waiting"
        assert other.run(None, answers=answers(asked.result, pay=YES, mail=NO)).text == "Done."
        assert asked.log == ["pay 5"]
        assert_laws(other)

    def test_c57_refused_messages_drop_nothing(self) -> None:
        """A new message that an extension refuses is not committed, and what waits goes on waiting."""

        def no(view: Any) -> None:
            if view.message is not None and view.message.text == "no":
                raise ValueError("not that")

        asked = Asked(extensions=(Hooks(before_run=no, name="polite"),))
        refused = asked.stage.run("no")
        assert (refused.status, len(refused.waiting)) == (RunStatus.FAILED, 2)
        asked.assert_unchanged()
        assert asked.answer(pay=YES, mail=YES).text == "Done."
        assert_laws(asked.stage)

    def test_c57_without_a_thread(self) -> None:
        """A run that waits is over: the agent is idle to whoever waits for it, and it can be dropped."""
        asked = Asked()
        assert asked.stage.agent.wait_idle(timeout=0)
        assert not asked.stage.agent.cancel()
        transcript = asked.stage.transcript
        assert Agent(ScriptedModel([say("Yes.")]), transcript=transcript).run("never mind").text == "Yes."
        assert ran(asked.stage) == ["pay blocked", "mail blocked"]
        assert_laws(asked.stage)


def test_c57_cast() -> None:
    """Answers may be any mapping, an immutable one too."""
    asked = Asked()
    given = cast("Any", Frozen(answers(asked.result, pay=YES, mail=YES)))
    assert asked.stage.run(None, answers=given).text == "Done."
    assert_laws(asked.stage)


class Frozen(Mapping[str, object]):
    """A mapping that is no dict."""

    def __init__(self, given: dict[str, Any]) -> None:
        self._given = given

    def __getitem__(self, key: str) -> object:
        return self._given[key]

    def __iter__(self) -> Any:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)
