"""What `StoreBase` asks of a store's journals, beside what is seen through sessions."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from unittest import SkipTest

from hypothesis import strategies as st

from gotato_py import InvalidState, NotFound
from gotato_session import Journal, StoreBase
from gotato_testkit import strategies as gst

from ._store_suite import LETS_GO, OPENS, Place, StoreSuite, new_id, refused
from ._suite import after, require

_EXACT = "entries() gives back the head and every entry that append() was given, as it was (Journal)"
_REMEDY = "write strict JSON and read it back; keep every member, and the order of the entries"


class JournalsContract(StoreSuite):
    """create_journal, open_journal and the journal's own methods (skipped for a store that is no StoreBase)."""

    @after(OPENS)
    def test_entries_come_back_as_they_were(self) -> None:
        """Whatever plain JSON data they hold, one commit after another, to the writer and to each that opens it."""

        def check(commits: list[list[dict[str, Any]]]) -> None:  # Any: JSON values
            with self._place(_EXACT, _REMEDY) as place, _journal(place) as (store, id, journal):
                given = [*journal.entries()]
                for values in commits:
                    entries = [_event(len(given) + at, value) for at, value in enumerate(values)]
                    journal.append([{**each} for each in entries])
                    given += entries
                seen = journal.entries() == given
                last = getattr(journal, "last_seq", len(given) - 1)
                journal.sync()
                journal.close()
                other = store.open_journal(id, "another", True, False)
                found, counted = other.entries(), getattr(other, "last_seq", len(given) - 1)
                other.close()
            require(seen and found == given, _EXACT, found=f"{len(found)} entries, or others, where {len(given)} were "
                    "kept", remedy=_REMEDY)  # fmt: skip
            require(
                (last, counted) == (len(given) - 1,) * 2,
                "last_seq is the number of the last entry that is kept (Journal.last_seq)",
                found=f"{last} and {counted} where {len(given) - 1} entries are kept",
                remedy="count what append() has kept, or leave last_seq out",
            )

        check([])
        check([[{"text": "größer \U0001d11e \u2028\x85\x00\n"}, {"n": 2**60}], [{"x": [1e-9, None, True, {"": []}]}]])
        check([[{"large": "x" * 300_000}], [{"after": 1}]])
        self.for_all(st.lists(st.lists(gst.json_objects(), min_size=1, max_size=3), max_size=3), check)

    @after(OPENS)
    def test_a_commit_of_nothing_changes_nothing(self) -> None:
        """append([]) is no commit."""
        with self._place(_EXACT) as place, _journal(place) as (_, _, journal):
            journal.append([])
            journal.append([_event(1, {})])
            count = len(journal.entries())
        require(count == 2, _EXACT, found=f"{count} entries where a head and one were kept", remedy="return at once")

    @after(OPENS, LETS_GO)
    def test_a_closed_journal_keeps_nothing(self) -> None:
        """append() behind close() raises; closing twice is fine."""
        promise = "a journal that was closed takes nothing (Journal.close)"
        with self._place(promise) as place, _journal(place) as (store, id, journal):
            journal.close()
            journal.close()
            refused(lambda: journal.append([_event(1, {})]), Exception, promise, "append()", "raise InvalidState")
            other = store.open_journal(id, "another", False, False)
            count = len(other.entries())
            other.close()
        require(count == 1, promise, found=f"{count} entries where a head was kept", remedy="raise before writing")

    @after(OPENS)
    def test_a_journal_is_made_whole(self) -> None:
        """create_journal() keeps the head alone, and takes no lease; it refuses an id that is taken."""
        promise = "create_journal() keeps the head, all or nothing (StoreBase.create_journal)"
        with self._place(promise) as place:
            store = _base(place)
            id = new_id()
            head = {"gotato_session": 1, "id": id, "created_at": 1e9, "metadata": {"a": "größer"}}
            store.create_journal(id, {**head})
            remedy = "raise InvalidState, and keep the head that was there"
            refused(lambda: store.create_journal(id, {**head, "metadata": {}}), InvalidState, promise, "a second head",
                    remedy)  # fmt: skip
            refused(lambda: store.open_journal(new_id(), "me", False, False), NotFound, promise, "opening another",
                    "raise NotFound")  # fmt: skip
            journal = store.open_journal(id, "me", False, False)
            found, lease = journal.entries(), journal.lease
            journal.close()
        require(found == [head], promise, found="other entries than the head", remedy=_REMEDY)
        require(lease is not None and lease.owner == "me", promise, found="no lease of the writer's", remedy="name him")


def _base(place: Place) -> StoreBase:
    store = place.store()
    if not isinstance(store, StoreBase):
        raise SkipTest("the store does not derive from StoreBase")
    return store


@contextmanager
def _journal(place: Place) -> Generator[tuple[StoreBase, str, Journal]]:
    """A new journal, open for writing."""
    store, id = _base(place), new_id()
    store.create_journal(id, {"gotato_session": 1, "id": id, "created_at": 1e9})
    journal = store.open_journal(id, "me", False, False)
    try:
        yield store, id, journal
    finally:
        journal.close()


def _event(seq: int, value: dict[str, Any]) -> dict[str, Any]:  # Any: JSON values
    return {"seq": seq, "v": 1, "type": "event", "time": 1e9 + seq, "event": value}
