"""A session as one piece of plain JSON data, and back: to carry it from one store to another, or to keep it aside.

    {"gotato_export": 1, "id": "s-…", "created_at": 1.7e9, "metadata": {…}, "entries": [{"seq": 1, "v": 1, …}, …]}

The entries are those of the journal, in their order. `metadata` is what the session began with.
"""

# The log of a session, and how a store makes one of a journal, are the package's own:
# pyright: reportPrivateUsage=false

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from math import isfinite
from typing import NamedTuple

from gotato_py import GotatoError, InvalidArgument, NotSupported

from ._arguments import a_session_id, wrong
from ._entries import CompactionEntry, Entry, SettlementEntry
from ._entry_json import entry_from_dict, entry_to_dict
from ._flattening import flattened
from ._head import new_head
from ._json import is_list, is_object, json_object, json_text, json_value
from ._opening import check_fit
from ._state import State
from .journal import Journal, JSONObject
from .session import Session
from .store import StoreBase

FORMAT = 1
"""The version of an export; a newer one is not read."""

_OPERATION = "import_session"


# ---- out


def export_session(session: Session) -> JSONObject:
    """The whole session as plain JSON data: every branch, mark, run and event of it, in the order in which they came.

    What a fork shares with its parent becomes its own: the data need no other session, and name none. Reads what is
    committed and changes nothing. Raises `InvalidArgument` for what is no session and for a message that JSON cannot
    hold, and what reading the session's journal raises.
    """
    if not isinstance(session, Session):
        raise wrong("export_session: session", "a Session", session)
    log = session._log
    base, count = log._base(), log.state.applied
    own = [entry for number in range(1, count + 1) for entry in log._commits[number]]
    entries = [entry_to_dict(entry) for entry in (*flattened(base), *own)]
    for seq, entry in enumerate(entries, start=1):
        entry["seq"] = seq
    metadata = {key: json_value(text) for key, text in base.values.items()}
    created_at = _created_at(session, entries)
    return {
        "gotato_export": FORMAT,
        "id": session.id,
        "created_at": created_at,
        "metadata": metadata,
        "entries": entries,
    }


def _created_at(session: Session, entries: Sequence[JSONObject]) -> float:
    """What its journal says; in memory, and once it is closed, the time of its first entry."""
    log = session._log
    if log.journal is not None and not log.closed:
        is_mine = os.getpid() == log._pid  # else a thread that is not in this process may have the turn for ever
        with log._turn if is_mine else nullcontext():  # a journal is asked by one thread at a time
            found: float = log.journal.entries()[0]["created_at"]
            return found
    first: float = entries[0]["time"] if entries else session._clock.time()
    return first


# ---- in


class _Read(NamedTuple):
    """An export that was read and holds together."""

    id: str
    created_at: float
    values: dict[str, str]
    entries: list[JSONObject]


def import_session(
    store: StoreBase, data: Mapping[str, object], *, id: str | None = None, owner: str | None = None
) -> Session:
    """Makes a session in the store from what `export_session` gave, and returns it, open for writing.

    It has the id that it had, or `id`. Exporting it gives the same data again; only calls that are open and that nobody
    waits for are closed, as whenever a session is opened for writing. All of `data` is checked before anything is
    stored: raises `InvalidArgument`, with the path of what is wrong ("entries[3]: …"), `NotSupported` for an export of
    a newer release, `InvalidState` if the store has a session with that id, and `StoreFailure`; nothing is kept then.
    """
    if not isinstance(store, StoreBase):
        raise wrong(f"{_OPERATION}: store", "a StoreBase, as all stores of this package are", store)
    found = _read(data)
    target = a_session_id(f"{_OPERATION}: id", found.id if id is None else id)
    journal = store.keep(new_head(target, found.created_at, found.values), owner)
    try:
        if found.entries:
            journal.append(found.entries)
        journal.sync()
        return store._session(target, journal)
    except BaseException:
        _forget(store, target, journal)
        raise


def _forget(store: StoreBase, id: str, journal: Journal) -> None:
    """Takes back what was stored; what cannot be taken back is not told: why it had to be is."""
    try:
        journal.close()
        store.delete_journal(id)
    except (GotatoError, OSError):
        pass


def _read(data: Mapping[str, object]) -> _Read:
    if not isinstance(data, Mapping):
        raise wrong(f"{_OPERATION}: data", "a mapping, what export_session gave", data)
    version = data.get("gotato_export")
    if type(version) is not int:
        raise InvalidArgument(f"{_OPERATION}: gotato_export is no version number: this is no export of a session")
    if version > FORMAT:
        text = f"a newer release exported it (version {version}, this one reads {FORMAT})"
        raise NotSupported(text, operation=_OPERATION)
    id, created_at = (
        a_session_id(f"{_OPERATION}: id", data.get("id")),
        _a_time(f"{_OPERATION}: created_at", data.get("created_at")),
    )
    metadata, entries = data.get("metadata", {}), data.get("entries")
    if not is_object(metadata):
        raise wrong(f"{_OPERATION}: metadata", "a JSON object (a dict)", metadata)
    if not is_list(entries):
        raise wrong(f"{_OPERATION}: entries", "a JSON array (a list)", entries)
    values = json_object(f"{_OPERATION}: metadata", metadata)
    state = State(values)
    return _Read(id, created_at, values, [_entry(f"entries[{at}]", each, state) for at, each in enumerate(entries)])


def _entry(where: str, given: object, state: State) -> JSONObject:
    """The entry as this release writes it; the state takes it."""
    if not is_object(given):
        raise wrong(f"{_OPERATION}: {where}", "a JSON object (a dict)", given)
    plain = json_value(json_text(f"{_OPERATION}: {where}", given))
    try:
        _a_time("time", plain.get("time", 0.0))
        entry = entry_from_dict(plain)
        _check_new(entry, state)
        check_fit(entry, state)
    except NotSupported as error:
        raise NotSupported(f"{where}: {error.message}", operation=_OPERATION) from None
    except GotatoError as error:
        raise InvalidArgument(f"{_OPERATION}: {where}: {error.message}") from None
    state.take((entry,))
    return entry_to_dict(entry)


def _check_new(entry: Entry, state: State) -> None:
    """An id that came before would lead the tree in a circle."""
    match entry:
        case CompactionEntry():
            id = entry.compaction.summary.id
        case SettlementEntry():
            id = entry.message.id
        case _:
            return
    if id in state.nodes or id in state.held:
        raise InvalidArgument(f"there is an entry with the id {id!r} before it")


def _a_time(where: str, given: object) -> float:
    try:
        if isinstance(given, int | float) and not isinstance(given, bool) and isfinite(given):
            return float(given)
    except OverflowError:  # an int that no float can be
        pass
    raise InvalidArgument(f"{where} must be a finite number of seconds")
