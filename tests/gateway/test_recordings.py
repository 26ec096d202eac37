"""Real streams of real providers give what the provider's own SDK made of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gotato_gateway import Adapter
from gotato_gateway.quirks import quirks_for
from gotato_py import InvalidRequest

from .answers import FINISH_WORDS, Answer, ask, local
from .server import Reply, Server, pieces_of

DATA = Path(__file__).parent / "data"
SHARED = Path(__file__).parents[3] / "shared" / "recordings" / "openai-chat"
NAMES = sorted(path.stem for path in (SHARED if SHARED.is_dir() else DATA).glob("*.json"))
COPIED = sorted(path.stem for path in DATA.glob("*.json"))


def recorded(folder: Path, name: str) -> tuple[dict[str, Any], bytes]:
    """The facts and the body of a recording."""
    return json.loads((folder / f"{name}.json").read_text("utf-8")), (folder / f"{name}.sse").read_bytes()


def replay(facts: dict[str, Any], body: bytes, **how: Any) -> Answer:
    """The answer of an adapter that has the quirks of the recorded host."""
    reply = Reply(pieces_of(body, len(body)), facts["status"], facts["headers"], **how)
    model = facts["request"]["model"]
    with Server(reply) as server:
        adapter: Adapter = local(server.url, model=model, quirks=quirks_for(f"https://{facts['host']}/v1", model))
        return ask(adapter)


def assert_as_recorded(answer: Answer, expect: dict[str, Any]) -> None:
    """The neutral events say what the SDK said."""
    assert answer.error is None
    assert answer.text == expect["text"]
    assert answer.reasoning == expect["reasoning"]
    assert [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in answer.calls] == expect[
        "tool_calls"
    ]
    assert answer.done.stop_reason == FINISH_WORDS[expect["finish"]]
    usage = answer.done.usage
    assert {name: getattr(usage, name) for name in expect["usage"]} == expect["usage"]


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_means_the_same_here(name: str) -> None:
    """A recorded stream, in pieces of random sizes, gives the text, calls, usage and end that the SDK found."""
    folder = SHARED if SHARED.is_dir() else DATA
    facts, body = recorded(folder, name)
    answer = replay(facts, body)
    if facts["expect"] is not None:
        assert_as_recorded(answer, facts["expect"])
    else:
        # The provider reported an error inside the 200, after a finish word. The SDK raises, and so do we: neither the
        # word nor the [DONE] behind it makes the answer good. Its code 400 makes it a refused request.
        assert facts["sdk_error"] == "APIError: Token limit reached"
        assert isinstance(answer.error, InvalidRequest)
        assert "Token limit reached" in str(answer.error)


@pytest.mark.parametrize(
    ("framing", "gzip"), [("chunked", False), ("close", False), ("length", False), ("chunked", True), ("close", True)]
)
@pytest.mark.parametrize("name", COPIED)
def test_the_framing_of_the_body_changes_nothing(name: str, framing: str, gzip: bool) -> None:
    """The same stream chunked, delimited by the close or by its length, plain or compressed, gives the same answer."""
    facts, body = recorded(DATA, name)
    assert_as_recorded(replay(facts, body, framing=framing, gzip=gzip), facts["expect"])
