"""`RunResult.cost`: the kernel knows no prices; it asks the model's optional member `cost_of`."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gotato_py import Agent, NotSupported, RunFailed, RunResult, RunStatus, replace
from gotato_testkit import Raise, RecordingModel, ScriptedModel, say

KERNEL = Path(__file__).resolve().parents[2] / "gotato_py"


def a_cent_a_turn(result: RunResult[Any]) -> Decimal | None:
    """A price list."""
    return Decimal("0.01") * result.metrics.turns


def unpriced(result: RunResult[Any]) -> Decimal | None:
    """One that cannot be asked."""
    raise NotSupported("install the price list")


class Priced(ScriptedModel):
    """A model whose runs cost something."""

    cost_of = staticmethod(a_cent_a_turn)


class WithKey(ScriptedModel):
    """One that prices its runs by a method, and holds what must not travel."""

    def __init__(self) -> None:
        super().__init__([say("Hello.")])
        self.key = "sk-secret-of-the-model"
        self.asked = 0

    def cost_of(self, result: RunResult[Any]) -> Decimal | None:
        """The price of this account."""
        self.asked += 1
        return Decimal(result.metrics.turns)


def test_the_model_is_asked_when_the_cost_is_read() -> None:
    """`cost` is what `cost_of` says of the result, each time; nothing is asked before."""
    model = WithKey()
    result = Agent(model).run("Hi")
    assert model.asked == 0
    assert (result.cost, result.cost, model.asked) == (Decimal(1), Decimal(1), 2)


def test_without_the_member_there_is_no_cost() -> None:
    """None for a model that has none, or something else of that name; also for a result made by hand."""
    model = ScriptedModel([say("Hello."), say("Hello.")])
    assert Agent(model).run("Hi").cost is None
    model.cost_of = "a cent"  # type: ignore[attr-defined]  # such models exist
    assert Agent(model).run("Hi").cost is None
    assert RunResult[None]("r", RunStatus.COMPLETED).cost is None


def test_a_run_that_failed_has_a_cost() -> None:
    """The result that an error carries is priced like any other, pickled or not."""
    with pytest.raises(RunFailed) as caught:
        Agent(Priced([Raise(ValueError("a bug"))])).run("Hi")
    assert caught.value.result.cost == Decimal("0.01")
    assert pickle.loads(pickle.dumps(caught.value)).result.cost == Decimal("0.01")


def test_what_it_raises_is_raised() -> None:
    """A price list that is not installed says so where the cost is read, and nowhere else."""
    model = ScriptedModel([say("Hello.")])
    model.cost_of = unpriced  # type: ignore[attr-defined]  # an optional member
    result = Agent(model).run("Hi")
    assert result.text == "Hello."
    with pytest.raises(NotSupported, match="install"):
        _ = result.cost


def test_a_function_of_a_module_is_pickled_with_the_result() -> None:
    """By its name alone, so that the result has its cost in another process too."""
    result = Agent(Priced([say("Hello.")])).run("Hi")
    again = pickle.loads(pickle.dumps(result))
    assert again == result
    assert again.cost == copy.deepcopy(result).cost == replace(result, run_id="r").cost == Decimal("0.01")


@pytest.mark.parametrize(
    "cost_of",
    [
        WithKey().cost_of,
        lambda result: Decimal(1),
        type("Callable", (), {"__call__": lambda self, result: Decimal(1)})(),
    ],
    ids=["method", "lambda", "object"],
)
def test_any_other_is_left_out_of_a_pickle(cost_of: object) -> None:
    """A bound method would take the model along, and its key; a lambda could not be pickled at all."""
    model = ScriptedModel([say("Hello.")])
    model.cost_of = cost_of  # type: ignore[attr-defined]  # an optional member
    result = Agent(model).run("Hi")
    pickled = pickle.dumps(result)
    assert b"sk-secret" not in pickled
    again = pickle.loads(pickled)
    assert (again, again.cost, result.cost) == (result, None, Decimal(1))


def test_it_takes_no_part_in_the_value() -> None:
    """Two results are equal and hash and print alike, whoever prices them."""
    plain = RunResult[None]("r", RunStatus.COMPLETED)
    priced = replace(plain, priced_by=a_cent_a_turn)
    assert (plain, hash(plain), repr(plain)) == (priced, hash(priced), repr(priced))


def test_a_recording_model_is_priced_as_the_model_is(tmp_path: Path) -> None:
    """It passes the member on, beside name and capabilities."""
    model = RecordingModel(Priced([say("Hello.")]), tmp_path / "asked.jsonl")
    assert Agent(model).run("Hi").cost == Decimal("0.01")


def test_the_kernel_loads_no_decimal_numbers() -> None:
    """They would take an eighth of its import, and few read the cost."""
    before = "before = set(sys.modules)"  # coverage loads them in the child
    program = f"import sys; {before}; sys.path.insert(0, {str(KERNEL)!r}); import gotato_py; "
    program += "assert 'decimal' not in set(sys.modules) - before"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)
