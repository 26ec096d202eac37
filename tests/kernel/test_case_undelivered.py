"""Cases of messages that a run took and did not deliver: it was cancelled or failed first, or they were withdrawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from gotato_py import (
    Ask,
    AuthenticationFailed,
    Event,
    Hooks,
    ImagePart,
    Limits,
    MemoryTranscript,
    Message,
    RunResult,
    RunStatus,
    TurnView,
    Usage,
    UserMessage,
)
from gotato_py._value import replace
from gotato_testkit import Do, FakeTool, ManualClock, Raise, Step, call, say

from .controls import delivered, on
from .last_lines import LastLines
from .laws import assert_laws
from .stage import Stage

M = TypeVar("M", bound=Message)


class Refusing(MemoryTranscript):
    """A transcript whose store takes no long message."""

    def append(self, message: M) -> M:
        """Commits a message."""
        if len(message.text) > 100:
            raise OSError("no space left on device")
        return super().append(message)


def cut_off(how: str, act: Callable[[], object]) -> tuple[Stage, RunStatus]:
    """A stage on which `act` is done in a run that ends before the next turn boundary, and how that run ends."""
    clock = ManualClock()
    options: dict[str, Any] = {"clock": clock, "tools": [FakeTool("a", Do(act)), FakeTool("b", "b")]}
    batch = call("a") + call("b")
    match how:
        case "cancelled":
            cancel = on("tool_execution_end", lambda: stage.agent.cancel("by the test"))
            stage = Stage(batch, extensions=[cancel], **options)
        case "failed":
            stage = Stage([*say("Half")[:-1], Do(act), Raise(AuthenticationFailed("no key"))], **options)
        case "deadline_exceeded":
            late = on("tool_execution_end", lambda: clock.advance(5.0))
            stage = Stage(batch, extensions=[late], limits=Limits(run_timeout=2.0), **options)
        case "limited":
            stage = Stage(batch, limits=Limits(max_tool_calls=1), **options)
        case _:
            ask = Hooks(before_tool=lambda use: Ask("may it?"))
            stage = Stage(call("b"), extensions=[on("turn_start", act), ask], **options)
    return stage, RunStatus(how)


HOWS = ["cancelled", "failed", "deadline_exceeded", "limited", "waiting"]


class TestC29BeforeDelivery:
    """The run ends before it comes to deliver what was queued."""

    @pytest.mark.parametrize("how", HOWS)
    def test_c29_it_is_listed(self, how: str) -> None:
        """What the run took is in its result, steers before follow-ups, and not in the transcript."""

        def queue() -> None:
            ids.extend([stage.agent.follow_up("later"), stage.agent.steer("now"), stage.agent.steer("and this")])

        ids: list[str] = []
        stage, status = cut_off(how, queue)
        result = stage.run()
        assert result.status is status
        assert [each.text for each in result.undelivered] == ["now", "and this", "later"]
        assert [each.id for each in result.undelivered] == [*ids[1:], ids[0]]
        assert not any(line in {"U now", "U and this", "U later"} for line in stage.history)
        assert delivered(stage) == []
        assert_laws(stage, again=status is not RunStatus.LIMITED) if status is not RunStatus.WAITING else None

    @pytest.mark.parametrize("how", HOWS[:-1])
    def test_c29_the_next_run_does_not_deliver_it(self, how: str) -> None:
        """What an ended run did not deliver is the host's again: no later run delivers it by itself."""
        stage, _ = cut_off(how, lambda: stage.agent.steer("now"))
        first = stage.run()
        stage.script.replace(say("Sure."))
        stage.run(first.undelivered[0])
        assert stage.history.count("U now") == 1
        assert stage.messages[stage.history.index("U now")].id == first.undelivered[0].id
        assert_laws(stage, again=how != "limited")

    @pytest.mark.parametrize("control", ["steer", "follow_up"])
    @pytest.mark.parametrize("status", [RunStatus.LIMITED, RunStatus.FAILED])
    def test_c29_at_the_commit(self, status: RunStatus, control: str) -> None:
        """What cannot be committed, for a limit or for the store, stays queued and is listed."""
        full = Limits(max_transcript_bytes=200) if status is RunStatus.LIMITED else Limits()
        queue = Do(lambda: getattr(stage.agent, control)("no room for this " * 20))
        stage = Stage([*say("One.")[:-1], queue, *say()], transcript=Refusing(), limits=full)
        result = stage.run()
        assert (result.status, len(result.undelivered)) == (status, 1)
        assert stage.history == ["U do it", "A One. end_turn"]
        assert_laws(stage, again=status is not RunStatus.LIMITED)

    @pytest.mark.parametrize("limit", ["max_turns", "max_total_tokens"])
    @pytest.mark.parametrize("control", ["steer", "follow_up"])
    def test_c29_with_no_turn_left(self, control: str, limit: str) -> None:
        """Where no turn or token is left to answer it in, a message stays queued and the run is limited."""
        queue = Do(lambda: getattr(stage.agent, control)("and then?"))
        limits = replace(Limits(), **{limit: 1})
        stage = Stage([*say("One.")[:-1], queue, *say(usage=Usage(5, 5))], limits=limits)
        result = stage.run()
        assert (result.status, result.text) == (RunStatus.LIMITED, "One.")
        assert [each.text for each in result.undelivered] == ["and then?"]
        assert stage.history == ["U do it", "A One. end_turn"]
        assert_laws(stage, again=limit == "max_turns")

    @pytest.mark.parametrize("control", ["steer", "follow_up"])
    def test_c29_with_a_last_word_left(self, control: str) -> None:
        """With `wrap_up` it is delivered, and the request that wraps up answers it."""
        queue = Do(lambda: getattr(stage.agent, control)("and then?"))
        limits = Limits(max_turns=1, wrap_up=True)
        stage = Stage([*say("One.")[:-1], queue, *say()], say("Nothing."), limits=limits)
        result = stage.run()
        assert (result.status, result.text, result.undelivered) == (RunStatus.LIMITED, "Nothing.", ())
        assert [line[0] for line in stage.history] == list("UAUA")
        assert_laws(stage)

    def test_c29_an_extension_with_no_turn_left(self) -> None:
        """What `before_settle` asks is not committed either where no turn is left to answer it in."""

        def before_settle(view: TurnView) -> UserMessage | None:
            return UserMessage("once more") if stage.history[-1] == "A One. end_turn" else None

        stage = Stage(say("One."), extensions=[Hooks(before_settle=before_settle)], limits=Limits(max_turns=1))
        result = stage.run()
        assert (result.status, stage.history) == (RunStatus.LIMITED, ["U do it", "A One. end_turn"])
        assert_laws(stage)

    def test_c29_where_some_were_delivered(self) -> None:
        """Of three messages the first is delivered and the run cancelled at that: the other two are listed."""

        def queue() -> None:
            for text in ("one", "two", "three"):
                stage.agent.steer(text)

        cancel = on("control_delivered", lambda: stage.agent.cancel("by the test"))
        stage = Stage(call("a"), tools=[FakeTool("a", Do(queue))], extensions=[cancel])
        result = stage.run()
        assert (result.status, [each.text for each in result.undelivered]) == (RunStatus.CANCELLED, ["two", "three"])
        assert stage.history[-1] == "U one"
        assert_laws(stage)

    def test_c29_a_stream_that_is_closed(self) -> None:
        """The result of a stream that was left early lists what was queued meanwhile."""
        stage = Stage(say("One two three."))
        with stage.agent.stream("count", check=False) as stream:
            for event in stream:
                if event.kind == "message_update":
                    stage.agent.follow_up("and then?")
                    break
        assert [each.text for each in stream.result.undelivered] == ["and then?"]
        assert_laws(stage)


class TestC29Withdrawn:
    """A queued message is taken back."""

    def played(self, act: Callable[[Stage], object], *steps: Step) -> tuple[Stage, RunResult[None]]:
        """A run with one call, during which `act` is done."""
        stage = Stage(call("a"), *(steps or (say("Done."),)), tools=[FakeTool("a", Do(lambda: act(stage)))])
        return stage, stage.run()

    def test_c29_by_its_id(self) -> None:
        """Of two messages with the same text the one whose id is named goes; the other is delivered."""
        ids: list[str] = []

        def act(stage: Stage) -> None:
            ids.extend(stage.agent.steer("hurry") for _ in range(2))
            assert stage.agent.withdraw(ids[0]) is True
            assert stage.agent.withdraw(ids[0]) is False

        stage, result = self.played(act)
        assert ids[0] != ids[1]
        assert (stage.history.count("U hurry"), result.undelivered) == (1, ())
        assert delivered(stage) == [(ids[1], "steer")]
        assert_laws(stage)

    def test_c29_not_by_its_text(self) -> None:
        """A text is no id, and what was never queued cannot be withdrawn."""

        def act(stage: Stage) -> None:
            stage.agent.steer("hurry")
            assert [stage.agent.withdraw(given) for given in ("hurry", "", "m-1")] == [False, False, False]

        stage, _ = self.played(act)
        assert stage.history.count("U hurry") == 1
        assert_laws(stage)

    def test_c29_without_text(self) -> None:
        """A message that holds an image alone is delivered and withdrawn like any other."""
        picture = ImagePart(url="https://example.com/a.png")

        def act(stage: Stage) -> None:
            stage.agent.steer(UserMessage(picture, id="kept"))
            assert stage.agent.withdraw(stage.agent.follow_up(picture)) is True

        stage, _ = self.played(act)
        assert [message.parts for message in stage.messages if message.id == "kept"] == [(picture,)]
        assert delivered(stage) == [("kept", "steer")]
        assert_laws(stage)

    @pytest.mark.parametrize("kind", ["message_end", "control_delivered", "turn_start", "agent_end"])
    def test_c29_too_late(self, kind: str) -> None:
        """From its commit on a message cannot be withdrawn: `withdraw` is False, and it stays delivered."""
        ids: list[str] = []
        told: list[bool] = []

        def observe(event: Event) -> None:
            if event.kind == kind and ids and ids[0] in {message.id for message in stage.messages}:
                told.append(stage.agent.withdraw(ids[0]))

        steer = FakeTool("a", Do(lambda: ids.append(stage.agent.steer("hurry"))))
        stage = Stage(call("a"), say("Done."), tools=[steer], extensions=[Hooks(observe=observe)])
        result = stage.run()
        assert told
        assert not any(told)
        assert (stage.history.count("U hurry"), result.undelivered) == (1, ())
        assert_laws(stage)

    def test_c29_everything(self) -> None:
        """A run whose queues were emptied settles as if nothing had come."""

        def act(stage: Stage) -> None:
            for message_id in [stage.agent.steer("one"), stage.agent.follow_up("two")]:
                assert stage.agent.withdraw(message_id) is True

        stage, result = self.played(act)
        assert (result.status, result.metrics.turns, result.undelivered) == (RunStatus.COMPLETED, 2, ())
        assert delivered(stage) == []
        assert_laws(stage)


@pytest.mark.parametrize("name", ["steer", "follow_up", "withdraw"])
def test_c29_the_caller_is_interrupted(name: str) -> None:
    """Ctrl-C before any line of a call: what it does is done or not, and never half; the run goes on undisturbed."""
    number = 0
    while True:
        number += 1
        lines = LastLines({number: interrupt})
        tool = FakeTool("a", Do(lambda: interrupted_call(stage, name, lines)))  # noqa: B023  # called in this round
        stage = Stage(call("a"), say("Done."), say("And."), tools=[tool])
        result = stage.run()
        assert (result.ok, result.undelivered) == (True, ())
        assert [each for each, _ in delivered(stage)] == [each.id for each in stage.messages if each.id == "u-1"]
        assert_laws(stage)
        if number > lines.count:
            break
    assert number > 10


def interrupt() -> None:
    """Ctrl-C."""
    raise KeyboardInterrupt


def interrupted_call(stage: Stage, name: str, lines: LastLines) -> None:
    """Makes that call, and goes on where it is interrupted."""
    message = UserMessage("hurry", id="u-1")
    acts: dict[str, Callable[[], object]] = {
        "steer": lambda: stage.agent.steer(message),
        "follow_up": lambda: stage.agent.follow_up(message),
        "withdraw": lambda: stage.agent.withdraw("u-1"),
    }
    if name == "withdraw":
        stage.agent.steer(message)
    try:
        with lines.watching():
            lines.arm_once()
            acts[name]()
    except KeyboardInterrupt:
        pass
