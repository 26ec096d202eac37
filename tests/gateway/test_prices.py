"""`cost_of`: prices of answers and runs, by the price list of genai-prices."""

from __future__ import annotations

import pickle
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from gotato_gateway import Failover, OpenAIChat, RateLimiter, connect, cost_of, load_config
from gotato_py import Agent, AssistantMessage, Done, InvalidArgument, Model, RunResult, RunStatus, TextDelta, Usage
from gotato_testkit import Raise, ScriptedModel

ROOT = Path(__file__).resolve().parents[2]
MILLION = Usage(1_000_000, 100_000, cache_read_tokens=400_000)


@pytest.fixture
def prices() -> None:
    """Skips where the extra is not installed."""
    pytest.importorskip("genai_prices")


@pytest.mark.usefixtures("prices")
@pytest.mark.parametrize(
    ("model", "least", "most"),
    [
        ("openai:gpt-5", "0.5", "5"),
        ("openai-responses:gpt-5", "0.5", "5"),
        ("gpt-5-2025-08-07", "0.5", "5"),
        ("anthropic:claude-sonnet-4-5", "1", "10"),
        ("claude-sonnet-4-5-20250929", "1", "10"),
        ("gemini:gemini-2.5-pro", "0.5", "10"),
        ("groq:llama-3.3-70b-versatile", "0.1", "2"),
        ("xai:grok-4", "1", "10"),
        ("moonshot:kimi-k2-0905-preview", "0.1", "5"),
        ("openrouter:openai/gpt-5", "0.5", "5"),
    ],
)
def test_services_are_found_under_their_names(model: str, least: str, most: str) -> None:
    """A model by its name alone, or with the name that its service has here."""
    price = cost_of(MILLION, model=model)
    assert price is not None
    assert Decimal(least) < price < Decimal(most)


@pytest.mark.usefixtures("prices")
@pytest.mark.parametrize("model", ["", "no-such-model", "openai:no-such-model", "ollama:qwen3", "127.0.0.1:8000:m"])
def test_an_unknown_price_is_none(model: str) -> None:
    """What the price list does not know has no price; no tokens cost nothing."""
    assert cost_of(MILLION, model=model) is None
    assert cost_of(Usage(), model=model) == 0


@pytest.mark.usefixtures("prices")
def test_odd_usage_has_a_price() -> None:
    """A server that counts more cached tokens than tokens gets a price all the same; cached ones are cheaper."""
    odd = cost_of(Usage(10, 5, cache_read_tokens=100), model="openai:gpt-5")
    assert odd is not None
    assert odd > 0
    cached, plain = (cost_of(Usage(1000, cache_read_tokens=read), model="openai:gpt-5") for read in (1000, 0))
    assert cached is not None
    assert plain is not None
    assert cached < plain


@pytest.mark.usefixtures("prices")
def test_a_run_is_priced_answer_by_answer() -> None:
    """Each answer costs what its own model takes, and what was used beside them what the last one takes."""
    small, large, rest = Usage(1000, 10), Usage(2000, 20), Usage(500, 5)
    answers = (
        AssistantMessage("a", usage=small, model="openai:gpt-5-nano"),
        AssistantMessage("b", usage=large, model="openai:gpt-5"),
    )
    result = RunResult[None]("r", RunStatus.COMPLETED, answers[-1], small + large + rest, new_messages=answers)
    parts = [cost_of(small, model="gpt-5-nano"), cost_of(large, model="gpt-5"), cost_of(rest, model="gpt-5")]
    assert cost_of(result) == sum(part for part in parts if part is not None)
    assert cost_of(answers[0]) == parts[0]
    assert cost_of(result, model="openai:gpt-5") == cost_of(small + large + rest, model="gpt-5")
    unknown = RunResult[None](
        "r", RunStatus.COMPLETED, None, small, new_messages=(AssistantMessage("a", usage=small, model="nobody's"),)
    )
    assert cost_of(unknown) is None


@pytest.mark.usefixtures("prices")
def test_the_run_of_an_agent_has_a_price() -> None:
    """The result of a run says enough; of one that failed before any answer, the model has to be said."""
    model = ScriptedModel([[TextDelta("Hello"), Done(usage=Usage(1000, 10), model="gpt-5")]])
    assert cost_of(Agent(model).run("hi")) == cost_of(Usage(1000, 10), model="gpt-5")
    failed = Agent(ScriptedModel([Raise(ValueError("a bug"))])).run("hi", check=False)
    assert cost_of(failed) == 0


def test_the_adapters_give_results_their_cost(tmp_path: Path) -> None:
    """Each adapter, and each model around one, prices runs by `cost_of` itself: nothing else is in the result."""
    config = tmp_path / "config.toml"
    entry = '[models.m]\nmodel = "openai:qwen3"\nbase_url = "http://127.0.0.1:9/v1"\noptions = { temperature = 0.5 }\n'
    config.write_text(entry, "utf-8")
    adapter = OpenAIChat("gpt-5", base_url="http://127.0.0.1:9/v1")
    limiter, bare = RateLimiter(max_concurrent=1), ScriptedModel([])
    models: list[Model] = [adapter, limiter.wrap(adapter), Failover([limiter.wrap(adapter), bare])]
    models.append(connect("m", config=load_config(config)))
    for model in models:
        assert getattr(model, "cost_of", None) is cost_of
    local = OpenAIChat("deepseek-r1:8b", base_url="http://127.0.0.1:11434/v1")  # a name that DeepSeek's has as well
    remote = connect("ollama:deepseek-r1:8b", base_url="http://127.0.0.1:9/v1")
    for model in (limiter.wrap(bare), Failover([bare]), local, limiter.wrap(local), remote):
        assert getattr(model, "cost_of", 0) is None


def test_targets_that_disagree_have_no_price() -> None:
    """A failover cannot tell who would have to price a run, where its targets price theirs in different ways."""
    other = ScriptedModel([])
    other.cost_of = lambda result: Decimal(1)  # type: ignore[attr-defined]  # an optional member
    adapter = OpenAIChat("gpt-5", base_url="http://127.0.0.1:9/v1")
    assert Failover([adapter, other]).cost_of is None
    assert Failover([other, other]).cost_of is not None


@pytest.mark.usefixtures("prices")
def test_a_result_says_its_cost() -> None:
    """`result.cost` is `cost_of(result)`, also when it has been pickled; no adapter is pickled with it."""
    model = ScriptedModel([[TextDelta("Hello"), Done(usage=Usage(1000, 10), model="openai:gpt-5")]])
    model.cost_of = OpenAIChat("m", base_url="http://127.0.0.1:9/v1").cost_of  # type: ignore[attr-defined]  # an optional member
    result = Agent(model).run("hi")
    assert result.cost == cost_of(Usage(1000, 10), model="openai:gpt-5")
    assert pickle.loads(pickle.dumps(result)).cost == result.cost


def test_what_has_no_cost_is_refused() -> None:
    """Only tokens, answers and runs cost something."""
    with pytest.raises(InvalidArgument, match="RunResult"):
        cost_of("openai:gpt-5")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(InvalidArgument, match="model"):
        cost_of(Usage(1), model=None)  # type: ignore[arg-type]  # on purpose


def test_the_extra_is_loaded_when_it_is_needed() -> None:
    """Importing the gateway does not load the price list; without the package, the error says what to install."""
    program = f"""
import sys
sys.path[:0] = {[str(ROOT / "gateway"), str(ROOT / "gotato_py")]!r}
from gotato_gateway import cost_of
from gotato_py import NotSupported, RunResult, RunStatus, Usage
assert "genai_prices" not in sys.modules
sys.modules["genai_prices"] = None
result = RunResult("r", RunStatus.COMPLETED, priced_by=cost_of)
for ask in (lambda: cost_of(Usage(1), model="gpt-5"), lambda: result.cost):
    try:
        ask()
    except NotSupported as error:
        assert "pip install gotato-py[prices]" in str(error)
    else:
        raise SystemExit("a price without prices")
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, timeout=60)
