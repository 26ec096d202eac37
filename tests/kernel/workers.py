"""What tests of worker threads need: tools that hang, tools that end in a certain order, and somebody who cancels."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from types import FrameType

from gotato_py import Event, SystemClock, ToolContext, ToolExecutionEnd, ToolResultCommitted, ToolSpec, Usage
from gotato_testkit import Answer, Do, FakeTool, Raise, call

from .stage import Stage

PATIENCE_S = 10.0
"""Real seconds after which a test that waits for something gives up."""
SOON_S = PATIENCE_S / 2
"""Real seconds that tell what has ended from what hangs; a machine that stalls may need some of them for nothing."""
_GRACE_S = 0.25
"""What a tool has, by the kernel's promise, to stop by itself."""


class Hanging:
    """A tool that ignores its scope and hangs until its `with` is left; what it says then is too late."""

    def __init__(self, name: str = "hang", *, timeout: float | None = None, sequential: bool = False) -> None:
        self.spec = ToolSpec(name, "Hangs.", timeout=timeout, sequential=sequential)
        self.uses: list[ToolContext[object]] = []
        self._started = threading.Semaphore(0)
        self._free = threading.Event()
        self._late = threading.Semaphore(0)

    def execute(self, use: ToolContext[object]) -> object:
        """Hangs."""
        self.uses.append(use)
        self._started.release()
        self._free.wait(PATIENCE_S)
        use.progress("too late")
        use.charge(Usage(1000, 1000))
        self._late.release()
        return "too late"

    def wait_for_starts(self, count: int = 1) -> None:
        """Blocks until it hangs in so many more calls."""
        for _ in range(count):
            assert self._started.acquire(timeout=PATIENCE_S)

    def let_go(self) -> None:
        """Ends all that hangs, and waits until each of these calls has said what it has to say."""
        self._free.set()
        for _ in self.uses:
            assert self._late.acquire(timeout=PATIENCE_S)

    def __enter__(self) -> Hanging:
        return self

    def __exit__(self, *_: object) -> None:
        self._free.set()


class InOrder:
    """An extension that lets its tools end in this order: each when the one before it has ended for the run."""

    def __init__(self, *names: str) -> None:
        self._turns = {name: threading.Event() for name in names}
        self._next = dict(pairwise(names))
        self._turns[names[0]].set()

    def observe(self, event: Event) -> None:
        """Gives the next one its turn."""
        if isinstance(event, ToolExecutionEnd) and event.name in self._next:
            self._turns[self._next[event.name]].set()

    def tool(self, name: str, raises: BaseException | None = None) -> FakeTool:
        """A tool that waits for its turn, then raises that or returns its name."""
        return FakeTool(name, Do(partial(self._wait, name, raises)))

    def _wait(self, name: str, raises: BaseException | None) -> str:
        assert self._turns[name].wait(PATIENCE_S), name
        if raises is not None:
            raise raises
        return name


class Slow:
    """A tool that takes its time, whatever its scope says."""

    def __init__(self, seconds: float, *, timeout: float | None = None) -> None:
        self.spec = ToolSpec("slow", "Is slow.", timeout=timeout)
        self._seconds = seconds

    def execute(self, use: ToolContext[object]) -> object:
        """Sleeps."""
        time.sleep(self._seconds)
        return "slowly done"


class Floor:
    """Who is at work: `work` may be shared, `alone` wants the floor for itself."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now: list[str] = []
        self.most = 0
        self.together: list[str] = []
        self.threads: dict[str, int] = {}

    def step(self, name: str, act: Callable[[], object]) -> str:
        """Steps onto the floor while it acts."""
        with self._lock:
            self._now.append(name)
            self.most = max(self.most, len(self._now))
            self.threads[name] = threading.get_ident()
            if "alone" in self._now and len(self._now) > 1:
                self.together = list(self._now)
        act()
        with self._lock:
            self._now.remove(name)
        return name


class AtCommits:
    """An extension that acts when so many results have been committed, in a thread of its own: the host's."""

    def __init__(self, count: int, act: Callable[[], object]) -> None:
        self._left = count
        self._act = act

    def observe(self, event: Event) -> None:
        """Counts, and acts."""
        if isinstance(event, ToolResultCommitted):
            self._left -= 1
            if self._left == 0:
                in_other_thread(self._act)


def in_other_thread(act: Callable[[], object]) -> None:
    """Calls it in another thread, and waits until it has been."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            act()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    if failed:
        raise failed[0]


@contextmanager
def cancelling(stage: Stage, when: Callable[[], object]) -> Generator[None, None, None]:
    """Meanwhile another thread waits with `when`, then cancels the run."""

    def wait() -> None:
        when()
        stage.agent.cancel("by the host")

    with beside(wait):
        yield


@contextmanager
def beside(act: Callable[[], object]) -> Generator[None, None, None]:
    """Meanwhile another thread does that."""
    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield
    finally:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


@contextmanager
def within(seconds: float) -> Generator[None, None, None]:
    """Asserts that what is done meanwhile takes no longer."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


class Grace:
    """Knows whether a grace may have run out since it was made, up to the end of its `with`: on a machine that stalls,
    one runs out before a tool that heeds its scope has stopped."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._took = 0.0

    def __enter__(self) -> Grace:
        return self

    def __exit__(self, *_: object) -> None:
        self._took = time.monotonic() - self._began

    @property
    def over(self) -> bool:
        """Whether the time was long enough for a tool to be given up that was about to stop."""
        return self._took > 0.9 * _GRACE_S  # a lock's timeout may end a hair early


def wait_for_end(use: ToolContext[object], waits: Callable[[], object] = bool) -> None:
    """What a tool on a worker thread does that heeds its scope, also where the machine stalls: it says that it waits,
    and does until the scope ends; the thread that ends it waits until this one has gone. If that is the thread of the
    run, the grace does not begin before."""
    ended, worker = threading.Event(), threading.current_thread()

    def tell() -> None:
        ended.set()
        if threading.current_thread() is not worker:
            worker.join(PATIENCE_S)

    use.scope.on_end(tell)
    waits()
    assert ended.wait(PATIENCE_S)


class LateClock(SystemClock):
    """The machine's clock, which stands still until it is started: no time passes before a test has come so far."""

    def __init__(self) -> None:
        stood = time.monotonic()
        self._started: list[float] = []

        def monotonic() -> float:
            return stood + time.monotonic() - self._started[0] if self._started else stood

        self.monotonic = monotonic  # type: ignore[misc,assignment,unused-ignore]

    def start(self) -> None:
        """Lets the time pass."""
        self._started.append(time.monotonic())


@contextmanager
def on_alarm(handler: Callable[[int, FrameType | None], object], seconds: float) -> Generator[None, None, None]:
    """Meanwhile the handler is called once, after so many seconds."""
    before = signal.signal(signal.SIGALRM, handler)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)  # pytest-timeout's own
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, left)


def until(holds: Callable[[], object]) -> None:
    """Waits until it holds."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.001)


def batch(*names: str) -> Answer:
    """An answer that calls these tools."""
    made = call(names[0])
    for name in names[1:]:
        made += call(name)
    return made


def fine(name: str = "fine") -> FakeTool:
    """A tool that returns at once."""
    return FakeTool(name, f"{name} is done")


def failing(name: str, error: BaseException) -> FakeTool:
    """A tool that raises."""
    return FakeTool(name, Raise(error))
