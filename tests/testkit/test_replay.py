"""A replay that is asked something else; recordings that cannot be read or written; streams that are none."""

from __future__ import annotations

import json
import pickle
import resource
import threading
from pathlib import Path
from typing import Any

import pytest

from gotato_py import (
    Agent,
    AssistantMessage,
    Done,
    GotatoError,
    InvalidArgument,
    ModelOptions,
    ModelProtocolError,
    ModelRequest,
    NotFound,
    NotSupported,
    RetryPolicy,
    Scope,
    StoreFailure,
    TextDelta,
    ToolMessage,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from gotato_testkit import (
    DemoModel,
    FakeTool,
    RecordingModel,
    ReplayMismatch,
    ReplayModel,
    Return,
    ScriptedModel,
    Step,
    call,
    say,
)

from .recordings import ONCE, lines_of, outcome_of, record, request


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A place for a recording."""
    return tmp_path / "recording.jsonl"


OTHERS = [
    (ModelRequest("Be long.", [UserMessage("Hi")]), "system"),
    (request("Ho"), r"messages\[0\] \(user\), field parts\[0\]\.text"),
    (request("Hi", "there"), r"messages: 2 here, 1 in the recording, the first 1 equal"),
    (ModelRequest("Be brief.", [AssistantMessage("Hi")]), r"messages\[0\]: assistant here, user in the recording"),
    (request("Hi", tools=[ToolSpec("find")]), "tools: 1 here, 0 in the recording"),
    (request("Hi", options=ModelOptions(max_tokens=5)), "options, field max_tokens"),
    (ModelRequest("Be brief.", [UserMessage(["Hi", "there"])]), r"messages\[0\] \(user\), field parts\[1\]"),
]


@pytest.mark.parametrize(("asked", "where"), OTHERS)
def test_another_request_is_told_of(path: Path, asked: ModelRequest, where: str) -> None:
    """A request that differs raises where it first does, in words without any content, and uses up no line."""
    record(path, [say("a")], request("Hi"))
    replay = ReplayModel(path)
    with pytest.raises(ReplayMismatch, match=rf"request 1 differs from line 1 of the recording in {where}") as caught:
        replay.stream(asked, Scope())
    assert (caught.value.number, replay.remaining) == (1, 1)
    assert "there" not in caught.value.difference
    assert pickle.loads(pickle.dumps(caught.value)).difference == caught.value.difference


RESULTS = [
    (ToolResult("c1", "ok", "sunny"), ToolResult("c1", "ok", "rainy"), r"result\.parts\[0\]\.text"),
    (ToolResult("c1", "ok", "sunny"), ToolResult("c1", "failed", "sunny"), r"result\.status"),
    (ToolResult("c1", "ok", "x"), ToolResult("c1", "ok", "x", extra={"secret": 1}), r"result\.secret"),
    (ToolResult("c1", "ok", "x"), ToolResult("c1", "ok"), r"result\.parts;"),
]


@pytest.mark.parametrize(("recorded", "asked", "where"), RESULTS)
def test_a_difference_in_a_result_is_found(path: Path, recorded: ToolResult, asked: ToolResult, where: str) -> None:
    """Results, which tools make anew each time, are where a replay differs most often."""
    record(path, [say("a")], ModelRequest("", [UserMessage("Hi"), ToolMessage(recorded)]))
    with pytest.raises(ReplayMismatch, match=rf"messages\[1\] \(tool\), field {where}"):
        ReplayModel(path).stream(ModelRequest("", [UserMessage("Hi"), ToolMessage(asked)]), Scope())


def test_a_tool_that_differs_is_named(path: Path) -> None:
    """Tools are told of by name, and their schemas only as a whole."""
    weather_in = ToolSpec("weather", input_schema={"type": "object", "properties": {"city": {}}})
    record(path, [say("a")], request("Hi", tools=[weather_in]))
    for spec, where in (
        (ToolSpec("weather"), r"tools\[0\] \(weather\), field input_schema;"),
        (ToolSpec("forecast"), r"tools\[0\]: forecast here, weather in the recording"),
    ):
        with pytest.raises(ReplayMismatch, match=where):
            ReplayModel(path).stream(request("Hi", tools=[spec]), Scope())


def test_one_request_too_many_is_told_of(path: Path) -> None:
    """When the recording has ended, the next request is an error that fails the run at once."""
    record(path, [say("a")], request("Hi"))
    replay = ReplayModel(path)
    outcome_of(replay, request("Hi"))
    with pytest.raises(ReplayMismatch, match=r"has 1 requests, and the model was asked once more"):
        replay.stream(request("Hi"), Scope())
    result = Agent(replay, retry=RetryPolicy(base=0)).run("Hi", check=False)
    assert isinstance(result.error, ReplayMismatch)


def test_the_order_may_differ_where_it_is_allowed(path: Path) -> None:
    """With `strict=False` a request gets the first line that is left and equal; without, order counts."""
    record(path, [say("a"), say("b"), say("c")], request("A"), request("B"), request("A"))
    loose = ReplayModel(path, strict=False)
    texts = [outcome_of(loose, request(text))[0][0] for text in "BAA"]
    assert texts == [TextDelta("b"), TextDelta("a"), TextDelta("c")]
    with pytest.raises(ReplayMismatch, match="once more"):
        loose.stream(request("A"), Scope())
    with pytest.raises(ReplayMismatch, match="none that is left is equal"):
        ReplayModel(path, strict=False).stream(request("C"), Scope())
    with pytest.raises(ReplayMismatch, match=r"line 1 of the recording in messages\[0\]"):
        ReplayModel(path).stream(request("B"), Scope())


def test_agents_in_threads_share_a_replay(path: Path) -> None:
    """A recording of several agents at a time is replayed by several agents at a time."""
    live = RecordingModel(ScriptedModel([say("fine")] * 8), path)
    for index in range(8):
        Agent(live).run(f"Agent {index}")
    replay, texts = ReplayModel(path, strict=False), list[str]()
    threads = [
        threading.Thread(target=lambda index=index: texts.append(Agent(replay).run(f"Agent {index}").text))
        for index in reversed(range(8))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (texts, replay.remaining) == (["fine"] * 8, 0)


# what cannot be read or written


def test_a_recording_that_is_not_there_is_told_of(path: Path) -> None:
    """A missing file, and a folder, are no recording."""
    with pytest.raises(NotFound, match=r"no recording 'recording\.jsonl'; make one with RecordingModel"):
        ReplayModel(path)
    path.mkdir()
    with pytest.raises(InvalidArgument, match="cannot be read"):
        ReplayModel(path)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (lambda line: "{", InvalidArgument, "line 1 of 'recording.jsonl' is no line of a recording; it may be torn"),
        (lambda line: "[]", InvalidArgument, "is no line of a recording"),
        (lambda line: json.dumps({**line, "gotato_recording": 2}), NotSupported, "has version 2; this release reads"),
        (lambda line: json.dumps({**line, "events": [{"kind": "shout"}]}), InvalidArgument, "is damaged"),
        (lambda line: json.dumps({**line, "ended": "badly"}), InvalidArgument, "ended must be"),
        (lambda line: json.dumps({**line, "fingerprint": None}), InvalidArgument, "fingerprint must be"),
        (lambda line: json.dumps({**line, "request": {}}), InvalidArgument, "is damaged"),
    ],
)
def test_a_damaged_recording_is_told_of(path: Path, change: Any, error: type[GotatoError], said: str) -> None:
    """It is read when the model is made, so that nothing is run with half of it."""
    record(path, [say("a")], request("Hi"))
    path.write_text(change(lines_of(path)[0]) + "\n", "utf-8")
    with pytest.raises(error, match=said):
        ReplayModel(path)


def test_an_empty_recording_has_nothing_left(path: Path) -> None:
    """A file without lines is a recording of no request."""
    path.write_bytes(b"\n")
    assert (ReplayModel(path).remaining, ReplayModel(path).name) == (0, "")


def test_what_cannot_be_recorded_is_refused(path: Path, tmp_path: Path) -> None:
    """A place that cannot be written to, and what is no model, are refused when the recorder is made."""
    with pytest.raises(InvalidArgument, match="path cannot be written: No such file or directory"):
        RecordingModel(DemoModel(), tmp_path / "no" / "folder")
    with pytest.raises(InvalidArgument, match="must be a Model, not str"):
        RecordingModel("model", path)  # type: ignore[arg-type]  # that is what is tested
    with pytest.raises(InvalidArgument, match="the request holds what JSON cannot say: TypeError"):
        RecordingModel(DemoModel(), path).stream(request("Hi", tools=[ToolSpec("t", input_schema={"x": {1}})]), Scope())


def test_a_recording_that_cannot_be_kept_fails_the_run(tmp_path: Path) -> None:
    """An answer that was not written down is no answer: the run fails with a StoreFailure."""
    folder = tmp_path / "folder"
    folder.mkdir()
    model = RecordingModel(ScriptedModel([say("a")]), folder / "recording.jsonl")
    (folder / "recording.jsonl").unlink()
    folder.rmdir()
    result = Agent(model, retry=ONCE).run("Hi", check=False)
    assert isinstance(result.error, StoreFailure)
    assert str(tmp_path) not in str(result.error)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_a_full_disk_is_told_of() -> None:
    """What the system says is told, without the path."""
    with pytest.raises(StoreFailure, match="No space left on device"):
        list(RecordingModel(ScriptedModel([say("a")]), "/dev/full").stream(request("Hi"), Scope()))


def test_a_torn_line_is_told_of(path: Path) -> None:
    """A write of less than the line says that the last line is to be removed."""
    model = RecordingModel(ScriptedModel([say("x" * 50_000)]), path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(StoreFailure, match=r"the last line of the recording is torn"):
            list(model.stream(request("Hi"), Scope()))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with pytest.raises(InvalidArgument, match="it may be torn"):
        ReplayModel(path)


def test_a_tool_may_be_recorded_around(path: Path) -> None:
    """Tools run again in a replay; where they say something else, the next request tells of it."""
    script: list[Step] = [call("find"), say("Found.")]
    Agent(RecordingModel(ScriptedModel(script), path), tools=[FakeTool("find", "row 7")]).run("Find it.")
    result = Agent(ReplayModel(path), tools=[FakeTool("find", "row 8")]).run("Find it.", check=False)
    assert isinstance(result.error, ReplayMismatch)
    assert result.error.difference == "messages[2] (tool), field result.parts[0].text"


def test_what_is_no_event_is_passed_on_and_recorded_by_type(path: Path) -> None:
    """A stream that breaks the protocol breaks it in the replay, too."""
    events, _ = outcome_of(RecordingModel(ScriptedModel([[TextDelta("a"), 7, Done()]]), path), request("Hi"))
    assert events == [TextDelta("a"), 7, Done()]
    again, error = outcome_of(ReplayModel(path), request("Hi"))
    assert again == [TextDelta("a")]
    assert isinstance(error, ModelProtocolError)
    assert "gave a int, which is no ModelEvent" in str(error)


def test_a_stream_without_close_can_be_closed(path: Path) -> None:
    """`close` is optional for a model's iterator, and is there for the recording."""
    stream = RecordingModel(ScriptedModel([Return(list(say("a b")))]), path).stream(request("Hi"), Scope())
    next(stream)
    stream.close()  # type: ignore[attr-defined]  # it has one
    assert lines_of(path)[0]["ended"] == "closed"
