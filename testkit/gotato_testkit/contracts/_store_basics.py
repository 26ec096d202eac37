"""What every Store promises of its sessions as a whole: they are made, found, listed and removed."""

from __future__ import annotations

from time import monotonic
from typing import Any

from gotato_py import InvalidArgument, InvalidState, NotFound, UserMessage
from gotato_session import SessionSummary, Store

from ._store_suite import KEEPS, LETS_GO, NEW_IDS, OPENS, Place, StoreSuite, new_id, refused
from ._suite import after, require

_LIST = "list() tells of every session, with its metadata as it is now, and leaves none out (Store.list)"
_MADE = "a session that is given no id gets one of its own (Store.create)"
_IDS = "an id is 1 to 128 ASCII letters, digits, dots, underscores and hyphens, first a letter or digit (Store.create)"


class SessionsContract(StoreSuite):
    """create, open, list, delete."""

    def test_a_session_is_made_and_opened_again(self) -> None:
        """A new session is open for writing; closed, it is found again under its id."""
        promise = "a new session is open for writing, and is found again by its id (Store.create, Store.open)"
        remedy = "create_journal keeps the head; open_journal returns a journal whose entries() begins with it"
        with self._place(promise, remedy) as place:
            given = new_id()
            with place.create(given, metadata={"title": "größer", "n": [1, None]}) as session:
                writable, at_first = not session.read_only, list(session.history)
            with place.open(given, read_only=True) as again:
                found = (again.id, dict(again.metadata), list(again.history))
        require(writable and not at_first, promise, found="a session that is read-only or not empty", remedy=remedy)
        as_given = found[:2] == (given, {"title": "größer", "n": [1, None]}) and not found[2]
        require(as_given, promise, found="another id, other metadata or messages", remedy=remedy)

    @after(OPENS)
    def test_ids_that_are_made_differ(self) -> None:
        """Sessions without an id get different ones, whichever process makes them."""
        with self._place(_MADE) as place:
            ids = {place.create().id for _ in range(5)}
        require(
            len(ids) == 5 and all(ids),
            _MADE,
            found=f"{len(ids - {''})} different ids for 5 sessions",
            remedy="do not count from 1 in each process; random ids need no memory",
        )

    @after(OPENS)
    def test_every_legal_id_is_a_name(self) -> None:
        """Long ones, and ones that begin like another or look like a file's name, are sessions of their own."""
        base = new_id()
        ids = [base, f"{base}.1", f"{base}.jsonl", f"{base}-wal", f"{base}.lease", f"{base}..", f"7{base}"]
        ids.append((base + "x" * 128)[:128])
        with self._place(_IDS) as place:
            for id in ids:
                with place.create(id, metadata={"is": id}):
                    pass
            found: list[object] = []
            for id in ids:
                with place.open(id, read_only=True) as session:
                    found.append(session.get("is"))
        wrong = [index for index, (id, said) in enumerate(zip(ids, found, strict=True)) if id != said]
        require(
            not wrong, _IDS, found=f"{len(wrong)} of {len(ids)} ids led to another session", remedy="keep ids apart"
        )

    @after(OPENS)
    def test_an_illegal_id_is_refused(self) -> None:
        """What could be no file's name, or another place, is refused by each method, and nothing is made."""
        ids: list[Any] = ["", ".x", "-x", "a/b", "../a", "a b", "ä", "a\n", "x" * 129, 7, b"a"]
        with self._place(_IDS) as place:
            store = place.store()
            for id in ids:
                for name, call in (("create", store.create), ("open", store.open), ("delete", store.delete)):
                    refused(
                        lambda call=call, id=id: call(id),  # type: ignore[misc]  # mypy cannot see defaults
                        InvalidArgument, _IDS, f"{name}({id!r})", "raise InvalidArgument before anything is looked up",
                    )  # fmt: skip
            left = {each.id for each in place.store().list()} & {str(id) for id in ids}
        require(not left, _IDS, found=f"{len(left)} of them are listed", remedy="refuse before anything is made")

    @after(OPENS)
    def test_a_session_is_made_once(self) -> None:
        """An id that is taken is refused, whether its session is open or not, and the session stays as it is."""
        promise = "create() refuses an id that there is already, and leaves that session alone (Store.create)"
        remedy = "raise InvalidState in create_journal, decided by the one atomic step that makes the journal"
        with self._place(promise, remedy) as place:
            id = new_id()
            with place.create(id, metadata={"first": True}) as session:
                session.append(UserMessage("one"))
                refused(
                    lambda: place.create(id), InvalidState, promise, "while it was open, create() of its id", remedy
                )
            refused(lambda: place.create(id), InvalidState, promise, "create() of an id that is taken", remedy)
            with place.open(id, read_only=True) as again:
                kept = again.get("first") is True and len(again.history) == 1
        require(kept, promise, found="the session has changed", remedy=remedy)

    @after(OPENS, LETS_GO)
    def test_what_is_not_there_is_not_found(self) -> None:
        """Opening and removing an unknown id raise NotFound and make nothing; `create=True` makes it."""
        promise = "an id that no session has is NotFound, and create=True makes the session (Store.open, Store.delete)"
        with self._place(promise) as place:
            id, remedy = new_id(), "raise NotFound in open_journal and delete_journal; make nothing there"
            refused(lambda: place.open(id), NotFound, promise, "open()", remedy)
            refused(lambda: place.open(id, read_only=True), NotFound, promise, "open(read_only=True)", remedy)
            refused(lambda: place.open(id, steal=True), NotFound, promise, "open(steal=True)", remedy)
            refused(lambda: place.store().delete(id), NotFound, promise, "delete()", remedy)
            made = id in _ids(place.store())
            require(not made, promise, found="open() or delete() of an unknown id made a session", remedy=remedy)
            with place.open(id, create=True) as session:
                session.append(UserMessage("one"))
            with place.open(id, create=True) as session:
                count = len(session.history)
        require(count == 1, promise, found=f"{count} messages after create=True of what is there", remedy=remedy)

    @after(OPENS, KEEPS, NEW_IDS)
    def test_list_tells_of_each_session(self) -> None:
        """Ids, parents, times, sizes and metadata are right; metadata that were set later count."""
        with self._place(_LIST) as place:
            with place.create(new_id(), metadata={"a": 1, "b": 1}) as session, session.fork() as fork:
                ids = (session.id, fork.id)
                session.append(UserMessage("one"))
                session.set("a", 2)
            found = {each.id: each for each in place.store().list() if each.id in ids}
            told = list(place.store().list(where={"a": 2, "b": 1}))
            chosen = list(place.store().list(where=lambda each: each.parent_id == ids[0]))
        require(
            set(found) == set(ids), _LIST, found=f"{len(found)} of 2 sessions", remedy="yield one summary a session"
        )
        one, two = found[ids[0]], found[ids[1]]
        fine = (one.parent_id, two.parent_id) == ("", ids[0]) and one.metadata in (None, {"a": 2, "b": 1})
        require(fine, _LIST, found="a wrong parent_id, or metadata of before", remedy="take both from the journal")
        sound = all(0 < each.created_at <= each.updated_at and each.size > 0 for each in (one, two))
        require(sound, _LIST, found="a time or size that cannot be", remedy="give Unix seconds and bytes as stored")
        counts = one.messages in (None, 1) and two.messages in (None, 0, 1)
        require(counts, _LIST, found="a wrong number of messages", remedy="give None where it is not known")
        require(
            _only(told, ids) == [ids[0]] and _only(chosen, ids) == [ids[1]],
            "`where` chooses by what the metadata are now, or asks each summary (Store.list)",
            found=f"{len(_only(told, ids))} and {len(_only(chosen, ids))} sessions where 1 and 1 were due",
            remedy="leave the choice to StoreBase.list, or choose by the newest metadata",
        )

    @after(OPENS, KEEPS)
    def test_list_begins_with_what_was_changed_last(self) -> None:
        """A commit brings a session to the front; `limit` cuts behind it."""
        promise = "the sessions are listed those changed last first, no more than `limit` (Store.list)"
        with self._place(promise) as place:
            ids = [new_id() for _ in range(3)]
            sessions = {id: place.create(id) for id in ids}
            order = [
                _brought_to_front(place, sessions[id].append, id, monotonic() + self.patience)
                for id in (ids[1], ids[2], ids[0])
            ]
            none = list(place.store().list(limit=0))
            refused(lambda: place.store().list(limit=-1), InvalidArgument, promise, "limit=-1", "raise InvalidArgument")
        remedy = "sort by the time of the last commit"
        require(all(order), promise, found="a session that was changed is not listed first", remedy=remedy)
        require(not none, promise, found=f"{len(none)} sessions with limit=0", remedy="cut the list")

    @after(OPENS, LETS_GO)
    def test_a_session_that_was_removed_is_gone(self) -> None:
        """It is not found, not listed, and its id is free for a new one that begins empty."""
        promise, remedy = "delete() removes a session (Store.delete)", "remove all of it, and free its id"
        with self._place(promise, remedy) as place:
            id = new_id()
            with place.create(id) as session:
                session.append(UserMessage("one"))
            place.store().delete(id)
            refused(lambda: place.open(id, read_only=True), NotFound, promise, "open() of it", remedy)
            require(id not in _ids(place.store()), promise, found="it is listed", remedy=remedy)
            with place.create(id) as session:
                count = len(session.history)
        require(count == 0, promise, found=f"a new session with its id has {count} messages", remedy=remedy)


def _brought_to_front(place: Place, append: Any, id: str, end: float) -> bool:  # Any: a generic method
    """Appends until the session is the first of the list: clocks have ticks. The last time is behind `end`, however
    long this process was kept from running."""
    while True:
        last = monotonic() > end
        append(UserMessage("again"))
        first = next(iter(place.store().list(limit=1)), None)
        if first is not None and first.id == id:
            return True
        if last:
            return False


def _ids(store: Store) -> set[str]:
    return {each.id for each in store.list()}


def _only(found: list[SessionSummary], ids: tuple[str, ...]) -> list[str]:
    """The ids among those of a test's own: the place may hold other sessions."""
    return [each.id for each in found if each.id in ids]
