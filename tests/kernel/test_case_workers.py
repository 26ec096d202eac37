"""Cases of tools on worker threads: where they run, what they may ask of the agent, what they tell."""

from __future__ import annotations

import sqlite3
import threading
from asyncio import CancelledError
from collections.abc import Callable
from contextvars import ContextVar

import pytest

from gotato_py import (
    Busy,
    Event,
    Hooks,
    InvalidState,
    Limits,
    RunStatus,
    ToolContext,
    ToolExecutionEnd,
    ToolExecutionUpdate,
    tool,
)
from gotato_testkit import Do, FakeTool, Stall, call, say

from .laws import assert_laws
from .stage import Stage
from .workers import PATIENCE_S, SOON_S, Hanging, batch, failing, fine, in_other_thread, until, within

TWO = Limits(max_parallel_tools=2)
request_id: ContextVar[str] = ContextVar("request_id", default="none")


class TestC27Affinity:
    """Which thread a tool runs in, and what it sees of the caller's context."""

    def test_c27_plain_tools_run_in_the_callers_thread(self) -> None:
        """A connection and a context variable of the thread that called `run` work in a plain tool, in both ways."""
        connection = sqlite3.connect(":memory:")
        request_id.set("r-1")

        def query() -> list[object]:
            """Asks the database."""
            before = request_id.get()
            request_id.set("r-2")
            return [threading.get_ident(), before, *connection.execute("select 42").fetchone()]

        stage = Stage(call("query"), say("Done."), tools=[query])
        assert stage.run().ok
        assert stage.results[0].text == f'[{threading.get_ident()}, "r-1", 42]'
        assert request_id.get() == "r-2"
        connection.close()
        assert_laws(stage)

    @pytest.mark.parametrize(
        ("limits", "timeout"), [(TWO, None), (Limits(tool_timeout=PATIENCE_S), None), (Limits(), PATIENCE_S)]
    )
    def test_c27_worker_tools_see_a_copy_of_the_context(self, limits: Limits, timeout: float | None) -> None:
        """A tool under a timeout or among parallel ones runs on a daemon thread, with a copy of the context."""
        seen: list[tuple[int, bool, str]] = []

        @tool(timeout=timeout)
        def look() -> None:
            """Looks around."""
            thread = threading.current_thread()
            seen.append((threading.get_ident(), thread.daemon, request_id.get()))
            request_id.set("changed")

        request_id.set("r-3")
        stage = Stage(batch("look", "look"), say("Done."), tools=[look], limits=limits)
        assert stage.run().ok
        assert [(daemon, value) for _, daemon, value in seen] == [(True, "r-3")] * 2
        assert threading.get_ident() not in {ident for ident, _, _ in seen}
        assert request_id.get() == "r-3"
        assert_laws(stage)

    def test_c27_a_stream_gives_the_context_of_its_reader(self) -> None:
        """A stream that is iterated elsewhere runs its tools with the context of that thread."""
        seen: list[str] = []

        @tool(timeout=PATIENCE_S)
        def look() -> None:
            """Looks."""
            seen.append(request_id.get())

        stage = Stage(call("look"), say("Done."), tools=[look])
        stream = stage.agent.stream("do it")

        def read() -> None:
            request_id.set("the reader's")
            list(stream)

        in_other_thread(read)
        assert seen == ["the reader's"]
        assert_laws(stage)


class TestC17Raised:
    """What worker tools raise, but for interrupts."""

    @pytest.mark.parametrize("kind", [ValueError, SystemExit, CancelledError, MemoryError, GeneratorExit])
    def test_c17_whatever_a_worker_raises_is_a_result(self, kind: type[BaseException]) -> None:
        """It fails that call alone: the siblings and the run go on."""
        stage = Stage(batch("bad", "fine"), say("I see."), tools=[failing("bad", kind("no")), fine()], limits=TWO)
        assert stage.run().text == "I see."
        assert sorted(stage.history[2:4]) == ["R call_1 failed", "R call_2 ok"]
        ends = {event.name: event.exception for event in stage.events if isinstance(event, ToolExecutionEnd)}
        assert ends == {"bad": kind.__name__, "fine": ""}
        assert_laws(stage)


class TestFromWithin:
    """A worker tool uses its own agent."""

    @pytest.mark.parametrize("busy", [False, True], ids=["alone", "with a sibling"])
    def test_close_from_a_worker(self, busy: bool) -> None:
        """It returns at once, and the run ends cancelled and closed."""
        leaving: list[threading.Thread] = []
        held = threading.Event()

        def leave(use: ToolContext[object]) -> str:
            """Closes the agent."""
            leaving.append(threading.current_thread())
            use.progress("leaving")
            assert held.wait(PATIENCE_S)
            with within(SOON_S):
                stage.agent.close()
            return "closed"

        def hold(event: Event) -> None:
            if isinstance(event, ToolExecutionUpdate):  # the grace does not begin before that thread has gone
                held.set()
                leaving[0].join(PATIENCE_S)

        stage = Stage(
            batch("leave", "stall") if busy else call("leave"),
            tools=[leave, stalling()],
            extensions=[Hooks(observe=hold)],
            limits=TWO,
        )
        with within(SOON_S):
            assert stage.run().status is RunStatus.CANCELLED
        assert stage.agent.status == "closed"
        assert {each.result.call_id: each.result.status for each in stage.results}["call_1"] == "ok"
        assert_laws(stage)

    def test_wait_idle_and_run_from_a_worker(self) -> None:
        """Waiting for itself is `InvalidState`, a second run `Busy`; neither dead-locks, and the first run goes on."""
        refused: list[BaseException] = []

        def again(use: ToolContext[object]) -> str:
            """Tries."""
            acts: list[Callable[[], object]] = [stage.agent.wait_idle, lambda: stage.agent.run("me too")]
            try:
                acts[use.index]()
            except (Busy, InvalidState) as error:
                refused.append(error)
            return f"refused {use.index}"

        stage = Stage(batch("again", "again"), say("Done."), tools=[again], limits=TWO)
        result = stage.run()
        assert result.ok
        assert {type(error) for error in refused} == {Busy, InvalidState}
        assert [error.run_id for error in refused if isinstance(error, Busy)] == [result.run_id]
        assert_laws(stage)

    def test_close_by_a_tool_that_was_given_up(self) -> None:
        """A tool that nobody waits for any more can close the agent, and it can wait for the run that goes on."""
        done: list[object] = []

        class Late(Hanging):
            """Hangs, then waits for the run and closes the agent."""

            def execute(self, use: ToolContext[object]) -> object:
                """Hangs too long."""
                super().execute(use)
                done.append(stage.agent.wait_idle(PATIENCE_S))
                stage.agent.close()
                done.append("closed")
                return ""

        with Late("late", timeout=0.01) as late:
            free = FakeTool("free", Do(late.let_go))
            stage = Stage(batch("late", "free"), say("Done."), tools=[late, free])
            assert stage.run().text == "Done."
            until(lambda: len(done) == 2)
        assert done == [True, "closed"]
        until(lambda: stage.agent.abandoned == ())
        assert_laws(stage)


def stalling() -> FakeTool:
    """A tool that blocks until its scope ends."""
    return FakeTool("stall", Stall())


class TestProgress:
    """What worker tools tell while they run."""

    @pytest.mark.parametrize("limits", [TWO, Limits(tool_timeout=PATIENCE_S)])
    def test_observers_hear_it_at_once(self, limits: Limits) -> None:
        """Progress reaches observers and subscribers before the tool returns, in order, from its own threads too."""
        heard: list[str] = []
        all_heard = threading.Event()

        def listen(event: Event) -> None:
            if isinstance(event, ToolExecutionUpdate):
                heard.append(event.text)
                if len(heard) == 3:
                    all_heard.set()

        def tell(use: ToolContext[object]) -> str:
            """Tells, and waits until it was heard."""
            use.progress("one")
            use.progress("two")
            in_other_thread(lambda: use.progress("three"))
            assert all_heard.wait(PATIENCE_S)
            return "heard"

        stage = Stage(call("tell"), say("Done."), tools=[tell], extensions=[Hooks(observe=listen)], limits=limits)
        with stage.agent.subscribe() as events:
            assert stage.run().ok
            stage.agent.close()
            told = [event.text for event in events if isinstance(event, ToolExecutionUpdate)]
        assert heard == told == ["one", "two", "three"]
        assert_laws(stage)

    def test_a_stream_gets_it_when_a_tool_returns(self) -> None:
        """The iterator has the progress of all tools no later than the end of the one that told it."""
        go_on = threading.Event()

        def tell(use: ToolContext[object]) -> str:
            """Tells."""
            use.progress(f"from {use.index}")
            if use.index:
                go_on.wait(PATIENCE_S)
            return f"told {use.index}"

        stage = Stage(batch("tell", "tell"), say("Done."), tools=[tell], limits=TWO)
        read: list[Event] = []
        with stage.agent.stream("do it") as stream:
            for event in stream:
                read.append(event)
                if isinstance(event, ToolExecutionEnd):
                    go_on.set()
        assert read == stage.events
        assert_laws(stage)

    def test_progress_of_workers_is_bounded(self) -> None:
        """The limits on progress hold for each worker."""

        def chatter(use: ToolContext[object]) -> str:
            """Talks."""
            for number in range(10):
                use.progress(f"{use.index} {number}")
            return f"talked {use.index}"

        stage = Stage(
            batch("chatter", "chatter"),
            say("Done."),
            tools=[chatter],
            limits=Limits(max_parallel_tools=2, max_tool_progress_updates=3),
        )
        assert stage.run().ok
        told = [event.text for event in stage.events if isinstance(event, ToolExecutionUpdate)]
        assert sorted(told) == [f"{index} {number}" for index in range(2) for number in range(3)]
        assert_laws(stage)
