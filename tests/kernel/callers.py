"""Somebody who steers an agent while it ends a run, and the check that each of his calls had one of its outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from threading import Thread
from time import sleep
from types import TracebackType

from gotato_py import (
    Agent,
    AuthenticationFailed,
    ControlDelivered,
    Done,
    Event,
    Hooks,
    Limits,
    ModelEvent,
    ModelRequest,
    NotRunning,
    RunResult,
    RunStatus,
    Scope,
    TextDelta,
    UserMessage,
)

from .hosts import PATIENCE_S
from .laws import assert_history

_MOMENT_S = 0.02
_LOOKS = 50
"""In so many looks that moment passes: while the machine stalls, it does not."""
CALLS = ("steer", "follow_up", "withdraw", "cancel")


def nothing() -> None:
    """Does nothing."""


class Quick:
    """A model that answers at once and tells when its last delta is out; its request of that number fails."""

    def __init__(self, last: Callable[[], object], fails_at: int) -> None:
        self._last = last
        self._left = fails_at

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
        """Says that all is well."""
        self._left -= 1
        if self._left == 0:
            raise AuthenticationFailed("no key")
        yield TextDelta("Fine.")
        self._last()
        yield Done()


class Caller:
    """Makes calls, and keeps what came of each."""

    def __init__(self, agent: Agent, name: str) -> None:
        self._agent = agent
        self._name = name
        self.accepted: dict[str, str] = {}
        self.refused: list[str] = []
        self.withdrawn: list[str] = []

    def call(self, what: str) -> None:
        """Makes one call; what is withdrawn is the message that was accepted last."""
        if what == "cancel":
            self._agent.cancel("by the test")
        elif what == "withdraw":
            last = list(self.accepted)[-1:]
            self.withdrawn.extend(each for each in last if self._agent.withdraw(each))
        else:
            message = UserMessage(what, id=f"{self._name}{len(self.accepted) + len(self.refused)}")
            put = self._agent.steer if what == "steer" else self._agent.follow_up
            try:
                self.accepted[put(message)] = what
            except NotRunning:
                self.refused.append(message.id)


class Scene:
    """An agent for one run, those who call meanwhile, and the check of what came of it."""

    def __init__(self, last: Callable[[], object] = nothing, *, fails_at: int = 0, **options: object) -> None:
        self.events: list[Event] = []
        observers = (Hooks(observe=self.events.append), *options.pop("extensions", ()))  # type: ignore[misc]
        limits = Limits(max_steer=None, max_follow_up=None)
        self.agent = Agent(Quick(last, fails_at), extensions=observers, limits=limits, **options)  # type: ignore[arg-type]
        self.callers: list[Caller] = []

    def caller(self) -> Caller:
        """One more who calls."""
        made = Caller(self.agent, "abcdefgh"[len(self.callers)])
        self.callers.append(made)
        return made

    def check(self, result: RunResult[None]) -> Counter[str]:
        """Asserts that each call had one of its outcomes, and counts those."""
        told = Counter((each.message_id, each.control) for each in self.events if isinstance(each, ControlDelivered))
        kept = Counter(message.id for message in self.agent.transcript.messages)
        listed = Counter(message.id for message in result.undelivered)
        outcomes: Counter[str] = Counter()
        for caller in self.callers:
            for each, control in caller.accepted.items():
                outcome = {(1, 1, 0): "delivered", (0, 0, 1): "listed", (0, 0, 0): "withdrawn"}[
                    told[each, control], kept[each], listed[each]
                ]
                assert (outcome == "withdrawn") == (each in caller.withdrawn)
                assert outcome != "listed" or result.status is not RunStatus.COMPLETED
                outcomes[outcome] += 1
            for each in caller.refused:
                assert (kept[each], listed[each]) == (0, 0)
                outcomes["refused"] += 1
        assert told.total() == outcomes["delivered"]
        assert tuple(self.agent.transcript.messages) == result.new_messages
        assert self.agent.status == "idle"
        assert [event.kind for event in self.events].count("agent_end") == 1
        assert_history(self.agent.transcript)
        return outcomes


class Elsewhere:
    """A thread that does what it is given, while its giver waits: an act of another thread at a certain moment."""

    def __init__(self) -> None:
        self._acts: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._done: SimpleQueue[BaseException | None] = SimpleQueue()
        self._thread = Thread(target=self._work, daemon=True)
        self._thread.start()

    def __enter__(self) -> Elsewhere:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._acts.put(None)
        self._thread.join(PATIENCE_S)

    def do(self, act: Callable[[], object]) -> None:
        """Has it done. Raises what that raised, and `queue.Empty` where it hangs: it waits for its giver."""
        self._acts.put(act)
        self.join()

    def begin(self, act: Callable[[], object]) -> None:
        """Has it begun, and waits a moment for its end; it may have to wait for its giver. Then call `join`."""
        self._acts.put(act)
        for _ in range(_LOOKS):
            if self._done.empty():
                sleep(_MOMENT_S / _LOOKS)

    def join(self) -> None:
        """Waits for the end of what was begun. Raises what that raised."""
        raised = self._done.get(timeout=PATIENCE_S)
        if raised is not None:
            raise raised

    def _work(self) -> None:
        while (act := self._acts.get()) is not None:
            try:
                act()
            except BaseException as raised:  # it belongs to whoever gave it
                self._done.put(raised)
            else:
                self._done.put(None)
