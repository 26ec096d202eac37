"""A store of sessions: the seam that applications see, and the base on which a store's author builds."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, takewhile
from typing import Any, Protocol

from gotato_py import Clock, InvalidArgument, InvalidState, NotFound, NotSupported, SessionCorrupt, SystemClock

from ._ancestors import is_gap, what_is_left
from ._arguments import a_session_id, a_text, new_session_id, random_ids, time_of, wrong
from ._collector import collector_at_rest
from ._entry_json import entry_to_dict
from ._failures import told
from ._head import new_head
from ._json import json_object, json_value, shallow_text
from ._opening import Readable, first_state, open_log
from ._salvaging import salvaged
from .journal import Journal, JSONObject
from .lease import default_owner
from .session import Session
from .summary import SessionSummary

Stored = list[JSONObject]
Where = Mapping[str, object] | Callable[[SessionSummary], bool]
"""Which sessions: values that their metadata must have, or a question asked of each summary."""


class Store(Protocol):
    """Where sessions are kept."""

    def create(
        self, id: str | None = None, *, owner: str | None = None, metadata: Mapping[str, object] | None = None
    ) -> Session:
        """A new session, open for writing. Raises `InvalidState` if there is one with that id."""
        ...

    def open(
        self,
        id: str,
        *,
        owner: str | None = None,
        create: bool = False,
        read_only: bool = False,
        steal: bool = False,
        repair: bool = False,
    ) -> Session:
        """The session with that id. One `Session` object at a time, of all processes, may write to it.

        `create` makes it where there is none; `read_only` changes nothing and asks for no lease; `steal` takes it from
        an owner who lives (a dead one has let it go); `repair` opens a copy of a damaged one, with its gaps marked, and
        leaves the damaged one alone. `owner` is a name for people, "host:pid" if left out.

        Raises `NotFound`, `SessionBusy` at once, `SessionCorrupt`, `NotSupported` for one that a newer release wrote.
        """
        ...

    def list(self, *, where: Where | None = None, limit: int | None = None) -> Iterator[SessionSummary]:
        """The sessions, those changed last first."""
        ...

    def delete(self, id: str) -> None:
        """Removes a session. Raises `NotFound`, `SessionBusy` while it is open, `InvalidState` while it has forks."""
        ...


class StoreBase(ABC):
    """What a store's author derives from: four or five methods about journals; this and `Session` do the rest.

    `clock` says when things happened, `ids(kind)` makes ids, kind "session" or "message"; a store may set its own.
    """

    clock: Clock = SystemClock()
    ids: Callable[[str], str] = staticmethod(random_ids)

    # ---- what an author writes

    @abstractmethod
    def create_journal(self, id: str, head: JSONObject) -> object:
        """Makes a journal that holds the head alone, all or nothing; what it returns is ignored.

        Raises `InvalidState` if there is one already."""

    @abstractmethod
    def open_journal(self, id: str, owner: str, read_only: bool, steal: bool) -> Journal:
        """The journal. Raises what `Store.open` names; a writer has the lease from here on."""

    @abstractmethod
    def summaries(self) -> Iterator[SessionSummary]:
        """All sessions, in any order."""

    @abstractmethod
    def delete_journal(self, id: str) -> None:
        """Removes a journal. Raises `NotFound`, and `SessionBusy` while a writer has it."""

    def salvage_journal(self, id: str) -> Sequence[JSONObject]:
        """What can be read of a damaged journal, its head first, and `{"type": "gap", "text": …}` where something is
        missing; it changes nothing. Optional: this gives what `entries` of the journal does, and raises `NotSupported`
        where that is damaged itself."""
        try:
            return self._entries(id)
        except SessionCorrupt as error:
            text = f"{type(self).__name__} cannot read what is left of a damaged session: {error.message}"
            raise NotSupported(text) from None

    def forks_of(self, id: str) -> Sequence[str]:
        """The ids of the sessions that were forked from that one. A store that need not read all has its own way."""
        return [each.id for each in self.summaries() if each.parent_id == id]

    # ---- what applications call

    def create(
        self, id: str | None = None, *, owner: str | None = None, metadata: Mapping[str, object] | None = None
    ) -> Session:
        """A new session, open for writing. Raises `InvalidState` if there is one with that id."""
        made = new_session_id("create", id, self.ids)
        values = json_object("create: metadata", metadata, shallow_text)
        with told(f"the session {made} could not be created", "Store.create"):
            journal = self.keep(new_head(made, time_of(self.clock), values), owner)
            return self._session(made, journal)

    def open(
        self,
        id: str,
        *,
        owner: str | None = None,
        create: bool = False,
        read_only: bool = False,
        steal: bool = False,
        repair: bool = False,
    ) -> Session:
        """The session with that id, as `Store.open` says."""
        a_session_id("open: id", id)
        named = _owner(owner)
        if read_only and (create or steal or repair):
            raise InvalidArgument("open: read_only changes nothing; create, steal and repair do")
        if repair:
            with told(f"the session {id} could not be repaired", "Store.open"):
                return self._repaired(id, named, create=create, steal=steal)
        try:
            return self._read(id, named, read_only=read_only, steal=steal)
        except NotFound:
            if not create:
                raise
            try:
                return self.create(id, owner=owner)
            except InvalidState:  # another came first
                return self._read(id, named, read_only=read_only, steal=steal)

    def list(self, *, where: Where | None = None, limit: int | None = None) -> Iterator[SessionSummary]:
        """The sessions, those changed last first; `where` is what their metadata must have, or asks each summary."""
        if limit is not None and (type(limit) is not int or limit < 0):
            raise InvalidArgument("list: limit must be None or an int of at least 0")
        if where is None or callable(where):
            fits = where
        elif isinstance(where, Mapping):
            wanted = {key: json_value(text) for key, text in json_object("list: where", where).items()}
            fits = partial(self._has, wanted)
        else:
            raise wrong("list: where", "a mapping or a callable", where)
        with told("the sessions could not be listed", "Store.list"):
            found = sorted(self.summaries(), key=lambda each: (-each.updated_at, each.id))
        most = None if limit is None else min(limit, sys.maxsize)
        return islice(found if fits is None else filter(fits, found), most)

    def delete(self, id: str) -> None:
        """Removes a session. Raises `NotFound`, `SessionBusy` while it is open, `InvalidState` while it has forks."""
        a_session_id("delete: id", id)
        with told(f"the session {id} could not be deleted", "Store.delete"):
            if forks := self.forks_of(id):
                text = f"the session {id} has forks, which need it: {', '.join(forks[:3])}; delete these first"
                raise InvalidState(text, operation="Store.delete")
            self.delete_journal(id)

    def keep(self, head: JSONObject, owner: str | None, source: Journal | None = None) -> Journal:
        """A new journal that holds the head alone, open for writing. A fork of a session that its `source` does not
        write to, so that it may have been removed meanwhile, is not kept then: `NotFound`."""
        named = _owner(owner)
        id: str = head["id"]
        self.create_journal(id, head)
        journal = self.open_journal(id, named, False, False)
        if source is not None:  # asked only now: from here on the session has a fork, and is not removed
            try:
                self._check_kept(head, source)
            except BaseException:
                journal.close()
                self.delete_journal(id)
                raise
        return journal

    def _check_kept(self, head: JSONObject, source: Journal) -> None:
        is_kept: object = getattr(source, "is_kept", None)
        cause: SessionCorrupt | None = None
        if callable(is_kept):
            if is_kept():
                return
        else:
            try:
                first_state(head["id"], [head], self._entries_of)
                return
            except SessionCorrupt as error:
                cause = error
        text = f"the session {head['parent_id']} was removed, replaced or damaged since it was opened"
        raise NotFound(text, operation="Session.fork", cause=cause) from cause

    def _has(self, wanted: Mapping[str, object], summary: SessionSummary) -> bool:
        metadata: Mapping[str, Any] | None = summary.metadata  # Any: JSON values
        if metadata is None:  # the list cannot know them
            try:
                with self.open(summary.id, read_only=True) as session:
                    metadata = session.metadata
            except (NotFound, NotSupported, SessionCorrupt):  # removed meanwhile, or nobody can know them
                return False
        return all(key in metadata and metadata[key] == each for key, each in wanted.items())

    def _entries_of(self, id: str) -> Readable:
        """What a fork may share of a session: where that is damaged, everything before the damage."""
        try:
            return Readable(self._entries(id))
        except SessionCorrupt as error:
            try:
                left = self.salvage_journal(id)
            except NotSupported:
                raise error from None
            return Readable([*takewhile(lambda entry: not is_gap(entry), left)], error)

    def _entries(self, id: str) -> Stored:
        journal = self.open_journal(id, default_owner(), True, False)
        try:
            return journal.entries()
        finally:
            journal.close()

    def _read(self, id: str, owner: str, *, read_only: bool, steal: bool) -> Session:
        what = f"the session {id} could not be opened"
        with told(what, "Store.open"), collector_at_rest():  # also while what was read of it is forgotten again
            return self._session(id, self.open_journal(id, owner, read_only, steal), read_only=read_only)

    def _session(self, id: str, journal: Journal, *, read_only: bool = False) -> Session:
        """The session of an open journal; one that cannot be read is let go."""
        try:
            head, log = open_log(id, journal, self.clock, self._entries_of)
            made = Session._of(id, head.parent_id, log, self.clock, self.ids, self)  # pyright: ignore[reportPrivateUsage]  # the package's own
            if read_only:
                log.read_only = True
            else:
                made._close_calls()  # pyright: ignore[reportPrivateUsage]  # as above
            return made
        except BaseException:
            journal.close()
            raise

    def _repaired(self, id: str, owner: str, *, create: bool, steal: bool) -> Session:
        """The session itself if nothing is wrong with it, else a copy of what is left of it."""
        try:
            return self.open(id, owner=owner, create=create, steal=steal)
        except SessionCorrupt:
            stored = [*self.salvage_journal(id)]
        try:
            _, state, _ = first_state(id, stored, self._entries_of)
        except SessionCorrupt:  # what a fork shares is lost, too: the copy stands alone
            stored = what_is_left(id, self.salvage_journal)
            _, state, _ = first_state(id, stored, self._entries_of)
        entries = salvaged(stored[1:], state, lambda: self.ids("message"))
        copy_id, journal = self._copy_of(id, stored[0], owner)
        try:
            journal.append([entry_to_dict(entry) for entry in entries])
        except BaseException:
            journal.close()
            raise
        return self._session(copy_id, journal)

    def _copy_of(self, id: str, head: JSONObject, owner: str) -> tuple[str, Journal]:
        """A new journal for what is left of a session, and its id, which says so."""
        number = 1
        while True:
            copy_id = f"{id[:100]}.repaired" + (f"-{number}" if number > 1 else "")
            try:
                return copy_id, self.keep({**head, "id": copy_id, "created_at": time_of(self.clock)}, owner)
            except InvalidState:  # there is one already
                number += 1


def _owner(given: str | None) -> str:
    return default_owner() if given is None else a_text("owner", given)
