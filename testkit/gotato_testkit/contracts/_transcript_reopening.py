"""What a Transcript promises that keeps its history: opened again it is what it was."""

from __future__ import annotations

from unittest import SkipTest
from uuid import uuid4

from gotato_py import (
    Agent,
    Approve,
    AssistantMessage,
    Compaction,
    Message,
    UserMessage,
    WaitingCall,
)
from gotato_testkit import strategies as gst
from gotato_testkit.answers import say
from gotato_testkit.scripted import ScriptedModel

from ._histories import batch, every_kind, exact, renewed, results_by_key, settle
from ._suite import after, require
from ._transcript_suite import APPENDS, KEEPS, NEW_IDS, SEQUENCE, TranscriptSuite

_REMEDY = "write it before the call returns, in the order of the calls, and read all of it when the place is opened"


class ReopeningContract(TranscriptSuite):
    """The promises of a transcript with `persistent = True`, whose `make()` opens the same place each time."""

    persistent: bool = False

    @after(SEQUENCE, KEEPS)
    def test_messages_are_there_after_reopening(self) -> None:
        """All of them, in their order, with their ids and metadata."""
        self._only_if_persistent()

        def check(history: list[Message]) -> None:
            with self.opened() as transcript:
                for message in renewed(history):
                    transcript.append(message)
                kept = list(transcript.messages)
            with self.opened() as transcript:
                differing = exact(list(transcript.messages), kept)
            require(
                not differing,
                "when append has returned, the message is kept (Transcript.append)",
                found=f"opened again, {differing} where {len(kept)} messages were kept",
                remedy=_REMEDY,
            )

        check(every_kind())
        self.for_all(gst.histories(min_turns=1), check)

    @after(SEQUENCE, NEW_IDS)
    def test_ids_are_new_after_reopening(self) -> None:
        """A message that is appended later gets no id that an earlier one has."""
        self._only_if_persistent()
        with self.opened() as transcript:
            transcript.append(UserMessage("one"))
        with self.opened() as transcript:
            transcript.append(UserMessage("two"))
            ids = [message.id for message in transcript.messages]
        require(
            len(set(ids)) == len(ids),
            "each message has an id of its own (Transcript.append)",
            found=f"{len(set(ids))} different ids for {len(ids)} messages, after reopening",
            remedy="do not count from 1 again; random ids need no memory",
        )

    @after(SEQUENCE, APPENDS)
    def test_started_marks_are_there_after_reopening(self) -> None:
        """A call that may have had its effect is not made again after a crash."""
        self._only_if_persistent()
        with self.opened() as transcript:
            keys = batch(transcript, 2)
            transcript.mark_started(keys[0])
        with self.opened() as transcript:
            results = results_by_key(transcript)  # opening it may have closed the calls, as a Session does
            ran = [key in transcript.started or (key in results and results[key].executed is None) for key in keys]
            settle(transcript, [key for key in keys if key not in results])
        require(
            ran == [True, False],
            "a start is recorded before the tool runs (Transcript.mark_started)",
            found="opened again, the mark is gone" if not ran[0] else "opened again, another call is marked too",
            remedy=_REMEDY,
        )

    @after(SEQUENCE, APPENDS)
    def test_waiting_calls_are_there_after_reopening(self) -> None:
        """A run that waits for a person goes on in another process."""
        self._only_if_persistent()
        with self.opened() as transcript:
            keys = batch(transcript, 2)
            marked = [
                WaitingCall(keys[0], "c0", "find", {"a": [1]}, "May it?", 2e9),
                WaitingCall(keys[1], "c1", "find", {}, "And it?", decision=Approve()),
            ]
            transcript.mark_waiting(marked)
        with self.opened() as transcript:
            found = list(transcript.waiting)
            settle(transcript, keys)
        require(
            found == marked,
            "calls that wait are recorded (Transcript.mark_waiting)",
            found=f"opened again, {len(found)} calls, or others, where 2 waited",
            remedy=_REMEDY + "; record_to_dict and record_from_dict write them",
        )

    @after(SEQUENCE, APPENDS)
    def test_compactions_are_there_after_reopening(self) -> None:
        """The model sees the same context as before (skipped without `replace`)."""
        self._only_if_persistent()
        with self.opened() as transcript:
            replace = getattr(transcript, "replace", None)
            if replace is None:
                raise SkipTest("the transcript has no replace(), which is optional")
            transcript.append(UserMessage("one"))
            covered = transcript.append(AssistantMessage("two"))
            transcript.append(UserMessage("three"))
            replace(Compaction(UserMessage("so far"), covered.id, reason="test", tokens_before=9, tokens_after=3))
            kept, compactions = list(transcript.messages), list(getattr(transcript, "compactions", ()))
        with self.opened() as transcript:
            differing = exact(list(transcript.messages), kept)
            same = list(getattr(transcript, "compactions", ())) == compactions
        require(
            not differing and same,
            "a compaction is kept like a message (Transcript.replace)",
            found=f"opened again, {differing or 'the same messages'} and {'the same' if same else 'other'} compactions",
            remedy=_REMEDY,
        )

    @after(SEQUENCE, APPENDS, KEEPS)
    def test_an_agent_goes_on_after_reopening(self) -> None:
        """A message that is delivered again is answered from the transcript, without asking the model."""
        self._only_if_persistent()
        message = UserMessage("Once, please.", id=f"own-{uuid4().hex}")
        with self.opened() as transcript, Agent(ScriptedModel([say("Done.")]), transcript=transcript) as agent:
            agent.run(message)
        model = ScriptedModel([say("Done again.")])
        with self.opened() as transcript, Agent(model, transcript=transcript) as agent:
            text = agent.run(message).text
        require(
            (text, len(model.requests)) == ("Done.", 0),
            "a message that the transcript holds is not committed again (Agent.run)",
            found=f"{len(model.requests)} requests to the model in a new process",
            remedy=_REMEDY + ", ids as they were",
        )

    def _only_if_persistent(self) -> None:
        if not self.persistent:
            raise SkipTest("set persistent = True for a transcript whose make() opens the same place each time")
