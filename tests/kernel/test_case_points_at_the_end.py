"""Cases of how a run comes to its end: an extension stops it after a turn, or has it go on where it would settle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gotato_py import (
    ExtensionFailure,
    Hooks,
    LimitExceeded,
    Limits,
    ReasoningPart,
    RunResult,
    RunStatus,
    TextPart,
    ToolContext,
    TurnResult,
    TurnView,
    UserMessage,
)
from gotato_testkit import call, say

from .laws import assert_laws
from .notes import fail, note
from .stage import Stage


def work(n: int = 0) -> str:
    """Works."""
    return f"worked {n}"


def hooked(*hooks: Hooks, steps: Any = None, **options: Any) -> Stage:
    """A stage of one call and an answer, with these extensions."""
    return Stage(*(steps or [call("work"), say("Done.")]), tools=[work], extensions=hooks, **options)


def vetoing(*texts: str) -> Callable[[TurnView], UserMessage | None]:
    """Asks to go on with each of these, then is content."""
    left = list(texts)
    return lambda view: UserMessage(left.pop(0)) if left else None


class TestShouldStop:
    """Asked after each turn has ended."""

    def test_a_reason_ends_the_run(self) -> None:
        """The run is completed with the reason, every call has its result, and the model is not asked again."""
        stage = hooked(Hooks(should_stop=lambda view: "it has worked" if view.result and view.result.results else None))
        result = stage.run()
        assert (result.status, result.stopped_by, result.error) == (RunStatus.COMPLETED, "it has worked", None)
        assert (result.ok, len(stage.asked), stage.statuses) == (True, 1, ["ok"])
        assert stage.kinds[-2:] == ["turn_end", "agent_end"]
        assert_laws(stage)

    def test_without_one_nothing_changes(self) -> None:
        """None lets the run go on; `stopped_by` is empty then."""
        stage = hooked(Hooks(should_stop=lambda view: None))
        assert (stage.run().stopped_by, len(stage.asked)) == ("", 2)
        assert_laws(stage)

    def test_what_it_sees(self) -> None:
        """The view has what the turn came to: its answer, its results, its tokens, why it stopped."""
        seen: list[TurnResult | None] = []
        stage = hooked(Hooks(should_stop=lambda view: note(seen, view.result)))
        stage.run()
        first, second = seen
        assert first is not None
        assert second is not None
        assert first.message is not None
        assert ([each.name for each in first.message.tool_calls], first.text) == (["work"], "")
        assert ([each.text for each in first.results], first.stop_reason) == (["worked 0"], "tool_calls")
        assert (second.text, second.results, second.stop_reason) == ("Done.", (), "end_turn")
        assert_laws(stage)

    def test_silence(self) -> None:
        """A turn of silence has no message, and can be seen as such."""
        seen: list[object] = []
        stage = hooked(
            Hooks(should_stop=lambda view: note(seen, view.result and view.result.message)),
            steps=[call("work"), say()],
        )
        assert stage.run().status is RunStatus.COMPLETED
        assert seen[1] is None
        assert_laws(stage)

    def test_the_last_installed_decides_first(self) -> None:
        """The first reason counts, and the others are not asked."""
        asked: list[int] = []

        def stop(number: int) -> Any:
            return lambda view: note(asked, number, f"by {number}")

        stage = hooked(Hooks(should_stop=stop(1)), Hooks(should_stop=stop(2)))
        assert (stage.run().stopped_by, asked) == ("by 2", [2])
        assert_laws(stage)

    @pytest.mark.parametrize("returned", ["", False, True, 0, 1, b"stop", ["stop"]], ids=repr)
    def test_what_is_no_reason(self, returned: Any) -> None:
        """Anything but None and a text that says something is a failure."""
        stage = hooked(Hooks(should_stop=lambda view: returned, name="stopper"))
        error = stage.run().error
        assert isinstance(error, ExtensionFailure)
        assert "extension stopper failed at should_stop" in str(error)
        assert f"not {type(returned).__name__}" in str(error)
        assert_laws(stage, again=False)

    def test_queued_messages_come_back(self) -> None:
        """What was queued for a run that is stopped was not delivered."""

        def steering(use: ToolContext[Any], result: Any) -> Any:
            stage.agent.steer("hurry")
            stage.agent.follow_up("and then?")
            return result

        stage = hooked(Hooks(after_tool=steering, should_stop=lambda view: "enough"))
        assert [message.text for message in stage.run().undelivered] == ["hurry", "and then?"]
        assert_laws(stage)

    def test_nobody_is_asked_to_settle(self) -> None:
        """A run that is stopped is not asked to go on."""
        stage = hooked(Hooks(should_stop=lambda view: "enough", before_settle=vetoing("go on")))
        assert stage.run().stopped_by == "enough"
        assert_laws(stage)


class TestBeforeSettle:
    """Asked where the run would settle."""

    def test_a_message_goes_on(self) -> None:
        """Its message is committed like a user's, and the run takes another turn; content, it settles."""
        stage = hooked(Hooks(before_settle=vetoing("Are you sure?")), steps=[say("7."), say("Yes, 7.")])
        result = stage.run()
        assert (result.text, result.metrics.turns) == ("Yes, 7.", 2)
        assert stage.history == ["U do it", "A 7. end_turn", "U Are you sure?", "A Yes, 7. end_turn"]
        assert stage.kinds.count("message_end") == 4
        assert [message.role for message in result.new_messages] == ["user", "assistant", "user", "assistant"]
        assert_laws(stage)

    def test_what_it_sees(self) -> None:
        """The view has what the last turn came to."""
        seen: list[str] = []
        stage = hooked(Hooks(before_settle=lambda view: note(seen, view.result.text)))  # type: ignore[union-attr]
        stage.run()
        assert seen == ["Done."]
        assert_laws(stage)

    def test_the_last_installed_decides_first(self) -> None:
        """One message at a time: who was asked first is asked first again the next time."""
        one, two = Hooks(before_settle=vetoing("one")), Hooks(before_settle=vetoing("two"))
        stage = hooked(one, two, steps=[say("A."), say("B."), say("C.")])
        assert stage.run().text == "C."
        assert [line for line in stage.history if line[0] == "U"] == ["U do it", "U two", "U one"]
        assert_laws(stage)

    @pytest.mark.parametrize("most", [0, 1, 3])
    def test_so_often_and_no_more(self, most: int) -> None:
        """One time more than `max_settle_vetoes` ends the run as limited, with everything that was said."""
        stage = hooked(
            Hooks(before_settle=lambda view: UserMessage("again"), name="critic"),
            steps=[say(f"{n}.") for n in range(9)], limits=Limits(max_settle_vetoes=most),
        )  # fmt: skip
        result = stage.run()
        assert (result.status, result.text, len(stage.asked)) == (RunStatus.LIMITED, f"{most}.", most + 1)
        assert isinstance(result.error, LimitExceeded)
        assert result.error.limit == "max_settle_vetoes"
        assert "critic" in str(result.error)
        assert_laws(stage, again=False)

    def test_without_a_limit(self) -> None:
        """None is no limit."""
        stage = hooked(
            Hooks(before_settle=vetoing(*"abcdef")),
            steps=[say(f"{n}.") for n in range(7)],
            limits=Limits(max_settle_vetoes=None),
        )
        assert stage.run().text == "6."
        assert_laws(stage)

    def test_follow_ups_first(self) -> None:
        """It is asked when nothing is queued any more; a follow-up that it queues itself is delivered by this run."""
        asked: list[str] = []

        def settle(view: TurnView) -> None:
            asked.append(view.result.text if view.result else "")
            if len(asked) == 1:
                stage.agent.follow_up("and then?")

        stage = hooked(Hooks(before_settle=settle), steps=[say("A."), say("B.")])
        result = stage.run()
        assert (result.text, asked, result.undelivered) == ("B.", ["A.", "B."], ())
        assert_laws(stage)

    @pytest.mark.parametrize(
        ("returned", "why"),
        [
            ("again", "None or a UserMessage, not str"),
            (True, "not bool"),
            (UserMessage(""), "its message is empty"),
            (UserMessage([TextPart(" ")]), "its message is empty"),
            (UserMessage([ReasoningPart("Hm.")]), "holds a ReasoningPart"),
            (UserMessage("x" * 5000), "max_message_bytes"),
            (UserMessage("again", id="task-1"), "the id of one that is there"),
        ],
        ids=["a text", "True", "empty", "blank", "a thought", "too large", "a known id"],
    )
    def test_what_cannot_be_asked(self, returned: Any, why: str) -> None:
        """What cannot be committed fails the run before anything of it is."""
        stage = hooked(Hooks(before_settle=lambda view: returned, name="critic"), limits=Limits(max_message_bytes=2000))
        result = stage.run(UserMessage("do it", id="task-1"))
        assert isinstance(result.error, ExtensionFailure)
        assert "extension critic failed at before_settle" in str(result.error)
        assert why in str(result.error)
        assert [line for line in stage.history if line[0] == "U"] == ["U do it"]
        assert result.text == "Done."
        assert_laws(stage, again=False)

    def test_an_id_of_its_own(self) -> None:
        """A message that has an id keeps it."""
        stage = hooked(Hooks(before_settle=once(UserMessage("again", id="veto-1"))), steps=[say("A."), say("B.")])
        stage.run()
        assert "veto-1" in [message.id for message in stage.messages]
        assert_laws(stage)

    def test_a_full_transcript(self) -> None:
        """Where no message fits any more, the run is limited, and nothing is committed."""
        stage = hooked(Hooks(before_settle=vetoing("again")), steps=[say("A.")], limits=Limits(max_messages=2))
        result = stage.run()
        assert isinstance(result.error, LimitExceeded)
        assert (result.error.limit, len(stage.messages)) == ("max_messages", 2)
        assert_laws(stage, again=False)

    @pytest.mark.parametrize("how", ["cancelled", "failed", "limited"])
    def test_not_where_the_run_does_not_complete(self, how: str) -> None:
        """A run that ends otherwise is not asked to go on."""
        asked: list[int] = []
        settle = Hooks(before_settle=lambda view: note(asked, 1))
        ends: dict[str, Hooks] = {
            "cancelled": Hooks(before_turn=lambda view: stage.cancel()),
            "failed": Hooks(before_turn=lambda view: fail()),
            "limited": Hooks(),
        }
        other = [ends[how]] if how != "limited" else []
        stage = hooked(settle, *other, limits=Limits(max_turns=0 if how == "limited" else 9))
        result: RunResult[Any] = stage.run()
        assert (result.status.value, asked) == (how, [])
        assert_laws(stage, again=False)


def once(message: UserMessage) -> Callable[[TurnView], UserMessage | None]:
    """Asks to go on with this message, one time."""
    left = [message]
    return lambda view: left.pop() if left else None
