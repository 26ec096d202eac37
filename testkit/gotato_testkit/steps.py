"""What a script says besides events: to raise, to stall, to do something, to wait, to break the protocol."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable, Sequence
from typing import NoReturn

from gotato_py import InvalidArgument, Scope


class Raise:
    """Raises the error at this point.

    In a script for a model, a bare `Raise` is a call of `stream` that raises; as an item of a step it is raised while
    the answer is read.
    """

    __slots__ = ("error",)

    def __init__(self, error: BaseException | type[BaseException]) -> None:
        is_error = isinstance(error, BaseException) or (isinstance(error, type) and issubclass(error, BaseException))
        if not is_error:
            raise InvalidArgument(f"Raise.error must be an exception, not {type(error).__name__}")
        self.error: BaseException | type[BaseException] = error

    def __repr__(self) -> str:
        return f"Raise({self.error!r})"


class Stall:
    """Nothing more comes until the scope ends; then raises what `scope.check()` raises."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Stall()"


class Do:
    """Calls `fn()` at this point, in the thread that reads; what it raises comes out there.

    What happened so far is at hand in `model.requests`. For a model the result of `fn` is ignored; for a `FakeTool` it
    is what the tool returns.
    """

    __slots__ = ("fn",)

    def __init__(self, fn: Callable[[], object]) -> None:
        if not callable(fn):
            raise InvalidArgument(f"Do.fn must be callable without arguments, not {type(fn).__name__}")
        self.fn: Callable[[], object] = fn

    def __repr__(self) -> str:
        return f"Do({getattr(self.fn, '__name__', type(self.fn).__name__)})"


class Wait:
    """Waits some seconds by the scope's clock, or until the scope ends; with a `ManualClock` no time is lost."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds: float = seconds

    def __repr__(self) -> str:
        return f"Wait({self.seconds})"


class RaiseOnClose:
    """Wherever it stands in a step: closing the stream raises the error."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error: BaseException = error

    def __repr__(self) -> str:
        return f"RaiseOnClose({self.error!r})"


class Return:
    """A whole step: `stream` returns this very object, be it None, a list, or an iterator of the test's own."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value: object = value

    def __repr__(self) -> str:
        return f"Return({self.value!r})"


Step = Sequence[object] | Raise | Stall | Do | Wait | Return
"""An answer, a sequence of ModelEvents and the items above (anything else in it is passed on: garbage, on purpose), or
one bare item."""


def wait_for_end(scope: Scope) -> NoReturn:
    """Blocks until the scope has ended, then raises what its `check` raises.

    A scope without a deadline is waited for on a lock of its own: a clock that moves its own time would not block.
    """
    while True:
        scope.check()
        left = scope.remaining()
        if left is not None:
            scope.wait(left)
            continue
        ended = allocate_lock()
        ended.acquire()
        unregister = scope.on_end(ended.release)
        try:
            ended.acquire()
        finally:
            unregister()
