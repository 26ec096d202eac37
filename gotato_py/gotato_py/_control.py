"""Where a run delivers what came for it, and where it settles."""

from __future__ import annotations

from ._bounds import check_room, check_turn
from ._hooks import before_settle
from ._inbox import CONTROL, FOLLOW_UP, STEER
from ._ledger import size_of
from ._run import Run
from ._value import replace
from .events import ControlDelivered
from .messages import UserMessage


def goes_on(run: Run, finished: bool) -> bool:
    """Delivers what is due at a turn boundary. Returns whether another turn follows.

    Steers first, all of them. Where the run would settle, the next follow-up; then the extensions may ask to go on;
    then, in one step, either something has come meanwhile or the run takes nothing more.
    """
    if run.inbox.waits and _deliver_steers(run):
        return True
    if not finished:
        return True
    while True:
        if run.inbox.waits and (_deliver_steers(run) or _deliver(run, FOLLOW_UP)):
            return True
        if _is_vetoed(run):
            return True
        if run.inbox.settle():
            return False


def _deliver_steers(run: Run) -> bool:
    delivered = False
    while _deliver(run, STEER):
        delivered = True
    return delivered


def _deliver(run: Run, control: str) -> bool:
    """Commits the next message of a queue. Returns whether there was one."""
    message = run.inbox.begin_delivery(control)
    while message is not None and _is_committed(run, message):
        run.inbox.end_delivery()
        message = run.inbox.begin_delivery(control)
    if message is None:
        return False
    run.scope.check()
    _check_answer_follows(run, message)
    run.commit_user(_marked(message, control))
    run.inbox.end_delivery()
    if run.listening:
        run.announcer.emit(ControlDelivered, message.id, control)
    return True


def _is_committed(run: Run, message: UserMessage) -> bool:
    """Whether the message, or one with its id, was committed after it had been looked for and before it was queued."""
    return any(kept.id == message.id for kept in run.committed)


def _is_vetoed(run: Run) -> bool:
    message = before_settle(run)
    if message is None:
        return False
    _check_answer_follows(run, message)
    identified = message if message.id else replace(message, id=run.setup.ids("message"))
    run.commit_user(_marked(identified, "before_settle"))
    return True


def _check_answer_follows(run: Run, message: UserMessage) -> None:
    """Ends the run where the message cannot be committed, or no turn is left to answer it in: then it stays queued."""
    check_room(run, size_of(message))
    if not run.setup.limits.wrap_up:  # what wraps up would answer it
        check_turn(run)


def _marked(message: UserMessage, control: str) -> UserMessage:
    """The message with how it came: if the one that opened the run is delivered again, its answer is behind this."""
    return replace(message, metadata={**message.metadata, CONTROL: control})
