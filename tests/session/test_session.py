"""What a session keeps, shows and refuses."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import pytest

from gotato_py import (
    Busy,
    InvalidArgument,
    InvalidState,
    NotFound,
    Problem,
    Transcript,
    Usage,
    UserMessage,
    WaitingCall,
)
from gotato_session import Session
from gotato_testkit import ManualClock, SequentialIds

from .histories import answer, result, run_record, summary, user


def a_session() -> Session:
    """A session with a batch of two calls, of which one has its result."""
    session = Session("s-1")
    for message in (user("u1"), answer("a1", calls=2), result("t1", "a1:1")):
        session.append(message)
    return session


def kept(session: Session) -> list[object]:
    """Everything that can be read of a session."""
    return [
        tuple(session.messages),
        tuple(session.history),
        session.started,
        session.waiting,
        session.compactions,
        session.runs,
        session.usage,
        session.metadata,
        session.labels,
        session.events,
    ]


# ---- what it is


def test_a_new_session_is_empty() -> None:
    """A session begins with an id of its own and nothing else."""
    session, other = Session(), Session()
    assert session.id.startswith("s-")
    assert session.id != other.id
    assert (session.parent_id, session.read_only) == ("", False)
    assert kept(session) == [(), (), frozenset(), (), (), (), Usage(), {}, {}, ()]
    assert session.check() == []
    assert repr(Session("s-1")) == "Session('s-1', 0 messages)"


@pytest.mark.parametrize("good", ["a", "0", "a.b-c_d", "x" * 128])
def test_every_store_can_use_an_id_as_a_name(good: str) -> None:
    """Ids are short ASCII names that begin with a letter or a digit."""
    assert Session(good).id == good


@pytest.mark.parametrize("bad", ["", ".", "-a", "a/b", "..", "ä", "a\n", "x" * 129, 5, b"a"])
def test_other_ids_are_refused(bad: Any) -> None:
    """What no store could use as a name is an InvalidArgument that says what an id is."""
    with pytest.raises(InvalidArgument, match=r"^Session\.id must be (1 to 128|a str, not)"):
        Session(bad)


def test_ids_come_from_the_source_that_is_given() -> None:
    """The session and messages without an id are named by `ids`; what it makes is checked."""
    session = Session(ids=SequentialIds())
    assert session.id == "session-1"
    assert session.append(UserMessage("hi")).id == "message-1"
    assert session.append(user("mine")).id == "mine"
    session.replace(summary("mine"))
    assert session.messages[0].id == "message-2"
    bad: Any
    for bad in (lambda kind: "", lambda kind: 5):
        with pytest.raises(InvalidArgument, match=r"^Session\.ids: ids\('session'\) must be"):
            Session(ids=bad)
        with pytest.raises(InvalidArgument, match=r"^Session\.ids: ids\('message'\) must"):
            Session("s-1", ids=bad).append(UserMessage("hi"))
    bad = 5
    with pytest.raises(InvalidArgument, match=r"^Session\.ids must be a callable"):
        Session(ids=bad)
    with pytest.raises(InvalidArgument, match=r"^Session\.clock must be a Clock, not int"):
        Session(clock=bad)


def test_a_session_is_a_transcript() -> None:
    """It fits the Protocol, and it cannot be copied: two of them would be one session."""
    transcript: Transcript = Session("s-1")
    assert transcript.append(user("u1")) is transcript.messages[0]
    with pytest.raises(TypeError, match="the session s-1 cannot be copied"):
        copy.copy(transcript)
    with pytest.raises(TypeError, match="the session s-1 cannot be copied"):
        pickle.dumps(transcript)


# ---- messages


def test_views_stay_as_they_were() -> None:
    """What was taken from a session does not change with it."""
    session = a_session()
    before = kept(session)
    messages, history = session.messages, session.history
    session.append(result("t2", "a1:0"))
    session.mark_started("a1:0")
    session.set("k", 1)
    session.replace(summary("u1", "s1"))
    assert [len(messages), len(history)] == [3, 3]
    assert before[:2] == [tuple(messages), tuple(history)]
    assert kept(session) != before


def test_an_id_comes_once() -> None:
    """A message with the id of another message, or of a summary, is refused; nothing is changed."""
    session = Session()
    session.append(user("u1"))
    session.append(user("u2"))
    session.replace(summary("u1", "s1"))
    before = kept(session)
    for taken in ("u1", "u2", "s1"):
        with pytest.raises(InvalidArgument, match=f"an entry with the id '{taken}'"):
            session.append(user(taken))
    with pytest.raises(InvalidArgument, match="the id of the summary, 'u1'"):
        session.replace(summary("u2", "u1"))
    assert kept(session) == before


@pytest.mark.parametrize(
    ("key", "said"),
    [("a1:1", "its key names none"), ("a1:2", "its key names none"), ("a0:0", "its key names none")],
)
def test_a_result_needs_its_open_call(key: str, said: str) -> None:
    """A result for a call that has one, or that is not there, is refused."""
    session = a_session()
    before = kept(session)
    with pytest.raises(InvalidArgument, match=f"^a result without an open call: {said}"):
        session.append(result("t2", key))
    assert kept(session) == before


def test_a_result_behind_no_call_is_refused() -> None:
    """Without an open call no result is taken, with or without a key."""
    session = a_session()
    session.append(result("t2", "a1:0"))
    for key in ("a1:0", "", "x"):
        with pytest.raises(InvalidArgument, match="without an open call: no call is open"):
            session.append(result("t3", key))


def test_results_come_in_any_order_and_without_keys() -> None:
    """A result without a key belongs to a call that no key names."""
    session = Session()
    session.append(answer("a1", calls=3))
    for message in (result("t1", ""), result("t2", "a1:0"), result("t3", "")):
        session.append(message)
    assert session.check() == []
    with pytest.raises(InvalidArgument, match="no call is open"):
        session.append(result("t4", "a1:1"))


def test_nothing_comes_between_a_call_and_its_result() -> None:
    """Any other message while a call is open is an InvalidState, and nothing is changed."""
    session = a_session()
    before = kept(session)
    for message in (user("u2"), answer("a2")):
        with pytest.raises(InvalidState, match=r"^1 call\(s\) at the tail are open"):
            session.append(message)
    assert kept(session) == before
    session.append(result("t2", "a1:0"))
    session.append(user("u2"))
    assert session.check() == []


def test_check_says_what_is_wrong() -> None:
    """An open call is a problem unless it waits; an answer that says nothing is one."""
    session = a_session()
    assert session.check() == [Problem(1, 1, "call 0 has no result; it would get not_run")]
    session.mark_waiting([WaitingCall("a1:0")])
    assert session.check() == []
    session = Session()
    session.append(answer("a1", " "))
    assert [problem.rule for problem in session.check()] == [2]


# ---- marks


def test_started_calls_are_remembered_for_ever() -> None:
    """Marks belong to the session: those of earlier batches stay, and one mark is as good as two."""
    session = a_session()
    for key in ("a1:0", "a1:1", "a1:0"):
        session.mark_started(key)
    session.append(result("t2", "a1:0"))
    session.append(user("u2"))
    assert set(session.started) == {"a1:0", "a1:1"}


def test_what_waits_is_replaced_as_a_whole() -> None:
    """The last record counts, an empty one clears it, and so does the next message that is no result."""
    session = a_session()
    session.mark_waiting([WaitingCall("a1:0"), WaitingCall("a1:1")])
    session.mark_waiting([WaitingCall("a1:0")])
    assert [call.key for call in session.waiting] == ["a1:0"]
    session.mark_waiting(())
    assert session.waiting == ()
    session.mark_waiting([WaitingCall("a1:0")])
    session.append(result("t2", "a1:0"))
    assert len(session.waiting) == 1
    session.append(user("u2"))
    assert session.waiting == ()


# ---- compaction


def test_a_summary_stands_in_messages_and_not_in_history() -> None:
    """`messages` is the last summary and what follows it, `history` every message."""
    session = Session()
    for index in range(4):
        session.append(user(f"u{index}"))
    assert session.replace(summary("u1", "s1", reason="full")) is True
    session.append(user("u4"))
    session.replace(summary("u2", "s2"))
    assert [message.id for message in session.messages] == ["s2", "u3", "u4"]
    assert [message.id for message in session.history] == ["u0", "u1", "u2", "u3", "u4"]
    assert [(each.summary.id, each.through) for each in session.compactions] == [("s1", "u1"), ("s2", "u2")]
    assert [each.summary.metadata["last_user"] for each in session.compactions] == ["u1", "u2"]


def test_what_waits_survives_a_compaction() -> None:
    """A compaction before the batch at the tail leaves its waiting calls and its marks."""
    session = a_session()
    session.mark_started("a1:1")
    session.mark_waiting([WaitingCall("a1:0")])
    session.replace(summary("u1"))
    assert [call.key for call in session.waiting] == ["a1:0"]
    assert set(session.started) == {"a1:1"}
    assert session.check() == []
    session.append(result("t2", "a1:0"))
    session.append(user("u2"))
    assert [session.waiting, session.check()] == [(), []]


@pytest.mark.parametrize(
    ("through", "said"),
    [("a1", "cuts between a call"), ("t1", "a call that is still open"), ("u9", "is the id of no message")],
)
def test_a_bad_cut_changes_nothing(through: str, said: str) -> None:
    """A `replace` that would break the context is refused."""
    session = a_session()
    before = kept(session)
    with pytest.raises(InvalidArgument, match=said):
        session.replace(summary(through))
    assert kept(session) == before


# ---- metadata and labels


def test_metadata_is_json_that_nobody_else_can_change() -> None:
    """Values are kept as copies, given at once or set later; what is read is a copy, too."""
    given = {"tags": ["a"]}
    session = Session(metadata=given)
    given["tags"].append("b")
    session.get("tags").append("c")
    session.metadata["tags"].append("d")
    assert session.get("tags") == ["a"]
    session.set("tags", ("x", {"y": None}))
    session.set("none", None)
    assert session.metadata == {"tags": ["x", {"y": None}], "none": None}
    assert (session.get("none", 5), session.get("missing", 5), session.get("missing")) == (None, 5, None)
    session.set("text", "\ud83d\ude00\udc00")
    assert session.get("text") == "\U0001f600\ufffd"


@pytest.mark.parametrize("bad", [object(), {1, 2}, math.nan, [math.inf], b"x"])
def test_what_json_cannot_say_is_no_metadata(bad: Any) -> None:
    """A value that no store could keep is refused."""
    session = Session()
    with pytest.raises(InvalidArgument, match=r"^Session\.set: value must be plain, finite JSON data"):
        session.set("k", bad)
    with pytest.raises(InvalidArgument, match=r"^Session\.metadata\['k'\] must be plain, finite JSON data"):
        Session(metadata={"k": bad})
    assert session.metadata == {}


def test_metadata_that_holds_itself_is_refused() -> None:
    """A circle is no JSON, and neither is what is nested without end."""
    circle: list[object] = []
    circle.append(circle)
    with pytest.raises(InvalidArgument, match="plain, finite JSON data, not list"):
        Session().set("k", circle)


def test_labels_name_entries() -> None:
    """A label names the newest entry, or the one given; the last place counts, "" is before the first."""
    session = Session()
    session.label("start")
    session.append(user("u1"))
    session.append(user("u2"))
    session.label("here")
    session.label("first", "u1")
    session.replace(summary("u1", "s1"))
    session.label("after")
    session.label("start", "u2")
    assert session.labels == {"start": "u2", "here": "u2", "first": "u1", "after": "s1"}
    session.label("start", "")
    assert session.labels["start"] == ""
    with pytest.raises(NotFound, match="no entry with the id 'u9'"):
        session.label("x", "u9")
    assert "x" not in session.labels


# ---- runs


def test_one_run_at_a_time() -> None:
    """A second run gets Busy, which names the first and says since when; its end lets the next one in."""
    clock = ManualClock(unix=100.0)
    session = Session("s-1", clock=clock)
    session.begin_run("r-1")
    clock.advance(5)
    for run_id in ("r-2", "r-1"):
        with pytest.raises(Busy, match=r"^the session s-1 is busy with run r-1: one run at a time") as caught:
            session.begin_run(run_id)
        assert (caught.value.run_id, caught.value.since, caught.value.retryable) == ("r-1", 100.0, True)
    session.end_run(run_record("r-9"))
    with pytest.raises(Busy):
        session.begin_run("r-2")
    session.end_run(run_record("r-1"))
    session.begin_run("r-2")


def test_runs_are_recorded_once() -> None:
    """The first record of a run counts, one without a beginning too; usage is the sum."""
    session = Session()
    session.begin_run("r-1")
    session.end_run(run_record("r-1", 3))
    session.end_run(run_record("r-1", 9, "failed"))
    session.end_run(run_record("r-2", 4))
    assert session.runs == (run_record("r-1", 3), run_record("r-2", 4))
    assert session.usage == Usage(7, 7)


# ---- the end


def test_a_closed_session_can_only_be_read() -> None:
    """After `close`, twice or by `with`, everything that writes is an InvalidState, and nothing is lost."""
    with a_session() as session:
        session.begin_run("r-1")
    session.close()
    before = kept(session)
    for write in (
        lambda: session.append(result("t2", "a1:0")),
        lambda: session.mark_started("a1:0"),
        lambda: session.mark_waiting([WaitingCall("a1:0")]),
        lambda: session.replace(summary("u1")),
        lambda: session.set("k", 1),
        lambda: session.label("k"),
        lambda: session.begin_run("r-2"),
        lambda: session.end_run(run_record("r-1")),
    ):
        with pytest.raises(InvalidState, match=r"^the session s-1 is closed"):
            write()
    session.flush()
    assert kept(session) == before
    assert repr(session) == f"Session('s-1', {len(session.history)} messages, closed)"


def test_wrong_arguments_are_named() -> None:
    """Each wrong argument is an InvalidArgument that begins with its name, and changes nothing."""
    session = a_session()
    before = kept(session)
    bad: Any
    wrong: list[tuple[Any, str]] = [
        (lambda: session.append("text"), "append: message must be a message, not str"),  # type: ignore[type-var]
        (lambda: session.mark_started(""), "mark_started: key must not be empty"),
        (lambda: session.mark_started("\ud800"), "mark_started: key must not hold a lone surrogate"),
        (lambda: session.mark_waiting("text"), "mark_waiting: calls must be a sequence"),  # type: ignore[arg-type]
        (lambda: session.mark_waiting(["a"]), r"mark_waiting: calls\[0\] must be a WaitingCall"),  # type: ignore[list-item]
        (lambda: session.set(5, 1), "set: key must be a str, not int"),  # type: ignore[arg-type]
        (lambda: session.label("x", 5), "label: entry_id must be a str or None"),  # type: ignore[arg-type]
        (lambda: session.label(""), "label: name must not be empty"),
        (lambda: session.begin_run(""), "begin_run: run_id must not be empty"),
        (lambda: session.end_run("r"), "end_run: record must be a RunRecord"),  # type: ignore[arg-type]
        (lambda: Session(metadata=[]), "metadata must be a mapping, not list"),  # type: ignore[arg-type]
        (lambda: Session(metadata={"": 1}), "metadata: a key must not be empty"),
    ]
    for call, said in wrong:
        with pytest.raises(InvalidArgument, match=rf"^Session\.{said}"):
            call()
    bad = user("u9")
    with pytest.raises(InvalidArgument, match="must be a Compaction, not UserMessage"):
        session.replace(bad)
    assert kept(session) == before
