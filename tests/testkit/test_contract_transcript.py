"""The suite for transcripts: ours keep it, and each of its tests is the one that a certain broken one fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import SkipTest

import pytest
from hypothesis import settings
from hypothesis import strategies as st

from gotato_py import MemoryTranscript, Transcript
from gotato_testkit import FaultPlan, FaultyTranscript
from gotato_testkit.contracts import TranscriptContract

from . import broken_options as options
from . import broken_transcripts as broken
from . import transcripts as made
from .suites import assert_breaks, broken_by, not_judged_by


class TestMemoryTranscript(TranscriptContract):
    """The transcript in memory keeps the promises of a transcript."""

    def make(self) -> Transcript:
        return MemoryTranscript()


class TestFaultyTranscript(TranscriptContract):
    """So does one whose faults are yet to come."""

    def make(self) -> Transcript:
        return FaultyTranscript(MemoryTranscript(), FaultPlan())


class TestFileTranscript(TranscriptContract):
    """So does one that keeps its history, opened again and again."""

    persistent = True
    examples = 10

    @pytest.fixture(autouse=True)
    def place(self, tmp_path: Path) -> None:
        """One file for each test."""
        self.path = tmp_path / "messages.json"

    def make(self) -> Transcript:
        return made.FileTranscript(self.path)


class Minimal:
    """A transcript without any optional member."""

    def __init__(self) -> None:
        kept = MemoryTranscript()
        self.append, self.mark_started, self.mark_waiting = kept.append, kept.mark_started, kept.mark_waiting
        self._kept = kept

    messages: Any = property(lambda self: self._kept.messages)
    started: Any = property(lambda self: self._kept.started)
    waiting: Any = property(lambda self: self._kept.waiting)


class Refusing(MemoryTranscript):
    """A transcript that never replaces anything."""

    def replace(self, compaction: object) -> bool:
        return False


class Suite(TranscriptContract):
    """The suite for one transcript."""

    examples: int | None = 2

    def __init__(self, make: Callable[[], Transcript], *, persistent: bool = False) -> None:
        self.made = make
        self.persistent = persistent

    def make(self) -> Transcript:
        return self.made()


@pytest.mark.parametrize("make", [Minimal, Refusing])
def test_optional_members_are_optional(make: Callable[[], Transcript]) -> None:
    """A transcript without them, or one that does not replace, keeps the promises."""
    assert broken_by(Suite(make)) == {}


def test_a_place_without_compactions_is_a_place(tmp_path: Path) -> None:
    """A transcript that persists need not replace anything."""

    class Plain(made.FileTranscript):
        """A transcript in a file, without `replace`."""

        replace = None  # type: ignore[assignment]

    suite = Suite(lambda: Plain(tmp_path / "messages.jsonl"), persistent=True)
    suite.test_messages_are_there_after_reopening()
    with pytest.raises(SkipTest, match="no replace"):
        suite.test_compactions_are_there_after_reopening()


@pytest.mark.parametrize(("examples", "expected"), [(7, 7), (None, settings().max_examples)])
def test_the_number_of_examples_can_be_chosen(examples: int | None, expected: int) -> None:
    """`examples` says how many are drawn; None takes as many as the Hypothesis profile does."""
    drawn: list[int] = []
    suite = Suite(MemoryTranscript)
    suite.examples = examples
    suite.for_all(st.integers(), lambda number: drawn.append(number))  # noqa: PLW0108  # Hypothesis wants a function
    assert len(drawn) == expected


IN_MEMORY: list[tuple[Callable[[], Transcript], str]] = [
    (broken.LosesMetadata, "what_is_appended_is_kept"),
    (broken.GivesItsOwnIds, "append_returns_the_message_with_its_id"),
    (broken.CountsIds, "append_gives_ids_that_differ"),
    (broken.TakesAnything, "append_refuses_what_is_no_message"),
    (broken.KeepsWhatItRefuses, "append_refuses_what_is_no_message"),
    (broken.OddView, "a_view_is_a_sequence"),
    (broken.OpenView, "a_view_cannot_be_changed"),
    (broken.ShowsAMethod, "a_view_is_a_sequence"),
    (broken.ReturnsNothing, "append_returns_the_message_with_its_id"),
    (broken.Copies, "reading_does_not_copy_the_history"),
    (broken.TornForReaders, "any_thread_may_read_while_one_writes"),
    (broken.ForgetsStartsWithAResult, "a_started_call_is_remembered"),
    (broken.ForgetsStarts, "a_started_call_is_remembered"),
    (broken.AddsWaitingCalls, "waiting_calls_are_remembered"),
    (broken.WaitsForEver, "nothing_waits_once_the_conversation_has_gone_on"),
    (broken.SwapsAnAgentsWords, "an_agent_runs_on_it"),
    (options.ForgetsTheRest, "a_summary_takes_the_place_of_what_it_covers"),
    (options.TellsNoCompactions, "a_summary_takes_the_place_of_what_it_covers"),
    (options.ChangesItsList, "a_view_outlives_a_compaction"),
    (options.ForgetsTheLastUser, "a_summary_remembers_the_last_user_message"),
    (options.ForgetsAnEarlierLastUser, "a_summary_remembers_the_last_user_message"),
    (options.TakesAnUnknownEnd, "an_unknown_end_is_refused"),
    (options.ChangesWhatItRefuses, "an_unknown_end_is_refused"),
    (options.TakesAnEmptySummary, "an_empty_summary_is_refused"),
    (options.CutsABatch, "a_cut_through_a_batch_is_refused"),
    (options.CutsBehindAnOpenCall, "a_cut_behind_an_open_call_is_refused"),
    (options.OneRunOnly, "runs_follow_one_another"),
    (options.NoRecords, "runs_follow_one_another"),
]


@pytest.mark.parametrize(("make", "expected"), IN_MEMORY, ids=lambda each: getattr(each, "__name__", ""))
def test_each_promise_is_checked(make: Callable[[], Transcript], expected: str) -> None:
    """A transcript that breaks one promise fails the test of that promise, and no other."""
    assert_breaks(Suite(make), expected)


def test_a_view_that_grows_is_told_of() -> None:
    """A view that shows later messages fails the test of that; the other that holds a view is not judged."""
    found = broken_by(Suite(broken.LiveView))
    assert set(found) == {"test_a_view_stays_as_it_was"}
    assert set(not_judged_by(Suite(broken.LiveView))) == {"test_a_view_outlives_a_compaction"}
    assert found["test_a_view_stays_as_it_was"].found == "a view of 1 messages that shows 2 after an append"


def test_the_list_itself_is_told_of() -> None:
    """A transcript that hands out its own list fails the tests of views, whatever the methods of a list do."""
    found = broken_by(Suite(broken.OwnList))
    assert {"test_a_view_stays_as_it_was", "test_a_view_cannot_be_changed"} <= set(found)
    assert found["test_a_view_cannot_be_changed"].found == "a list whose append() changed the transcript"


ON_DISK: list[tuple[Callable[[Path], Transcript], str]] = [
    (made.LosesTheTail, "messages_are_there_after_reopening"),
    (made.CountsFromOne, "ids_are_new_after_reopening"),
    (made.ForgetsStartsOnDisk, "started_marks_are_there_after_reopening"),
    (made.StartsAll, "started_marks_are_there_after_reopening"),
    (made.ForgetsDecisions, "waiting_calls_are_there_after_reopening"),
    (made.ForgetsCompactions, "compactions_are_there_after_reopening"),
    (made.ForgetsTheUser, "an_agent_goes_on_after_reopening"),
]
REOPENING = {name for name in dir(TranscriptContract) if name.endswith("after_reopening")}


@pytest.mark.parametrize(("make", "expected"), ON_DISK, ids=lambda each: getattr(each, "__name__", ""))
def test_each_promise_of_a_place_is_checked(make: Callable[[Path], Transcript], expected: str, tmp_path: Path) -> None:
    """A transcript that loses something between two openings fails the test of that."""
    found: dict[str, str] = {}
    for name in sorted(REOPENING):
        suite = Suite(lambda name=name: make(tmp_path / name), persistent=True)  # type: ignore[misc]
        try:
            getattr(suite, name)()
        except AssertionError as error:
            found[name] = str(error)
    assert set(found) == {f"test_{expected}"}, found


def test_all_tests_may_use_one_place(tmp_path: Path) -> None:
    """Whatever the tests before have left in it; what has a `close` is closed, so that it can be opened again."""
    opened: list[made.FileTranscript] = []

    def make() -> Transcript:
        opened.append(made.FileTranscript(tmp_path / "messages.json"))
        return opened[-1]

    assert broken_by(Suite(make, persistent=True)) == {}
    assert len(opened) > 20
    assert all(each.closed for each in opened)


def test_the_suite_asks_for_make() -> None:
    """Without `make` the suite says what is missing."""
    with pytest.raises(NotImplementedError, match="needs make"):
        TranscriptContract().test_a_view_is_a_sequence()
