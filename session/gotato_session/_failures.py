"""What a store's errors are told as."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from gotato_py import Cancelled, DeadlineExceeded, GotatoError, StoreFailure


def failure(error: Exception, what: str, operation: str, so: str = "") -> GotatoError:
    """What a store's error is raised as: itself if it is one of ours, else a `StoreFailure` because of it. `what` says
    what could not be done, `so` what follows from that."""
    if isinstance(error, GotatoError) and not isinstance(error, Cancelled | DeadlineExceeded):
        return error
    said = f"{type(error).__name__}" + (f": {error.strerror}" if isinstance(error, OSError) and error.strerror else "")
    return StoreFailure(f"{what} ({said})" + (f"; {so}" if so else ""), operation=operation, cause=error)


@contextmanager
def told(what: str, operation: str) -> Generator[None, None, None]:
    """Within it a store's errors are raised as that."""
    try:
        yield
    except Exception as error:
        failed = failure(error, what, operation)
        if failed is error:
            raise
        raise failed  # noqa: B904  # it carries its cause
