"""Recording a model, and replaying what was recorded."""

from __future__ import annotations

import json
import pickle
import resource
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from gotato_py import (
    Agent,
    AssistantMessage,
    Cancelled,
    ConnectionFailed,
    DeadlineExceeded,
    EmptyResponse,
    GotatoError,
    InvalidArgument,
    InvalidState,
    Model,
    ModelError,
    ModelEvent,
    ModelOptions,
    ModelProtocolError,
    ModelRequest,
    NotFound,
    NotSupported,
    RateLimited,
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
    ManualClock,
    Raise,
    RecordingModel,
    ReplayMismatch,
    ReplayModel,
    Return,
    ScriptedModel,
    Step,
    call,
    say,
)
from gotato_testkit import strategies as gst
from gotato_testkit.contracts import ModelContract

ONCE = RetryPolicy(max_attempts=1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A place for a recording."""
    return tmp_path / "recording.jsonl"


def request(*texts: str, **more: Any) -> ModelRequest:
    """A request of user messages."""
    return ModelRequest("Be brief.", [UserMessage(text) for text in texts], **more)


def record(path: Path, steps: Sequence[Step], *requests: ModelRequest) -> None:
    """Records what a script answers."""
    model = RecordingModel(ScriptedModel(steps), path)
    for each in requests:
        outcome_of(model, each)


def outcome_of(model: Model, asked: ModelRequest) -> tuple[list[object], BaseException | None]:
    """The events that a model streams, and what it raises."""
    events: list[object] = []
    try:
        for event in model.stream(asked, Scope()):
            events.append(event)  # noqa: PERF402  # what came before an error counts too
    except GotatoError as error:
        return events, error
    return events, None


def lines_of(path: Path) -> list[Any]:
    """What stands in a recording."""
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


class TestRecordingModel(ModelContract):
    """A recording model keeps the promises of a model."""

    @pytest.fixture(autouse=True)
    def place(self, path: Path) -> None:
        """A file for each test."""
        self.path = path

    def make(self) -> Model:
        self.inner = ScriptedModel([say("Hello, whole wide world.")] * 9)
        return RecordingModel(self.inner, self.path)

    def sent(self, model: Model) -> int:
        return len(self.inner.requests)

    def unclosed(self, model: Model) -> int:
        return self.inner.unclosed


class TestReplayModel(ModelContract):
    """So does a replaying one."""

    @pytest.fixture(autouse=True)
    def place(self, path: Path) -> None:
        """A recording for each test."""
        self.path = path
        record(path, [say("Hello, whole wide world.")] * 9, *[self.request()] * 9)

    def make(self) -> Model:
        return ReplayModel(self.path)


# whole runs


def weather(city: str) -> str:
    """The weather in a city."""
    return f"Sunny in {city}"


def test_a_run_is_replayed(path: Path) -> None:
    """The same run again, without the model: the same answer, the same requests, nothing left."""
    live = RecordingModel(DemoModel(), path)
    first = Agent(live, tools=[weather], instructions="Be brief.").run("What is the weather in Oslo and Rome?")
    replay = ReplayModel(path)
    again = Agent(replay, tools=[weather], instructions="Be brief.").run("What is the weather in Oslo and Rome?")
    assert again.text == first.text == "Sunny in Oslo. Sunny in Rome."
    assert (replay.remaining, replay.name, live.name) == (0, "demo", "demo")
    assert repr(replay) == "ReplayModel('recording.jsonl', 0 of 2 left)"
    assert repr(live).endswith(", 'recording.jsonl')")


def test_what_went_wrong_is_replayed_too(path: Path) -> None:
    """Attempts that failed are lines of their own, and raise the same types, so that the kernel does the same."""
    script: list[Step] = [
        Raise(RateLimited("slow down", retry_after=2.0, status=429, provider="p", request_id="r-1")),
        [TextDelta("Hel"), Raise(ConnectionFailed("cut off"))],
        say("Hello."),
    ]
    for make in (lambda: RecordingModel(ScriptedModel(script), path), lambda: ReplayModel(path)):
        clock = ManualClock()
        assert Agent(make(), clock=clock, retry=RetryPolicy(jitter=0)).run("Hi").text == "Hello."
        assert clock.waits == [2.0, 1.0]
    assert [line["ended"] for line in lines_of(path)] == ["raised", "raised", "returned"]
    _, error = outcome_of(ReplayModel(path), ModelRequest("", [UserMessage("Hi")]))
    assert isinstance(error, RateLimited)
    assert (error.status, error.provider, error.request_id, str(error)) == (429, "p", "r-1", "slow down")


@settings(max_examples=30)
@given(gst.scripts())
def test_any_stream_is_replayed(tmp_path_factory: pytest.TempPathFactory, steps: list[Step]) -> None:
    """Whatever a model streams and raises, the replay streams and raises."""
    path = tmp_path_factory.mktemp("recordings") / "any.jsonl"
    live, asked = RecordingModel(ScriptedModel(steps), path), request("Hi")
    first = [outcome_of(live, asked) for _ in steps]
    replay = ReplayModel(path)
    for events, error in first:
        again, raised = outcome_of(replay, asked)
        known = [event for event in events if isinstance(event, ModelEvent)]
        known = events if len(known) == len(events) else events[: len(again)]
        assert again == known
        if len(known) < len(events):
            assert isinstance(raised, ModelProtocolError)
        else:
            assert (type(raised), str(raised)) == (type(error), str(error))
            assert getattr(raised, "retryable", None) == getattr(error, "retryable", None)
    assert replay.remaining == 0


# the file


def test_a_line_holds_request_events_and_end(path: Path) -> None:
    """One object a stream, readable: a fingerprint, the request as it was sent, the events, how they ended."""
    record(path, [say("größer\u2028")], request("Hi"))
    (line,) = lines_of(path)
    assert list(line) == ["gotato_recording", "model", "fingerprint", "request", "events", "ended"]
    assert line["model"] == {"name": "scripted", "capabilities": []}
    assert line["request"]["messages"] == [{"role": "user", "parts": [{"kind": "text", "text": "Hi"}]}]
    assert [event["kind"] for event in line["events"]] == ["text_delta", "done"]
    assert line["ended"] == "returned"
    assert "größer".encode() in path.read_bytes()


def test_half_of_a_pair_is_kept(path: Path) -> None:
    """A delta that ends between two surrogates is written as an escape, and comes back."""
    halves = [TextDelta("\ud834"), TextDelta("\udd1e"), *say("!")]
    record(path, [halves], request("Hi"))
    assert outcome_of(ReplayModel(path), request("Hi")) == (halves, None)


def test_ids_and_metadata_are_not_part_of_a_request(path: Path) -> None:
    """They differ from run to run and are not sent: the fingerprint is the same without them, and with other keys."""
    sent = [
        ModelRequest(
            "",
            [
                UserMessage("Hi", id=f"m-{run}", metadata={"run": run}),
                AssistantMessage("", [call("find")[0].call], id=f"a-{run}", model=f"m{run}"),  # type: ignore[union-attr]
                ToolMessage(ToolResult("call_1", "ok", "found", key=f"a-{run}:0", metadata={"run": run})),
            ],
            (ToolSpec("find", metadata={"run": run}),),
            ModelOptions(metadata={"run": str(run)}, stop=("x",)),
        )
        for run in (1, 2)
    ]
    record(path, [say("a")] * 2, *sent)
    first, second = lines_of(path)
    assert first["fingerprint"] == second["fingerprint"]
    assert "run" not in json.dumps(first["request"])
    assert len(first["fingerprint"]) == 32


def test_it_streams_while_it_records(path: Path) -> None:
    """Each event is passed on when it comes; nothing is collected first."""
    stream = RecordingModel(ScriptedModel([[TextDelta("a"), Raise(ConnectionFailed("cut"))]]), path).stream(
        request("Hi"), Scope()
    )
    assert next(stream) == TextDelta("a")
    assert path.read_bytes() == b""
    with pytest.raises(ConnectionFailed):
        next(stream)
    assert lines_of(path)[0]["ended"] == "raised"
    with pytest.raises(StopIteration):
        next(stream)
    assert len(lines_of(path)) == 1


def test_threads_and_recorders_share_a_file(path: Path) -> None:
    """Every stream is one whole line, whoever writes at the same time."""
    models = [RecordingModel(ScriptedModel([say("x" * 5000)] * 20), path) for _ in range(2)]
    threads = [
        threading.Thread(target=lambda model=model: [outcome_of(model, request("Hi")) for _ in range(10)])
        for model in models * 2
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines_of(path)) == 40
    assert ReplayModel(path).remaining == 40


def test_a_stream_that_was_closed_ends_in_a_mismatch(path: Path) -> None:
    """What nobody has read was not recorded: going on there is an error of its own, not an answer cut off."""
    stream = RecordingModel(ScriptedModel([say("one two three")]), path).stream(request("Hi"), Scope())
    next(stream)
    stream.close()  # type: ignore[attr-defined]  # it has one
    stream.close()  # type: ignore[attr-defined]
    assert [line["ended"] for line in lines_of(path)] == ["closed"]
    events, error = outcome_of(ReplayModel(path), request("Hi"))
    assert events == [TextDelta("one ")]
    assert isinstance(error, ReplayMismatch)
    assert "recorded up to here" in str(error)


class Interrupted:
    """A model that Ctrl-C ends."""

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[Any]:
        yield TextDelta("a")
        raise KeyboardInterrupt


def test_an_interrupt_is_not_recorded_as_the_models(path: Path) -> None:
    """Ctrl-C goes through, and the replay does not raise it."""
    model = RecordingModel(Interrupted(), path)
    with pytest.raises(KeyboardInterrupt):
        list(model.stream(request("Hi"), Scope()))
    assert lines_of(path)[0]["ended"] == "closed"
    assert (model.name, model.capabilities) == ("", frozenset())


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (Cancelled("enough"), Cancelled),
        (DeadlineExceeded("too late"), DeadlineExceeded),
        (EmptyResponse("nothing"), EmptyResponse),
        (InvalidState("the script has ended"), InvalidState),
        (ValueError("sk-secret"), ModelError),
    ],
)
def test_errors_come_back_by_type(path: Path, raised: Exception, expected: type[GotatoError]) -> None:
    """The kernel's own errors keep their type and words; of others only the name is written."""
    model = RecordingModel(ScriptedModel([Raise(raised)]), path)
    with pytest.raises(type(raised)):
        list(model.stream(request("Hi"), Scope()))
    _, again = outcome_of(ReplayModel(path), request("Hi"))
    assert type(again) is expected
    if isinstance(raised, ValueError):
        assert str(again) == "ValueError raised by the recorded model"
        assert b"secret" not in path.read_bytes()
    else:
        assert str(again) == str(raised)


def test_a_subclass_is_recorded_as_what_it_is_a_kind_of(path: Path) -> None:
    """An error of a user's own comes back as the nearest type that the kernel has."""

    class TooManyTokens(RateLimited):
        """A user's own."""

    record(path, [Raise(TooManyTokens("slow down"))], request("Hi"))
    assert lines_of(path)[0]["error"] == {"type": "RateLimited", "message": "slow down", "retryable": True}


def test_what_is_no_stream_is_recorded_as_such(path: Path) -> None:
    """A model that returns no iterator breaks the protocol, live and replayed; a list will do."""
    live = RecordingModel(ScriptedModel([Return(5), Return(list(say("a")))]), path)
    first, second = outcome_of(live, request("Hi")), outcome_of(live, request("Hi"))
    assert isinstance(first[1], ModelProtocolError)
    assert not first[1].retryable
    replay = ReplayModel(path)
    assert isinstance(outcome_of(replay, request("Hi"))[1], ModelProtocolError)
    assert outcome_of(replay, request("Hi")) == second == (list(say("a")), None)


# what does not fit


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
