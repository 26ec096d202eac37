"""Single values: parts, usage, calls, results and messages, whether or not they would make sense in a history.

Each strategy is made once: making one takes longer than drawing from it many times.
"""

from __future__ import annotations

from functools import cache
from typing import TypeVar

from hypothesis import strategies as st

from gotato_py import (
    AssistantMessage,
    AudioPart,
    FilePart,
    ImagePart,
    JSONPart,
    Message,
    Part,
    ReasoningPart,
    StopReason,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolResultStatus,
    Usage,
    UserMessage,
)

from .data import JSON, extras, json_objects, json_values, texts

T = TypeVar("T", ImagePart, FilePart)


@cache
def parts() -> st.SearchStrategy[Part]:
    """Parts of every kind, text first; texts may hold lone surrogates, which the values replace."""
    text = texts(surrogates=True)
    return st.one_of(
        st.builds(TextPart, text, extra=extras()),
        st.builds(JSONPart, json_values(), extra=extras()),
        st.builds(ReasoningPart, text, text, text, st.booleans(), extra=extras()),
        _sourced(ImagePart),
        st.builds(AudioPart, st.binary(max_size=8), text, extra=extras()),
        _sourced(FilePart),
    )


def _sourced(kind: type[T]) -> st.SearchStrategy[T]:
    """Parts that have either data or a URL; the word is the picture's detail, or the file's name."""
    text = texts(surrogates=True)
    sources = st.tuples(st.binary(max_size=8), st.none()) | st.tuples(st.none(), text)

    def made(source: tuple[bytes | None, str | None], media_type: str, word: str, extra: dict[str, JSON]) -> T:
        return kind(*source, media_type, word, extra=extra)

    return st.builds(made, sources, text, text, extras())


def usages(*, most: int = 10**6) -> st.SearchStrategy[Usage]:
    """Token counts, each up to `most`."""
    return st.builds(Usage, *[st.integers(0, most)] * 5, extra=extras())


@cache
def tool_calls() -> st.SearchStrategy[ToolCall]:
    """Calls of any name, with any text for arguments."""
    return st.builds(ToolCall, *[texts(surrogates=True)] * 5, extra=extras())


@cache
def tool_results() -> st.SearchStrategy[ToolResult]:
    """Results of every status."""
    text = texts(surrogates=True)
    return st.builds(
        ToolResult,
        text,
        st.sampled_from(ToolResultStatus),
        st.lists(parts(), max_size=2),
        text,
        text,
        json_objects(),
        extra=extras(),
    )


@cache
def user_messages() -> st.SearchStrategy[UserMessage]:
    """What a user may say, nothing included."""
    return st.builds(
        UserMessage,
        st.lists(parts(), max_size=3),
        id=texts(surrogates=True),
        metadata=json_objects(),
        extra=extras(),
    )


@cache
def assistant_messages() -> st.SearchStrategy[AssistantMessage]:
    """What a model may answer, nothing included."""
    text = texts(surrogates=True)
    return st.builds(
        AssistantMessage,
        st.lists(parts(), max_size=3),
        st.lists(tool_calls(), max_size=2),
        usage=usages(),
        stop_reason=st.sampled_from(StopReason),
        model=text,
        id=text,
        metadata=json_objects(),
        extra=extras(),
    )


@cache
def tool_messages() -> st.SearchStrategy[ToolMessage]:
    """Results as messages."""
    return st.builds(ToolMessage, tool_results(), id=texts(surrogates=True), metadata=json_objects(), extra=extras())


@cache
def messages() -> st.SearchStrategy[Message]:
    """Messages of all three roles."""
    return st.one_of(user_messages(), assistant_messages(), tool_messages())
