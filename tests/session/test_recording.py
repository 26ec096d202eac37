"""The observer that keeps events in a session."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gotato_py import Agent, InvalidArgument, MessageUpdate, ToolExecutionStart
from gotato_session import MemoryStore, Recorder, Session, record
from gotato_testkit import EventRecorder, ManualClock, ScriptedModel, SequentialIds, call, say


def an_update(text: str) -> MessageUpdate:
    """An event with so much text."""
    return MessageUpdate("a-1", "r-1", 1, 1, 0.0, text)


def size(event: MessageUpdate) -> int:
    """The bytes of an event's JSON."""
    return len(json.dumps(event.to_dict(), ensure_ascii=False, separators=(",", ":")).encode())


def test_a_session_keeps_the_events_of_a_run() -> None:
    """As an extension a session sees what every observer sees, and shows it as plain JSON data."""
    session, watcher = Session(), EventRecorder()
    model = ScriptedModel([call("look"), say("Done.")])
    agent = Agent(model, tools=[look], transcript=session, extensions=[session, watcher])
    agent.run("Look.")
    assert list(session.events) == [event.to_dict() for event in watcher.events]
    assert session.events[-1]["kind"] == "agent_end"
    assert json.loads(json.dumps(session.events, allow_nan=False)) == list(session.events)


def test_the_same_script_gives_the_same_events() -> None:
    """With a clock and ids of the test's own, what two sessions keep is equal."""
    kept = []
    for _ in range(2):
        ids, clock = SequentialIds(), ManualClock()
        session = Session(ids=ids, clock=clock)
        Agent(ScriptedModel([say("Hi.")]), transcript=session, extensions=[session], ids=ids, clock=clock).run("Hi")
        kept.append((session.id, session.events, session.runs))
    assert kept[0] == kept[1]


def test_only_the_kinds_asked_for_are_kept() -> None:
    """`kinds` chooses; a session that is no extension keeps what its recorder keeps."""
    session = Session()
    observer = record(session, kinds=["tool_execution_start", "agent_end"])
    assert isinstance(observer, Recorder)
    model = ScriptedModel([call("look"), say("Done.")])
    Agent(model, tools=[look], transcript=session, extensions=[observer]).run("Look.")
    assert [event["kind"] for event in session.events] == ["tool_execution_start", "agent_end"]
    assert observer.dropped == 0


def test_what_does_not_fit_is_counted() -> None:
    """The bound is bytes of JSON in all; a smaller event may still fit after one that did not."""
    session, small, large = Session(), an_update("é"), an_update("é" * 200)
    observer = record(session, max_bytes=2 * size(small) + size(large) - 1)
    for event in (large, large, small, small, small):
        observer.observe(event)
    assert [event["text"] for event in session.events] == ["é" * 200, "é"]
    assert observer.dropped == 3


@pytest.mark.parametrize(("max_bytes", "kept"), [(0, 0), (None, 3)])
def test_no_room_and_no_bound(max_bytes: int | None, kept: int) -> None:
    """0 admits no event, None every event."""
    session = Session()
    observer = record(session, max_bytes=max_bytes)
    for _ in range(3):
        observer.observe(an_update("x" * 1000))
    assert len(session.events) == kept


def test_a_session_keeps_no_more_than_a_mebibyte() -> None:
    """The default bound holds for a session as an extension, and for `record`."""
    session, other = Session(), Session()
    event = an_update("x" * 300_000)
    observer = record(other)
    for _ in range(5):
        session.observe(event)
        observer.observe(event)
    assert [len(session.events), len(other.events), observer.dropped] == [3, 3, 2]


def test_the_bound_is_the_sessions() -> None:
    """What was kept before, by another observer or before the session was opened again, counts; a fork begins anew."""
    store, event = MemoryStore(), an_update("x" * 300_000)
    with store.create("s") as session:
        session.observe(event)
        record(session, max_bytes=None).observe(event)
    with store.open("s") as session:
        for _ in range(3):
            session.observe(event)
        assert len(session.events) == 3
        with session.fork() as fork:
            fork.observe(event)
            assert len(fork.events) == 1


def test_what_is_kept_cannot_be_changed() -> None:
    """Each reading is a copy; a raw piece of text is kept as text that can be stored."""
    session = Session()
    session.observe(ToolExecutionStart("a-1", "r-1", 1, 1, 0.0, "m:0", "look", "", {"at": [1]}))
    session.observe(an_update("\ud83d"))
    session.events[0]["arguments"]["at"].append(2)
    assert session.events[0]["arguments"] == {"at": [1]}
    assert session.events[1]["text"] == "\ufffd"


def test_wrong_arguments_are_named() -> None:
    """A kind that no event has, a bound that is none and what is no session are refused."""
    session = Session()
    bad: Any
    for bad, said in (("agent_end", "collection of kinds of events, not str"), (["agent_ended"], "'agent_ended'; an")):
        with pytest.raises(InvalidArgument, match=rf"^record: kinds .*{said}"):
            record(session, kinds=bad)
    for bad in (-1, 1.5, True):
        with pytest.raises(InvalidArgument, match=r"^record: max_bytes must be None or an int of at least 0"):
            record(session, max_bytes=bad)
    bad = "s-1"
    with pytest.raises(InvalidArgument, match=r"^record: session must be a Session, not str"):
        record(bad)


def look() -> str:
    """Looks."""
    return "seen"
