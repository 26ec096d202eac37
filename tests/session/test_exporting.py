"""`export_session` and `import_session`: the whole of a session as plain data, and back, in every store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_py import (
    Compaction,
    GotatoError,
    InvalidArgument,
    InvalidState,
    NotFound,
    NotSupported,
    StoreFailure,
    ToolMessage,
    ToolResult,
    TurnStart,
    UserMessage,
    WaitingCall,
)
from gotato_session import FileStore, Journal, MemoryStore, Session, SQLiteStore, StoreBase
from gotato_session._flattening import flattened
from gotato_session._state import State
from gotato_session.exporting import export_session, import_session

from .histories import answer, result, run_record, user
from .lives import live

STORES: Mapping[str, Callable[[Path], StoreBase]] = {
    "memory": lambda folder: MemoryStore(),
    "file": lambda folder: FileStore(folder / "sessions", sync="never"),
    "sqlite": lambda folder: SQLiteStore(folder / "sessions.db", sync="never"),
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoreBase]:
    """A store of each kind, empty."""
    made = STORES[request.param](tmp_path)
    yield made
    if isinstance(made, SQLiteStore):
        made.close()


def facts(session: Session) -> dict[str, Any]:
    """Everything that can be read of a session but its id."""
    names = (
        "messages", "history", "compactions", "runs", "usage", "metadata", "labels", "events", "path", "tree", "leaves",
        "waiting", "recovered",
    )  # fmt: skip
    found = {name: getattr(session, name) for name in names}
    found["messages"], found["history"] = list(session.messages), list(session.history)
    return found | {"started": set(session.started), "tree": list(session.tree.items())}


def test_a_round_trip_is_exact(store: StoreBase) -> None:
    """An imported session says what the exported one says, and its own export is the same data."""
    session = live(MemoryStore().create("s-1", metadata={"tenant": 7}))
    data = export_session(session)
    with import_session(store, json.loads(json.dumps(data)), owner="me") as made:
        assert (made.id, made.parent_id, made.lease and made.lease.owner) == ("s-1", "", "me")
        assert facts(made) == facts(session)
        assert export_session(made) == data
    with store.open("s-1") as again:
        assert facts(again) == facts(session)
        assert export_session(again) == data
        again.mark_waiting([])


def test_an_export_is_strict_json_in_the_order_of_what_happened() -> None:
    """It holds its version, the head's facts, and every entry, numbered from 1."""
    store = MemoryStore()
    session = live(store.create("s-1", metadata={"tenant": 7}))
    data = json.loads(json.dumps(export_session(session), allow_nan=False))
    assert list(data) == ["gotato_export", "id", "created_at", "metadata", "entries"]
    assert (data["gotato_export"], data["id"], data["metadata"]) == (1, "s-1", {"tenant": 7})
    (summary,) = store.list()
    assert data["created_at"] == summary.created_at
    assert [each["seq"] for each in data["entries"]] == list(range(1, len(data["entries"]) + 1))
    assert [each["type"] for each in data["entries"][:5]] == ["metadata", "message", "message", "started", "message"]
    kinds = {"message", "started", "waiting", "compaction", "run", "branch", "label", "metadata", "settlement", "event"}
    assert {each["type"] for each in data["entries"]} == kinds


def test_a_fork_is_exported_with_what_it_shares(store: StoreBase) -> None:
    """What a fork has from its parent, and from the parent's parent, is its own in the export and after the import."""
    parent = live(store.create("s-1", metadata={"tenant": 7}))
    child = parent.fork("a3", id="s-2")
    child.append(answer("b1"))
    child.label("sunny", "u1")
    grandchild = child.fork(id="s-3")
    grandchild.set("task", None)
    grandchild.append(user("b2"))
    data = export_session(grandchild)
    for session in (parent, child, grandchild):
        session.close()
    with store.open("s-3", read_only=True) as opened:
        assert export_session(opened) == data
    made = import_session(MemoryStore(), data)
    assert made.parent_id == ""
    assert facts(made) == facts(grandchild)
    assert export_session(made) == data
    assert [each["type"] for each in data["entries"] if each["type"] in ("run", "waiting", "event")] == []


def test_a_session_in_memory_alone_can_be_exported(store: StoreBase) -> None:
    """One that no store keeps, and one that is closed, are exported too: they began with their first entry."""
    session = Session("s-1", metadata={"a": 1})
    empty = export_session(session)
    assert (empty["entries"], empty["metadata"], type(empty["created_at"])) == ([], {"a": 1}, float)
    with import_session(store, empty, id="s-0") as made:
        assert (made.id, made.history, made.metadata) == ("s-0", (), {"a": 1})
    live(session).close()
    data = export_session(session)
    assert data["created_at"] == data["entries"][0]["time"]
    with import_session(store, data) as made:
        assert facts(made) == facts(session)
        made.mark_waiting([])
    fork = session.fork(id="s-9")
    assert facts(import_session(MemoryStore(), export_session(fork))) == facts(fork)


def test_a_forked_child_waits_for_no_thread_of_its_parent() -> None:
    """The turn of a writer that is not in this process is not waited for."""
    session = live(MemoryStore().create("s-1"))
    data = export_session(session)
    taken, done = Event(), Event()

    def write() -> None:
        with session._log._turn:
            taken.set()
            done.wait(60)

    writer = Thread(target=write)
    writer.start()
    taken.wait(60)
    session._log._pid = -1  # as the child sees it
    try:
        assert export_session(session) == data
    finally:
        done.set()
        writer.join(60)


def test_open_calls_are_closed_as_at_every_opening(store: StoreBase) -> None:
    """What was exported in the middle of a run is stored as it was, and closed by the one who opens it to write."""
    session = Session("s-1")
    session.append(answer("a1", calls=2))
    session.mark_started("a1:0")
    with import_session(store, export_session(session)) as made:
        results = [each.result.status for each in made.history if isinstance(each, ToolMessage)]
        assert results == ["cancelled", "not_run"]
        assert export_session(made)["entries"][:2] == export_session(session)["entries"]


def test_an_id_that_is_taken_is_refused(store: StoreBase) -> None:
    """The session that is there stays what it was; another id can be given."""
    with store.create("s-1") as session:
        session.append(user("u1"))
    data = export_session(live(Session("s-1")))
    with pytest.raises(InvalidState):
        import_session(store, data)
    with store.open("s-1", read_only=True) as session:
        assert [each.id for each in session.history] == ["u1"]
    with import_session(store, data, id="s-2") as made:
        assert made.id == "s-2"
        assert made.waiting
        made.mark_waiting([])


def changed(**changes: object) -> dict[str, Any]:
    """An export of two messages with some members changed, or left out where None is given."""
    session = Session("s-1", metadata={"a": 1})
    session.append(user("u1"))
    session.append(answer("a1", calls=1))
    data = export_session(session) | changes
    return {name: each for name, each in data.items() if each is not None}


def entries(*more: Mapping[str, object]) -> list[dict[str, Any]]:
    """The entries of two messages and some more, numbered."""
    found: list[dict[str, Any]] = changed()["entries"]
    return [*found, *[{"seq": seq, "v": 1, "time": 1.0, **each} for seq, each in enumerate(more, start=3)]]


WRONG: Sequence[tuple[object, str]] = [
    ([], "data must be a mapping"),
    ({}, "gotato_export is no version"),
    (changed(gotato_export=True), "gotato_export is no version"),
    (changed(id=None), "id must be a str"),
    (changed(id="../x"), "id must be 1 to 128"),
    (changed(created_at=None), "created_at must be a finite number"),
    (changed(created_at=True), "created_at must be a finite number"),
    (changed(created_at=float("nan")), "created_at must be a finite number"),
    (changed(created_at=10**400), "created_at must be a finite number"),
    (changed(metadata=[]), "metadata must be a JSON object"),
    (changed(metadata={"a": float("inf")}), "metadata['a'] must be plain, finite JSON data"),
    (changed(metadata={"": 1}), "metadata: a key must not be empty"),
    (changed(entries=None), "entries must be a JSON array"),
    (changed(entries={}), "entries must be a JSON array"),
    (changed(entries=[1]), "entries[0] must be a JSON object"),
    (changed(entries=[{"a": {1, 2}}]), "entries[0] must be plain, finite JSON data"),
    (changed(entries=entries()[1:]), "entries[0]: its number is 2, after 0"),
    (changed(entries=entries({"type": "dance"})), "entries[2]: type 'dance' is unknown"),
    (changed(entries=entries({"type": "started"})), "entries[2]: key must be"),
    (changed(entries=entries({"type": "started", "key": "k", "time": 10**400})), "entries[2]: time must be a finite"),
    (changed(entries=entries({"type": "branch", "to": "nowhere"})), "entries[2]: the session has no entry"),
    (
        changed(entries=entries({"type": "message", "parent": "a1", "message": {"role": "user", "parts": [1]}})),
        "entries[2]: parts[0]",
    ),
    (
        changed(
            entries=entries({"type": "message", "parent": "a1", "message": {"role": "user", "id": "u", "parts": []}})
        ),
        "entries[2]: 1 call(s) at the tail are open",
    ),
    (
        changed(
            entries=entries({"type": "message", "parent": "u1", "message": {"role": "user", "id": "u", "parts": []}})
        ),
        "entries[2]: it does not follow",
    ),
    (
        changed(
            entries=entries(
                {"type": "settlement", "key": "a1:0", "message": {"role": "user", "id": "u1", "parts": []}},
            )
        ),
        "entries[2]: there is an entry with the id 'u1' before it",
    ),
    (
        changed(
            entries=[
                entries()[0],
                {
                    "seq": 2,
                    "v": 1,
                    "time": 1.0,
                    "type": "compaction",
                    "parent": "u1",
                    "compaction": {
                        "kind": "compaction",
                        "summary": {"role": "user", "id": "u1", "parts": [{"kind": "text", "text": "so"}]},
                        "through": "u1",
                    },
                },
            ]
        ),
        "entries[1]: there is an entry with the id 'u1' before it",
    ),
]


@pytest.mark.parametrize(("data", "words"), WRONG)
def test_what_is_wrong_is_told_with_its_path_and_nothing_is_stored(data: Any, words: str) -> None:
    """Everything is checked before the store is asked; the error says where the mistake is."""
    store = MemoryStore()
    with pytest.raises(InvalidArgument) as caught:
        import_session(store, data)
    assert words in str(caught.value)
    assert str(caught.value).startswith("import_session: ")
    assert list(store.list()) == []


def test_what_a_newer_release_wrote_is_not_supported() -> None:
    """A newer export, and a newer entry in it, are told from what is damaged."""
    for data in (changed(gotato_export=2), changed(entries=[{"seq": 1, "v": 2, "type": "new"}])):
        store = MemoryStore()
        with pytest.raises(NotSupported, match="newer release"):
            import_session(store, data)
        assert list(store.list()) == []


def test_the_arguments_are_checked() -> None:
    """What is no session, what is no store, and an id that no session can have, are told by name."""
    with pytest.raises(InvalidArgument, match=r"export_session: session must be a Session, not int"):
        export_session(5)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"import_session: store must be a StoreBase"):
        import_session("here", changed())  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"import_session: id must be 1 to 128"):
        import_session(MemoryStore(), changed(), id=".")


class _Full(MemoryStore):
    """A store whose journals take nothing; with `stuck`, nothing can be removed from it either."""

    stuck = False

    def open_journal(self, id: str, owner: str, read_only: bool, steal: bool) -> Any:
        journal = super().open_journal(id, owner, read_only, steal)
        return journal if read_only else _FullJournal(journal)

    def delete_journal(self, id: str) -> None:
        if self.stuck:
            raise StoreFailure("stuck")
        super().delete_journal(id)


class _FullJournal:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    def append(self, entries: Sequence[dict[str, Any]]) -> None:
        raise StoreFailure("the disk is full")


def test_an_import_that_fails_leaves_nothing() -> None:
    """What was begun is taken back; where that cannot be done either, the first failure is told."""
    store = _Full()
    with pytest.raises(StoreFailure, match="the disk is full"):
        import_session(store, changed())
    assert list(store.list()) == []
    store.stuck = True
    with pytest.raises(StoreFailure, match="the disk is full"):
        import_session(store, changed())


def test_what_waited_for_its_place_in_the_parent_is_written() -> None:
    """Gaps, marks of unknown calls, and what came of a pending call before it had a place, are in the entries."""
    state = State({})
    state.gaps.append("line 3 is damaged")
    state.started["elsewhere:0"] = None
    state.settled["a1:0"] = "m9"
    state.held["m9"] = UserMessage("done", id="m9")
    assert [(entry.seq, type(entry).__name__) for entry in flattened(state)] == [
        (1, "GapEntry"), (2, "StartedEntry"), (3, "SettlementEntry"),
    ]  # fmt: skip
    made = State({})
    made.take(flattened(state))
    assert (made.gaps, made.started, made.settled, made.held) == (
        state.gaps, state.started, state.settled, state.held,
    )  # fmt: skip


STEPS = st.sampled_from(
    ["user", "calls", "answer", "start", "wait", "compact", "branch", "label", "set", "run", "fork"]
)
Chosen = st.lists(st.tuples(STEPS, st.integers(0, 30)), max_size=25)


def step(session: Session, what: str, number: int, count: int) -> Session:
    """One operation, if the session takes it; a fork goes on in the place of its parent."""
    places = ["", *session.tree]
    place = places[number % len(places)]
    match what:
        case "user":
            session.append(user(f"u{count}", f"text {number}"))
        case "calls":
            session.append(answer(f"a{count}", calls=number % 3))
        case "answer":
            last = next(each for each in reversed(session.history) if not isinstance(each, ToolMessage))
            session.append(result(f"t{count}", f"{last.id}:{number % 2}"))
        case "start":
            session.mark_started(f"{place}:{number % 2}")
        case "wait":
            session.mark_waiting([WaitingCall(f"{place}:0", question="May I?")])
        case "compact":
            session.replace(Compaction(UserMessage("so far", id=f"s{count}"), place))
        case "branch":
            session.branch(place)
        case "label":
            session.label("here", place)
        case "set":
            session.set("n", number)
            session.observe(TurnStart("a", "r", 1, 1, 0.0))
        case "run":
            session.end_run(run_record(f"r{count}", number))
        case _:
            return session.fork(place if number % 2 else None, id=f"s-{count}")
    return session


@given(Chosen)
def test_any_session_survives_the_journey(chosen: list[tuple[str, int]]) -> None:
    """Whatever happened in it, and however often it was forked, an import equals it, and so does its export."""
    session = MemoryStore().create("s-0")
    for count, (what, number) in enumerate(chosen, start=1):
        try:
            session = step(session, what, number, count)
        except (GotatoError, StopIteration):
            pass
    session.branch(session.path[-1] if session.path else "")  # closes what is open and does not wait
    data = export_session(session)
    made = import_session(MemoryStore(), json.loads(json.dumps(data)))
    assert facts(made) == facts(session)
    assert export_session(made) == data


def test_a_fork_of_an_unknown_session_is_not_asked_for() -> None:
    """The export of a fork can be read where its parent never was."""
    parent = MemoryStore().create("s-1")
    parent.append(user("u1"))
    fork = parent.fork(id="s-2")
    store = MemoryStore()
    import_session(store, export_session(fork)).close()
    with pytest.raises(NotFound):
        store.open("s-1")
    with store.open("s-2") as made:
        assert [each.id for each in made.history] == ["u1"]


def test_a_result_with_every_field_survives() -> None:
    """Metadata and keys that this release does not know go with a message, as far as the message format keeps them."""
    session = Session("s-1")
    session.append(answer("a1", calls=1))
    result = ToolResult("c", "failed", "no", "ValueError: no", "a1:0", {"a": 1})
    session.append(ToolMessage(result, id="t1", metadata={"b": [2]}))
    made = import_session(MemoryStore(), export_session(session))
    message = made.history[1]
    assert isinstance(message, ToolMessage)
    assert (message.result, message.result.metadata, message.metadata) == (result, {"a": 1}, {"b": [2]})
