"""What the suites for stores share: a place that is opened again and again, a picture of all that a session says."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from unittest import SkipTest
from uuid import uuid4

from gotato_py import GotatoError, message_to_dict, record_to_dict
from gotato_session import Session, Store

from ._suite import BrokenPromise, Suite, require, shaped

OPENS = "test_a_session_is_made_and_opened_again"
KEEPS = "test_messages_are_there_after_reopening"
ONE_WRITER = "test_a_second_writer_is_refused_at_once"
LETS_GO = "test_a_session_that_was_closed_is_free"
NEW_IDS = "test_ids_that_are_made_differ"
FORKS = "test_a_fork_begins_with_what_is_common"

Open = Callable[..., Session]
_KEEP_IT = "see what StoreBase and Journal say of each method"


def new_id() -> str:
    """An id that no session of the place has."""
    return f"t-{uuid4().hex}"


class Place:
    """Where the sessions are: each call opens it anew, as another process would; all is closed at the end."""

    def __init__(self, make: Callable[[], Store]) -> None:
        self._make = make
        self.stores: list[Store] = []
        self.sessions: list[Session] = []

    def store(self) -> Store:
        """The place, opened once more."""
        made = shaped(self._make(), "create", "open", "list", "delete")
        self.stores.append(made)
        return made

    def create(self, id: str | None = None, **options: object) -> Session:
        """A new session of it."""
        return self._noted(self.store().create, id, options)

    def open(self, id: str, **options: object) -> Session:
        """A session of it."""
        return self._noted(self.store().open, id, options)

    def _noted(self, call: Open, id: str | None, options: dict[str, object]) -> Session:
        session = call(id, **options)
        self.sessions.append(session)
        return session


class StoreSuite(Suite):
    """What the suites for stores share."""

    def make(self) -> Store:
        """The store: the same place each time, opened as another process would."""
        raise NotImplementedError("a StoreContract needs make(), which returns the store to test")

    def close(self, store: Store) -> None:
        """Lets go of a store, as its process would at its end; calls its `close` if it has one."""
        close = getattr(store, "close", None)
        if close is not None:
            close()

    @contextmanager
    def _place(self, promise: str, remedy: str = _KEEP_IT) -> Generator[Place]:
        """The place; what a test has opened there is closed at its end. An error that a test does not expect breaks the
        promise that it is about."""
        place = Place(self.make)
        try:
            yield place
        except (AssertionError, SkipTest, NotImplementedError):
            raise
        except Exception as error:
            raise BrokenPromise(promise, f"it raised {type(error).__name__}", remedy) from error
        finally:
            for session in place.sessions:
                with suppress(GotatoError):
                    session.close()
            for store in place.stores:
                self.close(store)


def picture(session: Session) -> dict[str, object]:
    """Everything that a session says, as plain values."""
    return {
        "id": session.id,
        "parent_id": session.parent_id,
        "history": [message_to_dict(each) for each in session.history],
        "messages": [message_to_dict(each) for each in session.messages],
        "path": list(session.path),
        "tree": list(session.tree.items()),
        "leaves": list(session.leaves),
        "labels": dict(session.labels),
        "metadata": dict(session.metadata),
        "started": sorted(session.started),
        "waiting": [record_to_dict(each) for each in session.waiting],
        "compactions": [record_to_dict(each) for each in session.compactions],
        "runs": [record_to_dict(each) for each in session.runs],
        "usage": session.usage,
        "events": list(session.events),
        "check": [(each.index, each.rule, each.text) for each in session.check()],
    }


def differing(one: dict[str, object], other: dict[str, object]) -> str:
    """The names of what differs in two pictures; "" if nothing does. No content is quoted."""
    return ", ".join(name for name in one if one[name] != other[name])


def refused(
    call: Callable[[], object], kind: type[Exception], promise: str, what: str, remedy: str
) -> Exception | None:
    """The error of a call that has to raise one of that kind."""
    error: Exception | None = None
    try:
        call()
    except Exception as raised:
        error = raised
    said = "nothing" if error is None else type(error).__name__  # its message may hold anything
    require(isinstance(error, kind), promise, found=f"{what} raised {said}", remedy=remedy)
    return error
