"""Child processes for tests: forks of the test's own process, and programs that are told what to do line by line."""

from __future__ import annotations

import os
import signal
import traceback
import warnings
from collections.abc import Callable


def forked(act: Callable[[], object]) -> int:
    """Forks; the child does that and exits, with status 0 if nothing was raised. Returns its process id."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads: the child uses none of their locks
        pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        signal.alarm(90)  # by then it hangs
        act()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def ended(pid: int) -> int:
    """Waits for the child and returns its exit status, -n for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def in_child(act: Callable[[], object]) -> None:
    """Does that in a child process; what it raises fails the test here."""
    assert ended(forked(act)) == 0
