"""OpenAI's chat dialect beside the official SDK, where that is there: it takes our requests, and hears what we hear."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gotato_gateway import PROVIDERS, Quirks
from gotato_gateway._openai_request import chat_body
from gotato_gateway.quirks import quirks_for
from gotato_py import (
    ConnectionFailed,
    InvalidRequest,
    Message,
    ModelOptions,
    ModelRequest,
    ReasoningPart,
    StopReason,
    ToolCall,
    ToolSpec,
    Usage,
)
from gotato_testkit import strategies as gst

from .answers import Answer, ask, local
from .chunks import entry
from .sdk import check, sdk
from .server import Reply, Server, chunk, pieces_of, sse
from .transcripts import options, transcripts

ORIGIN = "openai-chat:gpt"
OPENAI = quirks_for("https://api.openai.com/v1", "gpt-5")
DETAILS = json.dumps([{"type": "reasoning.text", "text": "hm", "signature": "s"}])

OPTIONS = options(stop=st.lists(st.text(min_size=1, max_size=2), max_size=4).map(tuple))

reasoning = st.builds(
    ReasoningPart,
    st.sampled_from(["", "hm"]),
    st.sampled_from(["", DETAILS, "no json"]),
    st.sampled_from([ORIGIN, "openai-chat:other", "anthropic:claude", ""]),
    st.booleans(),
)


def body_of(messages: Sequence[Message], options: ModelOptions, schema: dict[str, Any], quirks: Quirks) -> Any:
    """The body of a request with everything in it; what no server takes (an unknown file, say) is passed over."""
    request = ModelRequest("s", messages, (ToolSpec("look.up", "Looks it up.", schema), ToolSpec("f")), options)
    try:
        return json.loads(chat_body("gpt-5", request, quirks, ORIGIN))
    except InvalidRequest:
        assume(False)


@pytest.mark.parametrize(
    "wrong",
    [
        {"unknown": 1},
        {"messages": [{"role": "nobody", "content": "x"}]},
        {"messages": [{"role": "user", "content": "x", "unknown": 1}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "text"}]}]},
        {"tools": [{"type": "function", "function": {"parameters": {}}}]},
    ],
)
def test_what_the_sdk_does_not_know_is_found(wrong: dict[str, Any]) -> None:
    """A request with an unknown member, or without a needed one, does not pass, however deep it is."""
    kind = sdk("openai.types.chat.completion_create_params").CompletionCreateParamsStreaming
    right = {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True}
    check(kind, right)
    with pytest.raises(pytest.fail.Exception):
        check(kind, right | wrong)


@given(transcripts(reasoning), OPTIONS, gst.schemas())
def test_the_sdk_takes_any_request(messages: list[Message], options: ModelOptions, schema: dict[str, Any]) -> None:
    """Every member of a request to OpenAI, however deep, has a name and a type that the SDK knows."""
    body = body_of(messages, options, schema, OPENAI)
    check(sdk("openai.types.chat.completion_create_params").CompletionCreateParamsStreaming, body)


@given(transcripts(reasoning), OPTIONS, gst.schemas(), st.sampled_from(sorted(PROVIDERS)))
def test_beyond_the_sdk_only_reasoning_goes(
    messages: list[Message], options: ModelOptions, schema: dict[str, Any], provider: str
) -> None:
    """On purpose: servers that want a model's reasoning back get it in members that OpenAI, and so its SDK, has not;
    OpenRouter is asked for reasoning in one of its own. All else is the same dialect."""
    body = body_of(messages, options, schema, quirks_for(PROVIDERS[provider].base_url, "gpt-5"))
    if "reasoning" in body:
        assert body.pop("reasoning").keys() <= {"effort", "max_tokens"}
    for message in body["messages"]:
        found = message.keys() & {"reasoning_content", "reasoning", "reasoning_details"}
        assert not found or (len(found), message["role"]) == (1, "assistant")
        for name in found:
            del message[name]
    check(sdk("openai.types.chat.completion_create_params").CompletionCreateParamsStreaming, body)


words = st.lists(st.text("aé\U0001f648\u2028\n ", min_size=1, max_size=3), max_size=3)
tokens = st.integers(0, 999)
usages = st.builds(
    lambda prompt, answer, read, thought: {
        "prompt_tokens": prompt + read,
        "completion_tokens": answer + thought,
        "total_tokens": prompt + read + answer + thought,
        "prompt_tokens_details": {"cached_tokens": read},
        "completion_tokens_details": {"reasoning_tokens": thought},
    },
    *[tokens] * 4,
)


@st.composite
def calls(draw: st.DrawFn) -> list[dict[str, Any]]:
    """The deltas of some calls, which come up one after the other and go on side by side."""
    begun: list[dict[str, Any]] = []
    rest: list[list[dict[str, Any]]] = []
    for index in range(draw(st.integers(0, 3))):
        text = json.dumps(draw(gst.json_objects()), indent=draw(st.sampled_from([None, 1])))
        text = draw(st.sampled_from([text, text, ""]))
        borders = [0, *sorted(draw(st.lists(st.integers(0, len(text)), max_size=3))), len(text)]
        first, *more = [{"arguments": text[start:end]} for start, end in pairwise(borders)]
        function = {"name": draw(st.sampled_from(["look.up", "f"])), **first}
        begun.append({"index": index, "id": f"call_{index}", "type": "function", "function": function})
        rest.append([{"index": index, "function": each} for each in more])
    while any(rest):
        begun.append(draw(st.sampled_from([each for each in rest if each])).pop(0))
    deltas: list[dict[str, Any]] = []
    for each in begun:  # one delta may hold several
        if draw(st.booleans()) and deltas:
            deltas[-1]["tool_calls"].append(each)
        else:
            deltas.append({"tool_calls": [each]})
    return deltas


@st.composite
def streams(draw: st.DrawFn) -> list[Any]:
    """A stream as OpenAI sends it, and as servers do that tell reasoning in a member of their own."""
    deltas = [
        {"role": "assistant", "content": draw(st.sampled_from(["", None])), "refusal": None},
        *({"reasoning_content": each} for each in draw(words)),
        *({"content": each} for each in draw(words)),
        *({"refusal": each} for each in draw(st.just([]) | words)),
        *draw(calls()),
    ]
    finish = draw(st.sampled_from(["stop", "length", "tool_calls", "content_filter"]))
    choices: list[Any] = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "logprobs": None, "finish_reason": finish})
    common = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-5"}
    chunks: list[dict[str, Any]] = [common | {"choices": [choice], "usage": None} for choice in choices]
    usage = draw(st.none() | usages)
    return [*chunks, common | {"choices": [], "usage": usage}] if usage else chunks


@contextmanager
def both() -> Generator[Callable[[list[bytes]], tuple[Any, Answer]]]:
    """What the SDK and what our adapter make of the pieces of a body, over the same server."""
    accumulator = sdk("openai.lib.streaming.chat").ChatCompletionStreamState
    bodies: list[list[bytes]] = []
    with (
        Server(lambda received: Reply(bodies[-1])) as server,
        sdk("openai").OpenAI(api_key="sk-test", base_url=server.url, max_retries=0) as client,
    ):
        adapter = local(server.url)

        def heard(pieces: list[bytes]) -> tuple[Any, Answer]:
            bodies.append(pieces)
            state = accumulator()
            stream = client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "hi"}], stream=True
            )
            for each in stream:
                state.handle_chunk(each)
            return state.current_completion_snapshot, ask(adapter)

        yield heard


def test_the_sdk_hears_the_same() -> None:
    """The official SDK makes the same text, reasoning, calls, end and usage of any stream, however its bytes come.

    On purpose: a refusal is text here, an end by "content_filter", and no arguments are an empty object.
    """
    with both() as heard:

        @given(streams(), st.sampled_from(["\n", "\r\n", "\r"]), st.integers(0, 9))
        def hear(chunks: list[Any], line_end: str, seed: int) -> None:
            body = b"".join(sse(*chunks)).replace(b"\n", line_end.encode())
            official, answer = heard(pieces_of(body, seed, longest=200))
            said, reason = official.choices[0].message, _stop_reason(official.choices[0])
            nothing = "" if reason in CUT.values() else "{}"
            assert answer.error is None
            assert answer.text == (said.content or "") + (said.refusal or "")
            assert answer.reasoning == getattr(said, "reasoning_content", "")
            assert [(call.id, call.name, call.arguments) for call in answer.calls] == [
                (call.id, call.function.name, call.function.arguments or nothing) for call in said.tool_calls or ()
            ]
            assert (answer.done.response_id, answer.done.model) == (official.id, official.model)
            assert answer.done.stop_reason == reason
            assert answer.done.usage == _usage(official.usage)

        hear()


CUT = {"length": StopReason.MAX_TOKENS, "content_filter": StopReason.CONTENT_FILTER}


def _stop_reason(choice: Any) -> StopReason:
    if choice.message.refusal and choice.finish_reason != "length":
        return StopReason.CONTENT_FILTER
    other = StopReason.TOOL_CALLS if choice.message.tool_calls else StopReason.END_TURN
    return CUT.get(choice.finish_reason, other)


def _usage(told: Any) -> Usage | None:
    if told is None:
        return None
    read = told.prompt_tokens_details.cached_tokens
    thought = told.completion_tokens_details.reasoning_tokens
    return Usage(told.prompt_tokens, told.completion_tokens, read, 0, thought)


class TestOnPurpose:
    """Where the SDK and we differ, since streams are not always as OpenAI sends them."""

    def test_a_stream_that_was_cut_off_is_no_answer(self) -> None:
        """The SDK takes what came for the whole; we say that the connection failed, so that it is asked for again."""
        with both() as heard:
            official, answer = heard(sse(chunk("Hel"), done=False))
        assert official.choices[0].message.content == "Hel"
        assert isinstance(answer.error, ConnectionFailed)

    def test_halves_of_a_character_find_each_other(self) -> None:
        """The SDK keeps two halves that no encoding takes; we give out the character."""
        with both() as heard:
            official, answer = heard(sse(*(chunk(half) for half in "\ud83d\ude48"), chunk(finish="stop")))
        assert (official.choices[0].message.content, answer.text) == ("\ud83d\ude48", "\U0001f648")

    def test_an_id_that_is_said_again_is_the_same_id(self) -> None:
        """The SDK joins what servers repeat with every piece; we know it again."""
        with both() as heard:
            pieces = [entry(piece, call_id="c", name="f") for piece in ('{"a":', "1}")]
            official, answer = heard(sse(*pieces, chunk(finish="tool_calls")))
        (call,) = official.choices[0].message.tool_calls
        assert (call.id, call.function.name, call.function.arguments) == ("cc", "ff", '{"a":1}')
        assert answer.calls == [ToolCall("c", "f", '{"a":1}')]

    def test_two_calls_at_one_place_are_two_calls(self) -> None:
        """The SDK makes one call of two whole ones that a server numbers alike; we do not."""
        with both() as heard:
            pieces = [entry('{"a":1}', call_id=each, name="f") for each in "cd"]
            official, answer = heard(sse(*pieces, chunk(finish="tool_calls")))
        assert len(official.choices[0].message.tool_calls) == 1
        assert answer.calls == [ToolCall("c", "f", '{"a":1}'), ToolCall("d", "f", '{"a":1}')]

    def test_an_answer_in_one_piece_is_an_answer(self) -> None:
        """The SDK sees no stream in a completion that came whole, and so nothing; we read it."""
        whole = {"id": "c", "choices": [{"index": 0, "message": {"content": "Hello"}, "finish_reason": "stop"}]}
        with both() as heard, pytest.raises(AssertionError):
            heard([json.dumps(whole).encode()])
        with Server(Reply([json.dumps(whole).encode()])) as server:
            assert ask(local(server.url)).text == "Hello"
