"""Real streams through a whole agent, and through the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gotato_py import Agent, InvalidRequest, Limits, ReasoningPart, RetryPolicy, RunStatus, Usage, check_messages

from .recordings import ALL, DATA, Recording, recorded
from .server import Server

ROOT = Path(__file__).parents[2]
SOURCES = [ROOT / name for name in ("gotato_py", "gateway", "session", "testkit", "cli")]


@pytest.mark.parametrize("recording", ALL, ids=str)
def test_an_agent_keeps_what_was_streamed(recording: Recording) -> None:
    """The committed message holds the text, reasoning, calls, usage and end of the recording, and can be sent again."""
    with Server(recording.reply()) as server:
        agent = Agent(recording.adapter(server.url), limits=Limits(max_turns=1), retry=RetryPolicy(max_attempts=1))
        result = agent.run("Go.", check=False)
        assert check_messages(agent.transcript.messages) == []
        expect = recording.expect
        if expect is None:  # an error inside the 200: the run failed with it
            assert isinstance(result.error, InvalidRequest)
            return
        if not expect["text"] and not expect["tool_calls"]:  # it called a tool that no neutral request has
            assert result.error is not None
            assert result.error.code == "empty_response"
            return
        message = result.message
        assert message is not None
        assert message.text == expect["text"]
        assert recording.same_reasoning("".join(p.text for p in message.parts if isinstance(p, ReasoningPart)))
        for call, wanted in zip(message.tool_calls, expect["tool_calls"], strict=True):
            assert {name: getattr(call, name) for name in wanted} == wanted
        assert (message.usage, result.usage) == (Usage(**recording.usage), Usage(**recording.usage))
        assert message.stop_reason == recording.stop_reason
        assert result.status is (RunStatus.LIMITED if message.tool_calls else RunStatus.COMPLETED)


@pytest.mark.parametrize(
    ("provider", "name"),
    [("openai", "040-openrouter-streaming-reasoning-0"), ("anthropic", "008-anthropic-model-thinking-part-stream-0")],
)
def test_the_command_line_against_a_replayed_provider(provider: str, name: str) -> None:
    """`gotato run --model PROVIDER:… --base-url …` prints the recorded answer, and its usage with --json."""
    recording = recorded(DATA / f"{name}.json")
    assert recording.expect is not None
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, SOURCES))
    command = [sys.executable, "-m", "gotato_cli", "run", "--model", f"{provider}:{recording.model}"]
    printed: list[str] = []
    for flags in ([], ["--json"]):
        with Server(recording.reply()) as server:
            argv = [*command, "--base-url", server.url, *flags, "What is 2 + 2?"]
            done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True, timeout=60)
        printed.append(done.stdout)
    assert printed[0].strip() == recording.expect["text"]
    result = json.loads(printed[1])
    assert (result["text"], result["status"]) == (recording.expect["text"], "completed")
    assert recording.usage.items() <= result["usage"].items()
