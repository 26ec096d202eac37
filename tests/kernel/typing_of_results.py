"""What type checkers infer of a result; checked by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, assert_type

from gotato_py import Agent, RunResult, RunStream


@dataclass
class Answer:
    """A structured output."""

    value: int


def results(agent: Agent, untyped: RunResult) -> None:
    """`output` decides the type of the result: the class given, Any for a schema, None for nothing."""
    assert_type(agent.run("?", output=Answer), RunResult[Answer])
    assert_type(agent.run("?", output=Answer).output, Answer)
    assert_type(agent.run("?", output={"type": "object"}), RunResult[Any])
    assert_type(agent.run("?"), RunResult[None])
    assert_type(agent.run(), RunResult[None])
    assert_type(untyped.output, Any)


def streams(agent: Agent) -> None:
    """A stream's result has the type that the run's would have."""
    assert_type(agent.stream("?", output=Answer), RunStream[Answer])
    assert_type(agent.stream("?", output=Answer).result.output, Answer)
    assert_type(agent.stream("?").result, RunResult[None])
    assert_type(agent.stream("?").text, Iterator[str])


def covariant(results: list[RunResult[object]], agent: Agent) -> None:
    """A result of something is a result of what that is."""
    results.append(agent.run("?", output=Answer))
