"""Views of a growing list, and the transcript in memory."""

from __future__ import annotations

import copy
import json
import pickle
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_py import (
    Agent,
    Allow,
    Approve,
    Ask,
    AssistantMessage,
    Compaction,
    Deny,
    Hooks,
    ImagePart,
    InvalidArgument,
    MemoryTranscript,
    Message,
    RunRecord,
    ToolCall,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
    WaitingCall,
    check_messages,
)
from gotato_py.transcript import MessageView
from gotato_testkit import FakeTool, ScriptedModel, call, say

from ..effort import costly
from . import strategies as sts
from .test_message_json import everything
from .test_record_json import waiting_calls

MESSAGES: list[Message] = [
    UserMessage("one", id="u1"),
    AssistantMessage("", [ToolCall("a", "t"), ToolCall("b", "t")], id="a1"),
    ToolMessage(ToolResult("b", "ok", key="a1:1"), id="t1"),
    ToolMessage(ToolResult("a", "ok", key="a1:0"), id="t2"),
    AssistantMessage("done", id="a2"),
    UserMessage("two", id="u2"),
    AssistantMessage("", [ToolCall("a", "t")], id="a3"),
]


def summary(text: str = "so far", **more: Any) -> UserMessage:
    """A summary of what was said."""
    return UserMessage(text, **more)


# ---- views


bounds = st.none() | st.integers(-7, 7)


@costly(4)
@given(st.lists(sts.user_messages, max_size=5), st.lists(sts.user_messages, max_size=3), bounds, bounds, st.data())
def test_a_view_is_like_the_tuple_of_its_messages(
    held: list[Message], later: list[Message], start: int | None, stop: int | None, data: st.DataObject
) -> None:
    """Length, iteration, indexes, slices, search and comparison agree with a tuple, whatever is appended later."""
    growing, expected = list(held), tuple(held)
    view = MessageView(growing, len(growing))
    growing.extend(later)
    assert len(view) == len(expected)
    assert tuple(view) == expected
    assert tuple(reversed(view)) == expected[::-1]
    assert bool(view) == bool(expected)
    step = data.draw(st.sampled_from([None, 1, 2, 3, -1, -2]))
    assert view[start:stop:step] == expected[start:stop:step]
    for index in range(-len(expected) - 2, len(expected) + 2):
        if -len(expected) <= index < len(expected):
            assert view[index] is expected[index]
        else:
            with pytest.raises(IndexError):
                _ = view[index]
    assert view == expected
    assert view == list(expected)
    assert view == MessageView(list(expected), len(expected))
    assert view != (*expected, UserMessage("another"))
    assert view != 5
    for message in [*held, *later]:
        assert (message in view) == (message in expected)
        assert view.count(message) == expected.count(message)


def test_a_view_has_no_hash_and_pickles_as_a_tuple() -> None:
    """A view equals lists, so it has no hash; copies of it do not hold the list."""
    view = MessageView(MESSAGES, 2)
    with pytest.raises(TypeError):
        hash(view)
    for again in (pickle.loads(pickle.dumps(view)), copy.deepcopy(view)):
        assert (type(again), again) == (tuple, tuple(MESSAGES[:2]))
    assert repr(view) == f"MessageView({MESSAGES[:2]!r})"


# ---- the transcript in memory


@costly(4)
@given(st.lists(sts.messages, max_size=6), st.integers(0, 6))
def test_what_is_appended_is_kept(messages: list[Message], split: int) -> None:
    """Messages given at once or appended are the same history; each has an id, and earlier views stay."""
    transcript = MemoryTranscript(messages[:split])
    before = transcript.messages
    for message in messages[split:]:
        kept = transcript.append(message)
        assert kept == message
        assert kept is transcript.messages[-1]
        assert kept.id == message.id if message.id else kept.id.startswith("m-")
    assert transcript.messages == messages
    assert before == messages[:split]
    assert all(message.id for message in transcript.messages)
    assert repr(transcript) == f"MemoryTranscript({len(messages)} messages)"


def test_wrong_messages_are_refused() -> None:
    """What is no message is named by its position, and nothing is kept."""
    bad: Any
    for bad in (5, "text", None, {"a": 1}):
        with pytest.raises(InvalidArgument, match=r"^MemoryTranscript\.messages must be a sequence"):
            MemoryTranscript(bad)
    bad = [UserMessage("u"), "text"]
    with pytest.raises(InvalidArgument, match=r"^MemoryTranscript\.messages\[1\] must be a message, not str"):
        MemoryTranscript(bad)
    transcript = MemoryTranscript()
    bad = "text"
    with pytest.raises(InvalidArgument, match=r"^MemoryTranscript\.append: message must be a message, not str"):
        transcript.append(bad)
    bad = 5
    with pytest.raises(InvalidArgument, match=r"^MemoryTranscript\.mark_started: key must be a str, not int"):
        transcript.mark_started(bad)
    bad = ["a1:0"]
    with pytest.raises(InvalidArgument, match=r"calls\[0\] must be a WaitingCall, not str"):
        transcript.mark_waiting(bad)
    assert len(transcript.messages) == 0


def test_marks_last_as_long_as_their_batch() -> None:
    """Started keys and waiting calls are kept beside results, and are history with the next other message."""
    transcript = MemoryTranscript(MESSAGES[:2])
    transcript.mark_started("a1:0")
    waiting = [WaitingCall("a1:1", question="May I?")]
    transcript.mark_waiting(waiting)
    waiting.clear()
    transcript.append(MESSAGES[2])
    assert (set(transcript.started), len(transcript.waiting)) == ({"a1:0"}, 1)
    transcript.mark_waiting(())
    assert transcript.waiting == ()
    transcript.mark_waiting([WaitingCall("a1:0")])
    transcript.append(UserMessage("next"))
    assert (set(transcript.started), transcript.waiting) == (set(), ())


def test_runs_leave_no_record() -> None:
    """A transcript in memory takes the news of runs and keeps nothing of it."""
    transcript = MemoryTranscript()
    transcript.begin_run("r-1")
    transcript.end_run(RunRecord("r-1", "", "completed", "", 0.0, 0.0, 1, 0, Usage()))
    assert len(transcript.messages) == 0


# ---- to another process and back


@costly(4)
@given(
    st.lists(sts.messages, max_size=4),
    st.sets(sts.clean_text, max_size=3),
    st.lists(waiting_calls, max_size=2),
    st.integers(-1, 5),
)
def test_a_transcript_comes_back_as_it_was(
    messages: list[Message], started: set[str], waiting: list[WaitingCall], cut: int
) -> None:
    """Messages, marks, waiting calls and compactions survive real JSON text, and what is written again is equal."""
    transcript = MemoryTranscript([UserMessage(f"{index}", id=f"u{index}") for index in range(5)])
    if cut >= 0:
        transcript.replace(Compaction(summary(id="s"), f"u{min(cut, 4)}", reason="full"))
    for message in messages:
        transcript.append(message)
    for key in started:
        transcript.mark_started(key)
    transcript.mark_waiting(waiting)
    data = json.loads(json.dumps(transcript.to_dict(), allow_nan=False))
    again = MemoryTranscript.from_dict(data)
    assert everything([*again.messages]) == everything([*transcript.messages])
    assert everything([*again.waiting, *again.compactions]) == everything(
        [*transcript.waiting, *transcript.compactions]
    )
    assert again.started == transcript.started
    assert again.to_dict() == data
    assert again.append(UserMessage("next")) is again.messages[-1]


def test_what_is_empty_is_not_written() -> None:
    """Only the messages are always there; the keys of started calls are sorted."""
    transcript = MemoryTranscript()
    assert transcript.to_dict() == {"messages": []}
    transcript.append(UserMessage("hi", id="u"))
    transcript.mark_started("b:1")
    transcript.mark_started("b:0")
    transcript.mark_waiting([WaitingCall("b:1", decision=Deny("no"))])
    assert transcript.to_dict() == {
        "messages": [{"role": "user", "id": "u", "parts": [{"kind": "text", "text": "hi"}]}],
        "started": ["b:0", "b:1"],
        "waiting": [{"kind": "waiting_call", "key": "b:1", "decision": "deny", "reason": "no"}],
    }


def test_a_run_that_waits_is_carried_to_another_process() -> None:
    """What waits goes on elsewhere: what ran before is not run again, and the call that was asked about runs once."""
    gate = Hooks(before_tool=lambda use: Ask("Pay?") if use.name == "pay" else Allow())
    first, then = FakeTool("read", "read"), FakeTool("pay", "paid")
    model = ScriptedModel([call("read") + call("pay", sum=5), say("Paid.")])
    here = MemoryTranscript()
    waits = Agent(model, tools=[first, then], transcript=here, extensions=[gate]).run("Pay.")
    there = MemoryTranscript.from_dict(json.loads(json.dumps(here.to_dict(), allow_nan=False)))
    agent = Agent(model, tools=[first, then], transcript=there, extensions=[gate])
    assert agent.status == "waiting"
    assert agent.run(answers={waits.waiting[0].key: Approve()}).text == "Paid."
    assert (len(first.uses), [dict(use.arguments) for use in then.uses]) == (1, [{"sum": 5}])
    assert check_messages(there.messages) == []


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], r"^transcript must be a JSON object \(a dict\), not list$"),
        ({}, r"^messages is missing"),
        ({"messages": "text"}, r"^messages must be a JSON array \(a list\), not str$"),
        ({"messages": [{"role": "user", "parts": []}, 5]}, r"^messages\[1\] must be a JSON object"),
        ({"messages": [{"role": "user"}]}, r"^messages\[0\]\.parts is missing$"),
        ({"messages": [], "started": {}}, r"^started must be a JSON array"),
        ({"messages": [], "started": ["k", 5]}, r"^started\[1\] must be a str, not int$"),
        ({"messages": [], "waiting": [{"kind": "compaction"}]}, r"^waiting\[0\]\.kind is another; .* waiting_call$"),
        ({"messages": [], "waiting": [{"kind": "waiting_call"}]}, r"^waiting\[0\]\.key is missing$"),
        (
            {"messages": [], "compactions": [{"kind": "compaction", "through": 5, "summary": {"role": "user"}}]},
            r"^compactions\[0\]\.summary\.parts is missing$",
        ),
    ],
)
def test_data_that_is_no_transcript_is_refused(data: Any, said: str) -> None:
    """The error begins with the path of what is wrong."""
    with pytest.raises(InvalidArgument, match=said):
        MemoryTranscript.from_dict(data)


def test_what_cannot_be_written_is_named() -> None:
    """A transcript that holds something without a JSON form says where."""
    transcript = MemoryTranscript([UserMessage("hi"), UserMessage("you", metadata={"a": object()})])
    with pytest.raises(InvalidArgument, match=r"^messages\[1\]\.metadata\.a must be JSON data"):
        transcript.to_dict()
    transcript = MemoryTranscript()
    transcript.mark_waiting([WaitingCall("k", arguments={"a": object()})])
    with pytest.raises(InvalidArgument, match=r"^waiting\[0\]\.arguments\.a must be JSON data"):
        transcript.to_dict()


def test_keys_of_a_newer_release_do_no_harm() -> None:
    """Unknown keys beside the messages are ignored, those in a message kept; a subclass stays one."""

    class Mine(MemoryTranscript):
        pass

    data = {"messages": [{"role": "user", "id": "u", "parts": [], "mood": 1}], "novelty": {}}
    again = Mine.from_dict(data)
    assert type(again) is Mine
    assert again.to_dict() == {"messages": data["messages"]}


# ---- compaction


@pytest.mark.parametrize(("through", "left", "last_user"), [("u1", 6, "u1"), ("t2", 3, "u1"), ("u2", 1, "u2")])
def test_a_summary_stands_for_what_it_covers(through: str, left: int, last_user: str) -> None:
    """`messages` is then the summary and what follows; views taken before stay as they were."""
    transcript = MemoryTranscript(MESSAGES)
    before = transcript.messages
    given_summary = summary(metadata={"mine": 1})
    assert transcript.replace(Compaction(given_summary, through, reason="full")) is True
    assert transcript.messages[0] == given_summary
    assert transcript.messages[0].metadata == {"mine": 1, "last_user": last_user}
    assert transcript.messages[0].id.startswith("m-")
    assert transcript.messages[1:] == tuple(MESSAGES[-left:])
    assert before == MESSAGES
    (kept,) = transcript.compactions
    assert (kept.summary, kept.through, kept.reason) == (transcript.messages[0], through, "full")
    transcript.append(UserMessage("three", id="u3"))
    assert len(transcript.messages) == left + 2


def test_a_later_summary_hands_on_the_last_user_message() -> None:
    """A summary that covers an earlier one, and no user message behind it, keeps the earlier one's last user."""
    transcript = MemoryTranscript(MESSAGES)
    transcript.replace(Compaction(summary("first", id="s1"), "u1"))
    transcript.replace(Compaction(summary("second", id="s2"), "a2"))
    assert transcript.messages[0].metadata == {"last_user": "u1"}
    transcript.replace(Compaction(summary("third", id="s3"), "u2"))
    assert transcript.messages[0].metadata == {"last_user": "u2"}
    assert [each.summary.id for each in transcript.compactions] == ["s1", "s2", "s3"]
    assert transcript.messages[1:] == (MESSAGES[-1],)


def test_a_summary_of_no_user_message_has_none() -> None:
    """Where nothing covered came from a user, no last user is claimed."""
    transcript = MemoryTranscript([AssistantMessage("hello", id="a0")])
    transcript.replace(Compaction(summary(), "a0"))
    assert transcript.messages[0].metadata == {}


@pytest.mark.parametrize(
    ("given_summary", "through", "said"),
    [
        (summary(), "u9", "through is the id of no message"),
        (summary(), "", "through is the id of no message"),
        (summary(), "a1", "cuts between a call and its results"),
        (summary(), "t1", "cuts between a call and its results"),
        (summary(), "a3", "covers a call that is still open"),
        (summary(" \n"), "u1", "the summary is empty"),
        (UserMessage(()), "u1", "the summary is empty"),
    ],
)
def test_a_bad_cut_changes_nothing(given_summary: UserMessage, through: str, said: str) -> None:
    """A `replace` that would break the history is refused, and nothing is changed."""
    transcript = MemoryTranscript(MESSAGES)
    with pytest.raises(InvalidArgument, match=said):
        transcript.replace(Compaction(given_summary, through))
    assert transcript.messages == MESSAGES
    assert transcript.compactions == ()


def test_a_summary_may_be_more_than_text() -> None:
    """A summary with a picture is not empty; what is no compaction is refused."""
    transcript = MemoryTranscript(MESSAGES)
    assert transcript.replace(Compaction(UserMessage(ImagePart(url="u")), "u1"))
    wrong: Any = summary()
    with pytest.raises(InvalidArgument, match="must be a Compaction, not UserMessage"):
        transcript.replace(wrong)
    with pytest.raises(InvalidArgument, match=r"^Compaction\.summary must be a UserMessage, not str"):
        Compaction("text", "u1")  # type: ignore[arg-type]


def test_readers_see_a_whole_history_while_it_is_replaced() -> None:
    """A view taken by another thread is the history before or after a compaction, never a mixture."""
    transcript = MemoryTranscript([UserMessage(str(index), id=f"u{index}") for index in range(300)])
    known = {message.id for message in transcript.messages}
    broken: list[int] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            view = transcript.messages
            if view[-1].id != "u299" or (view[0].id in known) != (len(view) == 300):
                broken.append(len(view))

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for index in range(298):
        transcript.replace(Compaction(summary(id=f"s{index}"), f"u{index}"))
    stop.set()
    for thread in threads:
        thread.join()
    assert broken == []
