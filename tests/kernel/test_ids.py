"""Ids that are unique without coordination."""

from __future__ import annotations

import multiprocessing
import os
import random
import re
import threading
from multiprocessing.queues import SimpleQueue

import pytest

from gotato_py.ids import random_ids


@pytest.mark.parametrize(("kind", "prefix"), [("agent", "a"), ("run", "r"), ("message", "m")])
def test_an_id_says_its_kind(kind: str, prefix: str) -> None:
    """An id is its kind's letter, the process' random prefix and a number."""
    assert re.fullmatch(f"{prefix}-[0-9a-f]{{20}}-[0-9a-f]+", random_ids(kind))


def test_ids_are_unique_across_threads() -> None:
    """Threads that make ids at the same moment never make the same."""
    made: list[list[str]] = [[] for _ in range(8)]
    gate = threading.Barrier(8)

    def work(index: int) -> None:
        gate.wait()
        made[index] = [random_ids("message") for _ in range(5_000)]

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({each for ids in made for each in ids}) == 40_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_child_makes_other_ids() -> None:
    """A fork does not copy the stream of ids."""
    random_ids("message")
    context = multiprocessing.get_context("fork")
    made = context.SimpleQueue()
    children = [context.Process(target=_send_ids, args=(made,)) for _ in range(2)]
    for child in children:
        child.start()
    ids = [made.get() for _ in children]
    for child in children:
        child.join()
    ids.append([random_ids("message") for _ in range(50)])
    assert len({each for some in ids for each in some}) == 150


def _send_ids(made: SimpleQueue[list[str]]) -> None:
    made.put([random_ids("message") for _ in range(50)])


def test_ids_leave_the_programs_own_random_numbers_alone() -> None:
    """Neither does `random.seed` repeat ids, nor do ids move the program's generator on."""
    random.seed(1)
    first, expected = random_ids("run"), random.random()
    random.seed(1)
    second, number = random_ids("run"), random.random()
    assert first != second
    assert number == expected
