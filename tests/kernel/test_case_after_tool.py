"""Cases of `after_tool`: it sees every outcome of a batch and may change what the model is told of it, nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gotato_py import (
    Allow,
    Block,
    ExtensionFailure,
    Hooks,
    LimitExceeded,
    Limits,
    Pending,
    RunStatus,
    TextPart,
    ToolContext,
    ToolResult,
    ToolResultStatus,
)
from gotato_testkit import FakeTool, Raise, call, say

from .laws import assert_laws
from .notes import fail, note
from .stage import Stage

After = Callable[[ToolContext[Any], ToolResult], Any]
TOOLS = (
    FakeTool("good", "fine"),
    FakeTool("bad", Raise(ValueError("no such row"))),
    FakeTool("later", Pending("order-7")),
    FakeTool("shut", "never"),
)


def followed(*afters: After | Hooks, steps: Any = None, **options: Any) -> Stage:
    """A stage with these tools, whose results these see."""
    hooks = [
        each if isinstance(each, Hooks) else Hooks(after_tool=each, name=f"after{at}")
        for at, each in enumerate(afters, 1)
    ]
    script = steps or [call("good") + call("good"), say("Done.")]
    return Stage(*script, tools=TOOLS, extensions=hooks, **options)


def test_it_sees_every_outcome() -> None:
    """What ran and what did not: unknown, invalid, blocked, failed, pending and cut off, each with its call."""
    seen: list[tuple[str, str, bool | None, bool]] = []

    def look(use: ToolContext[Any], result: ToolResult) -> ToolResult:
        seen.append((use.name, result.status.value, result.executed, use.key == result.key and use.call_id != ""))
        return result

    gate = Hooks(before_tool=lambda use: Block("shut") if use.name == "shut" else Allow())
    batch = call("good") + call("bad") + call("later") + call("shut") + call("goood")
    cut = say("Cut. ", stop_reason="max_tokens") + call("good")
    stage = followed(look, gate, steps=[batch, cut, say("Done.")])
    assert stage.run().text == "Done."
    assert seen == [
        ("good", "ok", True, True),
        ("bad", "failed", True, True),
        ("later", "pending", None, True),
        ("shut", "blocked", False, True),
        ("goood", "not_run", False, True),
        ("good", "not_run", False, True),
    ]
    assert_laws(stage)


def test_what_it_sees_of_a_call() -> None:
    """The call with its arguments and the run's deps, also of one that a gate has blocked."""
    seen: list[tuple[str, dict[str, object], object, int]] = []

    def look(use: ToolContext[Any], result: ToolResult) -> ToolResult:
        seen.append((use.name, dict(use.arguments), use.deps, use.index))
        return result

    gate = Hooks(before_tool=lambda use: Block("shut") if use.name == "shut" else Allow())
    stage = followed(look, gate, steps=[call("good", n=1) + call("shut", n=2), say("Done.")])
    stage.run(deps="me")
    assert seen == [("good", {"n": 1}, "me", 0), ("shut", {"n": 2}, "me", 1)]
    assert_laws(stage)


def test_it_changes_what_the_model_is_told() -> None:
    """Text, parts and metadata are the extension's; the last installed one comes first, the first has the last word."""

    def said(word: str) -> After:
        return lambda use, result: ToolResult("", result.status, f"{result.text} {word}", metadata={"by": word})

    stage = followed(said("one"), said("two"))
    stage.run()
    assert [message.text for message in stage.results] == ["fine two one"] * 2
    assert stage.results[0].result.metadata == {"by": "one"}
    assert [message.text for message in stage.model.requests[1].messages[-2:]] == ["fine two one"] * 2
    assert_laws(stage)


@pytest.mark.parametrize("status", list(ToolResultStatus))
@pytest.mark.parametrize("tool", ["good", "bad", "later", "shut", "goood"])
def test_identity_and_what_was_executed_stay(tool: str, status: ToolResultStatus) -> None:
    """Whose result it is, and whether the tool ran, cannot be changed: a retry must know whether it is safe."""
    before: list[ToolResult] = []

    def lie(use: ToolContext[Any], result: ToolResult) -> ToolResult:
        before.append(result)
        return ToolResult("call_9", status, "changed", "why", key="m-9:9")

    gate = Hooks(before_tool=lambda use: Block("shut") if use.name == "shut" else Allow())
    stage = followed(lie, gate, steps=[call(tool), say("Done.")])
    assert stage.run().text == "Done."
    kept, given = stage.results[0].result, before[0]
    assert (kept.call_id, kept.key, kept.executed, kept.text) == (given.call_id, given.key, given.executed, "changed")
    assert kept.status in {status, given.status}
    assert_laws(stage)


class TestFailing:
    """It raises, or returns what is no result: the effect has happened, and is kept."""

    @pytest.mark.parametrize(
        "act",
        [fail, lambda: None, lambda: "fine", lambda: ToolResult],
        ids=["raises", "None", "a text", "class"],
    )
    def test_the_rest_of_the_batch_runs(self, act: Callable[[], Any]) -> None:
        """The real result is committed, the rest of the batch runs and is committed, and then the run fails."""
        failing = Hooks(after_tool=lambda use, result: act() if use.index == 0 else result, name="auditor")
        stage = followed(failing)
        result = stage.run()
        assert (result.status, type(result.error)) == (RunStatus.FAILED, ExtensionFailure)
        assert "extension auditor failed at after_tool" in str(result.error)
        assert [(message.text, message.result.status.value) for message in stage.results] == [("fine", "ok")] * 2
        assert (sum(stage.effects.values()), len(stage.asked)) == (2, 1)
        assert_laws(stage, again=False)

    def test_the_others_still_see_it(self) -> None:
        """What one fails at the next one sees, as it was; the first failure is the run's."""
        seen: list[str] = []
        stage = followed(
            lambda use, result: fail(ValueError(note(seen, result.text))),
            lambda use, result: fail(),
            lambda use, result: ToolResult("", "ok", "changed"),
        )
        result = stage.run()
        assert seen == ["changed", "changed"]
        assert "after2" in str(result.error)
        assert stage.kinds.count("extension_failed") == 4
        assert_laws(stage, again=False)

    def test_with_workers(self) -> None:
        """The same where the calls run at once: everything that started is kept."""
        stage = followed(lambda use, result: fail(), limits=Limits(max_parallel_tools=2))
        assert stage.run().status is RunStatus.FAILED
        assert [message.result.status.value for message in stage.results] == ["ok", "ok"]
        assert_laws(stage, again=False)

    def test_of_a_call_that_was_cut_off(self) -> None:
        """A failure at a call that never ran ends the run just so."""
        cut = say("Cut. ", stop_reason="max_tokens") + call("good")
        stage = followed(lambda use, result: fail(), steps=[cut, say("Done.")])
        assert isinstance(stage.run().error, ExtensionFailure)
        assert len(stage.asked) == 1
        assert_laws(stage, again=False)

    def test_an_interrupt(self) -> None:
        """Ctrl-C in it: the real result is kept, the calls behind are not run."""

        def interrupted(use: ToolContext[Any], result: ToolResult) -> ToolResult:
            raise KeyboardInterrupt

        stage = followed(interrupted)
        with pytest.raises(KeyboardInterrupt):
            stage.run()
        assert [(message.text, message.result.status.value) for message in stage.results][:1] == [("fine", "ok")]
        assert stage.statuses[1] is ToolResultStatus.NOT_RUN
        assert_laws(stage, again=False)


class TestBounds:
    """What it makes of a result is bounded like what a tool returns."""

    def test_size(self) -> None:
        """A result that it makes huge is cut to head and tail; its error is, too."""
        most = 300

        def huge(use: ToolContext[Any], result: ToolResult) -> ToolResult:
            return ToolResult("", "ok", "x" * 100_000, "y" * 100_000)

        stage = followed(huge, limits=Limits(max_tool_result_bytes=most))
        assert stage.run().text == "Done."
        for message in stage.results:
            assert len(message.text) <= most + 200
            assert len(message.result.error) <= most + 200
        assert_laws(stage)

    def test_many_parts(self) -> None:
        """Many parts are bounded together."""
        stage = followed(lambda use, result: ToolResult("", "ok", [TextPart("x" * 1000)] * 5000))
        assert stage.run().text == "Done."
        assert sum(len(part.text) for part in stage.results[0].parts if isinstance(part, TextPart)) <= 2**20 + 200
        assert_laws(stage)

    def test_circles_count_what_is_told(self) -> None:
        """Loops are counted by what the model is told: a result that the extension makes new each time is no circle."""
        count = iter(range(99))
        stage = followed(
            lambda use, result: ToolResult("", "ok", f"{next(count)}"),
            steps=[*[call("good")] * 20, say("Done.")], limits=Limits(max_repeated_calls=3),
        )  # fmt: skip
        assert stage.run().text == "Done."
        same = followed(steps=[call("good")] * 20, limits=Limits(max_repeated_calls=3))
        error = same.run().error
        assert isinstance(error, LimitExceeded)
        assert error.limit == "max_repeated_calls"
        assert_laws(stage)
        assert_laws(same)
