"""Real streams through a whole agent, and through the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gotato_gateway.quirks import quirks_for
from gotato_py import Agent, InvalidRequest, Limits, ReasoningPart, RetryPolicy, RunStatus, Usage, check_messages

from .answers import FINISH_WORDS, local
from .server import Reply, Server, pieces_of
from .test_recordings import DATA, NAMES, SHARED, recorded

ROOT = Path(__file__).parents[2]
SOURCES = [ROOT / name for name in ("gotato_py", "gateway", "testkit", "cli")]


@pytest.mark.parametrize("name", NAMES)
def test_an_agent_keeps_what_was_streamed(name: str) -> None:
    """The committed message holds the text, reasoning, calls, usage and end of the recording, and can be sent again."""
    facts, body = recorded(SHARED if SHARED.is_dir() else DATA, name)
    model = facts["request"]["model"]
    with Server(Reply(pieces_of(body, len(body)), facts["status"], facts["headers"])) as server:
        adapter = local(server.url, model=model, quirks=quirks_for(f"https://{facts['host']}/v1", model))
        agent = Agent(adapter, limits=Limits(max_turns=1), retry=RetryPolicy(max_attempts=1))
        result = agent.run("Go.", check=False)
    assert check_messages(agent.transcript.messages) == []
    expect: dict[str, Any] | None = facts["expect"]
    if expect is None:  # an error inside the 200: the run failed with it
        assert isinstance(result.error, InvalidRequest)
        return
    message = result.message
    assert message is not None
    assert message.text == expect["text"]
    assert "".join(part.text for part in message.parts if isinstance(part, ReasoningPart)) == expect["reasoning"]
    calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls]
    assert calls == expect["tool_calls"]
    assert (message.usage, result.usage) == (Usage(**expect["usage"]), Usage(**expect["usage"]))
    assert message.stop_reason == FINISH_WORDS[expect["finish"]]
    assert result.status is (RunStatus.LIMITED if calls else RunStatus.COMPLETED)


def test_the_command_line_against_a_replayed_provider() -> None:
    """`gotato run --model openai:… --base-url …` prints the recorded answer, and its usage with --json."""
    facts, body = recorded(DATA, "040-openrouter-streaming-reasoning-0")
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, SOURCES))
    command = [sys.executable, "-m", "gotato_cli", "run", "--model", f"openai:{facts['request']['model']}"]
    printed: list[str] = []
    for flags in ([], ["--json"]):
        with Server(Reply(pieces_of(body, len(body)), facts["status"], facts["headers"])) as server:
            argv = [*command, "--base-url", server.url, *flags, "What is 2 + 2?"]
            done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True, timeout=60)
        printed.append(done.stdout)
    assert printed[0].strip() == facts["expect"]["text"]
    result = json.loads(printed[1])
    assert (result["text"], result["status"]) == (facts["expect"]["text"], "completed")
    assert result["usage"] == facts["expect"]["usage"]
