"""Cases of what is no answer to a call that waits, and of who may go on instead of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from gotato_py import (
    Agent,
    AgentClosed,
    Approve,
    Deny,
    Hooks,
    InvalidArgument,
    InvalidState,
    RunStatus,
    UserMessage,
)
from gotato_testkit import ScriptedModel, call, say

from .laws_of_waiting import NO, YES, answers, asks, assert_laws, paying, ran, waits_for
from .stage import Stage
from .test_case_approvals_late import LATE, Asked


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

    def test_c57_any_mapping(self) -> None:
        """Answers may be any mapping, a read-only one too."""
        asked = Asked()
        assert asked.stage.run(None, answers=MappingProxyType(answers(asked.result, pay=YES, mail=YES))).text == "Done."
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
        assert (again.status, again.text, again.waiting) == (RunStatus.COMPLETED, "Hi.", waiting.waiting)
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
