"""What the suites share: how a broken promise is told, how many examples are drawn, how long anything may take."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from threading import Thread
from time import monotonic
from typing import Generic, TypeVar
from unittest import SkipTest

from hypothesis import Phase, given, settings
from hypothesis.strategies import SearchStrategy

S = TypeVar("S", bound="Suite")
T = TypeVar("T")


class BrokenPromise(AssertionError):
    """An implementation does not keep what its Protocol promises: which promise, what was found, what to do."""

    def __init__(self, promise: str, found: str, remedy: str) -> None:
        super().__init__(promise, found, remedy)
        self.promise = promise
        self.found = found
        self.remedy = remedy

    def __str__(self) -> str:
        return f"broken promise: {self.promise}\n  found: {self.found}\n  to do: {self.remedy}"


def require(kept: bool, promise: str, *, found: str, remedy: str) -> None:
    """Raises `BrokenPromise` unless the promise is kept."""
    if not kept:
        raise BrokenPromise(promise, found, remedy)


class NotJudged(SkipTest):
    """A test can say nothing of its promise, because another one is broken that it builds upon."""

    def __init__(self, why: str, judge: str = "") -> None:
        super().__init__(f"not judged: {why}" + (f" ({judge})" if judge else ""))


def after(*judges: str) -> Callable[[Callable[[S], None]], Callable[[S], None]]:
    """Marks a test that builds upon what these tests of its suite are about.

    Where it fails and one of them does too, that one tells what is wrong, and this one is skipped. They are only asked
    then, so a test that passes costs nothing more.
    """

    def mark(test: Callable[[S], None]) -> Callable[[S], None]:
        @wraps(test)
        def judged(self: S) -> None:
            try:
                test(self)
            except SkipTest:
                raise
            except Exception:
                for judge in judges:
                    _ask(self, judge)
                raise

        return judged

    return mark


def _ask(suite: Suite, judge: str) -> None:
    try:
        getattr(suite, judge)()
    except BrokenPromise as broken:
        raise NotJudged(broken.found, judge) from None
    except NotJudged:
        raise
    except SkipTest:
        pass  # an optional promise


def shaped(made: T, *members: str) -> T:
    """What `make()` returned, if it is an instance that has these members; each suite looks before it asks for more."""
    kind = made.__name__ if isinstance(made, type) else type(made).__name__
    missing = [member for member in members if not hasattr(made, member)]
    require(
        not isinstance(made, type) and not missing,
        f"make() returns an object that has {', '.join(members)}",
        found=f"the class {kind} itself" if isinstance(made, type) else f"a {kind} without {', '.join(missing)}",
        remedy="return an instance of it" if isinstance(made, type) else f"write {', '.join(missing)}",
    )
    return made


class Ended(Generic[T]):
    """How a call came to its end: by a value or an error, or not at all within the time that it had."""

    __slots__ = ("error", "in_time", "value")

    def __init__(self) -> None:
        self.in_time: bool = False
        self.value: T | None = None
        self.error: BaseException | None = None

    def said(self) -> str:
        """The end in words. An error's message is left out: it is the implementation's own, and may hold anything."""
        if not self.in_time:
            return "it had not come to an end"
        return "it ended" if self.error is None else f"it raised {type(self.error).__name__}"


class Suite:
    """The base of every suite. A suite is a mixin of test methods, for pytest or beside `unittest.TestCase`.

    `patience` is how many seconds a call may take that has to end by itself; one that does not is left behind on a
    daemon thread. `examples` is how many drawn examples a test tries; None takes the Hypothesis profile's number.
    """

    patience: float = 5.0
    examples: int | None = 25

    def for_all(self, strategy: SearchStrategy[T], check: Callable[[T], None]) -> None:
        """Runs `check` for drawn values, and shrinks one that fails.

        Hypothesis' own explanation is left out: it takes many times as long, and the broken promise says what is wrong.
        """
        chosen = settings(deadline=None, phases=[phase for phase in Phase if phase is not Phase.explain])
        if self.examples is not None:
            chosen = settings(chosen, max_examples=self.examples)
        chosen(given(strategy)(check))()

    def bounded(self, call: Callable[[], T], *, meanwhile: Callable[[], object] | None = None) -> Ended[T]:
        """Runs a call on a thread of its own, `meanwhile` beside it, and waits for `patience` seconds."""
        (ended,) = self.together([call], meanwhile=meanwhile)
        return ended

    def together(
        self, calls: Iterable[Callable[[], T]], *, meanwhile: Callable[[], object] | None = None
    ) -> list[Ended[T]]:
        """Runs calls at the same time, each on a thread of its own, and waits for `patience` seconds in all."""
        outcomes: list[Ended[T]] = []
        threads: list[Thread] = []
        for call in calls:
            outcomes.append(Ended())
            threads.append(Thread(target=_run, args=(call, outcomes[-1]), daemon=True, name="gotato contract"))
        for thread in threads:
            thread.start()
        if meanwhile is not None:
            meanwhile()
        end = monotonic() + self.patience
        for thread in threads:
            thread.join(max(0.0, end - monotonic()))
        return outcomes


def _run(call: Callable[[], T], ended: Ended[T]) -> None:
    try:
        ended.value = call()
    except BaseException as error:
        ended.error = error
    ended.in_time = True
