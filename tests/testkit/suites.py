"""Runs a contract suite by hand: which of its tests an implementation breaks, and in which words."""

from __future__ import annotations

from unittest import SkipTest

from gotato_testkit.contracts import BrokenPromise
from gotato_testkit.contracts._suite import NotJudged


def names_of(suite: object) -> list[str]:
    """The tests of a suite."""
    return [name for name in dir(suite) if name.startswith("test_")]


def broken_by(suite: object) -> dict[str, BrokenPromise]:
    """The tests that fail, each with its failure."""
    found: dict[str, BrokenPromise] = {}
    for name in names_of(suite):
        try:
            getattr(suite, name)()
        except SkipTest:
            pass
        except BrokenPromise as broken:
            found[name] = broken
    return found


def not_judged_by(suite: object) -> dict[str, str]:
    """The tests that are skipped because another one tells what is wrong, each with its reason."""
    found: dict[str, str] = {}
    for name in names_of(suite):
        try:
            getattr(suite, name)()
        except NotJudged as skipped:
            found[name] = str(skipped)
        except (SkipTest, BrokenPromise):
            pass
    return found


def assert_breaks(suite: object, *expected: str) -> None:
    """The suite fails in exactly these tests, and says each time what was promised, what was found and what to do."""
    found = broken_by(suite)
    assert sorted(found) == sorted(f"test_{each}" for each in expected), {
        name: str(each) for name, each in found.items()
    }
    for broken in found.values():
        assert broken.promise
        assert broken.found
        assert broken.remedy
        assert str(broken) == f"broken promise: {broken.promise}\n  found: {broken.found}\n  to do: {broken.remedy}"
