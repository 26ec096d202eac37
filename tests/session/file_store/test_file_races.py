"""Something else happens to the session at every single line of what a store does with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gotato_py import InvalidState, LeaseLost, NotFound, SessionBusy
from gotato_session.file_store import FileStore
from gotato_session.journal import Journal

from ..steps import AtStep
from .journals import HEAD, ID, Quick, entry, message, numbers_in, opened, store_on

Other = Callable[["World"], object]


class World:
    """One session in a folder, and what was reported of it: which commits were made, and whether it was deleted."""

    def __init__(self, folder: Path) -> None:
        self.store: FileStore = store_on(Quick(), folder, sync="commit")
        self.committed: list[str] = []
        self.kept: list[Journal] = []
        self.store.create_journal(ID, HEAD)
        self.write(opened(self.store), "first").close()

    def write(self, journal: Journal, text: str) -> Journal:
        """Commits an entry, and reports it if that worked."""
        seq: int = journal.last_seq + 1  # type: ignore[attr-defined]
        journal.append([entry(seq, "event", text="noise"), message(seq + 1, text)])
        self.committed.append(text)
        return journal

    def texts(self) -> list[str]:
        """What is in the session: its messages' first words."""
        found: list[dict[str, Any]] = opened(self.store, read_only=True).entries()
        return [each["message"]["text"].split("\n")[0] for each in found if each.get("type") == "message"]

    def check(self) -> None:
        """All that was reported is there, once; what was lost with the lease right after its write may be there."""
        try:
            texts = self.texts()
        except NotFound:
            texts = []
        assert sorted(each for each in texts if each in self.committed) == sorted(self.committed)
        assert set(texts) - set(self.committed) <= {"mine"}


def steals(world: World) -> None:
    """Another takes the session over, writes to it and closes it."""
    journal = opened(world.store, steal=True)
    try:
        world.write(journal, "other")
    finally:
        journal.close()


def stays(world: World) -> None:
    """Another takes the session over and writes to it, and has it still when all is over."""
    world.kept.append(opened(world.store, steal=True))
    world.write(world.kept[-1], "other")


def opens(world: World) -> None:
    """Another opens the session if it is free, writes to it and closes it."""
    world.write(opened(world.store), "other").close()


def rewrites(world: World) -> None:
    """Another rewrites it."""
    world.store.vacuum(ID)


def deletes(world: World) -> None:
    """Another deletes it."""
    world.store.delete_journal(ID)
    world.committed.clear()


def deletes_and_creates(world: World) -> None:
    """Another deletes it, and creates one with its id anew."""
    deletes(world)
    world.store.create_journal(ID, HEAD)
    opens(world)


def at_every_line(folder: Path, act: Callable[[World], object], other: Other, *, step: int = 1) -> None:
    """`other` happens before one line of `act` and then before a later one. What was reported is what is there."""
    number, done = 0, False
    while not done:
        number += step
        world = World(folder)

        def happen(world: World = world) -> None:
            try:
                other(world)
            except (SessionBusy, NotFound):  # it was asked for at a moment when it cannot be
                pass

        at = AtStep(number, happen)
        try:
            at(lambda world=world: act(world))  # type: ignore[misc]  # bound at once
        except (SessionBusy, NotFound):
            pass
        done = at.steps < number
        world.check()
        for journal in world.kept:
            try:
                world.write(journal, "still mine")
            except LeaseLost:
                pass
            world.check()
            journal.close()
        try:
            opened(world.store).close()
            world.store.delete_journal(ID)
        except NotFound:
            pass
        assert [each.name for each in folder.iterdir() if not each.name.endswith("~lease")] == []
    assert number > 20


def appends(world: World) -> None:
    """Opens the session and commits twice; the second time is what matters."""
    journal = opened(world.store)
    try:
        world.write(journal, "mine")
    finally:
        journal.close()


def takes_over(world: World) -> None:
    """Takes the session from an owner who has it open, who then tries to write."""
    owner = opened(world.store)
    try:
        journal = opened(world.store, steal=True)
        try:
            world.write(journal, "mine")
            with pytest.raises(LeaseLost):
                world.write(owner, "lost")
        finally:
            journal.close()
    finally:
        owner.close()


@pytest.mark.parametrize("other", [steals, stays, opens, rewrites, deletes, deletes_and_creates])
def test_opening_and_writing(tmp_path: Path, other: Other) -> None:
    """Whatever another does meanwhile, what either was told to be committed is there, in order, and nothing else."""
    at_every_line(tmp_path, appends, other, step=7)


@pytest.mark.parametrize("other", [steals, stays, opens])
def test_taking_over(tmp_path: Path, other: Other) -> None:
    """Two who take a session over at the same time: each commit that was reported is there, in order."""
    at_every_line(tmp_path, takes_over, other, step=29)


@pytest.mark.parametrize("other", [steals, stays, opens, rewrites, deletes_and_creates])
def test_deleting(tmp_path: Path, other: Other) -> None:
    """A session is deleted, or it is another's."""
    at_every_line(tmp_path, deletes, other, step=7)


@pytest.mark.parametrize("other", [steals, stays, opens, deletes])
def test_rewriting(tmp_path: Path, other: Other) -> None:
    """A rewriting loses nothing that another committed meanwhile."""
    at_every_line(tmp_path, rewrites, other, step=29)


@pytest.mark.parametrize("other", [steals, stays])
def test_a_commit(tmp_path: Path, other: Other) -> None:
    """At every line of a commit itself: either it is reported and there, or it is lost with the lease."""

    def commits(world: World) -> None:
        journal = opened(world.store)
        try:
            at = AtStep(number, lambda: other(world))
            try:
                at(lambda: world.write(journal, "mine"))
            except LeaseLost:
                pass
            ends.append(at.steps < number)
        finally:
            journal.close()

    number, ends = 0, [False]
    while not ends[-1]:
        number += 1
        world = World(tmp_path)
        commits(world)
        world.check()
        for journal in world.kept:
            journal.close()
        world.store.delete_journal(ID)
    assert number > 20


def test_creating(tmp_path: Path) -> None:
    """Of two who create a session at the same time one does, and the other is told."""
    number, done = 0, False
    while not done:
        number += 1
        store = store_on(Quick(), tmp_path)
        made: list[int] = []

        def create(made: list[int] = made, store: FileStore = store) -> None:
            try:
                store.create_journal(ID, HEAD)
                made.append(1)
            except InvalidState:
                pass

        at = AtStep(number, create)
        at(create)
        done = at.steps < number
        assert made == [1]
        assert numbers_in(store) == []
        store.delete_journal(ID)
        assert list(tmp_path.iterdir()) == []
    assert number > 20
