"""A run that waits in one process and goes on in another: nothing but a line of JSON passes between them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gotato_py import Approve, Decision, Deny, MemoryTranscript, UserMessage, check_messages
from gotato_testkit import call, say

from .laws_of_waiting import asks, assert_laws, paying, ran, waits_for
from .stage import Stage

ROOT = Path(__file__).parents[2]
TASK = UserMessage("do it", id="task-1")
ANSWERS: dict[str, Decision] = {"yes": Approve(), "no": Deny("too dear")}


def main() -> None:
    """The other process: reads a transcript and answers, goes on, writes what came of it."""
    given = json.load(sys.stdin)
    log: list[str] = []
    transcript = MemoryTranscript.from_dict(given["transcript"])
    stage = Stage(say("Done."), tools=paying(log), transcript=transcript, extensions=[asks("pay", "mail")])
    status = stage.agent.status
    answers = None if given["answers"] is None else {key: ANSWERS[said] for key, said in given["answers"].items()}
    result = stage.run(TASK if answers is None else None, answers=answers)
    json.dump(
        {
            "pid": os.getpid(),
            "before": status,
            "status": result.status.value,
            "text": result.text,
            "waiting": {each.name: each.key for each in result.waiting},
            "log": log,
            "transcript": transcript.to_dict(),
        },
        sys.stdout,
    )


def in_another_process(transcript: Mapping[str, Any], said: Mapping[str, str] | None) -> dict[str, Any]:
    """What comes of the transcript with these answers, or with the task delivered again, in a process of its own."""
    code = f"from {__package__}.{Path(__file__).stem} import main; main()"
    given = json.dumps({"transcript": transcript, "answers": said}, allow_nan=False)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], input=given, capture_output=True, text=True, env=env, check=True, cwd=ROOT
    )
    told: dict[str, Any] = json.loads(done.stdout)
    assert told["pid"] != os.getpid()
    return told


def first(log: list[str]) -> tuple[Stage, MemoryTranscript]:
    """A stage whose run waits, and what is written down of it."""
    transcript = MemoryTranscript()
    batch = call("read", path="a") + call("pay", amount=5) + call("mail", to="Kåri", copies=["Ola"])
    stage = Stage(batch, tools=paying(log), transcript=transcript, extensions=[asks("pay", "mail", expires_in=3600)])
    assert waits_for(stage.run(TASK)) == ["pay", "mail"]
    return stage, transcript


def test_c56_the_process_restarts_in_between() -> None:
    """One answer in a second process, the other in a third: what was approved runs there, once, as it was shown."""
    log: list[str] = []
    stage, transcript = first(log)
    keys = {each.name: each.key for each in transcript.waiting}
    second = in_another_process(transcript.to_dict(), {keys["mail"]: "yes"})
    assert (second["before"], second["status"], second["log"]) == ("waiting", "waiting", [])
    assert second["waiting"] == {"pay": keys["pay"]}
    third = in_another_process(second["transcript"], {keys["pay"]: "no"})
    assert (third["status"], third["text"], third["log"]) == ("completed", "Done.", ["mail Kåri ['Ola']"])
    here = Stage(transcript=MemoryTranscript.from_dict(third["transcript"]), tools=paying(log))
    assert (log, ran(here)) == (["read a"], ["read ok", "pay blocked", "mail ok"])
    assert check_messages(here.transcript.messages) == []
    assert here.run(TASK).text == "Done."
    assert_laws(here)
    assert stage.agent.status == "waiting"  # this one knows nothing of it


@pytest.mark.parametrize("again", ["the same answers", "the task"])
def test_c57_delivered_again_elsewhere(again: str) -> None:
    """A worker that gets the same answers, or the same task, once more finds it done and runs nothing."""
    log: list[str] = []
    _, transcript = first(log)
    said = {each.key: "yes" for each in transcript.waiting}
    second = in_another_process(transcript.to_dict(), said)
    assert second["log"] == ["pay 5", "mail Kåri ['Ola']"]
    if again == "the task":
        third = in_another_process(second["transcript"], None)
        assert (third["before"], third["status"], third["text"], third["log"]) == ("idle", "completed", "Done.", [])
    else:
        with pytest.raises(subprocess.CalledProcessError) as raised:
            in_another_process(second["transcript"], said)
        assert "no call of this agent waits" in raised.value.stderr
    here = Stage(transcript=MemoryTranscript.from_dict(second["transcript"]))
    assert_laws(here)


def test_c57_the_task_again_while_it_waits() -> None:
    """A second worker that gets the task while it waits settles waiting too: it asks nobody and runs nothing."""
    _, transcript = first([])
    second = in_another_process(transcript.to_dict(), None)
    assert (second["status"], second["log"]) == ("waiting", [])
    assert list(second["waiting"]) == ["pay", "mail"]
    assert second["transcript"] == json.loads(json.dumps(transcript.to_dict()))
    assert_laws(Stage(transcript=MemoryTranscript.from_dict(second["transcript"]), tools=paying([])))
