"""What is given a wrong type says so: which argument, what it has to be, what came."""

from __future__ import annotations

from typing import Any

import pytest

import gotato_modelctx as context
from gotato_modelctx import Resource
from gotato_py import InvalidArgument, MemoryTranscript, UserMessage
from gotato_testkit import EchoModel

WRONG: Any = 5  # given where a type checker would refuse it
TALK = [UserMessage("Hi.", id="u")]


def compacted(transcript: Any, **given: Any) -> object:
    """A compaction with something wrong in it."""
    return context.compact(transcript, context.TruncateSummarizer(), keep_tokens=0, **given)


def wrong(**given: Any) -> dict[str, Any]:
    """Arguments, for a type checker any."""
    return given


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: context.Rules(WRONG), "Rules.folder must be a str or a Path without a NUL, not int"),
        (lambda: context.Rules("a\0b"), "Rules.folder must be a str or a Path without a NUL"),
        (lambda: context.Rules("/", root=WRONG), "Rules.root must be a str or a Path without a NUL, not int"),
        (lambda: context.Rules("/", names=["a\0b"]), r"Rules.names\[0\] must be the name of a file"),
        (lambda: Resource("r", "a\0b"), "Resource.source must be a path, or a callable without arguments"),
        (lambda: context.Time(clock=WRONG), "Time.clock must be a Clock, not int"),
        (lambda: context.Time(zone=WRONG), "Time.zone must be a tzinfo, not int"),
        (lambda: context.Time(precision=wrong(a=[])["a"]), "Time.precision must be one of"),
        (lambda: context.AutoCompact(WRONG), "AutoCompact.policy must be a CompactPolicy, not int"),
        (lambda: context.AutoCompact(context.CompactPolicy(2, 1), pause="1"), "AutoCompact.pause must be a number"),  # type: ignore[arg-type]
        (
            lambda: context.AutoCompact(context.CompactPolicy(2, 1), measure=WRONG),
            "AutoCompact.measure must be a callable from a message to tokens, not int",
        ),
        (lambda: context.CompactPolicy.of_window(9, floor="0"), "are shares"),  # type: ignore[arg-type]
        (lambda: context.CompactPolicy.of_window(9, ceiling=None), "are shares"),  # type: ignore[arg-type]
        (lambda: context.ModelSummarizer(EchoModel(), headings=WRONG), "ModelSummarizer.headings must be a sequence"),
        (lambda: context.ModelSummarizer(EchoModel(), options=WRONG), "options must be a ModelOptions, not int"),
        (lambda: context.ModelSummarizer(EchoModel(), retry=WRONG), "retry must be a RetryPolicy, not int"),
        (lambda: context.ModelSummarizer(EchoModel(), instructions=WRONG), "instructions must be a str, not int"),
        (lambda: context.ModelSummarizer(EchoModel(), counter=WRONG), "ModelSummarizer.counter must be None or a"),
        (lambda: context.TruncateSummarizer(counter=WRONG), "TruncateSummarizer.counter must be None or a callable"),
        (lambda: context.Offload(str, counter=WRONG), "Offload.counter must be None or a callable from text to tokens"),
        (lambda: context.estimate_tokens("x", counter=WRONG), "estimate_tokens: counter must be None or a callable"),
        (lambda: context.bytes_counter(WRONG), "bytes_counter: text must be a str, not int"),
        (lambda: context.cut_points(WRONG), "cut_points: messages must be a sequence of messages, not int"),
        (lambda: context.cut_points([WRONG]), r"cut_points: messages\[0\] must be a message, not int"),
        (lambda: context.cut_points(TALK, WRONG), "cut_points: waiting must be a sequence of WaitingCall, not int"),
        (lambda: context.cut_points(TALK, [WRONG]), r"cut_points: waiting\[0\] must be a WaitingCall, not int"),
        (lambda: context.tail_start(WRONG), "tail_start: messages must be a sequence of messages, not int"),
        (lambda: context.tail_start([WRONG]), r"tail_start: messages\[0\] must be a message, not int"),
        (lambda: context.last_cut_within(WRONG, 1), "last_cut_within: messages must be a sequence of messages"),
        (lambda: context.last_cut_within([WRONG], 1), r"last_cut_within: messages\[0\] must be a message"),
        (lambda: context.last_cut_within(TALK, wrong(a="1")["a"]), "last_cut_within: budget must be an int"),
        (lambda: context.last_cut_within(TALK, 1, waiting=WRONG), "last_cut_within: waiting must be a sequence"),
        (lambda: context.last_cut_within(TALK, 1, counter=WRONG), "last_cut_within: counter must be None or a"),
        (lambda: compacted("text"), "compact: transcript must be a Transcript, not str"),
        (lambda: compacted(WRONG), "compact: transcript must be a Transcript, not int"),
        (lambda: compacted(MemoryTranscript(), scope=WRONG), "compact: scope must be a Scope, not int"),
        (lambda: compacted(MemoryTranscript(), overhead="1"), "compact: overhead must be an int of at least 0"),
        (lambda: compacted(MemoryTranscript(), ceiling="1"), "compact: ceiling must be None or an int"),
        (lambda: compacted(MemoryTranscript(), measure=WRONG), "compact: measure must be a callable from a message"),
        (lambda: compacted(MemoryTranscript(), reason=WRONG), "compact: reason must be a str, not int"),
        (lambda: context.inspect(WRONG), "inspect: takes an Agent, a Transcript or a TurnView, not int"),
        (lambda: context.inspect(MemoryTranscript(), tools=WRONG), "inspect: tools must be tools, their specs or"),
        (lambda: context.inspect(MemoryTranscript(), builder=WRONG), "inspect: takes a builder"),
        (lambda: context.inspect(MemoryTranscript(), counter=WRONG), "inspect: counter must be None or a callable"),
    ],
)
def test_a_wrong_type_is_told(make: Any, said: str) -> None:
    """The error is an InvalidArgument that names the argument, before anything is done."""
    with pytest.raises(InvalidArgument, match=said):
        make()


@pytest.mark.parametrize("given", [5, 2.5, ["a"], {}, True])
def test_what_a_resource_is_given_has_to_be_text_or_bytes(given: Any) -> None:
    """A reader that returns something else is told which types it has to return: nothing is made of a number."""
    with pytest.raises(InvalidArgument) as raised:
        Resource("notes", lambda: given)()
    said = f"Resource('notes'): the callable gave a {type(given).__name__}; it has to give a str, bytes or None"
    assert str(raised.value) == said


@pytest.mark.parametrize("given", [b"ab", bytearray(b"ab"), memoryview(b"ab"), "ab"])
def test_what_a_resource_takes(given: Any) -> None:
    """Text, and bytes of each kind."""
    section = Resource("notes", lambda: given)()
    assert section is not None
    assert section.text == "ab"
