"""`gotato run --model PROVIDER:NAME --base-url URL` against a server that plays what real providers sent."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from .world import STREAM, Gotato, Provider

DATA = Path(__file__).parents[1] / "gateway" / "data"
MakeProvider = Callable[..., Provider]


class Dialect(NamedTuple):
    """How a provider is named and asked, and two of its recordings: an answer that calls a tool, and one in words."""

    model: str
    base: str
    path: str
    key: tuple[str, str, str]
    calls: str
    words: str


DIALECTS = {
    "openai-chat": Dialect(
        "openai:gpt-4o-mini",
        "/v1",
        "/v1/chat/completions",
        ("OPENAI_API_KEY", "authorization", "Bearer "),
        "034-run-stream-sync-streams-real-model-0",
        "043-snowflake-model-streaming-0",
    ),
    "openai-responses": Dialect(
        "openai-responses:gpt-5.2",
        "/v1",
        "/v1/responses",
        ("OPENAI_API_KEY", "authorization", "Bearer "),
        "031-openai-responses-phase-streamed-on-part-start-0",
        "019-openai-include-raw-annotations-streaming-0",
    ),
    "anthropic": Dialect(
        "anthropic:claude-sonnet-4-0",
        "",
        "/v1/messages",
        ("ANTHROPIC_API_KEY", "x-api-key", ""),
        "001-anthropic-native-tool-search-streaming-0",
        "008-anthropic-model-thinking-part-stream-0",
    ),
    "gemini": Dialect(
        "gemini:gemini-2.5-flash",
        "",
        "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
        ("GEMINI_API_KEY", "x-goog-api-key", ""),
        "011-google-streaming-tool-call-thought-signature-0",
        "010-google-stream-usage-is-live-mid-stream-0",
    ),
}
each_dialect = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)


def played(name: str) -> bytes:
    """The answer of a recording, as it goes over the wire again."""
    return STREAM + (DATA / f"{name}.sse").read_bytes()


def expected(name: str) -> dict[str, Any]:
    """What the provider's own SDK made of it."""
    found: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text("utf-8"))["expect"]
    return found


def lines(text: str) -> str:
    """A text as it is printed: its last line is ended."""
    return text if text.endswith("\n") or not text else text + "\n"


def arguments(dialect: Dialect, server: Provider, *more: str) -> list[str]:
    """The command, for that provider at the test's server."""
    return ["run", "--model", dialect.model, "--base-url", server.url.removesuffix("/v1") + dialect.base, *more, "Hi"]


@each_dialect
def test_an_answer_is_text_on_stdout(gotato: Gotato, provider: MakeProvider, dialect: Dialect) -> None:
    """A recorded answer is printed as the SDK read it, and nothing else; reasoning is not shown."""
    there = provider(played(dialect.words))
    done = gotato(*arguments(dialect, there))
    assert (done.returncode, done.stdout, done.stderr) == (0, lines(expected(dialect.words)["text"]), "")


@each_dialect
def test_json_tells_what_the_answer_cost(gotato: Gotato, provider: MakeProvider, dialect: Dialect) -> None:
    """`--json` has the text and the tokens of the recording."""
    there, wanted = provider(played(dialect.words)), expected(dialect.words)
    done = gotato(*arguments(dialect, there, "--json"))
    result = json.loads(done.stdout)
    assert (done.returncode, done.stdout.count("\n"), done.stderr) == (0, 1, "")
    assert (result["status"], result["text"], result["error"]) == ("completed", wanted["text"], None)
    assert {name: result["usage"][name] for name in wanted["usage"]} == wanted["usage"]
    assert (result["metrics"]["turns"], result["metrics"]["tool_calls"]) == (1, 0)


@each_dialect
def test_a_call_is_shown_and_its_result_goes_back(gotato: Gotato, provider: MakeProvider, dialect: Dialect) -> None:
    """A recorded call of a tool that is not here is told on stderr, and to the provider, which then answers."""
    there = provider(played(dialect.calls), played(dialect.words))
    first, last = expected(dialect.calls), expected(dialect.words)
    done = gotato(*arguments(dialect, there))
    assert (done.returncode, done.stdout) == (0, lines(first["text"]) + lines(last["text"]))
    called, result = done.stderr.splitlines()
    name = first["tool_calls"][0]["name"]
    assert called.startswith(f"→ {name}(")
    assert result == f'← not_run: no tool "{name}"; available: calculate, weather'
    before, after = (each.partition(b"\r\n\r\n")[2].decode() for each in there.requests)
    assert name not in before
    assert name in after
    assert "available: calculate, weather" in after


@each_dialect
def test_the_key_goes_to_the_place_of_the_dialect(gotato: Gotato, provider: MakeProvider, dialect: Dialect) -> None:
    """The path is that of the dialect behind the base URL, and the provider's key is in the header that it reads."""
    variable, header, prefix = dialect.key
    there = provider(played(dialect.words))
    assert gotato(*arguments(dialect, there), env={variable: "sk-test-0123456789"}).returncode == 0
    first, *headers = there.requests[0].partition(b"\r\n\r\n")[0].decode().split("\r\n")
    assert first == f"POST {dialect.path} HTTP/1.1"
    sent = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in headers)}
    assert sent[header] == f"{prefix}sk-test-0123456789"
