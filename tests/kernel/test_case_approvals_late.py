"""Cases of answers that never come, come late, come twice, or are none; and of who may go on instead."""

from __future__ import annotations

from threading import Barrier, Thread
from typing import Any

import pytest

from gotato_py import (
    Busy,
    GotatoError,
    Hooks,
    InvalidArgument,
    InvalidState,
    RunResult,
    RunStatus,
    ToolResult,
    UserMessage,
)
from gotato_testkit import ManualClock, call, say

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

        def cancel(use: object, result: ToolResult) -> ToolResult:
            asked.stage.cancel()
            return result

        asked = Asked(extensions=(Hooks(after_tool=cancel),))

        assert asked.answer(pay=YES, mail=YES).status is RunStatus.CANCELLED
        assert (asked.log, ran(asked.stage)) == (["pay 5"], ["pay ok", "mail not_run"])
        with pytest.raises(InvalidArgument):
            asked.answer(pay=YES, mail=YES)
        assert asked.log == ["pay 5"]
        assert_laws(asked.stage)
