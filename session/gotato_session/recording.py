"""`record`: events kept in a session."""

from __future__ import annotations

from collections.abc import Collection

from ._arguments import wrong
from ._recorder import DEFAULT_MAX_BYTES, Recorder
from .session import Session


def record(
    session: Session, *, kinds: Collection[str] | None = None, max_bytes: int | None = DEFAULT_MAX_BYTES
) -> Recorder:
    """An observer that keeps events in the session: those of the kinds given (None: all), up to so many bytes of JSON.

    Pass it to an agent: `Agent(model, transcript=session, extensions=[record(session, kinds=["tool_execution_end"])])`.
    `max_bytes` bounds all that the session has kept when this observer adds to it, whenever and by whomever; None is
    unlimited. `session.events` is what was kept.
    Raises `InvalidArgument` for a kind that no event has.
    """
    if not isinstance(session, Session):
        raise wrong("record: session", "a Session", session)
    return Recorder(session._log, kinds, max_bytes)  # pyright: ignore[reportPrivateUsage]  # the package's own
