"""Cases of what a model emits: nothing, half of it, calls of tools that are not there, arguments that do not fit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gotato_py import (
    Done,
    ErrorCode,
    LimitExceeded,
    RunStatus,
    StopReason,
    ToolCall,
    ToolCallReady,
    ToolContext,
    ToolEffect,
    ToolResultStatus,
    ToolSpec,
)
from gotato_testkit import call, say, think

from .laws import assert_laws
from .stage import Stage


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


def inc(n: int) -> int:
    """The number that comes next."""
    return n + 1


class Checked:
    """A tool that takes what its schema says, and remembers it."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.spec = ToolSpec("checked", "Takes what fits.", schema, effect=ToolEffect.READ)
        self.taken: list[dict[str, object]] = []

    def execute(self, use: ToolContext[object]) -> str:
        """Remembers its arguments."""
        self.taken.append(dict(use.arguments))
        return "fits"


def sent(name: str, arguments: str, call_id: str = "c1") -> ToolCallReady:
    """A call with exactly these arguments."""
    return ToolCallReady(ToolCall(call_id, name, arguments))


class TestC10NothingAtAll:
    """The model says nothing, or only thinks."""

    @pytest.mark.parametrize(
        "answer", [say(), say(" \n"), think("Hm.", signature="s")], ids=["none", "blank", "thought"]
    )
    def test_c10_as_the_first_answer(self, answer: Any) -> None:
        """An empty answer is asked for once more, with the same request, and then fails the run, whatever follows."""
        stage = Stage(*[answer] * 12)
        result = stage.run()
        assert result.status is RunStatus.FAILED
        assert result.error is not None
        assert result.error.code is ErrorCode.EMPTY_RESPONSE
        assert len(stage.model.requests) == 2
        assert stage.model.requests[0] == stage.model.requests[1]
        assert stage.history == ["U do it"]
        assert_laws(stage)

    @pytest.mark.parametrize("answer", [say(), think("Hm.", signature="s")], ids=["none", "thought"])
    def test_c10_after_a_tool_result(self, answer: Any) -> None:
        """After a tool result silence is an answer: completed, with empty text and no message."""
        stage = Stage(call("inc", n=1), answer, tools=[inc])
        result = stage.run()
        assert (result.status, result.text, result.message) == (RunStatus.COMPLETED, "", None)
        assert stage.history == ["U do it", "A  [inc] tool_calls", "R call_1 ok"]
        assert len(stage.asked) == 2
        assert_laws(stage)

    def test_c10_then_something(self) -> None:
        """When the second attempt says something, that is the answer."""
        stage = Stage(say(), say("Sorry, here I am."))
        assert stage.run().text == "Sorry, here I am."
        assert stage.history == ["U do it", "A Sorry, here I am. end_turn"]
        assert_laws(stage)


class TestC11TextCutByMaxTokens:
    """The answer is text, and longer than it may be."""

    def test_c11_is_completed_and_says_that_it_is_cut(self) -> None:
        """Text cut by max_tokens completes the run; the message says `truncated`, and the next request shows it."""
        stage = Stage(say("1. first 2. sec", stop_reason="max_tokens"))
        result = stage.run()
        assert (result.status, result.text) == (RunStatus.COMPLETED, "1. first 2. sec")
        assert result.message is not None
        assert result.message.truncated
        assert stage.history == ["U do it", "A 1. first 2. sec max_tokens"]
        assert_laws(stage)
        assert stage.asked[-1][:2] == ["U do it", "A 1. first 2. sec max_tokens"]

    def test_c11_going_on(self) -> None:
        """`run()` without a message goes on from a cut answer."""
        stage = Stage(say("1. first 2. sec", stop_reason="max_tokens"), say("ond"))
        stage.run()
        assert stage.run(None).text == "ond"
        assert stage.history == ["U do it", "A 1. first 2. sec max_tokens", "A ond end_turn"]
        assert_laws(stage)


class TestC12CallsCutByMaxTokens:
    """The answer is cut inside its calls, which a lenient parser may have made whole."""

    CUT = (*(call("add", a=1, b=2) + call("inc", n=4))[:-1], Done(StopReason.MAX_TOKENS))

    def test_c12_none_runs(self) -> None:
        """No call of a cut message runs, complete ones neither; each is told why, and the run goes on."""
        stage = Stage(self.CUT, say("I see."), tools=[add, inc])
        assert stage.run().text == "I see."
        assert stage.history[1:-1] == ["A  [add, inc] max_tokens", "R call_1 not_run", "R call_2 not_run"]
        for message in stage.results:
            assert "max_tokens" in message.text
            assert "not executed" in message.text or "not run" in message.text
        assert not stage.effects
        assert_laws(stage)

    def test_c12_for_ever(self) -> None:
        """Two cut messages in a row end the run as limited by max_tokens, with every call closed."""
        stage = Stage(*[self.CUT] * 9, tools=[add, inc])
        result = stage.run()
        assert result.status is RunStatus.LIMITED
        assert isinstance(result.error, LimitExceeded)
        assert result.error.limit == "max_tokens"
        assert len(stage.asked) == 2
        assert stage.statuses == [ToolResultStatus.NOT_RUN] * 4
        assert not stage.effects
        assert_laws(stage)

    def test_c12_not_in_a_row(self) -> None:
        """A whole message in between starts the count again."""
        whole = call("inc", n=1)
        stage = Stage(self.CUT, whole, self.CUT, whole, say("Done."), tools=[add, inc])
        assert stage.run().text == "Done."
        assert sum(stage.effects.values()) == 2
        assert_laws(stage)


def test_c13_unknown_tool() -> None:
    """A call of an unknown tool is not run and told what there is; the other call runs, results in call order."""
    stage = Stage(call("serch") + call("add", a=1, b=2), say("3."), tools=[add, inc])
    assert stage.run().text == "3."
    first, second = (message.result for message in stage.results)
    assert (first.status, second.status, second.text) == (ToolResultStatus.NOT_RUN, ToolResultStatus.OK, "3")
    assert 'no tool "serch"' in first.text
    assert "add" in first.text
    assert "inc" in first.text
    assert stage.kinds.count("tool_execution_start") == 1
    assert_laws(stage)


INTEGER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
CLOSED = {**INTEGER, "additionalProperties": False}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}


class TestC14InvalidArguments:
    """Arguments that do not fit the schema."""

    @pytest.mark.parametrize(
        ("arguments", "schema", "named"),
        [
            ('{"n":"many"}', INTEGER, ["$.n", "integer", "string"]),
            ('{"n":', INTEGER, ["JSON"]),
            ("n=1", INTEGER, ["JSON"]),
            ("[1]", INTEGER, ["object", "array"]),
            ("", INTEGER, ["n"]),
            ("null", INTEGER, ["n"]),
            ('{"n":"5"}', INTEGER, ["$.n", "integer", "string"]),
            ('{"n":1,"m":2}', CLOSED, ["m"]),
            ('{"n":true}', INTEGER, ["$.n", "integer", "true"]),
            ('{"n":5.5}', INTEGER, ["$.n", "integer", "5.5"]),
            ('{"n":NaN}', INTEGER, ["NaN"]),
            ('"{}"', INTEGER, ["object", "string"]),
        ],
    )
    def test_c14_are_not_run(self, arguments: str, schema: dict[str, Any], named: list[str]) -> None:
        """An invalid call is never executed; its result says where, what was expected, what came; the run goes on."""
        checked = Checked(schema)
        stage = Stage([sent("checked", arguments), Done()], say("I see."), tools=[checked])
        assert stage.run().text == "I see."
        assert stage.statuses == [ToolResultStatus.NOT_RUN]
        text = stage.results[0].text
        assert [word for word in named if word not in text] == []
        assert checked.taken == []
        assert stage.kinds.count("tool_execution_start") == 0
        assert_laws(stage)

    @pytest.mark.parametrize(
        ("arguments", "schema", "taken"),
        [
            ('{"n":5}', INTEGER, {"n": 5}),
            ('{"n":5.0}', INTEGER, {"n": 5}),
            ('{"n":1,"m":2}', INTEGER, {"n": 1, "m": 2}),
            ("", NOTHING, {}),
            ("null", NOTHING, {}),
            (" {} ", NOTHING, {}),
        ],
    )
    def test_c14_that_fit_are_taken(self, arguments: str, schema: dict[str, Any], taken: dict[str, object]) -> None:
        """5.0 is an integer, no text is an empty object, and whether more is allowed is the schema's to say."""
        checked = Checked(schema)
        stage = Stage([sent("checked", arguments), Done()], say("Fine."), tools=[checked])
        assert stage.run().text == "Fine."
        assert checked.taken == [taken]
        assert_laws(stage)

    def test_c14_beside_valid_ones(self) -> None:
        """An invalid call does not keep the valid ones of its message from running."""
        stage = Stage(call("inc", n="x") + call("inc", n=1) + call("inc", n=None), say("2."), tools=[inc])
        assert stage.run().text == "2."
        assert [status.value for status in stage.statuses] == ["not_run", "ok", "not_run"]
        assert_laws(stage)


class TestC15CallIds:
    """The provider's ids of calls are duplicate, blank, reused or monstrous: all of that is legal input."""

    @pytest.mark.parametrize("call_id", ["x", "", "a|b" * 150], ids=["duplicate", "blank", "long"])
    def test_c15_in_one_message(self, call_id: str) -> None:
        """Calls with the same id both run; ids are kept as sent, and results belong by our own key, in call order."""
        first, second = sent("inc", '{"n":1}', call_id), sent("inc", '{"n":2}', call_id)
        stage = Stage([first, second, Done()], say("2 and 3."), tools=[inc])
        assert stage.run().text == "2 and 3."
        assert [message.text for message in stage.results] == ["2", "3"]
        assert [message.result.call_id for message in stage.results] == [call_id, call_id]
        answer = stage.messages[1]
        assert [message.result.key for message in stage.results] == [f"{answer.id}:0", f"{answer.id}:1"]
        assert_laws(stage)

    def test_c15_from_turn_to_turn(self) -> None:
        """An id that comes again in a later turn names another call: each result stays with its own message."""
        steps = [call("inc", call_id="call_0", n=number) for number in (1, 2, 3)]
        stage = Stage(*steps, say("4."), tools=[inc])
        assert stage.run().text == "4."
        assert [message.text for message in stage.results] == ["2", "3", "4"]
        assert len({message.result.key for message in stage.results}) == 3
        assert_laws(stage)

    def test_c15_keys_are_the_same_after_a_restart(self) -> None:
        """A key is the id of the message and the index of the call, so that the transcript alone gives it."""
        stage = Stage(call("inc", n=1) + call("inc", n=2), say("Done."), tools=[inc])
        stage.run()
        told = json.loads(
            json.dumps([event.to_dict() for event in stage.events if event.kind == "tool_execution_start"])
        )
        assert [event["key"] for event in told] == [message.result.key for message in stage.results]
        assert_laws(stage)
