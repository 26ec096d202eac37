"""Recording a model, and replaying what was recorded."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
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
    InvalidState,
    Model,
    ModelError,
    ModelEvent,
    ModelOptions,
    ModelProtocolError,
    ModelRequest,
    RateLimited,
    RetryPolicy,
    Scope,
    TextDelta,
    ToolMessage,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from gotato_testkit import (
    DemoModel,
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

from .recordings import lines_of, outcome_of, record, request


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A place for a recording."""
    return tmp_path / "recording.jsonl"


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
        legal = all(isinstance(event, ModelEvent) for event in events)
        assert again == (events if legal else events[: len(again)])
        if not legal:
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
