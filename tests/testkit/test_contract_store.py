"""The suite for stores: each of its tests is one that a certain broken store fails."""

from __future__ import annotations

import pytest

from gotato_session import MemoryStore, Store
from gotato_testkit.contracts import StoreContract

from . import broken_leases as leases
from . import broken_stores as broken
from .suites import assert_breaks, broken_by, names_of

PATIENT = 30.0
"""Nothing of it runs out, however slow the machine is."""
IMPATIENT = 0.2
"""All of it runs out, since whatever is given that long has no end."""


class Suite(StoreContract):
    """The suite for one store."""

    examples: int | None = 2

    def __init__(self, kind: type[MemoryStore]) -> None:
        self.store = kind()
        self.patience = IMPATIENT if kind is leases.Waits else PATIENT

    def make(self) -> Store:
        return self.store

    def test_list_begins_with_what_was_changed_last(self) -> None:
        """The contract's own, with little patience."""
        before = self.patience
        self.patience = IMPATIENT  # it tries once more behind its end, so that the good are not hurried
        try:
            super().test_list_begins_with_what_was_changed_last()
        finally:
            self.patience = before


STEALS = ("who_steals_a_session_has_it", "the_run_of_an_owner_who_was_replaced_fails")
RESUMES = "a_run_goes_on_without_repeating_an_effect"
FORKS = "a_fork_begins_with_what_is_common"
EXACT = "entries_come_back_as_they_were"
LISTS = "list_tells_of_each_session"
BATCH = "a_branch_into_a_batch_knows_what_was_answered_elsewhere"

BROKEN: list[tuple[type[MemoryStore], tuple[str, ...]]] = [
    (
        broken.without("message"),
        (
            "messages_are_there_after_reopening",
            "a_session_is_made_once",
            "an_open_session_is_not_removed",
            "what_is_not_there_is_not_found",
        ),
    ),
    (
        broken.without("started"),
        (
            "starts_are_there_after_reopening",
            "open_calls_are_closed_by_what_is_known",
            "calls_that_wait_stay_open",
            RESUMES,
            BATCH,
            FORKS,
        ),
    ),
    (
        broken.without("waiting"),
        (
            "what_waits_is_there_after_reopening",
            "calls_that_wait_stay_open",
            "a_run_that_waits_survives_a_restart",
        ),
    ),
    (broken.without("compaction"), ("compactions_are_there_after_reopening",)),
    (broken.without("run"), ("runs_are_there_after_reopening", "completions_are_there_after_reopening", FORKS)),
    (broken.without("branch"), ("branches_are_there_after_reopening", "a_fork_may_begin_anywhere", BATCH)),
    (broken.without("label"), ("labels_are_there_after_reopening", FORKS)),
    (
        broken.without("metadata"),
        ("metadata_are_there_after_reopening", "a_reader_beside_a_writer_writes_nothing", LISTS, FORKS),
    ),
    (
        broken.without("settlement"),
        ("completions_are_there_after_reopening", "a_completion_during_a_run_outlives_the_run"),
    ),
    (broken.without("event"), ("events_are_there_after_reopening", EXACT)),
    (
        broken.LosesTheTail,
        (
            "messages_are_there_after_reopening",
            "an_open_session_is_not_removed",
            "a_commit_of_nothing_changes_nothing",
            EXACT,
        ),
    ),
    (broken.WritesASCII, ("a_session_is_made_and_opened_again",)),
    (
        broken.Overwrites,
        ("a_session_is_made_once", "a_journal_is_made_whole", "a_fork_may_begin_anywhere"),
    ),
    (
        broken.MakesWhatIsNotThere,
        ("what_is_not_there_is_not_found", "a_session_that_was_removed_is_gone", "a_journal_is_made_whole"),
    ),
    (broken.CutsIds, ("every_legal_id_is_a_name",)),
    (broken.CountsSessions, ("ids_that_are_made_differ",)),
    (broken.ListsHeads, (LISTS,)),
    (broken.ListsNoParents, (LISTS, "a_session_with_forks_is_not_removed")),
    (broken.ListsInAnyOrder, ("list_begins_with_what_was_changed_last",)),
    (leases.NoLeases, ("a_second_writer_is_refused_at_once",)),
    (leases.Nameless, ("a_second_writer_is_refused_at_once",)),
    (leases.Waits, ("a_second_writer_is_refused_at_once",)),
    (leases.KeepsLeases, ("a_session_that_was_closed_is_free",)),
    (leases.ReadersTakeLeases, ("a_reader_beside_a_writer_writes_nothing",)),
    (leases.NoFence, ("a_closed_journal_keeps_nothing", RESUMES, *STEALS)),
    (leases.StealsNothing, (RESUMES, *STEALS)),
    (leases.ClosesForOthers, ("a_session_that_was_closed_is_free", STEALS[0])),
    (leases.RemovesWhatIsOpen, ("an_open_session_is_not_removed",)),
    (broken.RemovesNothing, ("a_session_that_was_removed_is_gone", "a_session_with_forks_is_not_removed")),
    (
        broken.KeepsHalfACommit,
        (
            "open_calls_are_closed_by_what_is_known",
            "calls_that_are_open_are_closed_in_the_fork_only",
            "completions_are_there_after_reopening",
            BATCH,
            EXACT,
        ),
    ),
    (broken.TakesAClosedOne, ("a_closed_journal_keeps_nothing", RESUMES, *STEALS)),
    (broken.Miscounts, (EXACT,)),
]


@pytest.mark.parametrize(("kind", "expected"), BROKEN, ids=lambda each: getattr(each, "__name__", ""))
def test_each_promise_is_checked(kind: type[MemoryStore], expected: tuple[str, ...]) -> None:
    """A store that breaks a promise fails the tests that tell of it, in words of the contract, and no other."""
    leases.GIVE_UP.clear()
    try:
        assert_breaks(Suite(kind), *expected)
    finally:
        leases.GIVE_UP.set()


def test_all_tests_may_use_one_place() -> None:
    """Whatever the tests before have left in it."""
    suite = Suite(MemoryStore)
    assert broken_by(suite) == broken_by(suite) == {}
    assert len(names_of(suite)) > 40
    assert not [each for each in suite.store._sessions.values() if each.lease]


def test_a_store_is_closed_when_a_test_ends() -> None:
    """If it has a `close`: once for each time that it was made."""
    closed: list[int] = []

    class Closing(MemoryStore):
        """A store that has to be closed."""

        def close(self) -> None:
            """Closes it."""
            closed.append(1)

    suite = Suite(Closing)
    suite.test_a_session_is_made_and_opened_again()
    assert closed == [1, 1]


class OtherStore:
    """A store that does not derive from `StoreBase`."""

    def __init__(self) -> None:
        kept = MemoryStore()
        self.create, self.open, self.list, self.delete = kept.create, kept.open, kept.list, kept.delete


def test_any_store_can_be_tested() -> None:
    """What is asked of `StoreBase` is skipped where the store is none."""
    suite = Suite(OtherStore)  # type: ignore[arg-type]
    assert broken_by(suite) == {}
    with pytest.raises(Exception, match="does not derive from StoreBase"):
        suite.test_a_journal_is_made_whole()


def test_the_suite_asks_for_make() -> None:
    """Without `make` the suite says what is missing."""
    with pytest.raises(NotImplementedError, match="needs make"):
        StoreContract().test_ids_that_are_made_differ()
