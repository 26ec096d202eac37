"""Cases of points that look before anything is sent, and may put a summary in the place of old messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gotato_py import (
    Agent,
    AuthenticationFailed,
    Compaction,
    ExtensionFailure,
    Hooks,
    InvalidState,
    Limits,
    Message,
    RunStatus,
    SessionCompacted,
    TurnView,
    Usage,
    UserMessage,
)
from gotato_testkit import Raise, ScriptedModel, call, say

from .laws import assert_laws
from .notes import note
from .stage import Stage

Act = Callable[[TurnView], object]


def work(n: int = 0) -> str:
    """Works."""
    return f"worked {n}"


def compacting(through: Callable[[TurnView], Message], *, times: int = 1, at: int = 0) -> Act:
    """Compacts, so many times, as soon as there are more messages than `at`."""
    left = [times]

    def act(view: TurnView) -> None:
        if left[0] and len(view.messages) > at:
            left[0] -= 1
            summary = UserMessage(f"What happened before {left[0]}.")
            view.transcript.replace(Compaction(summary, through(view).id, tokens_before=90, tokens_after=9))  # type: ignore[attr-defined]

    return act


def last(view: TurnView) -> Message:
    """Everything."""
    return view.messages[-1]


def first(view: TurnView) -> Message:
    """The first message alone."""
    return view.messages[0]


def told(stage: Stage) -> list[tuple[str, int, int]]:
    """The compactions that were told."""
    events = [event for event in stage.events if isinstance(event, SessionCompacted)]
    return [(each.through, each.tokens_before, each.tokens_after) for each in events]


class TestBeforeRun:
    """Asked before the message of a run is committed."""

    def test_it_sees_the_message_before_it_is_there(self) -> None:
        """The view shows what the run is about to commit, and a transcript without it."""
        seen: list[Any] = []

        def look(view: TurnView) -> None:
            said = None if view.message is None else view.message.text
            seen.append((said, len(view.messages), len(view.transcript.messages), view.turn, view.deps, view.system))

        stage = Stage(say("One."), say("Two."), extensions=[Hooks(before_run=look)], instructions="Be brief.")
        stage.run("first", deps="me")
        stage.run("second")
        assert seen == [("first", 0, 0, 0, "me", "Be brief."), ("second", 2, 2, 0, None, "Be brief.")]
        assert_laws(stage)

    def test_what_it_raises_leaves_the_transcript_untouched(self) -> None:
        """A run that is refused commits nothing, asks nothing, and the refusal names the extension."""

        def refuse(view: TurnView) -> None:
            if view.message is not None and "password" in view.message.text:
                raise InvalidState("no passwords, please")

        stage = Stage(say("One."), extensions=[Hooks(before_run=refuse, name="polite")])
        stage.run("hello")
        before = stage.messages
        result = stage.run("my password is 7")
        assert isinstance(result.error, ExtensionFailure)
        assert str(result.error) == "extension polite failed at before_run (InvalidState): no passwords, please"
        assert (stage.messages, result.new_messages, len(stage.asked)) == (before, (), 1)
        assert stage.kinds[-3:] == ["agent_start", "extension_failed", "agent_end"]
        assert_laws(stage)

    def test_a_run_that_goes_on(self) -> None:
        """A run without a message is looked at as well; one whose answer is there already costs nobody anything."""
        seen: list[object] = []
        task = UserMessage("do it", id="task-1")
        stage = Stage(call("work"), tools=[work], limits=Limits(max_turns=1), extensions=[
            Hooks(before_run=lambda view: note(seen, view.message and view.message.id)),
        ])  # fmt: skip
        stage.run(task)
        stage.script.replace(say("Done."))
        assert stage.run(None).text == "Done."
        assert stage.run(task).text == "Done."
        assert seen == ["task-1", None]
        assert_laws(stage)

    @pytest.mark.parametrize("through", [first, last])
    def test_it_compacts(self, through: Callable[[TurnView], Message]) -> None:
        """What it compacts is told, and the request shows the summary, what is left and the message."""
        stage = Stage(say("One."), say("Two."), extensions=[Hooks(before_run=compacting(through))])
        stage.run("first")
        covered = through_id = stage.messages[0 if through is first else -1].id
        result = stage.run("second")
        assert (result.text, told(stage)) == ("Two.", [(covered, 90, 9)])
        left = ["A One. end_turn"] if through is first else []
        assert stage.asked[-1] == ["U What happened before 0.", *left, "U second"]
        assert stage.history == ["U What happened before 0.", *left, "U second", "A Two. end_turn"]
        assert [message.text for message in result.new_messages] == ["second", "Two."]
        assert through_id not in {message.id for message in stage.messages}
        assert_laws(stage)

    def test_it_makes_room(self) -> None:
        """A full transcript is no reason to refuse a message before the extension that makes room was asked."""
        limits = Limits(max_messages=4)
        stage = Stage(say("One."), say("Two."), say("Three."), extensions=[
            Hooks(before_run=compacting(last, at=3)),
        ], limits=limits)  # fmt: skip
        stage.run("first")
        stage.run("second")
        assert stage.run("third").text == "Three."
        assert stage.history == ["U What happened before 0.", "U third", "A Three. end_turn"]
        assert_laws(stage, again=False)

    def test_a_redelivered_task_behind_a_summary(self) -> None:
        """A task that a summary covers is still recognised: it gets its answer or goes on, and comes in once."""
        task = UserMessage("first", id="task-1")
        stage = Stage(say("One."), extensions=[Hooks(before_turn=compacting(last))])
        assert stage.run(task).text == "One."
        again = stage.run(task)
        assert (again.text, again.new_messages, len(stage.asked)) == ("One.", (), 1)
        assert_laws(stage)
        unanswered = Stage(Raise(AuthenticationFailed("no key")), say("One."), extensions=[
            Hooks(before_turn=compacting(last)),
        ])  # fmt: skip
        assert unanswered.run(task).status is RunStatus.FAILED
        assert unanswered.run(task).text == "One."
        assert unanswered.history == ["U What happened before 0.", "A One. end_turn"]
        assert_laws(unanswered)


class TestBeforeTurn:
    """Asked before each request is built."""

    def test_each_turn(self) -> None:
        """It sees each turn with its number, the messages so far, and the tokens so far."""
        seen: list[tuple[int, int, object]] = []
        stage = Stage(call("work"), say("Done."), tools=[work], extensions=[
            Hooks(before_turn=lambda view: note(seen, (view.turn, len(view.messages), view.result))),
        ])  # fmt: skip
        stage.run()
        assert seen == [(1, 1, None), (2, 3, None)]
        assert_laws(stage)

    @pytest.mark.parametrize("at", [0, 2])
    def test_it_compacts(self, at: int) -> None:
        """The request of the turn shows the summary; what the run committed is all in its result."""
        stage = Stage(call("work"), say("Done."), tools=[work], extensions=[Hooks(before_turn=compacting(last, at=at))])
        result = stage.run()
        assert (result.text, len(told(stage))) == ("Done.", 1)
        assert stage.asked[1 if at else 0] == ["U What happened before 0."]
        assert [message.role for message in result.new_messages] == ["user", "assistant", "tool", "assistant"]
        assert_laws(stage)

    def test_it_compacts_twice(self) -> None:
        """Two summaries in one run: each is told once, and the ledger is right after each."""
        stage = Stage(*[call("work", n=n) for n in range(3)], say("Done."), tools=[work], extensions=[
            Hooks(before_turn=compacting(last, at=2, times=2)),
        ])  # fmt: skip
        assert stage.run().text == "Done."
        assert len(told(stage)) == 2
        assert stage.asked[1] == ["U What happened before 1."]
        assert stage.asked[-1][0] == "U What happened before 0."
        assert_laws(stage)

    def test_limits_count_what_is_left(self) -> None:
        """`max_messages` counts what the model may still see: a run that compacts goes on for ever."""
        limits = Limits(max_messages=8)
        steps = [call("work", n=n) for n in range(20)]
        compact = compacting(last, at=5, times=99)
        stage = Stage(*steps, say("Done."), tools=[work], limits=limits, extensions=[Hooks(before_turn=compact)])
        assert stage.run().text == "Done."
        assert_laws(stage)

    @pytest.mark.parametrize("point", ["before_run", "before_turn", "should_stop", "after_tool"])
    def test_it_compacts_and_fails(self, point: str) -> None:
        """What was compacted before the failure is there: told, in the next request, and in the limits."""
        compact = compacting(first)

        def act(view: Any, result: Any = None) -> Any:
            compact(TurnView("", list(stage.transcript.messages), stage.transcript))
            raise ValueError("and now this")

        hooks: Any = {point: act}
        stage = Stage(say("One."), call("work"), say("Two."), tools=[work])
        stage.run("first")
        failing = Stage(call("work"), tools=[work], transcript=stage.transcript, extensions=[Hooks(**hooks)])
        assert failing.run("second").status is RunStatus.FAILED
        assert len(told(failing)) == 1
        other = Agent(ScriptedModel([say("Three.")]), transcript=failing.transcript)
        assert other.run("third").text == "Three."
        assert_laws(failing, again=False)

    def test_after_a_failure_the_same_agent_goes_on(self) -> None:
        """An agent whose extension compacted and raised shows the summary in its next request, not what it replaced."""
        compact = compacting(first, at=1)

        def act(view: TurnView) -> None:
            before = len(view.transcript.compactions)  # type: ignore[attr-defined]
            compact(view)
            if len(view.transcript.compactions) > before:  # type: ignore[attr-defined]
                raise ValueError("and now this")

        stage = Stage(say("One."), say("Two."), extensions=[Hooks(before_run=act)])
        stage.run("first")
        assert stage.run("second").status is RunStatus.FAILED
        assert stage.run("third").text == "Two."
        assert stage.asked[-1] == ["U What happened before 0.", "A One. end_turn", "U third"]
        assert_laws(stage)


def test_what_a_summary_cost_is_the_runs() -> None:
    """The tokens of a compaction count into the run's usage, wherever in the run it was made."""

    def summarise(view: TurnView) -> None:
        if view.messages:
            cost = Compaction(UserMessage("So far."), view.messages[-1].id, usage=Usage(40, 2))
            view.transcript.replace(cost)  # type: ignore[attr-defined]

    stage = Stage(say("One."), say("Two."), extensions=[Hooks(before_run=summarise)])
    assert stage.run("first").usage == Usage()
    assert stage.run("second").usage == Usage(40, 2)
    assert_laws(stage)
