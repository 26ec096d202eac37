"""Cases of approvals: exactly what was shown runs, and no gate is passed by."""

from __future__ import annotations

from typing import Any

import pytest

from gotato_py import (
    Allow,
    Ask,
    Block,
    Hooks,
    InvalidArgument,
    MemoryTranscript,
    RunStatus,
    ToolContext,
    ToolExecutionStart,
)
from gotato_testkit import call, say

from .laws_of_waiting import YES, answers, assert_laws, ran, results_of, waits_for
from .notes import fail
from .stage import Stage
from .test_case_approvals import ASKING, made


class TestC56WhatWasShownRuns:
    """Exactly the arguments that were shown are executed, and no gate is passed by."""

    def test_c56_a_stored_call_is_edited(self) -> None:
        """Somebody edits the arguments in the stored message: those that were shown run."""
        log: list[str] = []
        stage = made(log=log)
        data = stage_data(stage)
        data["messages"][1]["tool_calls"][1]["arguments"] = '{"amount": 5000}'
        other = again(data, log)
        done = other.run(None, answers=dict.fromkeys([each.key for each in other.transcript.waiting], YES))
        assert (done.text, log) == ("Done.", ["read a", "pay 5", "mail Kari None"])
        starts = [event for event in other.events if isinstance(event, ToolExecutionStart)]
        assert dict(starts[0].arguments) == {"amount": 5}
        assert_laws(other)

    def test_c56_a_stored_call_is_exchanged(self) -> None:
        """Somebody puts another tool in the place of the one that was asked about: its approval is none."""
        log: list[str] = []
        stage = made(call("read") + call("pay", amount=5), say("Done."), log=log)
        data = stage_data(stage)
        data["messages"][1]["tool_calls"][1]["name"] = "mail"
        other = again(data, log)
        (key,) = (each.key for each in other.transcript.waiting)
        with pytest.raises(InvalidArgument):
            other.run(None, answers={key: YES})
        assert other.run(None).text == "Done."
        assert (log, ran(other)) == (["read "], ["read ok", "mail not_run"])
        assert_laws(other)

    def test_c56_the_arguments_are_changed_for_showing(self) -> None:
        """What a program does to the arguments in the result, to show them, is not what runs."""
        log: list[str] = []
        stage = made(call("mail", to="Kari", copies=["Ola"]), say("Done."), log=log)
        result = stage.run()
        shown: Any = result.waiting[0].arguments
        shown["copies"].append("everybody")
        assert stage.run(None, answers=answers(result, mail=YES)).text == "Done."
        assert log == ["mail Kari ['Ola']"]
        assert_laws(stage)

    def test_c56_a_gate_that_blocks_now(self) -> None:
        """Gates are asked again when the answer has come: one that blocks still blocks what was approved."""
        log: list[str] = []
        closed: list[str] = []

        def limit(use: ToolContext[Any]) -> Allow | Block:
            return Block(f"{use.name} is closed") if use.name in closed else Allow()

        stage = made(log=log, extensions=[ASKING, Hooks(before_tool=limit)])
        result = stage.run()
        closed.append("pay")
        assert stage.run(None, answers=answers(result, pay=YES, mail=YES)).text == "Done."
        assert log == ["read a", "mail Kari None"]
        assert "pay is closed" in results_of(stage, "pay")[0].text
        assert_laws(stage)

    def test_c56_a_gate_that_fails_now(self) -> None:
        """A gate that raises when it is asked again blocks what was approved."""
        log: list[str] = []
        asked: list[str] = []

        def moody(use: ToolContext[Any]) -> Allow:
            asked.append(use.name)
            return Allow() if asked.count("pay") < 2 else fail()

        stage = made(call("pay"), say("Done."), log=log, extensions=[ASKING, Hooks(before_tool=moody, name="moody")])
        assert stage.run(None, answers=answers(stage.run(), pay=YES)).text == "Done."
        assert (log, ran(stage)) == ([], ["pay blocked"])
        assert_laws(stage)

    def test_c56_nobody_is_asked_about_what_is_blocked(self) -> None:
        """A block wins over a question, whichever gate says it first."""
        block = Hooks(before_tool=lambda use: Block("no mail") if use.name == "mail" else Allow())
        for order in ([ASKING, block], [block, ASKING]):
            log: list[str] = []
            stage = made(log=log, extensions=order)
            result = stage.run()
            assert waits_for(result) == ["pay"]
            assert stage.run(None, answers=answers(result, pay=YES)).text == "Done."
            assert ran(stage) == ["read ok", "pay ok", "mail blocked"]
            assert_laws(stage)

    def test_c56_of_two_questions_the_first(self) -> None:
        """Two gates ask about one call: the first question is put, and its approval answers both."""
        stage = made(extensions=[ASKING, Hooks(before_tool=lambda use: Ask("Really?"))])
        result = stage.run()
        assert [each.question for each in result.waiting] == ["Really?", "May it pay?", "May it mail?"]
        assert stage.run(None, answers=answers(result, read=YES, pay=YES, mail=YES)).text == "Done."
        assert_laws(stage)

    def test_c56_a_gate_asks_anew_behind(self) -> None:
        """A gate that let a call pass asks about it after the answers: the run waits again, what ran has run once."""
        log: list[str] = []
        strict: list[str] = []

        def gate(use: ToolContext[Any]) -> Allow | Ask:
            return Ask(f"Now {use.name}?") if use.name in ("pay", *strict) else Allow()

        stage = made(
            call("pay") + call("read") + call("mail"), say("Done."), log=log, extensions=[Hooks(before_tool=gate)]
        )
        first = stage.run()
        strict.append("read")
        second = stage.run(None, answers=answers(first, pay=YES))
        assert (waits_for(second), log) == (["read"], ["pay 0"])
        assert [each.question for each in second.waiting] == ["Now read?"]
        assert stage.run(None, answers=answers(second, read=YES)).text == "Done."
        assert log == ["pay 0", "read ", "mail  None"]
        assert_laws(stage)


def stage_data(stage: Stage) -> dict[str, Any]:
    """What a store keeps of the stage, once its run has settled waiting."""
    assert stage.run().status is RunStatus.WAITING
    assert isinstance(stage.transcript, MemoryTranscript)
    return stage.transcript.to_dict()


def again(data: dict[str, Any], log: list[str]) -> Stage:
    """A stage on what was stored."""
    return made(say("Done."), log=log, transcript=MemoryTranscript.from_dict(data))
