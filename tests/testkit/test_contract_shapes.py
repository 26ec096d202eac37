"""A suite looks first whether `make()` gives anything that it could ask."""

from __future__ import annotations

from typing import Any
from unittest import SkipTest

import pytest

from gotato_py import MemoryTranscript
from gotato_testkit.contracts import (
    BrokenPromise,
    ContextBuilderContract,
    ModelContract,
    StoreContract,
    ToolSourceContract,
    TranscriptContract,
)
from gotato_testkit.contracts._suite import NotJudged, Suite, after, require, shaped

SUITES = (ContextBuilderContract, ModelContract, StoreContract, ToolSourceContract, TranscriptContract)


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.__name__)
@pytest.mark.parametrize("made", [None, MemoryTranscript], ids=["nothing", "a class"])
def test_what_is_nothing_to_ask_is_told_first(suite: Any, made: object) -> None:
    """Every test of a suite says at once that `make()` returned no instance, and what it has to have."""
    mine = type("Mine", (suite,), {"make": lambda self: made})()
    tests = [name for name in dir(mine) if name.startswith("test_")]
    said: list[str] = []
    for name in tests:
        try:
            getattr(mine, name)()
        except BrokenPromise as broken:
            said.append(str(broken))
        except SkipTest:  # an optional promise that is not claimed
            continue
    assert said
    assert all("make() returns an object that has" in each for each in said), said


def test_a_missing_member_is_named() -> None:
    """What is not written yet is named; what is there passes."""
    assert isinstance(shaped(MemoryTranscript(), "append"), MemoryTranscript)
    with pytest.raises(BrokenPromise, match="a MemoryTranscript without vacuum"):
        shaped(MemoryTranscript(), "append", "vacuum")


class Chain(Suite):
    """Three tests, each of which builds upon the one before, and one that builds upon what is optional."""

    def test_ground(self) -> None:
        """It breaks."""
        require(False, "it stands", found="a hole", remedy="fill it")

    @after("test_ground")
    def test_wall(self) -> None:
        """So this can say nothing."""
        raise AttributeError("no wall")

    @after("test_wall")
    def test_roof(self) -> None:
        """Nor this."""
        raise IndexError("no roof")

    def test_garden(self) -> None:
        """It may be left out."""
        raise SkipTest("no garden, which is optional")

    @after("test_garden")
    def test_flowers(self) -> None:
        """They fail by themselves."""
        require(False, "they flower", found="weeds", remedy="pull them out")


def test_one_breach_is_told_once() -> None:
    """What builds upon a broken promise is not judged, and says which; a promise that is optional excuses nothing."""
    chain = Chain()
    for test in (chain.test_wall, chain.test_roof):
        with pytest.raises(NotJudged, match=r"^not judged: a hole \(test_ground\)$"):
            test()
    with pytest.raises(BrokenPromise, match="weeds"):
        chain.test_flowers()
