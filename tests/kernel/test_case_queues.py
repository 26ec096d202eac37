"""Cases of the two queues of a run: how much they take, what they refuse, and messages that come twice."""

from __future__ import annotations

import threading
from collections.abc import Callable
from threading import Event as Flag
from typing import Any

import pytest

from gotato_py import (
    AssistantMessage,
    FilePart,
    InvalidArgument,
    LimitExceeded,
    Limits,
    MemoryTranscript,
    NotRunning,
    ReasoningPart,
    RunResult,
    TextPart,
    UserMessage,
)
from gotato_py._value import replace
from gotato_py.transcript import MessageView
from gotato_testkit import Do, FakeTool, call, say

from .controls import delivered, on
from .hosts import PATIENCE_S, Host
from .laws import assert_laws
from .stage import Stage

CONTROLS = ["steer", "follow_up"]


def during(act: Callable[[Stage], object], *, answers: int = 1, **options: Any) -> tuple[Stage, RunResult[None]]:
    """A run with one call, during which `act` is done, and so many answers after it."""
    tool = FakeTool("a", Do(lambda: act(stage)))
    stage = Stage(call("a"), *(say(f"Answer {number}.") for number in range(1, answers + 1)), tools=[tool], **options)
    return stage, stage.run()


class TestLimits:
    """`max_steer` and `max_follow_up` say how many may wait to be delivered."""

    @pytest.mark.parametrize(("control", "most"), [("steer", 8), ("follow_up", 4)])
    def test_c28_the_next_one_is_refused(self, control: str, most: int) -> None:
        """One message more than may wait raises `LimitExceeded`, which names the limit, and changes nothing."""

        def act(stage: Stage) -> None:
            put = getattr(stage.agent, control)
            ids = [put(f"m{number}") for number in range(most)]
            for _ in range(2):
                with pytest.raises(LimitExceeded) as raised:
                    put("one too many")
                assert raised.value.limit == f"max_{control}"
                assert "one too many" not in str(raised.value)
            assert stage.agent.withdraw(ids[-1])
            put("in its place")

        stage, result = during(act, answers=1 + most)
        assert result.ok
        texts = [line[2:] for line in stage.history if line.startswith("U ")][1:]
        assert texts == [*(f"m{number}" for number in range(most - 1)), "in its place"]
        assert_laws(stage)

    @pytest.mark.parametrize("control", CONTROLS)
    def test_c28_none_is_admitted(self, control: str) -> None:
        """With 0 none is taken, and the other queue is as it was."""

        def act(stage: Stage) -> None:
            with pytest.raises(LimitExceeded):
                getattr(stage.agent, control)("hurry")
            getattr(stage.agent, other)("this one")

        other = next(each for each in CONTROLS if each != control)
        stage, result = during(act, answers=2, limits=replace(Limits(), **{f"max_{control}": 0}))
        assert result.ok
        assert [each for _, each in delivered(stage)] == [other]
        assert_laws(stage)

    @pytest.mark.parametrize("control", CONTROLS)
    def test_c28_unlimited(self, control: str) -> None:
        """With None any number is taken, in order."""

        def act(stage: Stage) -> None:
            ids.extend(getattr(stage.agent, control)(f"m{number}") for number in range(50))

        ids: list[str] = []
        stage, result = during(act, answers=51, limits=Limits(max_steer=None, max_follow_up=None))
        assert result.ok
        assert delivered(stage) == [(each, control) for each in ids]
        assert_laws(stage)

    def test_c28_room_again(self) -> None:
        """What was delivered makes room: a run takes any number of messages, so many at a time."""

        def act(stage: Stage) -> None:
            stage.agent.steer("again")

        tools = [FakeTool("a", *(Do(lambda: act(stage)) for _ in range(20)))]
        steps = [*(call("a") for _ in range(20)), say("Done.")]
        stage = Stage(*steps, tools=tools, limits=Limits(max_steer=1, max_repeated_calls=None))
        assert stage.run().text == "Done."
        assert stage.history.count("U again") == 20
        assert_laws(stage)


class TestRefused:
    """What cannot be a user message."""

    @pytest.mark.parametrize("control", CONTROLS)
    @pytest.mark.parametrize(
        "wrong",
        [
            "", " \n", [], UserMessage(""), 5, b"text", {"text": "hi"}, [5], None,
            AssistantMessage("hi"), ReasoningPart("hm"), [TextPart("hi"), ReasoningPart("hm")],
            "x" * 2_000, FilePart(data=b"x" * 2_000, media_type="text/plain"), UserMessage("y" * 2_000, id="big"),
        ],
        ids=lambda wrong: repr(wrong)[:30],
    )  # fmt: skip
    def test_c28_wrong_messages(self, wrong: Any, control: str) -> None:
        """An empty message, one over its limit or something else is refused before anything is changed."""

        def act(stage: Stage) -> None:
            stage.agent.steer("before")
            with pytest.raises(InvalidArgument) as raised:
                getattr(stage.agent, control)(wrong)
            assert raised.value.operation in {f"Agent.{control}", ""}
            assert "xxx" not in str(raised.value)

        stage, result = during(act, limits=Limits(max_message_bytes=1_000))
        assert result.ok
        assert [line for line in stage.history if line[0] == "U"] == ["U do it", "U before"]
        assert_laws(stage)


class TestTwice:
    """A message with an id that is known already is that message."""

    @pytest.mark.parametrize("second", CONTROLS)
    @pytest.mark.parametrize("first", CONTROLS)
    def test_c29_queued_twice(self, first: str, second: str) -> None:
        """A message that is queued again, by either control, is delivered once, by the control that came first."""

        def act(stage: Stage) -> None:
            assert getattr(stage.agent, first)(UserMessage("hurry", id="u-7")) == "u-7"
            assert getattr(stage.agent, second)(UserMessage("hurry", id="u-7")) == "u-7"

        stage, result = during(act, answers=2, limits=Limits(max_steer=1, max_follow_up=1))
        assert result.ok
        assert delivered(stage) == [("u-7", first)]
        assert_laws(stage)

    @pytest.mark.parametrize("control", CONTROLS)
    def test_c29_in_the_transcript(self, control: str) -> None:
        """A message that the transcript has, from an earlier run or as the opening of this one, is not queued again."""

        def act(stage: Stage) -> None:
            assert getattr(stage.agent, control)(UserMessage("whatever", id="u-old")) == "u-old"

        old = MemoryTranscript([UserMessage("before", id="u-old"), AssistantMessage("I see.")])
        stage, result = during(act, transcript=old)
        assert result.ok
        assert delivered(stage) == []
        assert_laws(stage)

    @pytest.mark.parametrize("control", CONTROLS)
    def test_c29_before_the_opening_is_there(self, control: str) -> None:
        """The opening of the run, queued before it is committed, is committed once: as the opening."""
        opening = UserMessage("do it", id="u-1")
        stage = Stage(say("Done."), extensions=[on("agent_start", lambda: getattr(stage.agent, control)(opening))])
        result = stage.run(opening)
        assert (result.text, stage.history) == ("Done.", ["U do it", "A Done. end_turn"])
        assert (delivered(stage), result.undelivered) == ([], ())
        assert_laws(stage)

    @pytest.mark.parametrize("control", CONTROLS)
    def test_c29_while_it_is_delivered(self, control: str) -> None:
        """A message that is queued again just as it is delivered is committed once."""

        def again() -> None:
            transcript.slow.append(threading.get_ident())
            getattr(stage.agent, control)(message)

        def send() -> None:
            getattr(stage.agent, control)(message)
            hosts.append(Host(again))
            assert transcript.looked.wait(PATIENCE_S)

        def go_on() -> None:
            transcript.go_on.set()
            hosts[0].join()

        hosts: list[Host[None]] = []
        message, transcript = UserMessage("hurry", id="u-2"), SlowToLook()
        stage = Stage(
            call("a"), say("Done."), say("And done."), say("Yes."), transcript=transcript,
            tools=[FakeTool("a", Do(send))], extensions=[on("control_delivered", go_on)],
        )  # fmt: skip
        result = stage.run()
        assert (result.ok, result.undelivered) == (True, ())
        assert delivered(stage) == [("u-2", control)]
        assert_laws(stage)

    def test_c29_taken_back_and_sent_again(self) -> None:
        """A message that was withdrawn may be queued again."""

        def act(stage: Stage) -> None:
            message = UserMessage("hurry", id="u-3")
            for _ in range(3):
                stage.agent.steer(message)
                assert stage.agent.withdraw("u-3")
            stage.agent.follow_up(message)

        stage, _ = during(act, answers=2)
        assert delivered(stage) == [("u-3", "follow_up")]
        assert_laws(stage)

    def test_c29_to_a_run_that_answers_from_what_is_there(self) -> None:
        """A run that returns an answer that was there already takes no message: it has no turn to deliver it in."""

        def late() -> None:
            with pytest.raises(NotRunning):
                stage.agent.steer("hurry")
            told.append(True)

        told: list[bool] = []
        stage = Stage(say("Done."), extensions=[on("agent_start", late, number=2)])
        message = UserMessage("do it", id="u-1")
        assert [stage.run(message).text for _ in range(2)] == ["Done.", "Done."]
        assert (told, len(stage.asked)) == ([True], 1)
        assert_laws(stage)


class SlowToLook(MemoryTranscript):
    """A transcript that shows some threads what it held before it lets them go on."""

    def __init__(self) -> None:
        super().__init__()
        self.slow: list[int] = []
        self.looked, self.go_on = Flag(), Flag()

    @property
    def messages(self) -> MessageView:
        """What the model may see now, or a moment ago."""
        view = super().messages
        if threading.get_ident() in self.slow:
            self.looked.set()
            assert self.go_on.wait(PATIENCE_S)
        return view
