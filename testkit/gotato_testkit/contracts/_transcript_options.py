"""What a Transcript promises of the optional members that it has: compactions, and being told of runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast
from unittest import SkipTest
from uuid import uuid4

from gotato_py import (
    AssistantMessage,
    Compaction,
    InvalidArgument,
    RunRecord,
    Transcript,
    Usage,
    UserMessage,
)

from ._histories import batch, exact, settle
from ._suite import after, require
from ._transcript_suite import APPENDS, SEQUENCE, STAYS, TranscriptSuite

Replace = Callable[[Compaction], bool]

_REPLACED = "`replace` puts the summary in the place of what it covers, and returns True (Transcript.replace)"
_REFUSED = "`replace` refuses what would break the history, and changes nothing (Transcript.replace)"
_LAST_USER = "a kept summary says in metadata['last_user'] which user message it covers last (Transcript.replace)"


class CompactionContract(TranscriptSuite):
    """The promises of `replace` and `compactions` (skipped for a transcript without `replace`)."""

    @after(SEQUENCE, APPENDS)
    def test_a_summary_takes_the_place_of_what_it_covers(self) -> None:
        """`messages` begins with the summary and goes on behind `through`; `compactions` has grown by one."""
        with self.opened() as transcript:
            replace = _replace_of(transcript)
            covered = transcript.append(UserMessage("one"))
            transcript.append(AssistantMessage("two"))
            after = list(transcript.messages)[-1:]
            known = len(_compactions(transcript))
            done = replace(Compaction(UserMessage("so far"), covered.id))
            shown, grown = list(transcript.messages), len(_compactions(transcript)) - known
        if not done:
            raise SkipTest("replace() returned False: it does not replace")
        fine = len(shown) == 2 and shown[0].text == "so far" and bool(shown[0].id) and not exact(shown[1:], after)
        require(
            fine and grown == 1,
            _REPLACED,
            found=f"{len(shown)} messages where 2 were due, and {grown} more compactions",
            remedy="show the summary, with an id, and then what follows `through`, as it was",
        )

    @after(SEQUENCE, APPENDS, STAYS)
    def test_a_view_outlives_a_compaction(self) -> None:
        """A view that was taken before still shows the messages that the summary covers."""
        with self.opened() as transcript:
            replace = _replace_of(transcript)
            covered = transcript.append(UserMessage("one"))
            view = transcript.messages
            before = list(view)
            replace(Compaction(UserMessage("so far"), covered.id))
            after = list(view)
        require(
            after == before,
            "`messages` is an immutable view (Transcript.messages)",
            found=f"a view of {len(before)} messages that shows {len(after)}, or others, after a compaction",
            remedy="put another list in place instead of changing the one that views share",
        )

    @after(SEQUENCE, APPENDS)
    def test_a_summary_remembers_the_last_user_message(self) -> None:
        """So a message that is delivered again is recognised; a second summary hands on what the first one knew."""
        with self.opened() as transcript:
            replace = _replace_of(transcript)
            asked = transcript.append(UserMessage("one", id=f"own-{uuid4().hex}"))
            answer = transcript.append(AssistantMessage("two"))
            replaced = replace(Compaction(UserMessage("so far"), answer.id))
            first = transcript.messages[0]
            if replaced:
                replace(Compaction(UserMessage("so far, again"), first.id))
            told = [each.metadata.get("last_user") for each in (first, transcript.messages[0])]
        require(
            not replaced or told == [asked.id, asked.id],
            _LAST_USER,
            found="another id, or none" if told[0] != asked.id else "another id, or none, in the second summary",
            remedy="set it when the summary is kept; take it from an earlier summary that is covered",
        )

    @after(SEQUENCE, APPENDS)
    def test_an_unknown_end_is_refused(self) -> None:
        """`through` is the id of a message in `messages`."""
        with self.opened() as transcript:
            transcript.append(UserMessage("one"))
            for through in (f"nobody-{uuid4().hex}", ""):
                self._refuses(transcript, UserMessage("so far"), through, "a `through` that is not in `messages`")

    @after(SEQUENCE, APPENDS)
    def test_an_empty_summary_is_refused(self) -> None:
        """A summary that says nothing would lose what it covers."""
        with self.opened() as transcript:
            kept = transcript.append(UserMessage("one"))
            for text in ("", " \n"):
                self._refuses(transcript, UserMessage(text), kept.id, "an empty summary")

    @after(SEQUENCE, APPENDS)
    def test_a_cut_through_a_batch_is_refused(self) -> None:
        """A call and its results are covered together, or not at all."""
        with self.opened() as transcript:
            keys = batch(transcript, 2)
            settle(transcript, keys)
            answer, result = transcript.messages[-3], transcript.messages[-2]
            transcript.append(AssistantMessage("Found."))
            for through in (answer.id, result.id):
                self._refuses(transcript, UserMessage("so far"), through, "a cut between a call and its results")

    @after(SEQUENCE, APPENDS)
    def test_a_cut_behind_an_open_call_is_refused(self) -> None:
        """The answer of a call that is open would have nowhere to go."""
        with self.opened() as transcript:
            keys = batch(transcript, 1)
            try:
                open_at = transcript.messages[-1].id
                self._refuses(transcript, UserMessage("so far"), open_at, "a cut behind an open call")
            finally:
                settle(transcript, keys)

    def _refuses(self, transcript: Transcript, summary: UserMessage, through: str, what: str) -> None:
        replace, before = _replace_of(transcript), list(transcript.messages)
        try:
            outcome = "was done" if replace(Compaction(summary, through)) else ""
        except InvalidArgument:
            outcome = ""
        if exact(list(transcript.messages), before):
            outcome = outcome or "was refused, and `messages` has changed"
        require(
            not outcome, _REFUSED, found=f"{what} {outcome}", remedy="check all of it first, and raise InvalidArgument"
        )


class RunsContract(TranscriptSuite):
    """The promises of `begin_run` and `end_run` (skipped for a transcript without them)."""

    def test_runs_follow_one_another(self) -> None:
        """A run that has ended makes way for the next."""
        with self.opened() as transcript:
            begin, end = getattr(transcript, "begin_run", None), getattr(transcript, "end_run", None)
            if begin is None or end is None:
                raise SkipTest("the transcript has no begin_run and end_run, which are optional")
            for number in (1, 2):
                run_id = f"r-{uuid4().hex}"
                try:
                    begin(run_id)
                    end(RunRecord(run_id, "agent", "completed", "", 0.0, 0.5, number, 0, Usage(3, 4)))
                    outcome = ""
                except Exception as error:
                    outcome = type(error).__name__
                require(
                    not outcome,
                    "`end_run` takes the record of the run that `begin_run` announced (Transcript)",
                    found=f"{outcome} in run {number}",
                    remedy="let begin_run raise Busy only while another run goes on, and end_run make way for the next",
                )


def _replace_of(transcript: Transcript) -> Replace:
    replace = getattr(transcript, "replace", None)
    if replace is None:
        raise SkipTest("the transcript has no replace(), which is optional")
    return cast("Replace", replace)


def _compactions(transcript: Transcript) -> Any:  # Any: an optional member, whatever it is
    return getattr(transcript, "compactions", ())
