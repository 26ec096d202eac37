"""Ctrl-C. SIGINT never raises here: it is noted, and it cancels the scope of the run, which then ends in good order."""

import os
import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import Protocol

EXIT_INTERRUPTED = 130
_PATIENCE_S = 1.0


class Cancellable(Protocol):
    """A Scope, which this module does not import: it has to be there before the kernel is."""

    def cancel(self, reason: str = "") -> bool:
        """Called in the signal handler."""
        ...


def _nothing() -> None:
    pass


class Interrupts:
    """The SIGINTs of this process.

    The first one cancels what `watch` was given, now or later. One that comes a second after it, or later, leaves the
    process at once: something does not end. In between they change nothing, so that leaning on the keys does no harm.
    """

    def __init__(self, *, now: Callable[[], float] = time.monotonic, leave: Callable[[int], object] = os._exit) -> None:
        self._now = now
        self._exit = leave
        self.count = 0
        self.before_leaving: Callable[[], object] = _nothing
        self._first_at = 0.0
        self._scope: Cancellable | None = None
        self._writing = False
        self._overdue = False

    def install(self) -> None:
        """Takes SIGINT over, in the main thread."""
        signal.signal(signal.SIGINT, self.note)

    def note(self, signum: int = signal.SIGINT, frame: FrameType | None = None) -> None:
        """The signal handler: takes no lock, prints nothing, raises nothing."""
        self.count += 1
        if self.count == 1:
            self._first_at = self._now()
        if self._scope is not None:
            self._scope.cancel("interrupted")
        if self._now() - self._first_at >= _PATIENCE_S:
            self._overdue = True
            if not self._writing:
                self._leave()

    def watch(self, scope: Cancellable) -> None:
        """From now on an interrupt cancels the scope; one that came before does so at once."""
        self._scope = scope
        if self.count:
            scope.cancel("interrupted")

    def write(self, do: Callable[[], object]) -> None:
        """Lets `do` write a whole line, whatever comes in between."""
        self._writing = True
        try:
            do()
        finally:
            self._writing = False
            if self._overdue:
                self._leave()

    def exit_code(self, code: int) -> int:
        """The code to exit with. Interrupts that come later change nothing any more."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        return EXIT_INTERRUPTED if self.count else code

    def _leave(self) -> None:
        self.before_leaving()
        self._exit(EXIT_INTERRUPTED)
