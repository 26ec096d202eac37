"""The registry under threads, signal handlers and interrupts: no change is lost, none is done by half."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import gotato_toolregistry
from gotato_py import Tool
from gotato_testkit import FakeTool
from gotato_toolregistry import Registry, RegistryChange

PACKAGE = str(Path(gotato_toolregistry.__file__ or "").parent)
THREADS = 6
ROUNDS = 60


@contextmanager
def quick_switches() -> Generator[None]:
    """Lets threads take turns a thousand times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def in_threads(*work: Callable[[], object]) -> None:
    """Runs the functions at once, each in a thread of its own, and raises what one of them raised."""
    barrier, errors = threading.Barrier(len(work)), list[BaseException]()

    def run(act: Callable[[], object]) -> None:
        barrier.wait()
        try:
            act()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(act,)) for act in work]
    with quick_switches():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]


def at_line(number: int, act: Callable[[], object], meanwhile: Callable[[], object]) -> bool:
    """Calls `act`, and `meanwhile` before the `number`-th line of the package that it executes; whether it got there.

    That is what a signal handler does: it runs in the same thread, between two steps of what it interrupts.
    """
    left = number

    def count(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal left
        if event == "line":
            left -= 1
            if left == 0:
                meanwhile()
        return count

    def enter(frame: FrameType, event: str, argument: object) -> Any:
        return count if frame.f_code.co_filename.startswith(PACKAGE) else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        act()
    finally:
        sys.settrace(before)
    return left <= 0


def test_no_change_of_a_thread_is_lost() -> None:
    """Threads that register, switch and unregister their own tools end with exactly what they left."""
    registry, told = Registry(), list[RegistryChange]()
    registry.on_change(told.append)

    def work(mine: str) -> None:
        for index in range(ROUNDS):
            name = f"{mine}{index}"
            registry.register(FakeTool(name), active=False)
            registry.activate(name)
            assert name in registry.active
            if index % 2:
                assert registry.unregister(name).spec.name == name

    in_threads(*[partial(work, mine) for mine in "abcdef"[:THREADS]])
    kept = {f"{mine}{index}" for mine in "abcdef"[:THREADS] for index in range(0, ROUNDS, 2)}
    assert set(registry.active) == {each.spec.name for each in registry.list()} == kept
    assert sorted(change.version for change in told) == list(range(1, len(told) + 1))
    assert len(told) == THREADS * (ROUNDS * 2 + ROUNDS // 2)


def test_one_of_many_threads_registers_a_name() -> None:
    """Of threads that register the same name at once, one succeeds and the others are refused."""
    registry, won = Registry(), list[Tool]()

    def work() -> None:
        for index in range(ROUNDS):
            try:
                won.append(registry.register(FakeTool(f"t{index}")))
            except ValueError:
                continue

    in_threads(*[work] * THREADS)
    assert sorted(map(id, won)) == sorted(map(id, registry.list()))
    assert len(won) == ROUNDS


def test_readers_see_whole_changes() -> None:
    """Tools that are switched together are seen together, and the tuple is the same as long as nothing changed."""
    registry, done = Registry([FakeTool("a"), FakeTool("b"), FakeTool("c")]), threading.Event()

    def write() -> None:
        try:
            for _ in range(ROUNDS * 5):
                registry.deactivate("a", "c")
                registry.activate("a", "c")
        finally:
            done.set()

    def read() -> None:
        while not done.is_set():
            assert [each.spec.name for each in registry.tools()] in (["b"], ["a", "b", "c"])
            assert registry.active in (("b",), ("a", "b", "c"))

    in_threads(write, read, read)
    assert registry.tools() is registry.tools()


def test_listening_may_begin_and_end_at_any_time() -> None:
    """Callbacks come and go while other threads change the registry."""
    registry = Registry([FakeTool("a")])

    def listen() -> None:
        for _ in range(ROUNDS * 3):
            registry.on_change(lambda change: None)()

    def switch() -> None:
        for _ in range(ROUNDS * 3):
            registry.deactivate("a")
            registry.activate("a")

    in_threads(listen, listen, switch)
    assert registry.active == ("a",)


def test_a_signal_handler_may_change_it_anywhere() -> None:
    """A change made in the middle of another one is kept, as is the other one, and both are told."""
    reached, number = True, 0
    while reached:
        number += 1
        registry, told = Registry([FakeTool("a"), FakeTool("b")]), list[RegistryChange]()
        registry.on_change(told.append)
        reached = at_line(number, partial(registry.deactivate, "a"), partial(registry.register, FakeTool("x")))
        if reached:
            assert registry.active == ("b", "x"), number
            assert {change.version for change in told} == {3, 4}, number
    assert number > 15, "the package was executed"


@pytest.mark.parametrize("operation", ["register", "unregister", "deactivate"])
def test_an_interrupt_leaves_all_or_nothing(operation: str) -> None:
    """A `KeyboardInterrupt` before any line of a change leaves the registry before or after it, and usable."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    acts: dict[str, tuple[Callable[[Registry], object], tuple[str, ...]]] = {
        "register": (lambda registry: registry.register(FakeTool("c")), ("a", "b", "c")),
        "unregister": (lambda registry: registry.unregister("a"), ("b",)),
        "deactivate": (lambda registry: registry.deactivate("a"), ("b",)),
    }
    act, after = acts[operation]
    seen, number, came_out = set[tuple[str, ...]](), 0, True
    while came_out:
        number += 1
        registry = Registry([FakeTool("a"), FakeTool("b")])
        registry.on_change(lambda change: None)
        came_out = False
        try:
            at_line(number, partial(act, registry), interrupt)
        except KeyboardInterrupt:
            came_out = True
        seen.add(registry.active)
        assert registry.active in (("a", "b"), after), number
        registry.register(FakeTool("next"))
        assert registry.active[-1] == "next"
    assert seen == {("a", "b"), after}
