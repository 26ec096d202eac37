"""Cases of `transform`: what goes on the wire may differ from what is kept, and is checked like any request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from gotato_py import (
    AssistantMessage,
    ContextBuilt,
    ContextOverflow,
    ExtensionFailure,
    Hooks,
    Limits,
    Message,
    ModelContext,
    Overloaded,
    RetryPolicy,
    RunStatus,
    TextDelta,
    ToolCall,
    ToolMessage,
    ToolResult,
    TurnView,
    UserMessage,
    assemble_request,
)
from gotato_testkit import ManualClock, Raise, call, say

from .laws import assert_laws
from .notes import note
from .stage import Stage

Change = Callable[[Sequence[Message]], Any]


def work(n: int = 0) -> str:
    """Works."""
    return f"worked {n}"


def changed(*changes: Change, steps: Any = None, **options: Any) -> Stage:
    """A stage whose requests these change, one after the other."""
    hooks = [
        Hooks(transform=lambda view, messages, change=change: change(messages), name=f"change{at}")  # type: ignore[misc]
        for at, change in enumerate(changes, 1)
    ]
    script = steps or [call("work", n=1) + call("work", n=2), say("Done.")]
    options.setdefault("extensions", hooks)
    return Stage(*script, tools=[work], **options)


def noted(text: str) -> Change:
    """Adds a user message at the end."""
    return lambda messages: [*messages, UserMessage(text)]


class TestOnTheWire:
    """What is changed goes on the wire, and nowhere else."""

    def test_it_changes_the_request_alone(self) -> None:
        """The request has what the extension made of it; the transcript, the result and the next turn do not."""
        stage = changed(noted("hurry"))
        result = stage.run()
        assert stage.asked == [
            ["U do it", "U hurry"],
            ["U do it", "A  [work, work] tool_calls", "R call_1 ok", "R call_2 ok", "U hurry"],
        ]
        assert [line for line in stage.history if line[0] == "U"] == ["U do it"]
        assert "hurry" not in {message.text for message in result.new_messages if isinstance(message, UserMessage)}
        assert_laws(stage)

    def test_in_the_order_of_installation(self) -> None:
        """Each gets what the one before it made."""
        stage = changed(noted("one"), noted("two"))
        stage.run()
        assert stage.asked[0] == ["U do it", "U one", "U two"]
        assert_laws(stage)

    def test_it_takes_old_messages_away(self) -> None:
        """A window over the last messages, cut where it may be cut, is a legal request."""
        stage = changed(lambda messages: messages[-1:] if len(messages) == 1 else [UserMessage("…"), *messages[1:]])
        stage.run()
        assert stage.asked[1][0] == "U …"
        assert_laws(stage)

    @pytest.mark.parametrize("kind", ["retry", "silence", "overflow", "wrap-up", "correction", "closing line"])
    def test_every_request(self, kind: str) -> None:
        """Retries, the second request after silence, a rebuilt one, the last one after a limit: all go through it."""
        steps: dict[str, list[Any]] = {
            "retry": [[TextDelta("On"), Raise(Overloaded("busy"))], say("Done.")],
            "silence": [say(), say("Done.")],
            "overflow": [Raise(ContextOverflow("full")), say("Done.")],
            "wrap-up": [call("work"), say("Done.")],
            "correction": [say("Done."), call("final_answer", value=3)],
            "closing line": [say("Do", stop_reason="max_tokens"), say("Done.")],
        }
        stage = changed(
            steps=steps[kind], limits=Limits(max_turns=1 if kind == "wrap-up" else 9, wrap_up=True),
            retry=RetryPolicy(jitter=0), clock=ManualClock(), extensions=[
                Hooks(transform=lambda view, messages: noted("hurry")(messages), on_overflow=lambda view, error: True)
            ],
        )  # fmt: skip
        stage.run(**({"output": int} if kind == "correction" else {}))
        if kind == "closing line":
            stage.run(None)
        assert [lines[-1] for lines in stage.asked] == ["U hurry", "U hurry"]
        shown = {"wrap-up": "A limit of", "correction": "Give your final", "closing line": "Your last answer was"}
        if kind in shown:
            assert stage.asked[1][-2].startswith(f"U {shown[kind]}")
        assert_laws(stage)

    def test_not_of_a_run_that_was_cancelled(self) -> None:
        """Between two attempts a cancelled run makes no further request, and asks nobody to change it."""
        asked: list[int] = []
        stage = Stage(
            Raise(Overloaded("busy")), say("Done."), clock=ManualClock(), retry=RetryPolicy(jitter=0),
            extensions=[
                Hooks(
                    transform=lambda view, messages: note(asked, 1, messages),
                    observe=lambda event: event.kind == "model_retry" and stage.agent.cancel(),
                )
            ],
        )  # fmt: skip
        assert stage.run().status is RunStatus.CANCELLED
        assert asked == [1]
        assert_laws(stage, again=False)

    def test_beside_a_panel(self) -> None:
        """A builder's panel is laid on what the extension made: it stands at the very end, nobody has to keep it."""

        class Panel:
            """Shows a panel."""

            def build(self, view: TurnView) -> ModelContext:
                """Everything, and the turn."""
                return ModelContext(view.system, view.messages, panel=f"turn {view.turn}")

        seen: list[str] = []
        stage = changed(
            lambda messages: note(seen, messages[-1].text, noted("hurry")(messages)), context_builder=Panel()
        )
        stage.run()
        assert "panel" not in "".join(seen)
        assert stage.model.requests[0].messages[-1].text == "hurry<panel>\nturn 1\n</panel>"
        assert_laws(stage)

    def test_a_request_never_ends_with_an_answer(self) -> None:
        """One that drops what stood behind an answer gets a closing line: providers take no such request."""
        stage = changed(
            lambda messages: messages[:2] if len(messages) == 3 else messages, steps=[say("Hi."), say("Yes.")]
        )
        stage.run("hello")
        assert stage.run("really?").text == "Yes."
        assert stage.asked[-1][:2] == ["U hello", "A Hi. end_turn"]
        assert stage.asked[-1][-1].startswith("U Your last answer was")
        assert_laws(stage, again=False)

    def test_the_view(self) -> None:
        """The view shows the run as it is kept, the messages what is about to be sent."""
        seen: list[Any] = []

        def look(view: TurnView, messages: Sequence[Message]) -> Sequence[Message]:
            seen.append((view.turn, len(view.messages), len(messages)))
            return messages

        stage = Stage(say("Do", stop_reason="max_tokens"), say("Done."), extensions=[Hooks(transform=look)])
        stage.run()
        stage.run(None)
        assert seen == [(1, 1, 1), (1, 2, 3)]
        assert_laws(stage)


class TestIdentity:
    """An extension that changes nothing costs nothing, and one that changes something is told by the hash."""

    def test_the_same_object_is_passed_on(self) -> None:
        """What it is given and gives back is the request itself: nothing is copied, nothing is checked."""
        given: list[Sequence[Message]] = []

        def same(messages: Sequence[Message]) -> Sequence[Message]:
            given.append(messages)
            return messages

        stage = changed(same, same)
        stage.run()
        assert given[0] is given[1]
        assert given[2] is given[3]
        assert_laws(stage)

    @pytest.mark.parametrize("turns", [{1}, {2}, {1, 2}, set()], ids=str)
    def test_the_hash_is_that_of_the_request(self, turns: set[int]) -> None:
        """`prefix_hash` is that of what was sent, in turns that were changed and in those that were not."""

        def redact(view: TurnView, messages: Sequence[Message]) -> Sequence[Message]:
            return [UserMessage("redacted"), *messages[1:]] if view.turn in turns else messages

        built: list[str] = []

        def observe(event: object) -> None:
            if isinstance(event, ContextBuilt):
                built.append(event.prefix_hash)

        extensions = [Hooks(transform=redact, observe=observe)]
        steps = [call("work", n=1), call("work", n=2), say("Done.")]
        stage = changed(steps=steps, extensions=extensions)
        stage.run()
        sent = [(ModelContext(each.system, each.messages), each.tools) for each in stage.model.requests]
        assert built == [assemble_request(context, tools)[1] for context, tools in sent]
        assert_laws(stage)


ANSWER = AssistantMessage("", [ToolCall("c", "work")], id="a-9")
BAD: dict[str, tuple[Change, str]] = {
    "None": (lambda messages: None, "it must return a sequence of messages, not NoneType"),
    "a text": (lambda messages: "hello", "not str"),
    "a generator": (lambda messages: (each for each in messages), "not generator"),
    "a message": (lambda messages: messages[0], "not UserMessage"),
    "nothing": (lambda messages: [], "no message at all"),
    "what is no message": (lambda messages: [*messages, "hello"], "messages[4] must be a message, not str"),
    "a call without a result": (lambda messages: [*messages, ANSWER], "call 0 has no result"),
    "a result without a call": (
        lambda messages: [*messages, ToolMessage(ToolResult("c", "ok", "x", key="a-9:0"))],
        "a result without its call",
    ),
    "results that are gone": (
        lambda messages: [each for each in messages if not isinstance(each, ToolMessage)], "call 0 has no result",
    ),
    "one result that is gone": (lambda messages: [*messages[:-1]], "call 1 has no result"),
    "a message in between": (
        lambda messages: [*messages[:-1], UserMessage("hurry"), messages[-1]], "call 1 has no result",
    ),
    "the call that is gone": (lambda messages: [messages[0], *messages[2:]], "a result without its call"),
    "an empty answer": (lambda messages: [*messages, AssistantMessage("  ")], "the answer is empty"),
    "a result twice": (lambda messages: [*messages, messages[-1]], "a second result"),
}  # fmt: skip


class TestBadOutput:
    """What cannot be sent is not sent: the run fails, and says whose it is and what is wrong with it."""

    @pytest.mark.parametrize("kind", BAD)
    def test_is_named(self, kind: str) -> None:
        """The error names the extension, the message and what is wrong; nothing is sent, nothing is committed."""
        change, why = BAD[kind]
        stage = changed(lambda messages: change(messages) if len(messages) > 1 else messages)
        result = stage.run()
        assert (result.status, type(result.error)) == (RunStatus.FAILED, ExtensionFailure)
        assert "extension change1 failed at transform" in str(result.error)
        assert why in str(result.error)
        assert (len(stage.asked), stage.kinds.count("extension_failed")) == (1, 1)
        assert_laws(stage, again=False)

    def test_advisory(self) -> None:
        """What an advisory one makes is left out if it cannot be sent."""
        advice = Hooks(transform=lambda view, messages: [*messages, ANSWER], advisory=True, name="advice")
        stage = changed(extensions=[advice, Hooks(transform=lambda view, messages: noted("hurry")(messages))])
        assert stage.run().text == "Done."
        assert stage.asked[0] == ["U do it", "U hurry"]
        assert_laws(stage)

    def test_results_in_another_order(self) -> None:
        """Results that are out of order are put in order, as everywhere."""
        stage = changed(
            lambda messages: [*messages[:-2], messages[-1], messages[-2]] if len(messages) > 2 else messages
        )
        assert stage.run().text == "Done."
        assert stage.asked[1][-2:] == ["R call_1 ok", "R call_2 ok"]
        assert_laws(stage, again=False)
