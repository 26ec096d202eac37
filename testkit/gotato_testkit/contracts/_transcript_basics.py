"""What every Transcript promises: its messages, its marks, its views; each test leaves no call open."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from contextlib import suppress
from threading import Event
from uuid import uuid4

from gotato_py import (
    Agent,
    AssistantMessage,
    Deny,
    Message,
    ToolMessage,
    ToolResult,
    UserMessage,
    WaitingCall,
    check_messages,
)
from gotato_testkit import strategies as gst
from gotato_testkit.answers import call, say
from gotato_testkit.fakes import FakeTool
from gotato_testkit.scripted import ScriptedModel

from ._histories import batch, every_kind, exact, renewed, settle
from ._suite import after, require
from ._transcript_suite import APPENDS, KEEPS, NEW_IDS, SEQUENCE, TranscriptSuite

_KEPT = "what append has returned is kept, and `messages` shows it last and unchanged (Transcript.append)"
_VIEW = "`messages` is an immutable view (Transcript.messages)"
_STARTED = "`started` holds the keys of the calls that were started (Transcript.mark_started)"
_WAITING = "`waiting` holds the calls of the last mark_waiting (Transcript.mark_waiting)"


class MessagesContract(TranscriptSuite):
    """What is appended, and how it is read."""

    @after(SEQUENCE)
    def test_what_is_appended_is_kept(self) -> None:
        """Messages of every kind come back as they were: parts, calls, ids, metadata, unknown members."""

        def check(history: list[Message]) -> None:
            with self.opened() as transcript:
                before, given = len(transcript.messages), renewed(history)
                for message in given:
                    transcript.append(message)
                differing = exact(list(transcript.messages)[before:], given)
            require(
                not differing,
                _KEPT,
                found=f"after {len(given)} appends, {differing}",
                remedy="keep every field, metadata and extra too; message_to_dict and message_from_dict do",
            )

        check(every_kind())
        self.for_all(gst.histories(), check)

    @after(SEQUENCE)
    def test_append_returns_the_message_with_its_id(self) -> None:
        """What comes back is the message as it is kept; an id that it has is not changed."""
        given = UserMessage("hello", id=f"own-{uuid4().hex}")
        with self.opened() as transcript:
            kept = transcript.append(given)
            shown = transcript.messages[-1]
        require(
            kept == given and kept.id == given.id == shown.id,
            "append returns the message as it is kept, and leaves an id that it has (Transcript.append)",
            found=f"a {type(kept).__name__}; `messages` shows {'the same' if shown.id == given.id else 'another'} id",
            remedy="return the message that `messages` now ends with",
        )

    @after(SEQUENCE, APPENDS)
    def test_append_gives_ids_that_differ(self) -> None:
        """A message without an id gets one of its own."""
        with self.opened() as transcript:
            ids = [transcript.append(UserMessage("the same words")).id for _ in range(5)]
            shown = [message.id for message in list(transcript.messages)[-5:]]
        require(
            all(ids) and len(set(ids)) == 5 and ids == shown,
            "a message without an id gets one when it is committed (Transcript.append)",
            found=f"{len(set(ids) - {''})} different ids for 5 equal messages, and `messages` shows "
            f"{'the same' if ids == shown else 'others'}",
            remedy="make a new id for each message that has none, and keep and return the message with it",
        )

    @after(SEQUENCE)
    def test_append_refuses_what_is_no_message(self) -> None:
        """It raises, and keeps nothing."""
        wrong: Sequence[object] = ({"role": "user", "parts": []}, "hello", None)
        with self.opened() as transcript:
            before = len(transcript.messages)
            for given in wrong:
                try:
                    transcript.append(given)  # type: ignore[type-var]  # that is what is tested
                    outcome = "was taken"
                except Exception:
                    outcome = "was kept in spite of the error" if len(transcript.messages) > before else ""
                require(
                    not outcome,
                    "append takes messages, and when it raises nothing is kept (Transcript.append)",
                    found=f"a {type(given).__name__} {outcome}",
                    remedy="raise InvalidArgument before anything is changed",
                )

    @after(SEQUENCE)
    def test_a_view_stays_as_it_was(self) -> None:
        """What was read before does not change with what is appended later."""
        with self.opened() as transcript:
            transcript.append(UserMessage("one"))
            view = transcript.messages
            before = list(view)
            transcript.append(AssistantMessage("two"))
            after = list(view)
        require(
            after == before and len(view) == len(before),
            _VIEW,
            found=f"a view of {len(before)} messages that shows {len(after)} after an append",
            remedy="return a tuple, or a sequence that remembers how long it was",
        )

    def test_a_view_is_a_sequence(self) -> None:
        """It has a length, indexes from both ends, slices, and can be read backwards."""
        with self.opened() as transcript:
            for text in ("one", "two", "three"):
                transcript.append(UserMessage(text))
            view = transcript.messages
            plain = list(view) if isinstance(view, Sequence) else []
            fine = (
                isinstance(view, Sequence)
                and [view[index] for index in range(len(view))] == plain
                and view[-1] == plain[-1]
                and list(view[-2:]) == plain[-2:]
                and list(reversed(view)) == plain[::-1]
            )
        require(
            fine,
            "`messages` is a Sequence (Transcript.messages)",
            found=f"a {type(view).__name__} whose length, indexes or slices are not those of its list"
            if isinstance(view, Sequence)
            else f"a {type(view).__name__}, which is no Sequence",
            remedy="make it a property; inherit from collections.abc.Sequence, and let __getitem__ take ints from both "
            "ends and slices",
        )

    @after(SEQUENCE)
    def test_a_view_cannot_be_changed(self) -> None:
        """Whoever has a view cannot change the history through it."""
        with self.opened() as transcript:
            transcript.append(UserMessage("one"))
            count, view = len(transcript.messages), transcript.messages
            changed = ""
            for method, given in (("append", [UserMessage("another")]), ("pop", []), ("clear", [])):
                with suppress(Exception):  # a method that is not there, or refuses
                    getattr(view, method)(*given)
                if len(transcript.messages) != count:
                    changed = method
                    break
        require(
            not changed,
            _VIEW,
            found=f"a {type(view).__name__} whose {changed}() changed the transcript",
            remedy="return a tuple or a read-only sequence, not the list itself",
        )

    @after(SEQUENCE)
    def test_reading_does_not_copy_the_history(self) -> None:
        """A view costs the same however long the history is: it is taken several times each turn."""
        with self.opened() as transcript:
            for _ in range(150):
                transcript.append(UserMessage("x"))
            count, held, costs = len(transcript.messages), list[object](), list[int]()
            tracemalloc.start()
            try:
                for _ in range(4):
                    before = tracemalloc.get_traced_memory()[0]
                    held.append(transcript.messages)
                    costs.append(tracemalloc.get_traced_memory()[0] - before)
            finally:
                tracemalloc.stop()
        require(
            min(costs) < 4 * count,
            "`messages` is a view, O(1) (Transcript.messages)",
            found=f"{min(costs)} bytes for a view of {count} messages",
            remedy="keep what a view is made of, and hand out a sequence that shares it",
        )

    @after(SEQUENCE)
    def test_any_thread_may_read_while_one_writes(self) -> None:
        """Each view that another thread takes is a beginning of the history."""
        texts, finished, torn = [str(index) for index in range(100)], Event(), list[int]()
        with self.opened() as transcript:
            begin = len(transcript.messages)

            def read() -> None:
                while not finished.is_set():
                    seen = [message.text for message in list(transcript.messages)[begin:]]
                    if seen != texts[: len(seen)]:
                        torn.append(len(seen))

            def write() -> None:
                try:
                    for text in texts:
                        transcript.append(UserMessage(text))
                finally:
                    finished.set()

            readers = self.together([read] * 2, meanwhile=write)
        require(
            not torn and all(ended.in_time and ended.error is None for ended in readers),
            "one thread writes and any thread may read (Transcript)",
            found=f"{len(torn)} views that show no beginning of the history; {' and '.join(e.said() for e in readers)}",
            remedy="append to a list that only grows, or guard it by a lock",
        )


class MarksContract(TranscriptSuite):
    """What is recorded of work in progress."""

    @after(SEQUENCE, APPENDS)
    def test_a_started_call_is_remembered(self) -> None:
        """From its mark on, while results of its batch come in."""
        with self.opened() as transcript:
            first, second = batch(transcript, 2)
            for key in (first, second, second):  # a second time does no harm
                transcript.mark_started(key)
            seen = first in transcript.started and second in transcript.started
            settle(transcript, [first])
            still = second in transcript.started
            settle(transcript, [second])
        require(
            seen and still,
            _STARTED,
            found="a key that is gone with the result of another call" if seen else "a key that is not there",
            remedy="keep the keys at least until the next user or assistant message",
        )

    @after(SEQUENCE, APPENDS)
    def test_waiting_calls_are_remembered(self) -> None:
        """The last mark holds, in its order, answered calls too; an empty one says that none waits."""
        with self.opened() as transcript:
            keys = batch(transcript, 3)
            asked = [WaitingCall(key, f"c{at}", "find", {"at": at}, f"Q{at}?", 2e9) for at, key in enumerate(keys)]
            answered = WaitingCall(keys[0], "c0", "find", {"at": 0}, "Q0?", 2e9, Deny("not today"))
            seen = list[bool]()
            for marked in (asked, asked[:2], [answered, asked[2]], []):
                transcript.mark_waiting(marked)
                seen.append(list(transcript.waiting) == marked)
            settle(transcript, keys)
        require(
            all(seen),
            _WAITING,
            found=f"other calls, after {seen.count(False)} of {len(seen)} marks",
            remedy="keep the calls of the last mark in place of those of the mark before",
        )

    @after(SEQUENCE, APPENDS)
    def test_nothing_waits_once_the_conversation_has_gone_on(self) -> None:
        """Calls wait in the batch at the tail; behind the next user or assistant message none does."""
        with self.opened() as transcript:
            (key,) = batch(transcript, 1)
            transcript.mark_waiting([WaitingCall(key, "c0", "find", {}, "May it run?")])
            transcript.append(ToolMessage(ToolResult("c0", "blocked", error="superseded", key=key)))
            transcript.append(UserMessage("Something else, then."))
            left = len(transcript.waiting)
        require(
            not left,
            "`waiting` is about the batch at the tail (Transcript.mark_waiting)",
            found=f"{left} calls that wait behind a later user message",
            remedy="forget them when the next user or assistant message is committed",
        )

    @after(SEQUENCE, APPENDS, NEW_IDS, KEEPS)
    def test_an_agent_runs_on_it(self) -> None:
        """A run with a tool, and a second run, leave a history that keeps the rules."""
        with self.opened() as transcript:
            before = len(transcript.messages)
            script = [call("find", city="Oslo"), say("Found."), say("Again.")]
            with Agent(ScriptedModel(script), tools=[FakeTool("find", "here")], transcript=transcript) as agent:
                agent.run("Find it.")
                agent.run("And again.")
            added = list(transcript.messages)[before:]
        roles, problems = [message.role for message in added], check_messages(added)
        require(
            roles == ["user", "assistant", "tool", "assistant", "user", "assistant"] and not problems,
            "an agent keeps its history in a transcript (Transcript)",
            found=f"after two runs: {', '.join(roles)}; {problems[0].text if problems else 'the rules are kept'}",
            remedy="look at what the other tests of this suite say first",
        )
