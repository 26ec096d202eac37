"""Ctrl-C at every line of what a store does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ..steps import AtStep, interrupt
from .journals import HEAD, ID, Quick, filled, message, numbers, numbers_in, opened, store_on

# A file that was opened and not kept yet, because an interrupt came between, is closed by the collector, which warns.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def at_every_line(make: Callable[[], Callable[[], object]], check: Callable[[bool], None], *, step: int = 1) -> None:
    """Makes something to do and does it, interrupted before one line and then before a later one, to its end; `check`
    is told each time whether it came to its end."""
    number = 0
    while True:
        number += step
        act = make()
        interrupted = AtStep(number, interrupt)
        try:
            interrupted(act)
            done = True
        except KeyboardInterrupt:
            done = False
        check(done)
        if interrupted.steps < number:
            break
    assert number > 20


@pytest.mark.parametrize("sync", ["commit", "never"])
def test_an_append_is_there_or_not(tmp_path: Path, sync: str) -> None:
    """Interrupted anywhere, a commit is wholly there or not at all, the journal and the file say the same, and it is
    there the next time if it came to its end."""
    filled(tmp_path, 1)
    store = store_on(Quick(), tmp_path, sync=sync)
    journal = opened(store)

    def make() -> Callable[[], object]:
        seq: int = journal.last_seq + 1  # type: ignore[attr-defined]
        expected[:] = [seq - 1, seq + 1]
        return lambda: journal.append([message(seq), message(seq + 1)])

    def check(done: bool) -> None:
        last: int = journal.last_seq  # type: ignore[attr-defined]
        assert last == expected[1] if done else last in expected
        assert numbers(journal) == list(range(1, last + 1))

    expected: list[int] = []
    at_every_line(make, check)
    journal.append([message(journal.last_seq + 1)])  # type: ignore[attr-defined]
    last: int = journal.last_seq  # type: ignore[attr-defined]
    journal.close()
    assert numbers_in(store) == list(range(1, last + 1))
    again = opened(store)
    assert again.recovered == ()  # type: ignore[attr-defined]
    again.close()


def test_an_interrupted_append_and_then_the_end(tmp_path: Path) -> None:
    """What was interrupted and is not counted is not in the file once the journal is closed."""
    filled(tmp_path, 1)
    store = store_on(Quick(), tmp_path)
    opens = []

    def make() -> Callable[[], object]:
        opens.append(opened(store))
        return lambda: opens[-1].append([message(opens[-1].last_seq + 1)])  # type: ignore[attr-defined]

    def check(done: bool) -> None:
        last: int = opens[-1].last_seq  # type: ignore[attr-defined]
        opens[-1].close()
        assert numbers_in(store) == list(range(1, last + 1))

    at_every_line(make, check)


@pytest.mark.parametrize("steal", [False, True])
def test_an_opening_lets_go_or_has_it(tmp_path: Path, steal: bool) -> None:
    """Interrupted anywhere, an opening, a taking over and a torn tail's moving aside leave no lock and lose nothing."""
    _, path = filled(tmp_path, 2)
    store = store_on(Quick(), tmp_path)
    whole = path.read_bytes()
    owners = []

    def make() -> Callable[[], object]:
        path.write_bytes(whole)
        if steal:
            owners.append(opened(store))
        path.write_bytes(whole + b"torn")
        return lambda: opened(store, steal=steal).close()

    def check(done: bool) -> None:
        assert numbers_in(store) == [1, 2]
        asides = [each.read_bytes() for each in tmp_path.glob("*.torn-*")]
        assert path.read_bytes() == whole + b"torn" or b"torn" in asides
        for owner in owners:
            owner.close()
        owners.clear()
        journal = opened(store)
        assert numbers(journal) == [1, 2]
        journal.close()
        assert not (tmp_path / f".{ID}~fence").exists()
        for each in tmp_path.glob("*.torn-*"):
            each.unlink()

    at_every_line(make, check, step=5)


def test_creating_and_deleting_are_all_or_nothing(tmp_path: Path) -> None:
    """Interrupted anywhere, a session is created or not, and deleted or not; it is never half a one."""
    store = store_on(Quick(), tmp_path)

    def make() -> Callable[[], object]:
        return lambda: store.create_journal(ID, HEAD)

    def check(done: bool) -> None:
        there = [each.id for each in store.summaries()]
        assert there in ([[ID]] if done else [[], [ID]])
        if there:
            assert numbers_in(store) == []
            store.delete_journal(ID)

    at_every_line(make, check)

    def make_deletion() -> Callable[[], object]:
        if not list(store.summaries()):
            store.create_journal(ID, HEAD)
        return lambda: store.delete_journal(ID)

    def check_deletion(done: bool) -> None:
        assert len(list(store.summaries())) <= (not done)

    at_every_line(make_deletion, check_deletion)


def test_a_rewriting_is_all_or_nothing(tmp_path: Path) -> None:
    """Interrupted anywhere, a session is rewritten or as it was, and free."""
    store, path = filled(tmp_path, 1)
    quick = store_on(Quick(), tmp_path)
    journal = opened(store)
    journal.append([{"seq": 2, "type": "event", "event": {}}, message(3)])
    journal.close()
    data = path.read_bytes()

    def make() -> Callable[[], object]:
        path.write_bytes(data)
        return lambda: quick.vacuum(ID)

    def check(done: bool) -> None:
        assert numbers_in(quick) in ([[1, 2]] if done else [[1, 2], [1, 2, 3]])
        opened(quick).close()

    at_every_line(make, check, step=17)
