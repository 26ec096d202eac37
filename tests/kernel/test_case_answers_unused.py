"""Cases of answers that a run could not use: it ended before its first call, and says what it left waiting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from gotato_py import (
    Hooks,
    MemoryTranscript,
    RunResult,
    RunStatus,
    Scope,
    TurnView,
    WaitingCall,
    check_messages,
)
from gotato_testkit import call, say

from .laws_of_waiting import NO, YES, answers, asks, assert_laws, paying, ran
from .stage import Stage


class Ends:
    """A stage whose run waits for approvals of `pay` and `mail`; the runs after it end as they are told to."""

    def __init__(self, transcript: MemoryTranscript | None = None) -> None:
        self.log: list[str] = []
        self.cancels = self.fails = False
        self.stage = Stage(
            call("read") + call("pay", amount=5) + call("mail", to="Kari"),
            say("Done."),
            tools=paying(self.log),
            extensions=[asks("pay", "mail"), Hooks(observe=self._observe, before_run=self._before_run)],
            transcript=transcript,
        )
        self.asked = self.stage.run()
        self.log.clear()

    def _observe(self, event: Any) -> None:
        if event.kind == "agent_start" and self.cancels:
            self.stage.cancel()

    def _before_run(self, view: TurnView) -> None:
        if self.fails:
            raise LookupError

    def ended(self, end: str, message: str | None = None, **options: Any) -> RunResult[None]:
        """A run that ends in that way before its first call."""
        scope = Scope()
        if end == "scope":
            scope.cancel("over")
        self.cancels, self.fails = end == "cancel", end == "before_run"
        timeout = 0 if end == "timeout" else None
        result = self.stage.run(message, scope=scope, timeout=timeout, **options)
        self.cancels = self.fails = False
        return result


ENDS = {
    "timeout": RunStatus.DEADLINE_EXCEEDED,
    "scope": RunStatus.CANCELLED,
    "cancel": RunStatus.CANCELLED,
    "before_run": RunStatus.FAILED,
}


def decisions(result: RunResult[Any]) -> dict[str, object]:
    """What waits by the tools' names, and how it was answered."""
    return {each.name: each.decision for each in result.waiting}


@pytest.mark.parametrize("end", ENDS)
def test_all_answered(end: str) -> None:
    """The calls stay open, and `waiting` names them with their answers; `run()` goes on with those."""
    case = Ends()
    given = answers(case.asked, pay=YES, mail=NO)
    result = case.ended(end, answers=given)
    assert (result.status, result.new_messages, case.log) == (ENDS[end], (), [])
    assert decisions(result) == {"pay": YES, "mail": NO}
    assert check_messages(case.stage.messages, result.waiting) == []
    assert result.waiting == case.stage.transcript.waiting
    assert case.stage.agent.status == "waiting"
    done = case.stage.run(None)
    assert (done.text, done.waiting, case.log) == ("Done.", (), ["pay 5"])
    assert ran(case.stage) == ["read ok", "pay ok", "mail blocked"]
    assert_laws(case.stage)


@pytest.mark.parametrize("end", ENDS)
def test_ended_twice(end: str) -> None:
    """A `run()` that ends so as well names them again; the same answers again go on."""
    case = Ends()
    given = answers(case.asked, pay=YES, mail=NO)
    case.ended(end, answers=given)
    again = case.ended(end)
    assert (again.status, decisions(again)) == (ENDS[end], {"pay": YES, "mail": NO})
    assert check_messages(case.stage.messages, again.waiting) == []
    assert case.stage.run(None, answers=given).text == "Done."
    assert case.log == ["pay 5"]
    assert_laws(case.stage)


def test_the_first_answered_and_then_a_message() -> None:
    """A new message that could not begin its run drops nothing: `waiting` names the call that was answered, too, since
    it stands first; the answer that is missing goes on with both."""
    case = Ends()
    part = case.stage.run(None, answers=answers(case.asked, pay=YES))
    assert (part.status, decisions(part)) == (RunStatus.WAITING, {"mail": None})
    result = case.ended("before_run", "never mind")
    assert (result.status, decisions(result)) == (RunStatus.FAILED, {"pay": YES, "mail": None})
    assert check_messages(case.stage.messages, result.waiting) == []
    assert case.stage.run(None, answers=answers(case.asked, mail=YES)).text == "Done."
    assert case.log == ["pay 5", "mail Kari None"]
    assert_laws(case.stage)


class Full(MemoryTranscript):
    """A transcript that cannot record what waits, once it is full."""

    full = False

    def mark_waiting(self, calls: Sequence[WaitingCall]) -> None:
        """Records it, or fails."""
        if self.full:
            raise OSError(28, "no space left")
        super().mark_waiting(calls)


def test_answers_that_could_not_be_kept() -> None:
    """Where the store refuses the answers, `waiting` says what it has: calls that nobody has answered."""
    transcript = Full()
    case = Ends(transcript)
    given = answers(case.asked, pay=YES, mail=NO)
    transcript.full = True
    result = case.stage.run(None, answers=given)
    assert (result.status, decisions(result)) == (RunStatus.FAILED, {"pay": None, "mail": None})
    assert check_messages(case.stage.messages, result.waiting) == []
    transcript.full = False
    assert case.stage.run(None, answers=given).text == "Done."
    assert_laws(case.stage)
