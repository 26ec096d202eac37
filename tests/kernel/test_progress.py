"""Progress and charges of a tool, from its own thread and from threads that it starts."""

from __future__ import annotations

from threading import Thread

from gotato_py import Agent, Limits, ToolContext, Usage, tool
from gotato_testkit import EventRecorder, ScriptedModel, call, say


def updates(events: EventRecorder) -> list[str]:
    """The texts of all progress, in order."""
    return [event.to_dict()["text"] for event in events.events if event.kind == "tool_execution_update"]


def test_other_threads_are_told_when_the_tool_returns() -> None:
    """What a tool's own threads tell is announced before its end; what comes later is lost."""
    kept: list[ToolContext] = []

    def also(use: ToolContext) -> None:
        use.progress("two")
        use.charge(Usage(5, 1))

    @tool
    def work(use: ToolContext) -> str:
        """Works."""
        kept.append(use)
        use.progress("one")
        thread = Thread(target=also, args=(use,))
        thread.start()
        thread.join()
        use.progress("three")
        return "done"

    events = EventRecorder()
    result = Agent(ScriptedModel([call("work"), say("ok")]), tools=[work], extensions=[events]).run("go")
    kept[0].progress("too late")
    assert updates(events) == ["one", "three", "two"]
    kinds = events.kinds
    last = max(at for at, kind in enumerate(kinds) if kind == "tool_execution_update")
    assert last < kinds.index("tool_execution_end")
    assert result.usage == Usage(5, 1)


def test_progress_is_bounded() -> None:
    """Updates over the limits, in number or in bytes, are dropped without harm."""

    @tool
    def chatter(use: ToolContext) -> str:
        """Talks."""
        for number in range(10):
            use.progress(f"update {number}")
        return "done"

    for limits, most in ((Limits(max_tool_progress_updates=3), 3), (Limits(max_tool_progress_bytes=20), 2)):
        events = EventRecorder()
        Agent(ScriptedModel([call("chatter"), say("ok")]), tools=[chatter], extensions=[events], limits=limits).run(
            "go"
        )
        assert updates(events) == [f"update {number}" for number in range(most)]
