"""The family of errors: codes, facts, pickling."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gotato_py
from gotato_py import (
    Busy,
    Cancelled,
    DeadlineExceeded,
    ErrorCode,
    GotatoError,
    InvalidArgument,
    LimitExceeded,
    ModelError,
    Overloaded,
    RateLimited,
    SessionBusy,
    SessionCorrupt,
    TextPart,
    ToolError,
)


def public_errors() -> Iterator[type[GotatoError]]:
    """Every error that the kernel's door shows."""
    for each in vars(gotato_py).values():
        if isinstance(each, type) and issubclass(each, GotatoError):
            yield each


ERRORS = sorted(set(public_errors()), key=lambda kind: kind.__name__)
FACTS: dict[type[GotatoError], dict[str, Any]] = {
    Busy: {"run_id": "r-1", "since": 12.5},
    LimitExceeded: {"limit": "max_turns"},
    SessionBusy: {"owner": "o", "host": "h", "pid": 5, "since": 1.0},
    SessionCorrupt: {"line": 7},
    ModelError: {"retry_after": 1.5, "status": 429, "provider": "p", "request_id": "q"},
}


def facts_of(kind: type[GotatoError]) -> dict[str, Any]:
    """Keyword arguments of the class' own."""
    known: dict[str, Any] = {}
    for base, facts in FACTS.items():
        if issubclass(kind, base):
            known |= facts
    return known


class OddError(ToolError):
    """A user's own error, with a constructor of its own."""

    def __init__(self, row: int, *, table: str) -> None:
        super().__init__(f"no row {row} in {table}", details={"row": row})
        self.row = row


@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_pickles(kind: type[GotatoError]) -> None:
    """An error comes back with message, operation, details, cause and its own facts."""
    error: Any = kind(
        "it broke", operation="Agent.run", retryable=True, details={"n": [1]}, cause=KeyError("k"), **facts_of(kind)
    )
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is kind
        assert (str(again), again.args, again.code) == ("it broke", ("it broke",), kind.code)
        assert (again.operation, again.retryable, again.details) == ("Agent.run", True, {"n": [1]})
        cause: Any = again.cause
        assert (type(cause), cause.args) == (KeyError, ("k",))
        assert again.__cause__ is cause
        assert {name: getattr(again, name) for name in facts_of(kind)} == facts_of(kind)


@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_can_be_raised_with_a_message_alone(kind: type[GotatoError]) -> None:
    """A positional message is enough, and so is none: then the code is the text."""
    assert str(kind("it broke")) == "it broke"
    assert str(kind()) == kind.code.value.replace("_", " ")
    with pytest.raises(kind):
        raise kind


@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_documents_itself_and_has_a_code(kind: type[GotatoError]) -> None:
    """Each class has a docstring and one of the closed set of codes."""
    assert kind.__doc__
    assert kind.code in set(ErrorCode)
    assert isinstance(kind().retryable, bool)


def test_codes_tell_classes_apart() -> None:
    """Outside the errors of a run, which repeat others' codes, no two classes share a code unless one is the other."""
    named = [kind for kind in ERRORS if not kind.__name__.startswith("Run")]
    for kind in named:
        for other in named:
            if kind.code == other.code:
                assert issubclass(kind, other) or issubclass(other, kind)


def test_codes_are_their_text() -> None:
    """A code is a lower-case word, equal to its value."""
    assert all(code == code.value == code.name.lower() for code in ErrorCode)


def test_families() -> None:
    """Errors are caught by what they are to Python and to this package."""
    assert issubclass(InvalidArgument, ValueError)
    assert issubclass(DeadlineExceeded, TimeoutError)
    assert not issubclass(Cancelled, OSError)
    assert issubclass(RateLimited, ModelError)
    assert all(issubclass(kind, GotatoError) for kind in ERRORS)


def test_retryable_has_a_default_for_each_class() -> None:
    """Model errors know whether the same call may work later; who raises them may know better."""
    retried = {kind.__name__ for kind in ERRORS if issubclass(kind, ModelError) and kind().retryable}
    assert retried == {"RateLimited", "Overloaded", "ConnectionFailed", "ModelProtocolError"}
    assert RateLimited(retryable=False).retryable is False
    assert ModelError(retryable=True).retryable is True
    assert (Busy().retryable, ToolError().retryable) == (True, False)


def test_a_users_subclass_pickles() -> None:
    """A subclass with another constructor needs nothing of its own to be pickled."""
    again = pickle.loads(pickle.dumps(OddError(5, table="t")))
    assert (type(again), str(again), again.row, again.details) == (OddError, "no row 5 in t", 5, {"row": 5})


class Unpicklable(Exception):
    """A foreign error that no pickle can carry."""

    def __init__(self, held: object, other: object) -> None:
        super().__init__(f"{held}")


def test_a_foreign_cause_goes_by_its_name() -> None:
    """A cause that may not pickle does not keep the error from it."""
    again = pickle.loads(pickle.dumps(ToolError("x", cause=Unpicklable(open, 2))))
    assert type(again.cause) is RuntimeError
    assert str(again.cause).endswith("Unpicklable")
    noted = ValueError("a", 1)
    noted.held = open  # type: ignore[attr-defined]
    again = pickle.loads(pickle.dumps(ToolError("x", cause=noted)))
    assert again.cause.args == ("a", 1)


def test_a_chain_pickles() -> None:
    """Causes of causes come along, also when given by `raise … from …`."""
    try:
        raise Overloaded("outer") from RateLimited("inner", cause=ValueError("root"))
    except Overloaded as error:
        again = pickle.loads(pickle.dumps(error))
    assert (again.cause, str(again.__cause__), str(again.__cause__.cause)) == (None, "inner", "root")


def test_details_are_read_only() -> None:
    """Details are a copy that nobody can change."""
    given_details = {"a": 1}
    error: Any = GotatoError("x", details=given_details)
    given_details["a"] = 2
    assert error.details == {"a": 1}
    with pytest.raises(TypeError, match="read-only"):
        error.details["a"] = 3


def test_a_message_may_be_any_object() -> None:
    """`ToolError(error)` takes the text of what it is given, as Python's own exceptions do."""
    reason: Any = ValueError("no such row")
    assert str(ToolError(reason)) == "no such row"


@given(st.text(min_size=4))
def test_an_argument_error_quotes_no_value(secret: str) -> None:
    """A wrong argument is named, with the type that came; never its value."""

    class Odd:
        def __repr__(self) -> str:
            return secret

        __str__ = __repr__

    wrong: Any = Odd()
    with pytest.raises(InvalidArgument) as caught:
        TextPart(wrong)
    assert str(caught.value) == "TextPart.text must be a str, not Odd"
