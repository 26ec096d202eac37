"""Faults at the seams: a plan of what fails when, and a tool and a transcript that follow one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, TypeVar

from gotato_py import InvalidArgument, Message, Tool, ToolContext, ToolSpec, Transcript, WaitingCall

from ._failing import Fail, Failing

M = TypeVar("M", bound=Message)


class Fault:
    """The `number`-th call of `operation`, counted from 1, raises `error`."""

    __slots__ = ("error", "number", "operation")

    def __init__(self, operation: str, number: int, error: BaseException) -> None:
        if number < 1:
            raise InvalidArgument("Fault.number counts from 1")
        if not isinstance(error, BaseException):
            raise InvalidArgument(f"Fault.error must be an exception, not {type(error).__name__}")
        self.operation: str = operation
        self.number: int = number
        self.error: BaseException = error

    def __repr__(self) -> str:
        return f"Fault({self.operation!r}, {self.number}, {self.error!r})"


class FaultPlan:
    """What fails, for everything here that takes `fail`; of two faults for one call the first counts.

    >>> plan = FaultPlan([Fault("append", 2, OSError("disk full"))])
    >>> plan("append", 1), plan("append", 2)
    (None, OSError('disk full'))
    """

    __slots__ = ("faults",)

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        self.faults: tuple[Fault, ...] = tuple(faults)

    def __call__(self, operation: str, number: int) -> BaseException | None:
        for fault in self.faults:
            if (fault.operation, fault.number) == (operation, number):
                return fault.error
        return None

    def __repr__(self) -> str:
        return f"FaultPlan({list(self.faults)!r})"


class FaultyTool:
    """A tool that fails by plan: at "execute" before it has done anything, at "executed" after it has done it all.

    >>> from gotato_py import Agent
    >>> from gotato_testkit import FakeTool, ScriptedModel, call, say
    >>> tool = FaultyTool(FakeTool("pay"), FaultPlan([Fault("executed", 1, TimeoutError("no answer"))]))
    >>> agent = Agent(ScriptedModel([call("pay"), say("Hm.")]), tools=[tool])
    >>> _ = agent.run("Pay.")
    >>> agent.transcript.messages[2].text
    'The tool ran and failed: TimeoutError: no answer'
    """

    def __init__(self, tool: Tool, fail: Fail) -> None:
        self._tool = tool
        self._failing = Failing(fail)

    def __repr__(self) -> str:
        return f"FaultyTool({self._tool!r})"

    @property
    def spec(self) -> ToolSpec:
        """That of the tool."""
        return self._tool.spec

    def execute(self, use: ToolContext[object]) -> object:
        """Runs the tool between the two points at which it may fail."""
        self._failing.before("execute")
        returned = self._tool.execute(use)
        self._failing.before("executed")
        return returned


class FaultyTranscript:
    """A transcript whose operations fail by plan, before anything has changed: `append`, `mark_started`,
    `mark_waiting`, and those of the optional ones that the transcript has.
    """

    def __init__(self, transcript: Transcript, fail: Fail) -> None:
        self._transcript = transcript
        self._failing = Failing(fail)

    def __repr__(self) -> str:
        return f"FaultyTranscript({self._transcript!r})"

    @property
    def messages(self) -> Sequence[Message]:
        """Those of the transcript; reading does not fail."""
        return self._transcript.messages

    @property
    def started(self) -> Collection[str]:
        """That of the transcript."""
        return self._transcript.started

    @property
    def waiting(self) -> Sequence[WaitingCall]:
        """That of the transcript."""
        return self._transcript.waiting

    def append(self, message: M) -> M:
        """Fails, or commits the message."""
        self._failing.before("append")
        return self._transcript.append(message)

    def mark_started(self, key: str) -> None:
        """Fails, or records the start."""
        self._failing.before("mark_started")
        self._transcript.mark_started(key)

    def mark_waiting(self, calls: Sequence[WaitingCall]) -> None:
        """Fails, or records the calls."""
        self._failing.before("mark_waiting")
        self._transcript.mark_waiting(calls)

    def __getattr__(self, name: str) -> Any:  # Any: whatever the transcript has under that name
        found = getattr(self._transcript, name)
        if name not in ("replace", "begin_run", "end_run"):
            return found

        def operation(given: object) -> object:
            self._failing.before(name)
            return found(given)

        return operation
