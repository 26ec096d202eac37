"""Cases of approvals that are cut off: a cancel, a store that fails, a process that dies, Ctrl-C at every line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from gotato_py import (
    Hooks,
    MemoryTranscript,
    RunResult,
    RunStatus,
    StoreFailure,
    ToolContext,
    ToolMessage,
    TurnView,
    UserMessage,
    WaitingCall,
)
from gotato_testkit import call, say

from .laws_of_waiting import YES, answers, asks, assert_laws, paying, ran, results_of
from .stage import Stage

BATCH = call("read") + call("pay", amount=5) + call("mail", to="Kari")
ASKING = asks("pay", "mail")


class Failing(MemoryTranscript):
    """A transcript that fails where it is told to, as a disk that is full."""

    __slots__ = ("fails",)

    def __init__(self) -> None:
        super().__init__()
        self.fails: Callable[[object], bool] = lambda given: False

    def append(self, message: Any) -> Any:
        """Keeps the message, or fails."""
        self._look(message)
        return super().append(message)

    def mark_waiting(self, calls: Sequence[WaitingCall]) -> None:
        """Records what waits, or fails."""
        self._look(calls)
        super().mark_waiting(calls)

    def mark_started(self, key: str) -> None:
        """Records the start, or fails."""
        self._look(key)
        super().mark_started(key)

    def _look(self, given: object) -> None:
        if self.fails(given):
            raise OSError(28, "no space left")


def set_up(log: list[str], transcript: MemoryTranscript | None = None, **options: Any) -> Stage:
    """A stage that reads, pays and mails, and asks before the last two."""
    options.setdefault("extensions", [ASKING])
    return Stage(BATCH, say("Done."), tools=paying(log), transcript=transcript, **options)


class TestC57Cancelled:
    """A cancel in a batch that was resumed."""

    def test_c57_closes_everything(self) -> None:
        """The call that runs keeps its real result, the others are not run, and nothing waits any more."""
        log: list[str] = []

        def cancel(use: ToolContext[Any], result: Any) -> Any:
            if use.name == "pay":
                stage.cancel()
            return result

        stage = set_up(log, extensions=[ASKING, Hooks(after_tool=cancel)])
        done = stage.run(None, answers=answers(stage.run(), pay=YES, mail=YES))
        assert (done.status, log) == (RunStatus.CANCELLED, ["read ", "pay 5"])
        assert (ran(stage), stage.agent.status) == (["read ok", "pay ok", "mail not_run"], "idle")
        assert_laws(stage)

    @pytest.mark.parametrize("first", [True, False], ids=["while it waits", "when it resumes"])
    def test_c57_while_a_gate_thinks(self, first: bool) -> None:
        """A cancel that comes while a gate decides: what it decides starts nothing, and is asked of nobody."""
        log: list[str] = []
        cancels: list[bool] = [first]

        def slow(use: ToolContext[Any]) -> Any:
            if use.name == "pay" and cancels.pop(0):
                stage.cancel()
            return YES_TO_ALL(use)

        stage = set_up(log, extensions=[Hooks(before_tool=slow)])
        cancels.append(not first)
        done = stage.run()
        if not first:
            done = stage.run(None, answers=answers(done, pay=YES, mail=YES))
        assert (done.status, log) == (RunStatus.CANCELLED, ["read "])
        assert (ran(stage), stage.agent.status) == (["read ok", "pay not_run", "mail not_run"], "idle")
        assert_laws(stage)


YES_TO_ALL: Any = ASKING.before_tool


class TestC57TheStoreFails:
    """The transcript fails at one of the steps of waiting and resuming."""

    def test_c57_questions_that_cannot_be_recorded(self) -> None:
        """Where `mark_waiting` fails nothing waits: the run fails, the calls are closed, the next run works."""
        log: list[str] = []
        transcript = Failing()
        transcript.fails = lambda given: isinstance(given, tuple)
        stage = set_up(log, transcript)
        done = stage.run()
        assert (done.status, log) == (RunStatus.FAILED, ["read "])
        assert isinstance(done.error, StoreFailure)
        assert (ran(stage), stage.agent.status) == (["read ok", "pay not_run", "mail not_run"], "idle")
        assert_laws(stage)

    def test_c57_answers_that_cannot_be_recorded(self) -> None:
        """Where an answer cannot be recorded nothing runs, the calls go on waiting, and it can be given again."""
        log: list[str] = []
        transcript = Failing()
        stage = set_up(log, transcript)
        result = stage.run()
        transcript.fails = lambda given: isinstance(given, tuple)
        done = stage.run(None, answers=answers(result, pay=YES, mail=YES))
        assert (done.status, log, stage.agent.status) == (RunStatus.FAILED, ["read "], "waiting")
        transcript.fails = lambda given: False
        assert stage.run(None, answers=answers(result, pay=YES, mail=YES)).text == "Done."
        assert log == ["read ", "pay 5", "mail Kari None"]
        assert_laws(stage)

    def test_c57_a_start_that_cannot_be_recorded(self) -> None:
        """An approved call whose start cannot be recorded does not start."""
        log: list[str] = []
        transcript = Failing()
        stage = set_up(log, transcript)
        result = stage.run()
        transcript.fails = lambda given: isinstance(given, str)
        done = stage.run(None, answers=answers(result, pay=YES, mail=YES))
        assert (done.status, log) == (RunStatus.FAILED, ["read "])
        assert ran(stage) == ["read ok", "pay not_run", "mail not_run"]
        transcript.fails = lambda given: False
        assert_laws(stage)

    def test_c57_a_result_that_cannot_be_kept(self) -> None:
        """The store fails when the approved tool has run, and for good: later its effect is told to be unknown, what
        was approved behind it goes on, and nothing runs twice."""
        log: list[str] = []
        transcript = Failing()
        stage = set_up(log, transcript)
        result = stage.run()
        transcript.fails = lambda given: isinstance(given, ToolMessage)
        done = stage.run(None, answers=answers(result, pay=YES, mail=YES))
        assert (done.status, log) == (RunStatus.FAILED, ["read ", "pay 5"])
        transcript.fails = lambda given: False
        assert stage.run(None).text == "Done."
        assert log == ["read ", "pay 5", "mail Kari None"]
        assert ran(stage) == ["read ok", "pay cancelled", "mail ok"]
        assert "effect is unknown" in results_of(stage, "pay")[0].text
        assert_laws(stage)


class TestC57AnExtensionFails:
    """An extension fails before the batch goes on."""

    def test_c57_before_the_run(self) -> None:
        """Where `before_run` raises nothing has run, the answers are recorded, and the next run goes on with them."""
        log: list[str] = []
        moods = [True, False, True]

        def moody(view: TurnView) -> None:
            if not moods.pop(0):
                raise ValueError("not now")

        stage = set_up(log, extensions=[ASKING, Hooks(before_run=moody)])
        done = stage.run(None, answers=answers(stage.run(), pay=YES, mail=YES))
        assert (done.status, log, stage.agent.status) == (RunStatus.FAILED, ["read "], "waiting")
        assert [each.decision for each in stage.transcript.waiting] == [YES, YES]
        assert stage.run(None).text == "Done."
        assert log == ["read ", "pay 5", "mail Kari None"]
        assert_laws(stage, again=False)


class TestC57TheProcessDies:
    """The process was killed in the middle of a batch that was resumed; another one goes on from what it left."""

    def left(self, *started: str) -> tuple[MemoryTranscript, dict[str, Any]]:
        """The transcript of a run that went on with both answers and died with these calls started; and the answers."""
        transcript = MemoryTranscript()
        given = answers(set_up([], transcript).run(), pay=YES, mail=YES)
        transcript.mark_waiting([approved(each) for each in transcript.waiting])
        for each in transcript.waiting:
            if each.name in started:
                transcript.mark_started(each.key)
        return transcript, given

    @pytest.mark.parametrize("how", ["run()", "the answers again", "the message again"])
    def test_c57_one_call_had_started(self, how: str) -> None:
        """What had started is effect unknown and never repeated; what was approved and had not started runs, once."""
        log: list[str] = []
        transcript, given = self.left("pay")
        stage = Stage(say("Done."), tools=paying(log), transcript=transcript, extensions=[ASKING])
        assert go_on(stage, how, given).text == "Done."
        assert (log, ran(stage)) == (["mail Kari None"], ["read ok", "pay cancelled", "mail ok"])
        assert_laws(stage)

    def test_c57_every_call_had_started(self) -> None:
        """Where nothing is left to run the run goes on to its turns, and a later batch is closed like any other."""
        log: list[str] = []
        transcript, given = self.left("pay", "mail")
        stop = Hooks(observe=lambda event: event.kind == "tool_execution_end" and stage.agent.cancel())
        stage = Stage(call("read") + call("read"), tools=paying(log), transcript=transcript, extensions=[stop])
        assert stage.run(None, answers=given).status is RunStatus.CANCELLED
        assert log == ["read "]
        assert ran(stage) == ["read ok", "pay cancelled", "mail cancelled", "read ok", "read not_run"]
        assert_laws(stage)

    def test_c57_nothing_had_started(self) -> None:
        """A process that died right after the answers were recorded: `run()` is all that is needed."""
        log: list[str] = []
        stage = Stage(say("Done."), tools=paying(log), transcript=self.left()[0], extensions=[ASKING])
        assert stage.run(None).text == "Done."
        assert log == ["pay 5", "mail Kari None"]
        assert_laws(stage)

    def test_c57_instead_a_new_message(self) -> None:
        """A new message drops what had not started; what had started stays unknown."""
        log: list[str] = []
        stage = Stage(say("Done."), tools=paying(log), transcript=self.left("pay")[0], extensions=[ASKING])
        assert stage.run("never mind").text == "Done."
        assert (log, ran(stage)) == ([], ["read ok", "pay cancelled", "mail blocked"])
        assert_laws(stage)


def approved(asked: WaitingCall) -> WaitingCall:
    """The same call, approved."""
    return WaitingCall(asked.key, asked.call_id, asked.name, asked.arguments, asked.question, decision=YES)


def go_on(stage: Stage, how: str, given: dict[str, Any]) -> RunResult[Any]:
    """Goes on in one of the ways in which a host may."""
    match how:
        case "run()":
            return stage.run(None)
        case "the answers again":
            return stage.run(None, answers=given)
        case _:
            opening = next(message for message in stage.messages if isinstance(message, UserMessage))
            return stage.run(UserMessage("do it", id=opening.id))
